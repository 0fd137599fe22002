//! Replacement of addresses by functions after the scan.

use super::labeller::Labeller;
use super::side::{LoadedSymbols, module_of};
use crate::callchain::{Frame, is_of_branch};
use crate::query::graph::FrameKey;
use crate::query::key::{End, Key, NO_KEY};
use crate::scan;
use crate::symbols::SourceFrame;

/// Replaces a file's addresses by functions once the modules that were hit are known and loaded.
#[derive(Debug)]
pub struct Naming<'l, 'f> {
    /// Meaning of the numbers in keys.
    pub labeller: &'l Labeller<'f>,
    /// Symbols of the modules that were hit.
    pub symbols: &'l LoadedSymbols,
    /// `true` if inlined functions become frames.
    pub inlined: bool,
}

impl Naming<'_, '_> {
    fn frame(&self, frame: Frame) -> Frame {
        let mut key = NO_KEY;
        frame.put(&mut key);
        let mut named = Frame::of(&self.labeller.resolve(key, self.symbols));
        named.branch = frame.branch;
        if self.labeller.query.chains.key != FrameKey::Function
            && let Some(loaded) = module_of(self.symbols, u64::from(frame.module))
        {
            named.line = self.labeller.line(loaded, frame.address).0 + 1;
            let start = loaded.table.lookup(frame.address).map_or(frame.address, |symbol| symbol.start);
            named.offset = u32::try_from(frame.address.wrapping_sub(start)).unwrap_or(u32::MAX);
        }
        named
    }
}

impl scan::Naming for Naming<'_, '_> {
    fn changes(&self) -> bool {
        !self.symbols.is_empty()
    }

    fn key(&self, key: Key) -> Key {
        self.labeller.resolve(key, self.symbols)
    }

    fn frames(&self, frame: Frame, into: &mut Vec<Frame>) {
        let mut named = self.frame(frame);
        let loaded = module_of(self.symbols, u64::from(frame.module));
        if let Some(loaded) = loaded
            .filter(|_| self.inlined && named.end.is_symbol && !frame.end.is_symbol && !is_of_branch(frame.branch))
        {
            let lines = loaded.lines();
            let mut functions = lines.frames(frame.address.wrapping_sub(u64::from(frame.is_return)));
            let line = |at: &SourceFrame| lines.place(at).filter(|_| named.line > 0).map_or(0, |line| line.0 + 1);
            let outer = functions.pop();
            for at in functions {
                let line = line(&at);
                let Some(function) = at.function else { continue };
                let address = u64::from(lines.number(function).0);
                into.push(Frame { end: End { is_inlined: true, ..named.end }, address, line, ..named });
            }
            named.line = outer.map(|at| line(&at)).filter(|line| *line > 0).unwrap_or(named.line);
        }
        // As in perf, if samples without a function are excluded, so are frames without one.
        if named.end.is_symbol || !self.labeller.query.filters.resolved {
            into.push(named);
        }
    }
}

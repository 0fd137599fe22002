//! Replacement of addresses by functions after the scan.

use super::labeller::Labeller;
use crate::callchain::{Frame, is_of_branch};
use crate::query::graph::FrameKey;
use crate::query::key::{End, Field, Key, KeyAddress, Meta, NO_KEY};
use crate::scan::Naming;
use crate::symbols::{LineId, Loaded, SourceFrame};

impl Labeller<'_> {
    /// Returns the source line of an address. If it is unknown, the text is `function+offset`, or `module[address]`
    /// without a function, as in perf.
    fn line(loaded: &Loaded, address: u64) -> LineId {
        loaded.lines().line(address, || match loaded.table.lookup(address) {
            Some(symbol) => format!("{}+{}", loaded.shown(symbol.name), address.wrapping_sub(symbol.start)),
            None => format!("{}[{address:x}]", loaded.module.name()),
        })
    }

    fn frame(&self, frame: Frame) -> Frame {
        let mut key = NO_KEY;
        frame.put(&mut key);
        let mut named = Frame::of(&self.key(key));
        named.branch = frame.branch;
        if self.query.chains.key != FrameKey::Function
            && let Some(loaded) = self.loaded(frame.module.into())
        {
            named.line = Self::line(loaded, frame.address).0 + 1;
            let start = loaded.table.lookup(frame.address).map_or(frame.address, |symbol| symbol.start);
            named.offset = u32::try_from(frame.address.wrapping_sub(start)).unwrap_or(u32::MAX);
        }
        named
    }
}

impl Naming for Labeller<'_> {
    fn changes(&self) -> bool {
        !self.symbols.is_empty()
    }

    /// Replaces the addresses of a key by symbol numbers, and sets its source lines if the query needs them.
    fn key(&self, mut key: Key) -> Key {
        let mut meta = Meta::unpack(Field::Meta.of(&key));
        let ends = [(KeyAddress::At, &mut meta.at), (KeyAddress::From, &mut meta.from)];
        for (side, end) in ends {
            if end.is_symbol {
                continue;
            }
            let module = self.loaded(side.module().of(&key));
            if let Some(loaded) = module.filter(|_| self.fields.contains(&side.line())) {
                *side.line().of_mut(&mut key) = u64::from(Self::line(loaded, side.address().of(&key)).0) + 1;
            }
            if let Some((module, symbol)) = module.and_then(|m| Some((m, m.table.find(side.address().of(&key))?))) {
                end.is_symbol = true;
                if side == KeyAddress::At && self.fields.contains(&Field::Offset) {
                    let start = module.table.get(symbol).map_or(0, |symbol| symbol.start);
                    *Field::Offset.of_mut(&mut key) = Field::Address.of(&key).wrapping_sub(start);
                }
                *side.address().of_mut(&mut key) = u64::from(symbol.0);
            }
        }
        *Field::Meta.of_mut(&mut key) = meta.pack();
        key
    }

    fn frames(&self, frame: Frame, into: &mut Vec<Frame>) {
        let mut named = self.frame(frame);
        let has_inlined = self.inlined && named.end.is_symbol && !frame.end.is_symbol && !is_of_branch(frame.branch);
        if let Some(loaded) = self.loaded(frame.module.into()).filter(|_| has_inlined) {
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
        if named.end.is_symbol || !self.query.filters.resolved {
            into.push(named);
        }
    }
}

//! Callchains, one line per frame.

use std::collections::HashSet;
use std::io::{self, Write};

use recrep_format::abi::{CpuMode, SampleType};
use recrep_format::attr::Attr;
use recrep_format::record::Sample;

use super::fields::{Field, Fields};
use super::frames::{Finder, Function, frames};
use super::query::ScriptQuery;
use super::source;
use crate::callchain::unwind::{ChainSources, Origin, Unwinding};
use crate::callchain::{ChainLimit, Deferred, Recorded};
use crate::pipeline::session::Session;
use crate::terminal::escape::escape;
use crate::timeline::{Moment, Task};

/// CPU mode, task and time of a sample.
pub(super) struct Site<'a> {
    pub(super) mode: CpuMode,
    pub(super) task: &'a Task,
    pub(super) at: Moment,
}

/// Printer of callchains.
pub(super) struct ChainPrinter<'s> {
    sources: ChainSources<'s>,
    words: Vec<u64>,
    shown: bool,
    max_frames: usize,
    stop_at: &'s HashSet<String>,
    inline: bool,
    source_paths: bool,
}

/// A frame of a callchain.
#[derive(Clone, Copy)]
struct Frame {
    mode: CpuMode,
    ip: u64,
    /// Distance to the lookup address: 1 if `ip` is a return address, else 0.
    back: u64,
}

impl<'s> ChainPrinter<'s> {
    /// Creates a printer. `deferred` has the parts of callchains that were recorded after their samples, `unwinding`
    /// unwinds copied stacks.
    pub(super) fn new(
        (session, query): (&Session<'_>, &'s ScriptQuery),
        deferred: &'s Deferred<'s>,
        unwinding: Option<&'s Unwinding<'s>>,
    ) -> Self {
        let look = &query.look;
        let sampled = |attr: &Attr| attr.sample_type.contains(SampleType::CALLCHAIN);
        let recorded = Recorded { deferred, most: ChainLimit { frames: look.max_stack, outermost: false } };
        Self {
            sources: ChainSources::new(recorded, unwinding),
            words: Vec::new(),
            shown: look.chains && session.file.attrs.entries().iter().any(|entry| sampled(&entry.attr)),
            max_frames: look.max_stack,
            stop_at: &look.stop_at,
            inline: look.inline,
            source_paths: query.symbol_sources.source_paths,
        }
    }

    /// Returns whether the samples of an event are printed with their callchains.
    pub(super) fn has(&self, attr: &Attr) -> bool {
        self.shown && attr.sample_type.contains(SampleType::CALLCHAIN)
    }

    /// Prints the callchain of a sample, beginning on a new line.
    pub(super) fn print(
        &mut self,
        sampled: (&Sample<'_, '_>, &Attr),
        fields: &Fields,
        site: &Site<'_>,
        finder: &mut Finder<'_, '_>,
        out: &mut Vec<u8>,
    ) -> io::Result<()> {
        writeln!(out)?;
        for frame in self.frames(sampled, site) {
            if !self.frame(frame, fields, site, finder, out)? {
                break;
            }
        }
        Ok(())
    }

    /// Returns the frames of a sample, innermost first.
    fn frames(&mut self, (sample, attr): (&Sample<'_, '_>, &Attr), site: &Site<'_>) -> Vec<Frame> {
        let origin = Origin::of(attr);
        self.words.clear();
        if self.sources.chain((sample, attr, origin), site.task, site.at, &mut self.words).is_err() {
            return Vec::new();
        }
        let unwound = self.words.len() - self.sources.unwound(origin).min(self.words.len());
        let (recorded, unwound) = self.words.split_at_checked(unwound).unwrap_or_default();
        // As in perf, call stacks of the hardware (LBR) are printed whole, and unwound frames have their own limit.
        let max_frames = if origin == Origin::Calls { usize::MAX } else { self.max_frames };
        let recorded = frames(recorded, site.mode, max_frames).into_iter().enumerate();
        let is_return = |depth| origin != Origin::Calls && depth > 0;
        let recorded = recorded.map(|(depth, (mode, ip))| Frame { mode, ip, back: u64::from(is_return(depth)) });
        recorded.chain(unwound.iter().map(|ip| Frame { mode: CpuMode::User, ip: *ip, back: 0 })).collect()
    }

    /// Prints a frame, after the functions that are inlined into it. Returns whether the next frame is to be printed.
    fn frame(
        &self,
        frame: Frame,
        fields: &Fields,
        site: &Site<'_>,
        finder: &mut Finder<'_, '_>,
        out: &mut Vec<u8>,
    ) -> io::Result<bool> {
        let Frame { mode, ip, back } = frame;
        let place = finder.place(mode, site.task, ip, site.at);
        let base = finder.symbol(place);
        let inlined = match self.inline {
            true => finder.inlined(place, place.address.saturating_sub(back)),
            false => [].into(),
        };
        let offset = base.as_ref().map_or(place.address, |function| function.offset);
        let (outermost, inner) = inlined.split_last().map_or((None, &[][..]), |(last, rest)| (Some(last), rest));
        for at in inner {
            write!(out, "\t{ip:>16x}")?;
            let name = at.function.as_deref().unwrap_or("??");
            let function = Function { name: escape(name).into_owned(), offset };
            if fields.has(Field::Sym) {
                function.print(fields, out)?;
            }
            if let Some(line) = source::written(at, self.source_paths).filter(|_| fields.has(Field::SrcLine)) {
                write!(out, "\n  {line}")?;
            }
            writeln!(out, " (inlined)")?;
            if self.stop_at.contains(&function.name) {
                return Ok(false);
            }
        }
        write!(out, "\t{ip:>16x}")?;
        finder.names(place, fields, out)?;
        if fields.has(Field::SrcLine) {
            let line = match outermost {
                Some(at) => source::written(at, self.source_paths),
                None => None,
            };
            if let Some(line) = line.or_else(|| source::line(finder, place, self.source_paths)) {
                write!(out, "\n  {line}")?;
            }
        }
        writeln!(out)?;
        Ok(!base.is_some_and(|function| self.stop_at.contains(&function.name)))
    }
}

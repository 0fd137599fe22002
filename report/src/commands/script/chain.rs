//! Callchains, one line per frame.

use std::collections::HashSet;

use recrep_format::abi::{CpuMode, SampleType, context};
use recrep_format::attr::{Attr, AttrIndex};
use recrep_format::record::Sample;

use super::fields::{Field, Fields};
use super::frames::{Finder, Function};
use super::query::ScriptQuery;
use super::source;
use crate::callchain::unwind::{ChainSources, Origin, StackUnwinder};
use crate::callchain::{ChainLimit, Deferred, Recorded};
use crate::pipeline::session::Session;
use crate::terminal::digits;
use crate::terminal::escape::escape;
use crate::timeline::{Contexts, ModuleId, Moment, Place, SpaceEpoch, Task, cache_place};

/// CPU mode, task and time of a sample.
pub(super) struct SampleContext<'a> {
    pub(super) mode: CpuMode,
    pub(super) task: &'a Task,
    pub(super) at: Moment,
}

/// Prints callchains, for one worker.
pub(super) struct ChainPrinter<'s> {
    sources: ChainSources<'s>,
    words: Vec<u64>,
    frames: Vec<Frame>,
    shown: bool,
    max_frames: usize,
    stop_at: &'s HashSet<String>,
    inline: Option<bool>,
    source_paths: bool,
    /// Numbers of event, CPU mode, distance to the call, whether it was unwound, and epoch.
    contexts: Contexts<(usize, CpuMode, u64, bool)>,
    /// Lines of frames that were printed before, by address and context.
    lines: Vec<FrameLine>,
    /// Their texts.
    texts: Vec<u8>,
}

/// Log2 of the number of lines of frames that a worker remembers.
const REMEMBERED: u32 = 16;

/// Length of their texts in bytes at which all are forgotten. Most lines have fewer than 100 bytes.
const MOST_TEXT: usize = 1 << 23;

/// The line of a frame. Many are read for each sample, so it is kept small.
#[derive(Clone, Copy, Default)]
struct FrameLine {
    ip: u64,
    /// The number of its context plus one; 0 is no frame.
    context: u32,
    module: Option<ModuleId>,
    /// Position and length of its text.
    text: (u32, u32),
    /// Number of lookups of its function.
    lookups: u8,
    is_found: bool,
    /// `true` if the frame after it is printed.
    goes_on: bool,
}

/// A frame: its CPU mode, its address, and how far before it the call is.
#[derive(Clone, Copy)]
struct Frame {
    mode: CpuMode,
    ip: u64,
    /// 1 if the address is a return address.
    back: u64,
    is_unwound: bool,
}

impl<'s> ChainPrinter<'s> {
    /// Creates a printer. `deferred` has the parts of callchains that were recorded after their samples, `unwinding`
    /// unwinds copied stacks.
    pub(super) fn new(
        (session, query): (&Session<'_>, &'s ScriptQuery),
        deferred: &'s Deferred<'s>,
        unwinding: Option<&'s StackUnwinder<'s>>,
    ) -> Self {
        let look = &query.look;
        let sampled = |attr: &Attr| attr.sample_type.contains(SampleType::CALLCHAIN);
        let recorded = Recorded { deferred, most: ChainLimit { frames: look.max_stack, outermost: false } };
        Self {
            sources: ChainSources::new(recorded, unwinding),
            words: Vec::new(),
            frames: Vec::new(),
            shown: look.chains && session.file.attrs.entries().iter().any(|entry| sampled(&entry.attr)),
            max_frames: look.max_stack,
            stop_at: &look.stop_at,
            inline: look.inline,
            source_paths: query.symbol_sources.source_paths,
            contexts: Contexts::default(),
            lines: Vec::new(),
            texts: Vec::new(),
        }
    }

    /// Returns whether the samples of an event are printed with their callchains.
    pub(super) fn has(&self, attr: &Attr) -> bool {
        self.shown && attr.sample_type.contains(SampleType::CALLCHAIN)
    }

    /// Prints the callchain of a sample of an event, beginning on a new line.
    pub(super) fn print(
        &mut self,
        sampled: (&Sample<'_, '_>, &Attr, AttrIndex),
        fields: &Fields,
        site: &SampleContext<'_>,
        finder: &mut Finder<'_, '_>,
        out: &mut Vec<u8>,
    ) {
        out.push(b'\n');
        let (sample, attr, event) = sampled;
        let epoch = finder.epoch(site.task, site.at);
        let mut frames = std::mem::take(&mut self.frames);
        frames.clear();
        self.frames((sample, attr), site, &mut frames);
        for frame in &frames {
            if !self.frame(*frame, (event, fields), (site, epoch), finder, out) {
                break;
            }
        }
        self.frames = frames;
    }

    /// Appends the frames of a sample, innermost first.
    fn frames(&mut self, (sample, attr): (&Sample<'_, '_>, &Attr), site: &SampleContext<'_>, frames: &mut Vec<Frame>) {
        let origin = Origin::of(attr);
        self.words.clear();
        if self.sources.chain((sample, attr, origin), site.task, site.at, &mut self.words).is_err() {
            return;
        }
        let unwound = self.words.len() - self.sources.unwound(origin).min(self.words.len());
        let (recorded, unwound) = self.words.split_at_checked(unwound).unwrap_or_default();
        // As in perf, call stacks of the hardware (LBR) are printed whole, and unwound frames have their own limit.
        let is_calls = origin == Origin::Calls;
        let max_frames = if is_calls { usize::MAX } else { self.max_frames };
        let mut mode = site.mode;
        for ip in recorded.iter().copied() {
            if ip >= context::MAX {
                mode = match ip {
                    context::HV => CpuMode::Hypervisor,
                    context::KERNEL => CpuMode::Kernel,
                    context::USER => CpuMode::User,
                    // perf takes an unknown context marker for a damaged callchain and drops all of it.
                    _ => {
                        frames.clear();
                        break;
                    }
                };
            } else if frames.len() < max_frames {
                let back = u64::from(!is_calls && !frames.is_empty());
                frames.push(Frame { mode, ip, back, is_unwound: false });
            }
        }
        frames.extend(unwound.iter().map(|ip| Frame { mode: CpuMode::User, ip: *ip, back: 0, is_unwound: true }));
    }

    /// Prints a frame, and returns whether the next one follows.
    fn frame(
        &mut self,
        frame: Frame,
        (event, fields): (AttrIndex, &Fields),
        (site, epoch): (&SampleContext<'_>, SpaceEpoch),
        finder: &mut Finder<'_, '_>,
        out: &mut Vec<u8>,
    ) -> bool {
        let Frame { mode, ip, back, is_unwound } = frame;
        let context = self.contexts.number((event.0, mode, back, is_unwound), epoch.in_mode(mode)).saturating_add(1);
        let slot = cache_place(ip, context, REMEMBERED);
        if let Some(line) = self.lines.get(slot).filter(|line| line.ip == ip && line.context == context) {
            finder.count(line.module, line.lookups.into(), line.is_found);
            let (start, len) = (line.text.0 as usize, line.text.1 as usize);
            out.extend_from_slice(self.texts.get(start..start + len).unwrap_or_default());
            return line.goes_on;
        }
        let place = finder.place(mode, site.task, ip, site.at);
        let from = out.len();
        let before = finder.lookups(place);
        let base = finder.symbol(place);
        let goes_on = self.lines_of(frame, place, base.as_ref(), fields, finder, out);
        if self.lines.is_empty() || self.texts.len() >= MOST_TEXT {
            self.lines = vec![FrameLine::default(); 1 << REMEMBERED];
            self.texts.clear();
        }
        let text = out.get(from..).unwrap_or_default();
        if let Some(line) = self.lines.get_mut(slot)
            && let Ok(lookups) = u8::try_from(finder.lookups(place) - before)
            && let (Ok(start), Ok(len)) = (u32::try_from(self.texts.len()), u32::try_from(text.len()))
        {
            self.texts.extend_from_slice(text);
            let (module, is_found) = (place.module, base.is_some());
            *line = FrameLine { ip, context, module, text: (start, len), lookups, is_found, goes_on };
        }
        goes_on
    }

    /// Prints a frame after those that are inlined into it, and returns whether the next one follows.
    fn lines_of(
        &self,
        Frame { ip, back, is_unwound, .. }: Frame,
        place: Place,
        base: Option<&Function>,
        fields: &Fields,
        finder: &mut Finder<'_, '_>,
        out: &mut Vec<u8>,
    ) -> bool {
        let inlined = match self.inline.unwrap_or(is_unwound) {
            true => finder.inlined(place, place.address.saturating_sub(back)),
            false => [].into(),
        };
        let offset = base.map_or(place.address, |function| function.offset);
        let (outermost, inner) = inlined.split_last().map_or((None, &[][..]), |(last, rest)| (Some(last), rest));
        let has_line = fields.has(Field::SrcLine);
        let source_line = |line: Option<String>, out: &mut Vec<u8>| {
            if let Some(line) = line {
                out.extend_from_slice(b"\n  ");
                out.extend_from_slice(line.as_bytes());
            }
        };
        for at in inner {
            out.push(b'\t');
            digits::hex(out, ip, 16);
            let name = at.function.as_deref().unwrap_or("??");
            let function = Function { name: escape(name).into(), offset };
            if fields.has(Field::Sym) {
                function.print(fields, out);
            }
            source_line(source::written(at, self.source_paths).filter(|_| has_line), out);
            out.extend_from_slice(b" (inlined)\n");
            if self.stop_at.contains(&*function.name) {
                return false;
            }
        }
        out.push(b'\t');
        digits::hex(out, ip, 16);
        finder.names(place, fields, out);
        if has_line {
            let line = outermost.and_then(|at| source::written(at, self.source_paths));
            source_line(line.or_else(|| source::line(finder, place, self.source_paths)), out);
        }
        out.push(b'\n');
        !base.is_some_and(|function| self.stop_at.contains(&*function.name))
    }
}

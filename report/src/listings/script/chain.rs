//! Callchains, one line per frame.

use std::sync::Arc;

use recrep_format::abi::{CpuMode, SampleType};
use recrep_format::attr::Attr;

use super::args::ScriptQuery;
use super::fields::{Fields, OutputField};
use super::frames::{Finder, FoundFunction, Lookup, print_function};
use super::row::{FieldValue, FrameRow};
use super::sample::ScriptSample;
use super::source;
use crate::callchain::{CallSite, ChainOrigin, FrameWord};
use crate::samples::{ChainReader, ChainSetup, Session};
use crate::symbols::{Functions, SourceFrame, SymbolId};
use crate::terminal::digits;
use crate::terminal::escape::escape;
use crate::timeline::{Contexts, ModuleId, Place, SampleContext, SpaceEpoch, cache_place};

/// Prints callchains, for one worker.
pub(super) struct ChainPrinter<'s> {
    pub(super) finder: Finder<'s>,
    /// Frames that differ in function or module have numbers of their own.
    reader: ChainReader<'s>,
    frames: Vec<FrameWord>,
    query: &'s ScriptQuery,
    /// For each frame of the callchain at hand that has only function and module: its number, and
    /// its address in the module.
    resolved: Vec<(u32, u64)>,
    /// Functions and modules, by the frames' numbers.
    functions: Vec<FrameFunction>,
    /// Numbers of event, CPU mode, kind of lookup, whether it was unwound, and epoch.
    line_contexts: Contexts<(usize, CpuMode, CallSite, bool)>,
    /// Lines of frames that have more than function and module: source lines, offsets in modules,
    /// or frames of inlined functions. Each place has the last line whose address and context
    /// belong there.
    lines: Vec<FrameLine>,
    /// Texts of the remembered lines.
    texts: Vec<u8>,
}

/// Log2 of the number of places for lines.
const LINES: u32 = 16;

/// Length of the texts of remembered lines in bytes at which all are forgotten. Most lines have
/// fewer than 100 bytes.
const MOST_TEXT: usize = 1 << 23;

/// Function and module of a frame.
struct FrameFunction {
    function: Option<FoundFunction>,
    module: Option<ModuleId>,
}

/// Text of a frame's line.
#[derive(Clone, Copy, Default)]
struct FrameLine {
    ip: u64,
    /// The number of its context plus one; 0 is no line.
    context: u32,
    /// Position and length of its text.
    text: (u32, u32),
    module: Option<ModuleId>,
    /// Number of lookups of its function.
    lookups: u32,
    lookup: Lookup,
    /// `true` if the frame after it is printed.
    goes_on: bool,
}

impl<'s> ChainPrinter<'s> {
    pub(super) fn new(
        session: &'s Session<'s>,
        query: &'s ScriptQuery,
        functions: &'s Functions<'s>,
        chains: &'s ChainSetup<'s>,
    ) -> Self {
        Self {
            finder: Finder::new(session, functions, query.look.show_kernel_path),
            reader: chains.reader(),
            frames: Vec::new(),
            query,
            resolved: Vec::new(),
            functions: Vec::new(),
            line_contexts: Contexts::default(),
            lines: Vec::new(),
            texts: Vec::new(),
        }
    }

    /// Returns whether the samples of an event are printed with their callchains.
    pub(super) fn has(&self, attr: &Attr) -> bool {
        !self.query.look.hide_call_graph && attr.sample_type.contains(SampleType::CALLCHAIN)
    }

    /// Prints the callchain of a sample, beginning on a new line.
    pub(super) fn print(&mut self, fields: &Fields, s: &ScriptSample<'_>, out: &mut Vec<u8>) {
        out.push(b'\n');
        let epoch = self.reader.finder.epoch(s.task.space, s.at);
        let mut frames = std::mem::take(&mut self.frames);
        self.frames(s, &mut frames);
        let are_long = fields.has(OutputField::SrcLine) || fields.has(OutputField::DsOff);
        let inlined = self.query.look.inlined();
        let short = frames
            .iter()
            .take_while(|frame| !are_long && !inlined.unwrap_or(frame.is_unwound))
            .map(|frame| (frame.mode, frame.ip, frame.site));
        self.resolved.clear();
        self.reader.finder.resolve(epoch, s.at, short, &mut self.resolved);
        for (at, frame) in frames.iter().enumerate() {
            let goes_on = match self.resolved.get(at) {
                Some(&(number, address)) => self.frame(frame.ip, number, address, fields, out),
                None => self.long_frame(*frame, fields, s, epoch, out),
            };
            if !goes_on {
                break;
            }
        }
        self.frames = frames;
    }

    /// Returns the callchain of a sample, innermost first, with these fields of each frame.
    pub(super) fn rows(&mut self, fields: &Fields, s: &ScriptSample<'_>) -> Vec<FrameRow> {
        const NAMES: [OutputField; 4] =
            [OutputField::Sym, OutputField::SymOff, OutputField::Dso, OutputField::DsOff];
        let (mut rows, mut frames) = (Vec::new(), std::mem::take(&mut self.frames));
        self.frames(s, &mut frames);
        for frame in &frames {
            let place = self.finder.place(frame.mode, &s.task, frame.ip, s.at);
            let mut named: Vec<_> = NAMES
                .into_iter()
                .filter(|field| fields.has(*field))
                .map(|field| (field, self.finder.name_value(field, place)))
                .collect();
            let inlined = self.inlined_at(frame, place);
            let (outermost, inner) =
                inlined.split_last().map_or((None, &[][..]), |(last, rest)| (Some(last), rest));
            for at in inner {
                let name = escape(at.function.as_deref().unwrap_or("??"));
                let ends = self.query.look.ends_at(&name);
                let line = self.line_value(Some(at), None, fields);
                let sym = FieldValue::Name(name.into());
                let sym = fields.has(OutputField::Sym).then_some((OutputField::Sym, sym));
                let named = sym.into_iter().chain(line).collect();
                rows.push(FrameRow { ip: frame.ip, fields: named, is_inlined: true });
                if ends {
                    self.frames = frames;
                    return rows;
                }
            }
            named.extend(self.line_value(outermost, Some(place), fields));
            rows.push(FrameRow { ip: frame.ip, fields: named, is_inlined: false });
            let base = self.finder.symbol(place);
            if base.is_some_and(|function| self.query.look.ends_at(&function.name)) {
                break;
            }
        }
        self.frames = frames;
        rows
    }

    /// Returns the source line of a frame, if it is printed.
    fn line_value(
        &mut self,
        at: Option<&SourceFrame>,
        place: Option<Place>,
        fields: &Fields,
    ) -> Option<(OutputField, FieldValue<'static>)> {
        if !fields.has(OutputField::SrcLine) {
            return None;
        }
        let source_paths = self.query.symbol_sources.source_paths;
        let written = at.and_then(|at| source::written(at, source_paths));
        let found = match (written, place) {
            (Some(line), _) => Some(line),
            (None, Some(place)) => source::line(&mut self.finder, place, source_paths),
            (None, None) => None,
        };
        let line = found.map_or(FieldValue::Missing, |line| FieldValue::Text(line.into()));
        Some((OutputField::SrcLine, line))
    }

    /// Returns the functions that are inlined at a frame, innermost first, and the one that contains
    /// them; none if they are not printed.
    fn inlined_at(&mut self, frame: &FrameWord, place: Place) -> Arc<[SourceFrame]> {
        if !self.query.look.inlined().unwrap_or(frame.is_unwound) {
            return [].into();
        }
        let back = u64::from(frame.site != CallSite::At);
        self.finder.inlined(place, place.address.saturating_sub(back))
    }

    /// Replaces `frames` by those of a sample, innermost first.
    fn frames(&mut self, s: &ScriptSample<'_>, frames: &mut Vec<FrameWord>) {
        let origin = ChainOrigin::of(s.attr);
        let at = SampleContext { space: s.task.space, moment: s.at };
        self.reader.frames(&s.sample, origin, at, frames);
        // As in perf, call stacks of the hardware (LBR) are printed whole, and unwound frames have
        // their own limit.
        if origin == ChainOrigin::Calls {
            for frame in frames {
                frame.site = CallSite::At;
            }
            return;
        }
        let (most, mut printed) = (self.query.look.max_stack, 0);
        frames.retain(|frame| {
            let is_printed = frame.is_unwound || printed < most;
            printed += usize::from(is_printed);
            is_printed
        });
    }

    /// Prints a frame with its function and module, and returns whether the next one follows.
    #[inline]
    fn frame(
        &mut self,
        ip: u64,
        number: u32,
        address: u64,
        fields: &Fields,
        out: &mut Vec<u8>,
    ) -> bool {
        while self.functions.len() <= number as usize
            && let Some(frame) = self.reader.finder.stacks.frames.get_index(self.functions.len())
        {
            let module = frame.module.checked_sub(1).map(ModuleId);
            let symbol =
                u32::try_from(frame.address).ok().filter(|_| frame.end.is_symbol).map(SymbolId);
            let function = module
                .zip(symbol)
                .and_then(|(module, symbol)| self.finder.function(module, symbol));
            self.functions.push(FrameFunction { function, module });
        }
        let Some(FrameFunction { function, module }) = self.functions.get(number as usize) else {
            return true;
        };
        // The function is looked up to know whether to go on, and to print it.
        self.finder.count(
            *module,
            1 + u64::from(fields.has(OutputField::Sym)),
            Lookup::of(function.as_ref()),
        );
        out.push(b'\t');
        out.extend_from_slice(&digits::hex_column(ip));
        self.finder.print(function.as_ref(), *module, address, fields, out);
        out.push(b'\n');
        let look = &self.query.look;
        look.stop_bt.is_none()
            || !function.as_ref().is_some_and(|function| look.ends_at(&function.name))
    }

    /// Prints a frame whose line has more than function and module, and returns whether the next
    /// one follows.
    fn long_frame(
        &mut self,
        frame: FrameWord,
        fields: &Fields,
        s: &ScriptSample<'_>,
        epoch: SpaceEpoch,
        out: &mut Vec<u8>,
    ) -> bool {
        let FrameWord { mode, ip, site, is_unwound } = frame;
        let kind = (s.event.0, mode, site, is_unwound);
        let context = self.line_contexts.number(kind, epoch.in_mode(mode)).saturating_add(1);
        let place_of_line = cache_place(ip, context, LINES);
        let known =
            self.lines.get(place_of_line).filter(|line| (line.ip, line.context) == (ip, context));
        if let Some(line) = known {
            self.finder.count(line.module, line.lookups.into(), line.lookup);
            let (start, len) = (line.text.0 as usize, line.text.1 as usize);
            out.extend_from_slice(self.texts.get(start..start + len).unwrap_or_default());
            return line.goes_on;
        }
        let place = self.finder.place(mode, &s.task, ip, s.at);
        let from = out.len();
        let before = self.finder.lookups(place);
        let base = self.finder.symbol(place);
        let goes_on = self.lines_of(frame, place, base.as_ref(), fields, out);
        if self.lines.is_empty() || self.texts.len() >= MOST_TEXT {
            self.lines = vec![FrameLine::default(); 1 << LINES];
            self.texts.clear();
        }
        let text = out.get(from..).unwrap_or_default();
        if let Some(line) = self.lines.get_mut(place_of_line)
            && let (Ok(start), Ok(len)) =
                (u32::try_from(self.texts.len()), u32::try_from(text.len()))
            && let Ok(lookups) = u32::try_from(self.finder.lookups(place) - before)
        {
            self.texts.extend_from_slice(text);
            let (module, text, lookup) = (place.module, (start, len), Lookup::of(base.as_ref()));
            *line = FrameLine { ip, context, text, module, lookups, lookup, goes_on };
        }
        goes_on
    }

    /// Prints a frame after those that are inlined into it, and returns whether the next one
    /// follows.
    fn lines_of(
        &mut self,
        frame: FrameWord,
        place: Place,
        base: Option<&FoundFunction>,
        fields: &Fields,
        out: &mut Vec<u8>,
    ) -> bool {
        let (ip, inlined) = (frame.ip, self.inlined_at(&frame, place));
        let offset = base.map_or(place.address, |function| function.offset(place.address));
        let (outermost, inner) =
            inlined.split_last().map_or((None, &[][..]), |(last, rest)| (Some(last), rest));
        let has_line = fields.has(OutputField::SrcLine);
        let (look, source_paths) = (&self.query.look, self.query.symbol_sources.source_paths);
        for at in inner {
            out.push(b'\t');
            digits::hex(out, ip, 16);
            let name = escape(at.function.as_deref().unwrap_or("??"));
            if fields.has(OutputField::Sym) {
                print_function(&name, offset, fields, out);
            }
            source::print(source::written(at, source_paths).filter(|_| has_line), out);
            out.extend_from_slice(b" (inlined)\n");
            if look.ends_at(&name) {
                return false;
            }
        }
        out.push(b'\t');
        digits::hex(out, ip, 16);
        self.finder.names(place, fields, out);
        if has_line {
            let line = outermost.and_then(|at| source::written(at, source_paths));
            source::print(
                line.or_else(|| source::line(&mut self.finder, place, source_paths)),
                out,
            );
        }
        out.push(b'\n');
        !base.is_some_and(|function| look.ends_at(&function.name))
    }
}

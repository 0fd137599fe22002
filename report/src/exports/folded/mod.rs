//! Folded stacks for flame graphs: `comm;outermost;…;innermost count`, with the frame names of
//! `perf script | stackcollapse`: no parameters, the module if there is no function, inlined calls
//! of JIT maps (`a->b`) as separate frames.
//!
//! If several events have samples, each line begins with the event's name. Limits leave the lines
//! with the largest counts of each event, in the usual order.

mod lines;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::ops::Range;

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use self::lines::{FoldedLines, FoldedTexts};
use super::export::{Answer, Export};
use crate::callchain::{RowId, Sample};
use crate::count::metrics::share;
use crate::profile::Profile;
use crate::profile::names::{FrameCode, FrameId, ProfileNames};
use crate::query::{Demangle, FrameKey, Needs, Number, Query, SortKey};
use crate::table::RowTexts;
use crate::terminal::escape::escape;
use crate::terminal::parts::in_parts;

pub(super) struct Folded;

impl Export for Folded {
    fn needs(&self) -> Needs {
        Needs { stacks: true, ..Needs::default() }
    }

    fn default_keys(&self) -> Option<&'static str> {
        Some("comm")
    }

    fn write(&self, answer: &Answer<'_>, out: &mut dyn Write) -> io::Result<()> {
        print(answer.profile, answer.query, out)
    }
}

/// Stacks of a profile, and the names of their frames and rows.
#[derive(Clone, Copy)]
pub(crate) struct FoldedSource<'p> {
    pub(crate) profile: &'p Profile,
    pub(crate) query: &'p Query,
    pub(crate) names: &'p ProfileNames,
    /// `true` if lines add up samples, not periods; those of tracepoints always do.
    pub(crate) by_samples: bool,
    /// Makes other texts of frames; `None` for the usual ones.
    pub(crate) text: Option<fn(FoldedName<'_>) -> String>,
}

/// Name of a frame, as a part of a line.
#[derive(Clone, Copy)]
pub(crate) enum FoldedName<'n> {
    /// A module, of an address without a function.
    Module(&'n str),
    /// A function, by its usual text, and the path of its module.
    Function { module: &'n str, text: &'n str },
}

/// A line for each distinct callchain of each event: the number of the event, the line, its sum.
pub(crate) struct FoldedStack {
    pub(crate) event: usize,
    pub(crate) text: String,
    pub(crate) sum: u64,
}

/// Returns the lines of a profile, sorted.
pub(crate) fn folded_stacks(source: FoldedSource<'_>) -> Vec<FoldedStack> {
    let folded = Folding(source).lines();
    let line = |index: usize| {
        let mut labels = Vec::new();
        let (event, sum) = folded.line(index, &mut labels)?;
        let texts: Vec<&str> = labels.iter().map(|label| folded.texts.text(*label)).collect();
        Some(FoldedStack { event, text: texts.join(";"), sum })
    };
    (0..folded.counts().len()).filter_map(line).collect()
}

fn print(profile: &Profile, query: &Query, out: &mut dyn Write) -> io::Result<()> {
    let by_samples = query.numbers().any(|number| number == Number::Samples);
    let source = FoldedSource { profile, query, names: &profile.names, by_samples, text: None };
    let folded = Folding(source).lines();
    let is_alone = profile.events().iter().filter(|event| event.total.samples > 0).count() < 2;
    let root =
        |name: &str| if is_alone { String::new() } else { escape(&root(name)).into_owned() + ";" };
    let roots: Vec<String> = profile.events().iter().map(|event| root(&event.name)).collect();
    let texts: Vec<_> = folded.texts.iter().map(|text| escape(text)).collect();
    let is_limited = query.limit.is_some() || query.percent_limit.is_some();
    let limited = is_limited.then(|| within_limits(&folded, query));
    let len = limited.as_ref().map_or(folded.counts().len(), Vec::len);
    let part = |lines: Range<usize>| {
        let (mut text, mut labels) = (String::new(), Vec::new());
        for index in lines {
            labels.clear();
            let line = limited.as_ref().map_or(Some(index), |lines| lines.get(index).copied());
            let Some((event, count)) = line.and_then(|line| folded.line(line, &mut labels)) else {
                break;
            };
            text.push_str(roots.get(event).map_or("", |root| root));
            for (place, label) in labels.iter().enumerate() {
                text.push_str(if place > 0 { ";" } else { "" });
                text.push_str(texts.get(*label as usize).map_or("", |text| text));
            }
            text.push(' ');
            text.push_str(&count.to_string());
            text.push('\n');
        }
        Ok(text)
    };
    in_parts(len, part, out)
}

/// Returns the indexes of the lines that pass `--percent-limit`, a share of all lines of their
/// event, and are the first `--limit` ones of their event by count.
fn within_limits(folded: &FoldedLines, query: &Query) -> Vec<usize> {
    let mut of_events = BTreeMap::<usize, Vec<(Reverse<u64>, usize)>>::new();
    for (index, (event, count)) in folded.counts().enumerate() {
        of_events.entry(event).or_default().push((Reverse(count), index));
    }
    let mut found = Vec::new();
    for mut lines in of_events.into_values() {
        let total =
            lines.iter().fold(0, |sum: u64, (Reverse(count), _)| sum.saturating_add(*count));
        lines.retain(|(Reverse(count), _)| {
            query.percent_limit.is_none_or(|least| share(*count, total) >= least)
        });
        lines.sort_unstable();
        found.extend(
            lines.into_iter().map(|(_, index)| index).take(query.limit.unwrap_or(usize::MAX)),
        );
    }
    found.sort_unstable();
    found
}

/// Makes the lines of a profile's stacks.
#[derive(Clone, Copy)]
struct Folding<'p>(FoldedSource<'p>);

/// Texts of frames and chains, as parts of lines.
struct NamedStacks {
    /// Texts by the frames' numbers; `None` for frames that are left out.
    frames: Vec<Option<u32>>,
    /// Chains of the texts, by the numbers of the chains of frames.
    chains: Vec<u32>,
}

/// What precedes the frames of a row's lines.
#[derive(Clone, Copy)]
struct Root {
    event: usize,
    /// Chain of the texts of the columns.
    columns: u32,
    is_java: bool,
    /// `true` if lines add up samples, not periods.
    by_samples: bool,
}

impl Folding<'_> {
    fn lines(self) -> FoldedLines {
        let calls = &self.0.profile.calls;
        let texts: Vec<Option<String>> =
            calls.names.par_iter().map(|frame| self.frame(*frame)).collect();
        let mut lines = FoldedLines::default();
        let usual = texts
            .into_iter()
            .map(|text| text.map(|text| lines.texts.number(text)))
            .collect::<Vec<_>>();
        let usual = self.named(usual, &mut lines);
        let mut java = None;
        let roots = self.roots(&mut lines);
        for sample in &calls.samples {
            let Some(root) = roots.get(&(sample.base, sample.class)) else { continue };
            let named = match root.is_java {
                true => java.get_or_insert_with(|| {
                    let frames = lines.texts.without_java_marks(&usual.frames);
                    self.named(frames, &mut lines)
                }),
                false => &usual,
            };
            let frames = self.stack(sample, named, &mut lines);
            let count = if root.by_samples { sample.count.samples } else { sample.count.period };
            lines.add(root.event, root.columns, frames, count);
        }
        lines.settle();
        lines
    }

    /// Returns the chain of a sample's frames. Every sample is in a line: without frames, its frame
    /// is the sampled function.
    fn stack(self, sample: &Sample, named: &NamedStacks, lines: &mut FoldedLines) -> u32 {
        let text = |frame: u32| named.frames.get(frame as usize).copied().flatten();
        let callers = named.chains.get(sample.callers as usize).copied().unwrap_or(0);
        let frames = match text(sample.frame).filter(|_| sample.is_in_chain) {
            Some(own) => lines.chain(callers, own),
            None => callers,
        };
        if frames > 0 {
            return frames;
        }
        let own = text(sample.frame).unwrap_or_else(|| {
            let frame = self.0.profile.calls.names.get(sample.frame as usize).copied();
            lines.texts.number(frame.map_or_else(String::new, |frame| self.shown(frame)))
        });
        lines.chain(0, own)
    }

    /// Returns the chains of these frames.
    fn named(self, frames: Vec<Option<u32>>, lines: &mut FoldedLines) -> NamedStacks {
        let chains = self.0.profile.calls.chains.fold_callers(0, |node, callers| {
            match frames.get(node.frame as usize) {
                Some(Some(text)) => lines.chain(callers, *text),
                _ => callers,
            }
        });
        NamedStacks { frames, chains }
    }

    /// Returns what precedes the frames, by row.
    fn roots(self, lines: &mut FoldedLines) -> FxHashMap<RowId, Root> {
        let FoldedSource { profile, query, names, by_samples, .. } = self.0;
        let (texts, mut roots) = (RowTexts::new(profile, query, names), FxHashMap::default());
        let first_is_comm = query.columns.first().is_some_and(|first| first.key == SortKey::Comm);
        for (id, row) in &profile.calls.rows {
            let Some((event, cells)) = texts.row(*row) else { continue };
            let (mut columns, mut is_java) = (0, false);
            for (column, cell) in cells.iter().enumerate() {
                let text = texts.text(column, *cell);
                is_java |= column == 0 && first_is_comm && text.starts_with("java");
                let text = lines.texts.number(root(&text));
                columns = lines.chain(columns, text);
            }
            // The periods of tracepoints are not printed by `perf script`.
            let is_tracepoint =
                self.0.profile.events().get(event).is_some_and(|event| event.is_tracepoint);
            let by_samples = by_samples || is_tracepoint;
            roots.insert(*id, Root { event, columns, is_java, by_samples });
        }
        roots
    }

    /// Returns the text that call trees have for a frame, as part of a line.
    fn shown(self, frame: FrameId) -> String {
        self.0.names.frame_text(frame).replace(';', ":")
    }

    /// Returns the name of a frame as part of a line; `None` if it is left out.
    fn frame(self, id: FrameId) -> Option<String> {
        let names = self.0.names;
        let by_function = self.0.query.chains.key == FrameKey::Function;
        let Some(frame) = names.frame(id).filter(|_| by_function) else {
            return Some(self.shown(id));
        };
        match frame.code {
            FrameCode::CallersUnknown => Some(self.shown(id)),
            FrameCode::Unmapped | FrameCode::Address(_) => {
                let Some(module) = frame.module.and_then(|module| names.module(module)) else {
                    return Some("[unknown]".into());
                };
                let name = module.long_name.rsplit('/').next().unwrap_or(&module.long_name);
                let name = name.replace(';', ":");
                Some(match self.0.text {
                    Some(text) => text(FoldedName::Module(&name)),
                    None => format!("[{name}]"),
                })
            }
            FrameCode::Function { function: id, .. } => {
                let usual = match names.disambiguated(id) {
                    Some(name) => Some(name.replace(';', ":")),
                    None if self.0.query.symbol_sources.demangle == Demangle::Full => {
                        Some(names.spelled(id).replace(';', ":"))
                    }
                    None => function(names.spelled(id)),
                };
                let Some(text) = self.0.text else { return usual };
                let module = frame.module.and_then(|module| names.module(module));
                let module = module.map_or("", |module| &module.long_name);
                Some(text(FoldedName::Function { module, text: &usual? }))
            }
        }
    }
}

/// Returns a name as a part before the frames: spaces become `_`, semicolons `:`.
fn root(text: &str) -> String {
    text.trim().replace(' ', "_").replace(';', ":")
}

impl FoldedTexts {
    /// Returns the texts of frames in Java processes, given the usual ones.
    fn without_java_marks(&mut self, usual: &[Option<u32>]) -> Vec<Option<u32>> {
        let mut all = usual.to_vec();
        for number in all.iter_mut().flatten() {
            let text = self.text(*number);
            let without = without_java_mark(text);
            if without != text {
                *number = self.number(without.to_owned());
            }
        }
        all
    }
}

/// Converts a function's name into frame names; `None` for names that stackcollapse skips as
/// processes.
fn function(name: &str) -> Option<String> {
    if name.starts_with('(') {
        return None;
    }
    if memchr::memchr2(b'(', b';', name.as_bytes()).is_none() && !name.contains("->") {
        return Some(name.to_owned());
    }
    let parts = name.split("->").enumerate().map(|(place, part)| {
        let mut text = without_parameters(&part.replace(';', ":")).to_owned();
        // Functions after the first are inlined.
        if place > 0 && !text.contains("_[i]") {
            text.push_str("_[i]");
        }
        text
    });
    Some(parts.collect::<Vec<_>>().join(";"))
}

/// Returns the name without its parameters: up to the first parenthesis outside of any bracket,
/// except those of Go methods (after a dot) and of C++'s anonymous namespace.
fn without_parameters(name: &str) -> &str {
    let mut depth = 0i32;
    let mut before = ' ';
    for (at, c) in name.char_indices() {
        match c {
            '(' if depth == 0
                && before != '.'
                && !name.get(at..).is_some_and(|rest| rest.starts_with(ANONYMOUS)) =>
            {
                return name.get(..at).unwrap_or(name);
            }
            '<' | '{' | '[' | '(' => depth += 1,
            '>' | '}' | ']' | ')' => depth -= 1,
            _ => {}
        }
        before = c;
    }
    name
}

/// Demangled name of C++'s anonymous namespace.
const ANONYMOUS: &str = "(anonymous namespace)";

/// Strips the `L` that marks the class of a Java method.
fn without_java_mark(name: &str) -> &str {
    name.strip_prefix('L').filter(|_| name.contains('/')).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn function_names_are_those_of_stackcollapse() {
        let of = |name| function(name).unwrap_or_default();
        assert_eq!(of("ns::f(int, char const*) const"), "ns::f");
        assert_eq!(
            of("ns::(anonymous namespace)::f<void (*)(int)>(bool)"),
            "ns::(anonymous namespace)::f<void (*)(int)>"
        );
        assert_eq!(of("net/http.(*Client).Do"), "net/http.(*Client).Do");
        assert_eq!(of("<a::B as c::D<(e, f)>>::g"), "<a::B as c::D<(e, f)>>::g");
        assert_eq!(of("f::{lambda(int)#1}::operator()(int)"), "f::{lambda(int)#1}::operator");
        assert_eq!(of("a;b"), "a:b");
        assert_eq!(of("Outer.run->Inner.call->Most.f"), "Outer.run;Inner.call_[i];Most.f_[i]");
        assert_eq!(function("(process)"), None);
    }

    #[test]
    fn limits_leave_the_largest_lines_of_each_event() {
        let mut folded = FoldedLines::default();
        for (event, text, count) in [(0, "x", 1), (0, "y", 7), (0, "z", 2), (1, "x", 3)] {
            let [columns, frames] = ["ls", text].map(|text| {
                let text = folded.texts.number(text.into());
                folded.chain(0, text)
            });
            folded.add(event, columns, frames, count);
        }
        folded.settle();
        let left = |limit, percent_limit| {
            within_limits(&folded, &Query { limit, percent_limit, ..Query::default() })
        };
        assert_eq!(left(None, None), [0, 1, 2, 3]);
        assert_eq!(left(Some(2), None), [1, 2, 3]);
        assert_eq!(left(None, Some(20.0)), [1, 2, 3]);
        assert_eq!(left(Some(9), Some(20.1)), [1, 3]);
    }

    #[test]
    fn only_java_classes_lose_the_mark() {
        assert_eq!(without_java_mark("Lorg/a/B:.c"), "org/a/B:.c");
        assert_eq!(without_java_mark("List"), "List");
    }
}

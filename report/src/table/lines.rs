//! Lines of folded stacks, with the frame names of `perf script | stackcollapse`: no parameters,
//! the module if there is no function, inlined calls of JIT maps (`a->b`) as separate frames.

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::labeller::{INLINED, Labeller};
use crate::callchain::folded::{Folded, folded_root};
use crate::callchain::{ChainRef, Frame, Stacks};
use crate::count::{Count, Rows};
use crate::query::{Demangle, Field, FrameKey};
use crate::symbols::labels::Text;
use crate::table::cells::Cells;

impl Labeller<'_> {
    /// Adds a line for each row: the query's columns, then the frames of its callchain.
    /// `by_samples` has, for each event, whether lines add up samples, not periods.
    pub fn fold(&self, rows: &Rows, stacks: &Stacks, by_samples: &[bool], folded: &mut Folded) {
        // By the frames' numbers; `None` for frames that are left out.
        let names: Vec<Option<Text<'_>>> = stacks.of_frames(|frame| self.folded_name(frame));
        let mut all = self.labels.frames.lock();
        let usual: Vec<Option<u32>> =
            names.into_iter().map(|name| Some(all.number(name?))).collect();
        drop(all);
        let usual = with_chains(stacks, usual, folded);
        let mut java = None;
        let own = |row: usize| {
            let key = rows.key(row);
            let ChainRef { callers, own } = ChainRef::unpack(Field::Chain.of(&key));
            (callers, if own { stacks.find(&Frame::of(&key)) } else { None })
        };
        let own: Vec<(u32, Option<u32>)> = (0..rows.len()).into_par_iter().map(own).collect();
        let words = self.label(rows.len(), &|row, key| rows.read_key(row, key));
        // By the columns' cells: the chain of their labels, and whether the first begins with
        // `java`.
        let mut roots = FxHashMap::<&[u64], (u32, bool)>::default();
        for (row, ((callers, own), words)) in
            own.into_iter().zip(words.chunks_exact(self.query.width())).enumerate()
        {
            let Some((event, cells)) = words.split_first() else { continue };
            let Ok(event) = usize::try_from(*event) else { continue };
            let Some(by_samples) = by_samples.get(event) else { continue };
            let (columns, is_java) = *roots.entry(cells).or_insert_with(|| {
                let (cells_of_all, mut labels) =
                    (self.labels.cells.lock(), self.labels.frames.lock());
                let (texts, one) =
                    (Cells::new(self.query, &cells_of_all), Count { samples: 1, period: 0 });
                let text =
                    |(column, cell): (usize, &u64)| texts.text(column, *cell, &one).into_owned();
                let columns: Vec<String> = cells.iter().enumerate().map(text).collect();
                let is_java = columns.first().is_some_and(|text| text.starts_with("java"));
                let chain = columns.iter().fold(0, |before, text| {
                    let label = labels.intern(folded_root(text));
                    folded.chain(before, label)
                });
                (chain, is_java)
            });
            let (labels, chains) = match is_java {
                true => java.get_or_insert_with(|| {
                    with_chains(stacks, self.without_java_marks(&usual.0), folded)
                }),
                false => &usual,
            };
            let mut frames = chains.get(callers as usize).copied().unwrap_or(0);
            if let Some(label) = own.and_then(|own| *labels.get(own as usize)?) {
                frames = folded.chain(frames, label);
            }
            // Every sample is in a line: without frames, its frame is the sampled function.
            if frames == 0 {
                let frame = Frame::of(&rows.key(row));
                let name = self
                    .folded_name(&frame)
                    .unwrap_or_else(|| Text::New(self.shown_name(&frame), None, None));
                let label = self.labels.frames.lock().number(name);
                frames = folded.chain(0, label);
            }
            let Count { samples, period } = rows.count(row);
            folded.add(event, columns, frames, if *by_samples { samples } else { period });
        }
    }

    /// Returns the name that trees show for a frame, as part of a line.
    fn shown_name(&self, frame: &Frame) -> String {
        self.frame_name(frame).1.replace(';', ":")
    }

    /// Returns the name of a frame as part of a line; `None` if it is left out.
    fn folded_name(&self, frame: &Frame) -> Option<Text<'_>> {
        if self.query.chains.key != FrameKey::Function {
            return Some(Text::New(self.shown_name(frame), None, None));
        }
        let slot = self.label_slots(frame).map(|slots| (&slots.frame, 0));
        if let Some(known) = Text::known(slot) {
            return Some(known);
        }
        let text = match (self.function(frame), self.module(frame.module.into())) {
            (Some(name), _) => {
                let name =
                    name.strip_suffix(INLINED).filter(|_| frame.end.is_inlined).unwrap_or(&name);
                let text = if self.query.symbol_sources.demangle() == Demangle::Full {
                    name.replace(';', ":")
                } else {
                    function(name)?
                };
                let named = if text == name { self.named(frame, 0, name) } else { None };
                return Some(Text::New(text, named, slot));
            }
            (None, None) => "[unknown]".into(),
            (None, Some(module)) => {
                let name = module.long_name();
                format!("[{}]", name.rsplit('/').next().unwrap_or(&name).replace(';', ":"))
            }
        };
        Some(Text::New(text, None, slot))
    }

    /// Returns the labels of frames in Java processes, given the usual ones.
    fn without_java_marks(&self, usual: &[Option<u32>]) -> Vec<Option<u32>> {
        let mut labels = self.labels.frames.lock();
        let mut in_java = |label: u32| match labels.text(label.into()) {
            text if text == without_java_mark(text) => label,
            text => {
                let text = without_java_mark(text).to_owned();
                labels.intern(text)
            }
        };
        usual.iter().map(|label| label.map(&mut in_java)).collect()
    }
}

/// Returns the labels of frames, and the chain of labels for each chain of frames.
fn with_chains(
    stacks: &Stacks,
    labels: Vec<Option<u32>>,
    folded: &mut Folded,
) -> (Vec<Option<u32>>, Vec<u32>) {
    let chains =
        stacks.chains.fold_callers(0, |node, callers| match labels.get(node.frame as usize) {
            Some(Some(label)) => folded.chain(callers, *label),
            _ => callers,
        });
    (labels, chains)
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
    fn only_java_classes_lose_the_mark() {
        assert_eq!(without_java_mark("Lorg/a/B:.c"), "org/a/B:.c");
        assert_eq!(without_java_mark("List"), "List");
    }
}

//! User stacks that do not reach the start of their program: how many, of which programs, and what
//! gives longer ones.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;

use crate::count::metrics::share;

/// Numbers of samples with user stacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct UserStacks {
    pub(crate) all: u64,
    /// Those that do not reach the start of their program.
    pub(crate) broken: u64,
    /// Of these, those that are as long as chains may be.
    pub(crate) cut: u64,
}

/// How user stacks were recorded; the remedy depends on it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum StackSource {
    /// The kernel followed frame pointers.
    FramePointers,
    /// The stack was copied.
    Copies,
    /// The recorder unwound them; the reasons why some lack outer frames, if any do.
    Unwound(Option<String>),
    /// The hardware recorded calls (LBR).
    CallStack,
}

/// User stacks that have a remedy in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct StackKind {
    /// Comm of the program; `None` if rows are not grouped by program.
    pub(crate) program: Option<String>,
    pub(crate) source: StackSource,
    /// Number of frames at which stacks were cut.
    pub(crate) limit: u32,
}

/// User stacks of all programs.
#[derive(Debug, Default)]
pub(crate) struct ProgramStacks(BTreeMap<StackKind, UserStacks>);

/// A program with stacks that do not reach its start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct BrokenStacks<'p> {
    /// Comm of the program; `None` if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) program: Option<&'p str>,
    /// Number of samples with a user stack.
    pub(crate) stacks: u64,
    /// Those whose stack does not reach the start of the program.
    pub(crate) broken: u64,
    /// Of these, those that are as long as chains may be.
    pub(crate) cut: u64,
    /// What would give longer ones.
    pub(crate) remedy: String,
}

impl UserStacks {
    pub(crate) fn add(&mut self, other: Self) {
        self.all = self.all.saturating_add(other.all);
        self.broken = self.broken.saturating_add(other.broken);
        self.cut = self.cut.saturating_add(other.cut);
    }

    /// Returns what gives longer stacks.
    pub(crate) fn remedy(self, source: &StackSource, limit: u32) -> String {
        let of_source = match source {
            StackSource::FramePointers => {
                "code without frame pointers; record with rec -g (perf: --call-graph dwarf), or \
                 build with -fno-omit-frame-pointer (Rust: -C force-frame-pointers)"
            }
            StackSource::Copies => {
                "longer copies reach further (--call-graph dwarf,65528); code of JITs needs frame \
                 pointers"
            }
            StackSource::Unwound(Some(reasons)) => return reasons.clone(),
            StackSource::Unwound(None) => {
                "the recorder found no callers there: the code begins on a stack of its own, or its \
                 call frame information says so"
            }
            StackSource::CallStack => {
                "the hardware keeps the innermost calls only; --call-graph dwarf records more"
            }
        };
        let percent = share(self.cut, self.broken);
        match self.cut.saturating_mul(10) >= self.broken {
            true => format!(
                "{percent:.1}% of these are cut at {limit} frames (sysctl \
                 kernel.perf_event_max_stack, --max-stack); else {of_source}"
            ),
            false => of_source.to_owned(),
        }
    }
}

impl ProgramStacks {
    pub(crate) fn add(&mut self, kind: StackKind, stacks: UserStacks) {
        self.0.entry(kind).or_default().add(stacks);
    }

    pub(crate) fn append(&mut self, other: Self) {
        other.0.into_iter().for_each(|(kind, stacks)| self.add(kind, stacks));
    }

    /// Returns the programs that have broken stacks, the one with the most first.
    pub(crate) fn broken(&self) -> Vec<BrokenStacks<'_>> {
        let has_broken = self.0.iter().filter(|(_, stacks)| stacks.broken > 0);
        let mut all: Vec<_> = has_broken
            .map(|(kind, stacks)| BrokenStacks {
                program: kind.program.as_deref(),
                stacks: stacks.all,
                broken: stacks.broken,
                cut: stacks.cut,
                remedy: stacks.remedy(&kind.source, kind.limit),
            })
            .collect();
        all.sort_by_key(|program| Reverse(program.broken));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_stacks_have_a_remedy_of_their_own() {
        let stacks = |cut| UserStacks { all: 100, broken: 50, cut };
        assert!(
            stacks(0)
                .remedy(&StackSource::FramePointers, 127)
                .starts_with("code without frame pointers")
        );
        let cut = stacks(25).remedy(&StackSource::Copies, 127);
        assert!(
            cut.starts_with("50.0% of these are cut at 127 frames")
                && cut.contains("longer copies"),
            "{cut}"
        );
    }

    #[test]
    fn programs_are_those_of_all_files_heaviest_first() {
        let kind = |program: &str, limit| StackKind {
            program: Some(program.to_owned()),
            source: StackSource::FramePointers,
            limit,
        };
        let stacks = |all, broken| UserStacks { all, broken, cut: 0 };
        let (mut one, mut other) = (ProgramStacks::default(), ProgramStacks::default());
        one.add(kind("a", 127), stacks(10, 4));
        one.add(kind("whole", 127), stacks(90, 0));
        other.add(kind("a", 127), stacks(5, 5));
        other.add(kind("b", 127), stacks(20, 11));
        other.add(kind("a", 64), stacks(3, 1));
        one.append(other);
        let broken = one.broken();
        let found = broken.iter().map(|of| (of.program.unwrap(), of.stacks, of.broken));
        assert!(found.eq([("b", 20, 11), ("a", 15, 9), ("a", 3, 1)]), "{broken:?}");
    }
}

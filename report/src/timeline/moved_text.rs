//! Text that a program moved to anonymous memory, to have it in huge pages.
//!
//! ```text
//!   before   ├──────── text of app, executable ────────┤
//!   after    ├─ app ─┤├── //anon, executable ──┤├─ app ─┤     the same bytes, and the same functions
//! ```
//!
//! If executable anonymous memory replaces a part of a file's text in the same address space, it is
//! taken for that text, unless a JIT lists code there. That is a judgement, since nothing shows
//! that the bytes are the same: the module is marked
//! ([`Module::is_moved`](crate::symbols::Module)), and `rep modules` says so. All of the memory must
//! be where the file's code was mapped at that moment, at one distance; after an exec or a fork
//! only what was mapped since counts.

use rustc_hash::FxHashMap;

use super::{Change, Mapping, Memory, ModuleId, Moment, SideBand};
use crate::symbols::{Module, ModuleKind, Resolver};

/// A mapping of a process, with its place in the list of changes.
type TextMapping = (Moment, usize, Mapping);

impl SideBand {
    /// Gives anonymous memory that replaced a file's text the module of that file. Call it once,
    /// when all changes are known.
    pub(crate) fn find_moved_text(&mut self, resolver: &Resolver) {
        let mut maps: FxHashMap<i32, Vec<TextMapping>> = FxHashMap::default();
        let is_text =
            |mapping: &Mapping| mapping.memory == Memory::Anonymous || self.is_memory_file(mapping);
        for (_, change) in &self.changes {
            if let Change::Map { pid, mapping, .. } = change
                && is_text(mapping)
            {
                maps.entry(*pid).or_default();
            }
        }
        if maps.is_empty() {
            return;
        }
        let mut begins: Vec<(Moment, i32)> = self.execs.clone();
        for (index, (at, change)) in self.changes.iter().enumerate() {
            match change {
                Change::Map { pid, mapping, .. } => {
                    if let Some(maps) = maps.get_mut(pid) {
                        maps.push((*at, index, *mapping));
                    }
                }
                Change::Fork { pid, ppid, .. } if pid != ppid => begins.push((*at, *pid)),
                _ => {}
            }
        }
        let mut pids: Vec<_> = maps.into_iter().collect();
        pids.sort_unstable_by_key(|(pid, _)| *pid);
        for (pid, mut maps) in pids {
            maps.sort_by_key(|(at, index, _)| (*at, *index));
            let begins: Vec<Moment> =
                begins.iter().filter(|(_, of)| *of == pid).map(|(at, _)| *at).collect();
            self.find_moved_in(pid, maps, &begins, resolver);
        }
    }

    fn find_moved_in(
        &mut self,
        pid: i32,
        maps: Vec<TextMapping>,
        begins: &[Moment],
        resolver: &Resolver,
    ) {
        let mut before: Vec<Mapping> = Vec::with_capacity(maps.len());
        let mut texts: Vec<Mapping> = Vec::new();
        let mut since = Moment::START;
        for (at, index, mut mapping) in maps {
            let began =
                begins.iter().filter(|begin| **begin <= at).max().copied().unwrap_or(Moment::START);
            if began > since {
                since = began;
                before.clear();
                texts.clear();
            }
            if (mapping.memory == Memory::Anonymous || self.is_memory_file(&mapping))
                && let Some(text) = text_at(&texts, &before, &mapping)
                && !self.is_listed(pid, &mapping, resolver)
                && let Some(module) = self.moved(text.module)
            {
                let first = text.relative(mapping.start);
                mapping = Mapping { first, module: Some(module), memory: Memory::Code, ..mapping };
                if let Some((_, Change::Map { mapping: of, .. })) = self.changes.get_mut(index) {
                    *of = mapping;
                }
            }
            before.push(mapping);
            texts.extend((mapping.memory == Memory::Code).then_some(mapping));
        }
    }

    /// Returns whether this is code in a file that lives in memory and has no build ID: it is no
    /// program's.
    fn is_memory_file(&self, mapping: &Mapping) -> bool {
        mapping.memory == Memory::Code
            && self.module(mapping.module).is_some_and(|module| {
                module.build_id.is_none() && module.path.starts_with(b"/memfd:")
            })
    }

    fn module(&self, module: Option<ModuleId>) -> Option<&Module> {
        self.modules.get_index(module?.0 as usize)
    }

    /// Returns whether a JIT of the process lists code in this memory.
    fn is_listed(&self, pid: i32, mapping: &Mapping, resolver: &Resolver) -> bool {
        let Some(mapped) = self.module(mapping.module) else { return true };
        let listing = match mapped.kind {
            ModuleKind::PerfMap { .. } => mapped.clone(),
            _ => {
                let dump = self.jit_dumps.get(&pid).cloned();
                let module =
                    Module::new(b"", None, ModuleKind::PerfMap { pid, dump }).on(&mapped.origin);
                Module { mounts: mapped.mounts, ..module }
            }
        };
        resolver.has_jit_code(&listing, &(mapping.start..mapping.end))
    }

    /// Returns the module of the moved text of a file.
    fn moved(&mut self, file: Option<ModuleId>) -> Option<ModuleId> {
        let module = self.module(file)?;
        if module.kind != ModuleKind::File {
            return None;
        }
        let module = Module { is_moved: true, ..module.clone() };
        self.number(module)
    }
}

/// Returns the one of these `texts` that all of `memory` replaces: the last mappings of all its
/// addresses are of one file and at one distance.
fn text_at<'m>(texts: &'m [Mapping], before: &[Mapping], memory: &Mapping) -> Option<&'m Mapping> {
    /// Most pieces of a text that are compared.
    const MOST: usize = 64;
    // Most anonymous memory is nowhere near a file's text.
    let mut latest = texts.iter().rev();
    let text = latest.find(|text| text.start <= memory.start && memory.end <= text.end)?;
    let mut at = memory.start;
    for _ in 0..MOST {
        let last = before.iter().rev().find(|mapping| mapping.start <= at && at < mapping.end)?;
        if last.memory != Memory::Code || last.relative(0) != text.relative(0) {
            return None;
        }
        // Later mappings may begin before this one ends.
        let later = before.iter().rev().take_while(|mapping| !std::ptr::eq(*mapping, last));
        let next = later.map(|mapping| mapping.start).filter(|start| *start > at).min();
        at = last.end.min(next.unwrap_or(u64::MAX));
        if at >= memory.end {
            return Some(text);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(start: u64, end: u64, first: u64, memory: Memory) -> Mapping {
        Mapping { start, end, first, module: Some(ModuleId(0)), is_shared: false, memory }
    }

    #[test]
    fn memory_must_lie_where_the_text_was() {
        let text = mapping(0x1000, 0x9000, 0x400, Memory::Code);
        let at = |before: &[Mapping], start, end| {
            let texts: Vec<Mapping> =
                before.iter().copied().filter(|text| text.memory == Memory::Code).collect();
            text_at(&texts, before, &mapping(start, end, 0, Memory::Anonymous))
                .map(|text| text.relative(start))
        };
        assert_eq!(at(&[text], 0x2000, 0x3000), Some(0x1400));
        assert_eq!(at(&[text], 0x1000, 0x9000), Some(0x400));
        assert_eq!(at(&[text], 0x8000, 0xa000), None);
        assert_eq!(at(&[text], 0x20_0000, 0x20_1000), None);
        let data = mapping(0x2800, 0x2900, 0, Memory::Data);
        assert_eq!(at(&[text, data], 0x2000, 0x3000), None, "a part is something else by now");
        assert_eq!(at(&[text, data], 0x3000, 0x4000), Some(0x2400));
        assert_eq!(
            at(&[text, mapping(0x2000, 0x3000, 0, Memory::Anonymous)], 0x2000, 0x2800),
            None
        );
        let moved = mapping(0x2000, 0x3000, 0x1400, Memory::Code);
        assert_eq!(at(&[text, moved], 0x2800, 0x4000), Some(0x1c00), "a part was moved before");
        assert_eq!(at(&[mapping(0x1000, 0x9000, 0x400, Memory::Data)], 0x2000, 0x3000), None);
    }
}

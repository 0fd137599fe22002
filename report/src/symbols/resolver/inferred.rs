//! Functions of a file that has no names for them: where each begins and ends.
//!
//! The unwind tables say both (`elf::functions`). A name is made of the module and the linked address
//! of the start, by which disassemblers and debuggers know it: `git+0x8202a`. What has a symbol keeps
//! that. Go programs have the names of their functions (`elf::go`).

use std::ops::Range;

use zerocopy::FromZeros;

use crate::symbols::elf::ElfImage;
use crate::symbols::elf::functions::UnwoundFunctions;
use crate::symbols::module::bundle::Bundled;
use crate::symbols::names::packed::inferred_name;
use crate::symbols::names::table::{Symbol, SymbolId};
use crate::symbols::shown_names::ShownNames;
use crate::symbols::symbol_cache::SymbolCache;

/// Functions of a module that has no names for them, by offset in its file.
#[derive(Debug)]
pub(super) struct InferredFunctions {
    list: FunctionList,
    /// Name of the module.
    module: Box<str>,
    names: ShownNames,
    caches: Vec<SymbolCache>,
}

/// Where functions begin and end.
#[derive(Debug)]
enum FunctionList {
    Unwound(UnwoundFunctions),
    /// Those that have names, of a bundle or a JIT: offsets of their starts and ends.
    Named(Vec<(Range<u64>, Box<str>)>),
}

impl InferredFunctions {
    /// Finds the functions of a file.
    pub(super) fn of(image: &ElfImage, module: &str) -> Option<Self> {
        Self::of_list(FunctionList::Unwound(UnwoundFunctions::of(image)?), module)
    }

    /// Returns the functions that a bundle has without names; without any, those that follow from
    /// what it has for unwinding.
    pub(super) fn bundled(bundled: &Bundled, module: &str) -> Option<Self> {
        let mut all: Vec<_> = bundled.inferred(module).collect();
        all.sort_unstable_by_key(|(function, _)| function.start);
        let listed = Self::of_list(FunctionList::Named(all), module);
        listed.or_else(|| Self::of(bundled.image.as_ref()?, module))
    }

    /// Returns the code of a JIT that is in none of its lists, as one function.
    pub(super) fn of_jit(module: &str) -> Option<Self> {
        Self::of_list(FunctionList::Named(vec![(0..u64::MAX, module.into())]), module)
    }

    fn of_list(list: FunctionList, module: &str) -> Option<Self> {
        let len = list.len();
        let caches = SymbolCache::new_vec_zeroed(len).unwrap_or_default();
        let names = ShownNames::new(len);
        (len > 0).then(|| Self { list, module: module.into(), names, caches })
    }

    /// Returns the number of the function at an offset in the file, and the offsets of its ends.
    pub(super) fn find(&self, offset: u64) -> Option<(SymbolId, Range<u64>)> {
        let place = self.list.find(offset)?;
        let (_, function) = self.list.function(place)?;
        let id = SymbolId(u32::try_from(place).ok()?);
        function.contains(&offset).then_some((id, function))
    }

    /// Returns a function, with its name.
    pub(super) fn get(&self, id: SymbolId) -> Option<Symbol<&str>> {
        let (linked, Range { start, end }) = self.list.function(id.0 as usize)?;
        let name = || match &self.list {
            FunctionList::Named(all) => all.get(id.0 as usize).map(|(_, name)| name.clone()),
            _ => Some(inferred_name(&self.module, linked).into()),
        };
        let name = self.names.of(id)?.get_or_init(|| name().unwrap_or_default());
        Some(Symbol { start, end, name })
    }

    pub(super) fn cache(&self, id: SymbolId) -> Option<&SymbolCache> {
        self.caches.get(id.0 as usize)
    }

    /// Returns the offset from which the file may be another than the one that was read.
    pub(super) fn lost(&self) -> Option<u64> {
        match &self.list {
            FunctionList::Unwound(functions) => functions.file.lost(),
            FunctionList::Named(_) => None,
        }
    }
}

impl FunctionList {
    fn len(&self) -> usize {
        match self {
            Self::Unwound(functions) => functions.len(),
            Self::Named(all) => all.len(),
        }
    }

    /// Returns the place of the function at an offset in the file.
    fn find(&self, offset: u64) -> Option<usize> {
        match self {
            Self::Unwound(functions) => functions.find(offset),
            Self::Named(all) => {
                all.partition_point(|(function, _)| function.start <= offset).checked_sub(1)
            }
        }
    }

    /// Returns the linked address of a function's start, if it is known here, and the offsets of
    /// its ends.
    fn function(&self, place: usize) -> Option<(u64, Range<u64>)> {
        match self {
            Self::Unwound(functions) => functions.function(place),
            Self::Named(all) => Some((0, all.get(place)?.0.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use object::Endianness;
    use object::elf::{EM_ARM, EM_X86_64, Machine, SHT_PROGBITS};

    use super::*;
    use crate::symbols::elf::{ElfSection, Segment};

    /// A file with one section, whose code is linked 0x400000 bytes behind its place in the file.
    fn image(machine: Machine, name: &[u8], address: u64, contents: Vec<u8>) -> ElfImage {
        let size = contents.len() as u64;
        ElfImage {
            is_64: machine == EM_X86_64,
            machine,
            endian: Endianness::Little,
            entry: 0,
            build_id: None,
            segments: vec![Segment {
                address: 0x40_1000,
                memory_size: 0x1000,
                file_size: 0x1000,
                offset: 0x1000,
            }],
            sections: vec![ElfSection {
                name: name.into(),
                kind: SHT_PROGBITS,
                allocated: true,
                executable: false,
                compressed: false,
                address,
                offset: 0,
                size,
                entry_size: 0,
                alignment: 1,
                link: 0,
                text_or_data: false,
            }],
            file: contents.into(),
        }
    }

    fn found(functions: &InferredFunctions, offset: u64) -> Option<(String, Range<u64>)> {
        let (id, range) = functions.find(offset)?;
        let Symbol { start, end, name } = functions.get(id)?;
        assert_eq!((start, end), (range.start, range.end));
        assert!(functions.cache(id).is_some());
        Some((name.to_owned(), range))
    }

    #[test]
    fn entries_of_eh_frame_are_functions() {
        // A CIE whose pointers are relative and have 4 bytes, then the entries of two functions.
        let mut section = vec![20, 0, 0, 0, 0, 0, 0, 0, 1, b'z', b'R', 0, 1, 0x78, 16, 1, 0x1b];
        section.extend([0x0c, 7, 8, 0x90, 1, 0, 0]);
        for (start, length) in [(0x40_1010_u32, 0x20_u32), (0x40_1040, 8)] {
            let at = u32::try_from(section.len()).unwrap();
            section.extend(16_u32.to_le_bytes());
            section.extend((at + 4).to_le_bytes());
            section.extend(start.wrapping_sub(0x50_0000 + at + 8).to_le_bytes());
            section.extend(length.to_le_bytes());
            section.extend([0; 4]);
        }
        section.extend([0; 4]);
        let image = image(EM_X86_64, b".eh_frame", 0x50_0000, section);
        let functions = InferredFunctions::of(&image, "app").unwrap();
        assert_eq!(found(&functions, 0x100f), None);
        for offset in [0x1010, 0x102f] {
            assert_eq!(found(&functions, offset), Some(("app+0x401010".into(), 0x1010..0x1030)));
        }
        assert_eq!(found(&functions, 0x1030), None);
        assert_eq!(found(&functions, 0x1047), Some(("app+0x401040".into(), 0x1040..0x1048)));
        // No segment of the file is there.
        assert_eq!(found(&functions, 0x40_1010), None);
    }

    /// `.ARM.exidx` at an address, with entries of these functions.
    fn index(address: u32, starts: &[u32]) -> Vec<u8> {
        let mut section = Vec::new();
        for (start, at) in starts.iter().zip((address..).step_by(8)) {
            // Unwound in the entry itself, but for the last one, which cannot be unwound.
            let how = if Some(start) == starts.last() { 1_u32 } else { 0x80b0_b0b0 };
            section.extend((start.wrapping_sub(at) & 0x7fff_ffff).to_le_bytes());
            section.extend(how.to_le_bytes());
        }
        section
    }

    #[test]
    fn functions_of_arm_end_where_the_next_one_begins() {
        // Behind the code, and before it; the second function is of Thumb code.
        for address in [0x41_0000, 0x1_0000] {
            let section = index(address, &[0x40_1000, 0x40_1021, 0x40_1100, 0x40_1180]);
            let image = image(EM_ARM, b".ARM.exidx", address.into(), section);
            let functions = InferredFunctions::of(&image, "lib.so").unwrap();
            let name = |offset| found(&functions, offset).map(|(name, _)| name);
            assert_eq!(
                [0x1000, 0x101f, 0x1020, 0x10ff, 0x117f].map(name),
                ["0x401000", "0x401000", "0x401020", "0x401020", "0x401100"]
                    .map(|start| Some(format!("lib.so+{start}")))
            );
            assert_eq!(found(&functions, 0x1020).unwrap().1, 0x1020..0x1100);
            // The last entry is the end of all code.
            assert_eq!([0xfff, 0x1180, 0x1fff].map(name), [None, None, None]);
        }
    }

    #[test]
    fn damaged_indexes_give_no_wrong_range() {
        let whole = index(0x41_0000, &[0x40_1000, 0x40_1021, 0x40_1100, 0x40_1180]);
        for at in 0..whole.len() {
            for value in [0, 0x7f, 0xff] {
                let mut section = whole.clone();
                section[at] = value;
                section.truncate(whole.len() - at % 5);
                let image = image(EM_ARM, b".ARM.exidx", 0x41_0000, section);
                let functions = InferredFunctions::of(&image, "lib.so").unwrap();
                for offset in (0xff0..0x1200).step_by(16) {
                    let found = found(&functions, offset);
                    assert!(found.is_none_or(|(_, range)| range.contains(&offset)));
                }
            }
        }
    }
}

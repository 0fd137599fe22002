//! Places of modules in the one address space that a profile has.
//!
//! ```text
//!   the kernel, its modules          where they were
//!   code of a JIT, other memory      where it was: its addresses are those of its process
//!   files                            each from its beginning on, one behind another
//! ```

use crate::exports::frames::{CodePlace, Frames};
use crate::pprof::{Room, is_kernel, page_after, page_of};
use crate::profile::names::ModuleName;

/// Offset in a file that is too large to be one: it is an address of a process.
const NO_OFFSET: u64 = 1 << 36;

/// Place of a module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct MappedAt {
    pub(super) start: u64,
    /// Address after the last.
    pub(super) limit: u64,
    /// Offset of the first address in the module's terms.
    pub(super) offset: u64,
    /// What is added to addresses in the module's terms.
    moved_by: u64,
}

/// Places of all modules, by their numbers.
#[derive(Debug)]
pub(super) struct Mappings {
    pub(super) all: Vec<MappedAt>,
}

impl Mappings {
    pub(super) fn of(frames: &Frames<'_>, places: &[CodePlace]) -> Self {
        let mut ranges = vec![None::<(u64, u64)>; frames.modules.len()];
        for CodePlace { module, address, .. } in places {
            let range = module.and_then(|module| ranges.get_mut(module));
            if let (Some(range), Some(address)) = (range, address) {
                let (low, high) = range.unwrap_or((*address, *address));
                *range = Some((low.min(*address), high.max(*address)));
            }
        }
        let is_absolute = |(low, high): (u64, u64), module: &ModuleName| {
            high >= NO_OFFSET || is_kernel(low, module.name.as_bytes())
        };
        let unmapped = places.iter().filter(|place| place.module.is_none());
        let mut room = Room::without(unmapped.filter_map(|place| place.address));
        let mut all = vec![MappedAt::default(); ranges.len()];
        let all_ranges = || ranges.iter().zip(&frames.modules);
        for (at, (range, module)) in all.iter_mut().zip(all_ranges()) {
            let range = range.filter(|range| is_absolute(*range, module));
            let Some((low, high)) = range else { continue };
            let start = Some(module.identity.start).filter(|start| (1..=low).contains(start));
            let start = start.unwrap_or(page_of(low));
            let limit = page_after(high);
            let is_kernel = is_kernel(low, module.name.as_bytes());
            let offset = if is_kernel { 0 } else { start };
            *at = MappedAt { start, limit, offset, moved_by: 0 };
            room.take(start, limit - start);
        }
        for (at, (range, module)) in all.iter_mut().zip(all_ranges()) {
            let range = range.filter(|range| !is_absolute(*range, module));
            let Some((_, high)) = range else { continue };
            let len = page_after(high);
            let start = room.take(page_after(0), len).unwrap_or(0);
            *at = MappedAt { start, limit: start + len, offset: 0, moved_by: start };
        }
        Self { all }
    }

    /// Returns the address of a place.
    pub(super) fn address(&self, place: &CodePlace) -> u64 {
        let Some(address) = place.address else { return 0 };
        let at = place.module.and_then(|module| self.all.get(module));
        at.map_or(address, |at| address.saturating_add(at.moved_by))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::names::{ModuleIdentity, ModuleName};

    #[test]
    fn files_lie_behind_one_another_and_the_kernel_where_it_was() {
        let module = |name: &str, start| ModuleName {
            name: name.into(),
            identity: ModuleIdentity { start, ..ModuleIdentity::default() },
            ..ModuleName::default()
        };
        let ext4 = 0xffff_ffff_c000_0000;
        let modules = [module("a", 0), module("b", 0), module("[ext4]", ext4), module("jit", 0)];
        let frames = Frames::of_modules(modules.iter().collect());
        let place =
            |module, address| CodePlace { module, address: Some(address), lines: Vec::new() };
        let places = [
            place(Some(0), 0x1234),
            place(Some(1), 0x99),
            place(Some(2), ext4 + 0x12_0000),
            place(Some(3), 0x7f00_0000_1234),
            place(None, 0x1_0000_0000),
        ];
        let mappings = Mappings::of(&frames, &places);
        let addresses = places.each_ref().map(|place| mappings.address(place));
        assert_eq!(
            addresses,
            [0x2234, 0x1_0000_1099, ext4 + 0x12_0000, 0x7f00_0000_1234, 0x1_0000_0000]
        );
        assert_eq!(mappings.all[2].start, ext4);
        let jit = 0x7f00_0000_1000;
        let at = MappedAt { start: jit, limit: jit + 0x1000, offset: jit, moved_by: 0 };
        assert_eq!(mappings.all[3], at);
    }
}

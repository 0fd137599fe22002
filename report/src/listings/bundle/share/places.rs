//! Addresses of a shared recording: each file has a place of its own, the same in all processes, and
//! so has each run of other memory. What is known of an address stays known; where the kernel put it
//! does not.
//!
//! ```text
//!   recorded   libc at 0x7f3a…, of 3 processes        kernel at 0xffffffffa2…     JIT at 0x55d8…
//!   shared     libc at 0x1210000, in all of them      at 0xffffffff81000000       at 0x40000000000
//! ```

use recrep_format::abi::CpuMode;
use recrep_format::record::{Body, Mmap2};

use crate::samples::Session;
use crate::symbols::{Module, ModuleKind};
use crate::timeline::{Moment, Place, SpaceId, mapping_in};

/// First address of the first file.
const FILES: u64 = 0x100_0000;
/// First address of memory without a file.
const MEMORY: u64 = 1 << 42;
/// Address at which the kernel begins.
const KERNEL: u64 = 0xffff_ffff_8100_0000;
/// Most bytes of the kernel: what recorders say may go up to the last address.
pub(super) const KERNEL_SIZE: u64 = KERNEL_MODULES - KERNEL;
/// Beginning of the kernel's name in the record of its mapping.
pub(super) const KERNEL_NAME: &[u8] = b"[kernel";
/// Address of the first kernel module, or of other code of the kernel with a range of its own.
const KERNEL_MODULES: u64 = 0xffff_ffff_c000_0000;
/// Places begin at multiples of this.
const ALIGNMENT: u64 = 1 << 16;
/// Stands for an address of a process at which nothing was mapped.
const UNMAPPED: u64 = 0x10;
/// Stands for such an address of the kernel.
const UNMAPPED_KERNEL: u64 = 0xffff_ffff_8000_0010;

/// Places of all that was mapped.
pub(super) struct SharedPlaces {
    /// First address of each file, by the module's number.
    files: Vec<Option<u64>>,
    /// Path of each module in the shared recording.
    paths: Vec<Vec<u8>>,
    memory: MovedRanges,
    kernel_modules: MovedRanges,
    kernel: Option<KernelPlace>,
}

/// Where the kernel was.
#[derive(Clone, Copy, Debug)]
struct KernelPlace {
    /// First address of its mapping; 0 from recorders that did not know better.
    start: u64,
    /// Address of its reference symbol, at the beginning of its text; 0 if it is unknown.
    text: u64,
}

/// Ranges of addresses and where they are moved to.
#[derive(Debug, Default)]
struct MovedRanges {
    /// First and last address, and the new first one; ascending.
    all: Vec<MovedRange>,
}

#[derive(Clone, Copy, Debug)]
struct MovedRange {
    start: u64,
    last: u64,
    to: u64,
}

/// Ranges and sizes, as found in the records.
#[derive(Default)]
struct Found {
    /// Size of each file that is mapped, by the module's number.
    sizes: Vec<u64>,
    memory: Vec<[u64; 2]>,
    kernel_modules: Vec<[u64; 2]>,
    kernel: Option<KernelPlace>,
}

impl SharedPlaces {
    pub(super) fn of(session: &Session<'_>) -> Self {
        let found = Found::of(session);
        let modules = &session.side_band.modules;
        let mut next = FILES;
        let mut files = Vec::new();
        for (module, size) in modules.iter().zip(&found.sizes) {
            files.push(is_file(module).then_some(next));
            next = after(next, *size);
        }
        Self {
            files,
            paths: shared_paths(modules.iter()),
            memory: MovedRanges::of(found.memory, MEMORY),
            kernel_modules: MovedRanges::of(found.kernel_modules, KERNEL_MODULES),
            kernel: found.kernel,
        }
    }

    /// Returns the new address of one that is looked up in this CPU mode; without one, of an end of
    /// a branch.
    pub(super) fn moved(
        &self,
        session: &Session<'_>,
        mode: Option<CpuMode>,
        space: Option<SpaceId>,
        address: u64,
        at: Moment,
    ) -> u64 {
        match mode {
            Some(mode) if mode.is_guest() => UNMAPPED,
            Some(CpuMode::User) => self.user(session, space, address, at),
            None if address >> 63 == 0 => self.user(session, space, address, at),
            _ => self.of_kernel(address).unwrap_or(UNMAPPED_KERNEL),
        }
    }

    fn user(&self, session: &Session<'_>, space: Option<SpaceId>, address: u64, at: Moment) -> u64 {
        let place = |address| session.timeline.place(CpuMode::User, space, address, at);
        let found = self.in_place(place(address), address);
        // A call that never returns may be the last instruction of a mapping.
        let before = || {
            let before = address.checked_sub(1)?;
            Some(self.in_place(place(before), before)? + 1)
        };
        found.or_else(before).unwrap_or(UNMAPPED)
    }

    fn in_place(&self, place: Place, address: u64) -> Option<u64> {
        let module = place.module?.0 as usize;
        match self.files.get(module).copied().flatten() {
            Some(start) => Some(start.wrapping_add(place.address)),
            None => self.memory.moved(address),
        }
    }

    /// Returns the new address of code of the kernel.
    pub(super) fn of_kernel(&self, address: u64) -> Option<u64> {
        let in_kernel = || {
            let KernelPlace { start, text } = self.kernel?;
            let first = if start == 0 { text } else { start };
            let offset = address.checked_sub(start).map(|_| address.saturating_sub(first))?;
            // Without a first address, nothing is known of others.
            let offset = if first == 0 { 0 } else { offset };
            Some(KERNEL + offset.min(KERNEL_SIZE - 1))
        };
        self.kernel_modules.moved(address).or_else(in_kernel)
    }

    /// Returns the new address of memory without a file.
    pub(super) fn of_memory(&self, address: u64) -> Option<u64> {
        self.memory.moved(address)
    }

    /// Returns the first address of a file, and the path of a module.
    pub(super) fn module(&self, number: u32) -> (Option<u64>, &[u8]) {
        let number = number as usize;
        let path = self.paths.get(number).map_or(&[][..], Vec::as_slice);
        (self.files.get(number).copied().flatten(), path)
    }
}

impl Found {
    fn of(session: &Session<'_>) -> Self {
        let sizes = vec![0; session.side_band.modules.len()];
        let mut found = Self { sizes, ..Self::default() };
        for raw in session.earlier().chain(session.split.side_band.iter().copied()) {
            let Ok(record) = session.file.attrs.decode(&raw) else { continue };
            let at = session.clock.moment(session.file.attrs.time_of(&raw), raw.offset);
            if let Body::KSymbol(symbol) = &record.body {
                found.kernel_modules.push([symbol.addr, u64::from(symbol.len)]);
            } else if let Some(map) = mapping_in(&record.body, record.misc) {
                found.map(session, CpuMode::of(record.misc), &map, at);
            }
        }
        found
    }

    fn map(&mut self, session: &Session<'_>, mode: CpuMode, map: &Mmap2<'_>, at: Moment) {
        match mode {
            CpuMode::Kernel if map.filename.as_bytes().starts_with(KERNEL_NAME) => {
                self.kernel.get_or_insert(KernelPlace { start: map.addr, text: map.pgoff });
            }
            CpuMode::Kernel => self.kernel_modules.push([map.addr, map.len]),
            mode if mode.is_guest() => {}
            _ => {
                let place = mapped(session, map, at);
                let module = place.module.map(|module| module.0 as usize);
                let known = module.and_then(|module| session.side_band.modules.get_index(module));
                let size = module.and_then(|module| self.sizes.get_mut(module));
                match (known.is_some_and(is_file), size) {
                    (true, Some(size)) => {
                        *size = (*size).max(place.address.saturating_add(map.len));
                    }
                    _ => self.memory.push([map.addr, map.len]),
                }
            }
        }
    }
}

/// Returns what a record maps, at its moment.
pub(super) fn mapped(session: &Session<'_>, map: &Mmap2<'_>, at: Moment) -> Place {
    let [pid, tid] = [map.pid, map.tid].map(u32::cast_signed);
    let space = session.timeline.span(pid, tid, at).task.space;
    session.timeline.place(CpuMode::User, space, map.addr, at)
}

/// Returns whether addresses in a module are offsets in a file.
pub(super) fn is_file(module: &Module) -> bool {
    matches!(module.kind, ModuleKind::File | ModuleKind::Vdso)
}

impl MovedRanges {
    /// Moves ranges, given their first addresses and lengths; those that touch move together.
    fn of(mut ranges: Vec<[u64; 2]>, first: u64) -> Self {
        ranges.sort_unstable();
        let mut all: Vec<MovedRange> = Vec::new();
        for [start, length] in ranges {
            let Some(more) = length.checked_sub(1) else { continue };
            let last = start.saturating_add(more);
            match all.last_mut() {
                Some(before) if start <= before.last.saturating_add(1) => {
                    before.last = before.last.max(last);
                }
                _ => all.push(MovedRange { start, last, to: 0 }),
            }
        }
        let mut next = first;
        for range in &mut all {
            // Offsets in pages stay.
            range.to = next.wrapping_add(range.start % 0x1000);
            next = after(next, (range.last - range.start).saturating_add(0x1000));
        }
        Self { all }
    }

    fn moved(&self, address: u64) -> Option<u64> {
        let after = self.all.partition_point(|range| range.start <= address);
        let range = self.all.get(after.checked_sub(1)?)?;
        (address <= range.last).then(|| range.to.wrapping_add(address - range.start))
    }
}

/// Returns the place after one of this size.
fn after(start: u64, size: u64) -> u64 {
    let end = start.saturating_add(size.max(1)).min(u64::MAX - 2 * ALIGNMENT);
    (end + ALIGNMENT).next_multiple_of(ALIGNMENT)
}

/// Returns the paths of modules: base names, and a number before that where several files have one.
fn shared_paths<'m>(modules: impl Iterator<Item = &'m Module>) -> Vec<Vec<u8>> {
    let mut seen = rustc_hash::FxHashMap::<Vec<u8>, u32>::default();
    let mut paths = Vec::new();
    for module in modules {
        let path = super::texts::shared_path(&module.path);
        let is_numbered = path.starts_with(b"/") && module.kind == ModuleKind::File;
        let count = seen.entry(path.clone()).or_insert(0);
        *count += 1;
        paths.push(match *count {
            number if number > 1 && is_numbered => {
                [format!("/{number}").as_bytes(), &path].concat()
            }
            _ => path,
        });
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_move_together() {
        let moved = MovedRanges::of(vec![[0x9000, 0x1000], [0x5010, 0x20], [0xa000, 1]], MEMORY);
        assert_eq!(moved.moved(0x500f), None);
        assert_eq!(moved.moved(0x5010), Some(MEMORY + 0x10));
        assert_eq!(moved.moved(0x5030), None);
        let second = moved.moved(0x9000).unwrap();
        assert!(second > MEMORY + 0x1000 && second.is_multiple_of(ALIGNMENT), "{second:#x}");
        assert_eq!(moved.moved(0xa000), Some(second + 0x1000));
        assert_eq!(moved.moved(0xa001), None);
        assert_eq!(MovedRanges::of(vec![[1, 0]], 0).moved(1), None);
        assert!(MovedRanges::of(vec![[1, u64::MAX]], 0).moved(u64::MAX).is_some());
    }
}

//! Addresses of the points, and what is mapped there.
//!
//! An address of the profile is kept where it shows what was mapped there. It cannot be kept where
//! functions overlap, as inlined ones do, mappings overlap, or there is none: such functions get
//! addresses behind the end of their mapping.
//!
//! ```text
//!   user      [ file, at its own addresses · moved functions ]  [ file ]  …      disjoint, moved as a whole if need be
//!   kernel    kernel kernel ext4 ext4 kernel bpf                each run of addresses of one module is mapped
//! ```

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use recrep_format::build_id::BuildId;
use rustc_hash::{FxHashMap, FxHashSet};

use super::decoded::Decoded;
use super::decoded::ProfileError;
use super::points::{CodePoint, Points};
use crate::pprof::{KERNEL, Room, page_after, page_of};

/// Largest mapping: what is larger is damaged.
const LARGEST: u64 = 1 << 40;

/// First address for functions that cannot be where they were, in the kernel and of files without
/// addresses.
const FREE_KERNEL: u64 = 0xffff_a000_0000_0000;
const FREE_USER: u64 = 0x1000;

/// Kind of what is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MappedKind {
    File,
    Vdso,
    /// Memory without symbols.
    Memory,
    /// Code of a JIT, in this process.
    Jit(u32),
    Kernel,
    KernelModule,
    /// Code of the kernel that is a symbol of its own.
    KernelSymbol,
}

/// What is mapped at a range of addresses.
#[derive(Clone, Debug)]
pub(super) struct Mapped {
    name: Vec<u8>,
    pub(super) build_id: Option<BuildId>,
    pub(super) kind: MappedKind,
    pub(super) range: Range<u64>,
    /// Offset in the file of the first address.
    pub(super) offset: u64,
    /// Place of the mapping in the profile.
    pub(super) mapping: usize,
}

/// Longest name in a record; longer ones are cut.
const LONGEST_NAME: usize = 4096;

/// Returns a name as records have it.
pub(super) fn cut(name: &[u8]) -> &[u8] {
    name.get(..LONGEST_NAME).unwrap_or(name)
}

impl Mapped {
    /// Returns the name as records have it.
    pub(super) fn name(&self) -> &[u8] {
        cut(&self.name)
    }

    /// Returns the path by which the module is known, once it is mapped.
    pub(super) fn path(&self) -> Cow<'_, [u8]> {
        match self.kind {
            MappedKind::Jit(pid) => format!("/tmp/perf-{pid}.map").into_bytes().into(),
            _ => self.name().into(),
        }
    }

    /// Returns the path in the mapping record of a process.
    pub(super) fn path_in(&self, pid: u32) -> Cow<'_, [u8]> {
        match self.kind {
            MappedKind::Jit(of) if of == pid => b"//anon"[..].into(),
            _ => self.name().into(),
        }
    }
}

/// What is mapped where.
#[derive(Debug, Default)]
pub(super) struct AddressLayout {
    pub(super) kernel: Vec<Mapped>,
    /// By the place of the mapping in the profile.
    pub(super) user: BTreeMap<usize, Mapped>,
}

impl AddressLayout {
    /// Gives all points their addresses.
    pub(super) fn of(decoded: &Decoded<'_>, points: &mut Points) -> Result<Self, ProfileError> {
        let mut layout = Self::default();
        let mut of_mappings = BTreeMap::<(bool, usize), Vec<usize>>::new();
        for (number, point) in points.all.iter_mut().enumerate() {
            match point.mapping {
                Some(mapping) => {
                    of_mappings.entry((point.is_kernel, mapping)).or_default().push(number);
                }
                None => point.ip = point.wanted.unwrap_or(0),
            }
        }
        let unmapped = points.all.iter().filter(|point| point.mapping.is_none());
        let unmapped: BTreeSet<u64> = unmapped.map(|point| point.ip).collect();
        let mut room = Room::without(unmapped.iter().copied().filter(|ip| *ip < KERNEL));
        let taken = points.all.iter().filter_map(|point| point.wanted);
        let mut free_kernel = (FREE_KERNEL, taken.filter(|ip| *ip >= KERNEL).collect());
        for ((is_kernel, mapping), numbers) in of_mappings {
            let mut own = Own { points, numbers: &numbers };
            own.keep_apart();
            if is_kernel {
                own.place_in_kernel(&mut free_kernel);
            } else {
                let mapped = own.place_in_user(decoded, mapping, &mut room)?;
                layout.user.insert(mapping, mapped);
            }
        }
        layout.kernel = kernel_runs(decoded, points)?;
        Ok(layout)
    }
}

/// Points of one mapping.
struct Own<'p> {
    points: &'p mut Points,
    numbers: &'p [usize],
}

impl Own<'_> {
    fn iter(&self) -> impl Iterator<Item = &CodePoint> {
        self.numbers.iter().filter_map(|number| self.points.all.get(*number))
    }

    /// Returns whether functions begin where their first address is. It is not known of those of
    /// other programs, and then those of two profiles are told apart by their names, as functions
    /// of files without a build ID are.
    fn are_known(&self, decoded: &Decoded<'_>) -> bool {
        decoded.facts.is_some() || self.iter().all(|point| point.function.is_none())
    }

    fn change(&mut self, mut change: impl FnMut(&mut CodePoint)) {
        for number in self.numbers {
            if let Some(point) = self.points.all.get_mut(*number) {
                change(point);
            }
        }
    }

    /// Lets no function keep its addresses that has some without, or that another function or an
    /// address without one lies within: symbols are ranges.
    fn keep_apart(&mut self) {
        let (mut ranges, mut moved) =
            (FxHashMap::<usize, (u64, u64)>::default(), FxHashSet::default());
        let mut alone = BTreeSet::new();
        for point in self.iter() {
            match (point.function, point.wanted) {
                (Some(function), Some(wanted)) => {
                    let range = ranges.entry(function).or_insert((wanted, wanted));
                    *range = (range.0.min(wanted), range.1.max(wanted));
                }
                (Some(function), None) => drop(moved.insert(function)),
                (None, Some(wanted)) => drop(alone.insert(wanted)),
                (None, None) => {}
            }
        }
        let mut ranges: Vec<((u64, u64), usize)> =
            ranges.into_iter().map(|(function, range)| (range, function)).collect();
        ranges.sort_unstable();
        let mut end = None;
        for ((first, last), function) in ranges {
            if moved.contains(&function) {
                continue;
            }
            if end.is_some_and(|end| first <= end) || alone.range(first..=last).next().is_some() {
                moved.insert(function);
            } else {
                end = Some(last);
            }
        }
        self.change(|point| {
            point.wanted = point
                .wanted
                .filter(|_| point.function.is_none_or(|function| !moved.contains(&function)));
        });
    }

    /// Returns the points without an address, those of one function behind one another.
    fn moved(&self) -> Vec<usize> {
        let of = |number: &usize| self.points.all.get(*number);
        let mut moved: Vec<usize> = self
            .numbers
            .iter()
            .filter(|number| of(number).is_some_and(|point| point.wanted.is_none()))
            .copied()
            .collect();
        moved.sort_by_key(|number| of(number).map(|point| (point.function, *number)));
        moved
    }

    fn place_in_kernel(&mut self, (free, taken): &mut (u64, FxHashSet<u64>)) {
        for number in self.moved() {
            while taken.contains(free) {
                *free += 1;
            }
            if let Some(point) = self.points.all.get_mut(number) {
                point.wanted = Some(*free);
            }
            *free += 1;
        }
        self.change(|point| point.ip = point.wanted.unwrap_or(0));
    }

    fn place_in_user(
        &mut self,
        decoded: &Decoded<'_>,
        place: usize,
        room: &mut Room,
    ) -> Result<Mapped, ProfileError> {
        let mapping = decoded.mappings.get(place).copied().unwrap_or_default();
        let mut first = self.iter().filter_map(|point| point.wanted).min();
        let last = self.iter().filter_map(|point| point.wanted).max();
        if first.zip(last).is_some_and(|(first, last)| last - first > LARGEST) {
            first = None;
            self.change(|point| {
                let address = point.wanted.take();
                if point.function.is_none() {
                    (point.mapping, point.ip) = (None, address.unwrap_or(0));
                }
            });
        }
        let last = last.filter(|_| first.is_some());
        // From its beginning on, if that is near: what is no file has its addresses from there.
        let near = |first: &u64| first.saturating_sub(mapping.start) <= LARGEST;
        let start = first.map_or(FREE_USER, |first| {
            if near(&first) { page_of(mapping.start) } else { page_of(first) }
        });
        let mut end = last.map_or(start, page_after);
        for number in self.moved() {
            if let Some(point) =
                self.points.all.get_mut(number).filter(|point| point.mapping.is_some())
            {
                point.wanted = Some(end);
                end += 1;
            }
        }
        let len = page_after(end).saturating_sub(start);
        let at = room.take(start, len).ok_or(ProfileError::TooLarge)?;
        self.change(|point| {
            if let Some(wanted) = point.wanted {
                point.ip = wanted.wrapping_sub(start).wrapping_add(at);
            }
        });
        let offset = if first.is_some() {
            mapping.offset.wrapping_add(start.wrapping_sub(page_of(mapping.start)))
        } else {
            0
        };
        let name = decoded.text(mapping.filename)?;
        let name = if name.is_empty() { b"[unknown]" } else { name };
        Ok(Mapped {
            name: name.to_vec(),
            build_id: if self.are_known(decoded) { decoded.build_id(&mapping)? } else { None },
            kind: user_kind(name),
            range: at..at.saturating_add(len),
            offset,
            mapping: place,
        })
    }
}

/// Returns the kind of a user mapping with this name: a file, but for what rep has no files of.
fn user_kind(name: &[u8]) -> MappedKind {
    let jit =
        name.strip_prefix(b"[JIT] tid ").and_then(|pid| str::from_utf8(pid).ok()?.parse().ok());
    match name {
        b"[vdso]" => MappedKind::Vdso,
        _ if name.starts_with(b"[heap]") || name.starts_with(b"[stack") => MappedKind::Memory,
        _ if name.starts_with(b"//anon") => MappedKind::Memory,
        _ => jit.map_or(MappedKind::File, MappedKind::Jit),
    }
}

fn kernel_kind(name: &[u8]) -> MappedKind {
    match name.first() {
        _ if name.starts_with(b"[kernel.") || memchr::memmem::find(name, b"vmlinux").is_some() => {
            MappedKind::Kernel
        }
        Some(b'/' | b'[') => MappedKind::KernelModule,
        _ => MappedKind::KernelSymbol,
    }
}

/// Returns the mappings of the kernel's half: a run of addresses of one module each.
fn kernel_runs(decoded: &Decoded<'_>, points: &Points) -> Result<Vec<Mapped>, ProfileError> {
    let of_kernel = points.all.iter().filter(|point| point.is_kernel || point.ip >= KERNEL);
    let mut all: Vec<(u64, Option<usize>)> =
        of_kernel.map(|point| (point.ip, point.mapping)).collect();
    all.sort_unstable();
    let mut before = 0;
    let mut runs = Vec::new();
    for run in all.chunk_by(|(_, a), (_, b)| a == b) {
        let (Some((first, Some(place))), Some((last, _))) = (run.first(), run.last()) else {
            before = run.last().map_or(before, |(ip, _)| ip.saturating_add(1));
            continue;
        };
        let mapping = decoded.mappings.get(*place).copied().unwrap_or_default();
        let name = decoded.text(mapping.filename)?;
        let kind = if name.is_empty() { MappedKind::Kernel } else { kernel_kind(name) };
        // A module begins where it was loaded, if nothing else is there.
        let is_whole =
            kind == MappedKind::KernelModule && (before..=*first).contains(&mapping.start);
        let end = last.saturating_add(1);
        runs.push(Mapped {
            name: name.to_vec(),
            build_id: decoded.build_id(&mapping)?,
            kind,
            range: if is_whole { mapping.start } else { *first }..end,
            offset: 0,
            mapping: *place,
        });
        before = end;
    }
    Ok(runs)
}

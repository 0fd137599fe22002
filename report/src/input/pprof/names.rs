//! The names of the points, as a bundle has them.

use std::borrow::Cow;

use recrep_format::build_id::BuildId;
use recrep_format::endian::Endian;
use recrep_format::feature::{
    BundledFrame, BundledFunction, BundledKind, BundledModule, BundledPlace, Counted, bundle_body,
};
use recrep_format::wire::List;
use rustc_hash::FxHashMap;

use super::decoded::Decoded;
use super::decoded::ProfileError;
use super::layout::{AddressLayout, Mapped, MappedKind};
use super::points::{CodePoint, Points};

/// Returns the names of all points, as the body of a bundle.
pub(super) fn bundle(
    decoded: &Decoded<'_>,
    points: &Points,
    layout: &AddressLayout,
) -> Result<Vec<u8>, ProfileError> {
    let mut of_mappings = FxHashMap::<(bool, usize), Vec<&CodePoint>>::default();
    for point in points.all.iter().filter(|point| point.function.is_some()) {
        if let Some(mapping) = point.mapping {
            of_mappings.entry((point.is_kernel, mapping)).or_default().push(point);
        }
    }
    let mapped = layout.kernel.iter().map(|mapped| (true, mapped));
    let mapped = mapped.chain(layout.user.values().map(|mapped| (false, mapped)));
    let mut named = Vec::new();
    for (is_kernel, mapped) in mapped {
        let points = of_mappings.get(&(is_kernel, mapped.mapping));
        let points = points.into_iter().flatten().copied();
        let points = points.filter(|point| mapped.range.contains(&point.ip));
        named.push((mapped, NamedPoints::of(mapped, points, decoded)?));
    }
    let modules = named.iter().filter_map(|(mapped, points)| points.module(mapped));
    Ok(bundle_body(modules.collect(), Endian::NATIVE)?)
}

/// Names of the points of one module.
struct NamedPoints<'a> {
    /// First address, address after the last, and name of each function.
    functions: Vec<(u64, u64, &'a [u8])>,
    texts: Vec<&'a [u8]>,
    places: Vec<BundledPlace>,
    path: Cow<'a, [u8]>,
}

impl<'a> NamedPoints<'a> {
    fn of<'p>(
        mapped: &'a Mapped,
        points: impl Iterator<Item = &'p CodePoint>,
        decoded: &Decoded<'a>,
    ) -> Result<Self, ProfileError> {
        let mut ranges = FxHashMap::<usize, (u64, u64)>::default();
        let (mut texts, mut numbers) = (Vec::new(), FxHashMap::default());
        let mut number = |text: &'a [u8]| match text {
            [] => 0,
            text => *numbers.entry(text).or_insert_with(|| {
                texts.push(text);
                u32::try_from(texts.len()).unwrap_or(0)
            }),
        };
        let mut places = Vec::new();
        for point in points {
            let address = address_in(mapped, point.ip);
            if let Some(function) = point.function {
                let range = ranges.entry(function).or_insert((address, address));
                *range = (range.0.min(address), range.1.max(address));
            }
            let lines = decoded.locations.get(point.location).map(|location| &location.line);
            let lines = lines.and_then(|lines| lines.get(point.lines.clone()));
            let mut frames = Vec::new();
            for line in lines.unwrap_or_default() {
                let function = decoded.function(line.function)?;
                let Some(function) = function.and_then(|place| decoded.functions.get(place)) else {
                    continue;
                };
                frames.push(BundledFrame {
                    function: number(decoded.function_name(function)?),
                    file: if line.line > 0 { number(decoded.text(function.filename)?) } else { 0 },
                    line: u32::try_from(line.line).unwrap_or(0),
                });
            }
            if frames.len() > 1 || frames.iter().any(|frame| frame.file > 0) {
                places.push(BundledPlace { address, frames: List(frames) });
            }
        }
        let mut functions = Vec::with_capacity(ranges.len());
        for (function, (first, last)) in ranges {
            if let Some(function) = decoded.functions.get(function) {
                functions.push((first, last.saturating_add(1), decoded.function_name(function)?));
            }
        }
        functions.sort_unstable();
        places.sort_by_key(|place| place.address);
        places.dedup_by_key(|place| place.address);
        Ok(Self { functions, texts, places, path: mapped.path() })
    }

    /// Returns the module as it stands in a bundle; `None` for what has no names there.
    fn module<'n>(&'n self, mapped: &'n Mapped) -> Option<BundledModule<'n>> {
        let (kind, pid, start) = match mapped.kind {
            MappedKind::File => (BundledKind::FILE, 0, 0),
            MappedKind::Vdso => (BundledKind::VDSO, 0, 0),
            MappedKind::Jit(pid) => (BundledKind::JIT, pid.cast_signed(), 0),
            MappedKind::Kernel => (BundledKind::KERNEL, 0, 0),
            MappedKind::KernelModule => (BundledKind::KERNEL_MODULE, 0, mapped.range.start),
            MappedKind::KernelSymbol | MappedKind::Memory => return None,
        };
        if self.functions.is_empty() {
            // It may be that its file is here.
            return None;
        }
        let functions = self.functions.iter().map(|(start, end, name)| BundledFunction {
            start: *start,
            end: *end,
            name: Counted(name),
        });
        Some(BundledModule {
            path: Counted(&self.path),
            kind,
            pid,
            start,
            end: 0,
            build_id: Counted(mapped.build_id.as_ref().map_or(&[], BuildId::as_bytes)),
            major: 0,
            minor: 0,
            inode: 0,
            source: Counted(b"the profile"),
            functions: List(functions.collect()),
            texts: List(self.texts.iter().map(|text| Counted(text)).collect()),
            places: List(self.places.clone()),
            images: List(Vec::new()),
        })
    }
}

/// Returns the address by which the functions of a module are looked up.
fn address_in(mapped: &Mapped, ip: u64) -> u64 {
    match mapped.kind {
        MappedKind::File => ip.wrapping_sub(mapped.range.start).wrapping_add(mapped.offset),
        MappedKind::Vdso => ip.wrapping_sub(mapped.range.start),
        _ => ip,
    }
}

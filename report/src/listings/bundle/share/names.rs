//! Names of a shared recording: those of its bundle, at their new addresses and without directories.

use std::borrow::Cow;
use std::collections::BTreeSet;

use recrep_format::endian::Endian;
use recrep_format::error::Result;
use recrep_format::feature::{
    BundledFunction, BundledKind, BundledModule, BundledVersion, Counted, bundle_body_with,
    bundled_modules, bundled_versions,
};
use recrep_format::wire::List;
use rustc_hash::FxHashMap;

use super::places::SharedPlaces;
use super::texts;
use crate::samples::Session;
use crate::symbols::BundleKey;

/// Rewrites the body of a bundle.
pub(super) fn rewritten(
    body: &[u8],
    session: &Session<'_>,
    places: &SharedPlaces,
    endian: Endian,
) -> Result<Vec<u8>> {
    let numbers: FxHashMap<BundleKey, u32> = (0..)
        .zip(&session.side_band.modules)
        .filter_map(|(number, module)| Some((module.bundle_key()?, number)))
        .collect();
    let modules = bundled_modules(body, endian)?;
    let texts: Vec<ModuleTexts<'_>> = modules.iter().map(ModuleTexts::of).collect();
    let mut shared = Vec::new();
    for (module, texts) in modules.into_iter().zip(&texts) {
        let number = numbers.get(&BundleKey::in_bundle(&module)).copied();
        let path = number.map_or(&[][..], |number| places.module(number).1);
        shared.push(moved(module, texts, path, places));
    }
    let versions = bundled_versions(body, endian)?;
    let versions = versions.into_iter().map(|version| moved_version(version, places));
    bundle_body_with(shared, versions.collect(), endian)
}

/// Texts of a module, without directories.
struct ModuleTexts<'b> {
    functions: Vec<Cow<'b, [u8]>>,
    /// Texts that places refer to.
    texts: Vec<Cow<'b, [u8]>>,
}

impl<'b> ModuleTexts<'b> {
    fn of(module: &BundledModule<'b>) -> Self {
        let is_of_jit = module.kind == BundledKind::JIT;
        let name = |name: &Counted<'b>| texts::function_name(name.0, is_of_jit);
        let files: BTreeSet<u32> = module
            .places
            .0
            .iter()
            .flat_map(|place| place.frames.0.iter().map(|frame| frame.file))
            .collect();
        let text = |(number, text): (u32, &Counted<'b>)| match files.contains(&number) {
            true => str::from_utf8(text.0)
                .map_or_else(|_| Cow::default(), |path| texts::file_name(path).as_bytes().into()),
            false => name(text),
        };
        Self {
            functions: module.functions.0.iter().map(|function| name(&function.name)).collect(),
            texts: (1..).zip(&module.texts.0).map(text).collect(),
        }
    }
}

/// Returns a module under its new path, with its functions at their new addresses.
fn moved<'m>(
    module: BundledModule<'m>,
    texts: &'m ModuleTexts<'_>,
    path: &'m [u8],
    places: &SharedPlaces,
) -> BundledModule<'m> {
    let kind = module.kind;
    let functions = module.functions.0.iter().zip(&texts.functions).map(|(function, name)| {
        let start = moved_address(kind, function.start, places);
        let end = start.wrapping_add(function.end.wrapping_sub(function.start));
        BundledFunction { start, end, name: Counted(name) }
    });
    let functions: Vec<BundledFunction<'m>> = functions.collect();
    let mut all = module.places.0;
    for place in &mut all {
        place.address = moved_address(kind, place.address, places);
    }
    all.sort_unstable_by_key(|place| place.address);
    BundledModule {
        path: Counted(path),
        start: moved_address(kind, module.start, places),
        end: 0,
        major: 0,
        minor: 0,
        inode: 0,
        source: Counted(b"a shared recording"),
        functions: List(functions),
        texts: List(texts.texts.iter().map(|text| Counted(text)).collect()),
        places: List(all),
        ..module
    }
}

/// Returns the new address of one in a module of this kind.
fn moved_address(kind: BundledKind, address: u64, places: &SharedPlaces) -> u64 {
    match kind {
        // Offsets in files say nothing of where they were.
        BundledKind::FILE | BundledKind::VDSO => address,
        // Replaced code is at addresses that no process has.
        BundledKind::JIT => places.of_memory(address).unwrap_or(address),
        _ if address == 0 => 0,
        _ => places.of_kernel(address).unwrap_or(0),
    }
}

fn moved_version(version: BundledVersion, places: &SharedPlaces) -> BundledVersion {
    let start = places.of_memory(version.start).unwrap_or(0);
    let end = start.wrapping_add(version.end.wrapping_sub(version.start));
    let first = moved_address(BundledKind::JIT, version.first, places);
    BundledVersion { start, end, first, ..version }
}

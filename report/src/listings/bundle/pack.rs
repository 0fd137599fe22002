//! Modules with the names of their addresses, as they stand in a bundle.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::sync::Arc;

use rayon::prelude::*;
use recrep_format::build_id::BuildId;
use recrep_format::endian::Endian;
use recrep_format::error::Result;
use recrep_format::feature::{
    Bundle, BundledFrame, BundledFunction, BundledModule, BundledPlace, Counted, bundle_body_with,
};
use recrep_format::wire::List;
use recrep_format::write::FeatureWriter;

use crate::symbols::{
    BundleKey, CodeVersion, Loaded, Module, Resolver, SourceFrame, SymbolId, UnwindingParts,
};

/// Level of compression: names shrink to a third, and higher levels gain little.
const LEVEL: i32 = 9;

/// Names of a module's addresses.
pub(super) struct NamedModule {
    loaded: Arc<Loaded>,
    functions: BTreeSet<SymbolId>,
    places: Vec<(u64, Vec<SourceFrame>)>,
    unwinding: Option<UnwindingParts>,
    /// Versions of a JIT's code that have recorded addresses.
    versions: Vec<CodeVersion>,
    /// What the names were taken from.
    source: String,
}

/// Numbers of what a bundle has, for the last line.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    pub(super) modules: usize,
    pub(super) functions: usize,
    pub(super) places: usize,
}

/// Addresses of one module.
pub(super) struct ModuleAddresses<'s> {
    pub(super) module: &'s Module,
    pub(super) addresses: BTreeSet<u64>,
}

impl ModuleAddresses<'_> {
    /// Returns whether a version of a JIT's code has one of the addresses: by its own, or by those
    /// of the process.
    fn has_code(&self, version: &CodeVersion) -> bool {
        let CodeVersion { start, end, first, .. } = *version;
        let own = first..first.saturating_add(end.saturating_sub(start));
        [own, start..end]
            .into_iter()
            .any(|range| !range.is_empty() && self.addresses.range(range).next().is_some())
    }
}

/// Names the addresses of a recording's modules. If `has_stacks`, what unwinding needs of them goes
/// with them.
pub(super) fn named(
    modules: Vec<ModuleAddresses<'_>>,
    resolver: &Resolver,
    has_stacks: bool,
) -> Vec<NamedModule> {
    let hit = modules.into_par_iter().filter(|found| !found.addresses.is_empty());
    let named = hit.map(|found| {
        let unwinding = if has_stacks { resolver.unwinding_parts(found.module) } else { None };
        let mut versions = resolver.jit_versions(found.module);
        versions.retain(|version| found.has_code(version));
        NamedModule {
            versions,
            ..NamedModule::new(resolver.load(found.module), &found.addresses, unwinding)
        }
    });
    let mut named: Vec<_> = named.collect();
    named.retain(|module| !module.is_empty());
    named
}

impl NamedModule {
    fn new(
        loaded: Arc<Loaded>,
        addresses: &BTreeSet<u64>,
        unwinding: Option<UnwindingParts>,
    ) -> Self {
        let functions = addresses.iter().filter_map(|address| loaded.find(*address)).collect();
        let lines = loaded.lines();
        let places = if lines.is_known() {
            let asked: Vec<_> = addresses.iter().copied().collect();
            asked
                .into_par_iter()
                .map(|address| (address, lines.raw_frames(address)))
                .filter(|(_, frames)| !frames.is_empty())
                .collect()
        } else {
            Vec::new()
        };
        let sources: Vec<_> =
            loaded.outcome.found().map(|attempt| attempt.path.display().to_string()).collect();
        let source = sources.join(", ");
        Self { functions, places, unwinding, versions: Vec::new(), source, loaded }
    }

    fn is_empty(&self) -> bool {
        let has_code = !self.versions.is_empty() || self.unwinding.is_some();
        self.functions.is_empty() && self.places.is_empty() && !has_code
    }

    /// Returns the module as it stands in a bundle, under this key.
    fn bundled<'n>(&'n self, key: &'n BundleKey) -> BundledModule<'n> {
        let (major, minor, inode) = key.file.unwrap_or_default();
        let mut texts = Texts::default();
        let places = self.places.iter().map(|(address, frames)| BundledPlace {
            address: *address,
            frames: List(frames.iter().map(|frame| texts.frame(frame)).collect()),
        });
        let places = places.collect();
        let symbols = self.functions.iter().filter_map(|id| self.loaded.symbol(*id));
        let functions = symbols.map(|symbol| BundledFunction {
            start: symbol.start,
            end: symbol.end,
            name: Counted(symbol.name),
        });
        BundledModule {
            path: Counted(&key.path),
            kind: key.kind,
            pid: key.pid,
            start: key.start,
            end: 0,
            build_id: Counted(key.build_id.as_ref().map_or(&[], BuildId::as_bytes)),
            major,
            minor,
            inode,
            source: Counted(self.source.as_bytes()),
            functions: List(functions.collect()),
            texts: List(texts.all.iter().map(|text| Counted(text.as_bytes())).collect()),
            places: List(places),
            images: List(self.unwinding.iter().map(UnwindingParts::bundled).collect()),
        }
    }
}

/// Texts of a module, each once.
#[derive(Default)]
struct Texts<'n> {
    all: Vec<&'n str>,
    numbers: HashMap<&'n str, u32>,
}

impl<'n> Texts<'n> {
    fn frame(&mut self, frame: &'n SourceFrame) -> BundledFrame {
        let [function, file] =
            [&frame.function, &frame.file].map(|text| self.number(text.as_deref()));
        BundledFrame { function, file, line: frame.line }
    }

    /// Returns the number of a text plus one; 0 for none.
    fn number(&mut self, text: Option<&'n str>) -> u32 {
        let Some(text) = text else { return 0 };
        *self.numbers.entry(text).or_insert_with(|| {
            self.all.push(text);
            u32::try_from(self.all.len()).unwrap_or(0)
        })
    }
}

/// Encodes the body of a bundle, and counts what it has.
pub(super) fn body(modules: &[NamedModule], endian: Endian) -> Result<(Vec<u8>, Totals)> {
    // Kinds that have no names in a bundle are left out.
    let keys: Vec<_> = modules
        .iter()
        .filter_map(|named| Some((named, named.loaded.module.bundle_key()?)))
        .collect();
    let bundled: Vec<_> = keys.iter().map(|(named, key)| named.bundled(key)).collect();
    let totals = Totals {
        modules: bundled.len(),
        functions: bundled.iter().map(|module| module.functions.0.len()).sum(),
        places: bundled.iter().map(|module| module.places.0.len()).sum(),
    };
    let numbered = (0..).zip(&keys);
    let versions = numbered
        .flat_map(|(number, (named, _))| named.versions.iter().map(move |v| v.bundled(number)));
    Ok((bundle_body_with(bundled, versions.collect(), endian)?, totals))
}

/// Adds the section with a body, packed.
pub(super) fn add_section(body: &[u8], features: &mut FeatureWriter) -> io::Result<()> {
    let packed = zstd::bulk::compress(body, LEVEL)?;
    features.add(&Bundle::of(&packed, body));
    Ok(())
}

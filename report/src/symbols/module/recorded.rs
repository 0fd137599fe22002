//! Symbols that the recording itself has: Android's simpleperf leaves the symbols of the files that
//! its samples hit.
//!
//! They are from the recorded device, so they need no proof, and come before all files. How a
//! symbol's address relates to the one by which it is looked up depends on the kind of its file
//! ([`Base`]):
//!
//! ```text
//!   ELF file, its place known:   file offset     = symbol − min_vaddr + offset of min_vaddr
//!   ELF file of old recordings:  from the start of its mapping = symbol − min_vaddr
//!   file with dex code:          file offset     = symbol
//!   kernel module:               sampled address = symbol − min_vaddr + offset in memory + load address
//!   kernel, JIT's code:          sampled address = symbol
//! ```
//!
//! Source: `IpToVaddrInFile` in simpleperf's `dso.cpp`.

use std::cmp::Ordering;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use recrep_format::abi::RecordType;
use recrep_format::error::Error;
use recrep_format::feature::{
    Feature as _, SimpleperfFile, SimpleperfFileKind, SimpleperfFiles, SimpleperfFiles2,
};
use recrep_format::read::File;
use recrep_format::record::RawRecord;
use rustc_hash::FxHashMap;

/// Bit in the protection of a mapping by which simpleperf marks code of a JIT, in a file with its
/// symbols.
const JIT_CODE: u32 = 0x4000;

/// Symbols of one module. Equal ones have equal symbols.
#[derive(Clone, Debug)]
pub struct RecordedSymbols(pub(crate) Arc<RecordedContents>);

#[derive(Debug)]
pub(crate) struct RecordedContents {
    /// Hash of all else, so that comparing modules takes no time.
    hash: u64,
    pub(crate) base: Base,
    pub(crate) symbols: Vec<RecordedSymbol>,
    /// Symbols of the kernel, which may have those of its modules.
    pub(crate) kernel: Option<RecordedSymbols>,
    /// Text of `/proc/kallsyms`.
    pub(crate) kallsyms: Option<Box<[u8]>>,
}

#[derive(Debug, Hash)]
pub(crate) struct RecordedSymbol {
    pub(crate) start: u64,
    pub(crate) len: u32,
    pub(crate) name: Box<[u8]>,
}

/// Address that symbols are relative to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Base {
    /// The beginning of the file; symbols have addresses as if it were this one.
    File(u64),
    /// The start of the mapping, which is this linked address.
    Mapping(u64),
    /// The load address of a kernel module, which is this linked address.
    Module(u64),
    /// None: addresses at run time.
    Zero,
}

/// Symbols in a recording, by the path of their file.
#[derive(Debug, Default)]
pub(crate) struct RecordedFiles<'a> {
    files: FxHashMap<&'a [u8], RecordedSymbols>,
    kernel: Option<RecordedSymbols>,
    /// Error that ended reading early.
    pub damage: Option<Error>,
}

impl<'a> RecordedFiles<'a> {
    /// Returns the symbols that simpleperf left in `file` and its records.
    pub(crate) fn of(file: &File<'a>, records: &[RawRecord<'a>]) -> Self {
        let mut all = Self::default();
        if !file.is_of_simpleperf() {
            return all;
        }
        let (mut found, mut kernel) = (Vec::new(), Vec::new());
        if let Some(mut c) = file.feature_cursor(SimpleperfFiles::ID) {
            (found, all.damage) = SimpleperfFiles::readable(&mut c);
        } else if let Some(mut c) = file.feature_cursor(SimpleperfFiles2::ID) {
            (found, all.damage) = SimpleperfFiles2::readable(&mut c);
        }
        let lists =
            records.iter().filter(|raw| raw.header.kind == RecordType::SIMPLEPERF_KERNEL_SYMBOL);
        let kallsyms =
            lists.filter_map(|raw| raw.kallsyms(file.endian)).find(|text| !text.is_empty());
        found.retain(|file| {
            let is_kernel = file.kind == SimpleperfFileKind::KERNEL;
            if is_kernel {
                kernel.extend(symbols_of(file));
            }
            !is_kernel
        });
        if !kernel.is_empty() || kallsyms.is_some() {
            all.kernel = Some(RecordedSymbols::new(Base::Zero, kernel, None, kallsyms));
        }
        for file in &found {
            let kernel =
                all.kernel.clone().filter(|_| file.kind == SimpleperfFileKind::KERNEL_MODULE);
            let symbols =
                RecordedSymbols::new(Base::of(file), symbols_of(file).collect(), kernel, None);
            all.files.insert(file.path, symbols);
        }
        all
    }

    /// Returns the symbols of the kernel.
    pub(crate) fn kernel(&self) -> Option<RecordedSymbols> {
        self.kernel.clone()
    }

    /// Returns the symbols of a kernel module: its own, or those of the kernel.
    pub(crate) fn kernel_module(&self, path: &[u8]) -> Option<RecordedSymbols> {
        self.files.get(path).cloned().or_else(|| self.kernel())
    }

    /// Returns the symbols of a user mapping (of JIT code, given its process), and the address by
    /// which its first byte is looked up.
    pub(crate) fn mapped(
        &self,
        path: &[u8],
        jit: Option<i32>,
        prot: u32,
        start: u64,
    ) -> Option<FromRecording> {
        if self.files.is_empty() {
            return None;
        }
        let symbols = match jit {
            Some(pid) => self.files.get(format!("perf-{pid}.map").as_bytes()),
            None => self.files.get(path),
        }?;
        let is_jit = prot & JIT_CODE != 0;
        let symbols = if is_jit { symbols.at_run_time() } else { symbols.clone() };
        let first = match symbols.0.base {
            Base::File(_) | Base::Module(_) => None,
            Base::Mapping(_) => Some(0),
            Base::Zero => Some(start),
        };
        Some(FromRecording { symbols, first })
    }
}

/// Symbols of a user mapping.
pub(crate) struct FromRecording {
    pub symbols: RecordedSymbols,
    /// Address by which the first byte is looked up; `None` for that of the module's kind.
    pub first: Option<u64>,
}

impl Base {
    fn of(file: &SimpleperfFile<'_>) -> Self {
        match (file.kind, file.known_offset()) {
            (SimpleperfFileKind::ELF, Some(offset)) => {
                Self::File(file.min_vaddr.wrapping_sub(offset))
            }
            (SimpleperfFileKind::ELF, None) => Self::Mapping(file.min_vaddr),
            (SimpleperfFileKind::DEX, _) => Self::File(0),
            (SimpleperfFileKind::KERNEL_MODULE, offset) => {
                Self::Module(file.min_vaddr.wrapping_sub(offset.unwrap_or(0)))
            }
            _ => Self::Zero,
        }
    }
}

fn symbols_of(file: &SimpleperfFile<'_>) -> impl Iterator<Item = RecordedSymbol> {
    let named =
        file.symbols.iter().filter(|symbol| !symbol.name.is_empty() && !symbol.name.contains(&0));
    named.map(|symbol| RecordedSymbol {
        start: symbol.start,
        len: symbol.len,
        name: symbol.name.into(),
    })
}

impl RecordedSymbols {
    pub(crate) fn new(
        base: Base,
        symbols: Vec<RecordedSymbol>,
        kernel: Option<Self>,
        kallsyms: Option<&[u8]>,
    ) -> Self {
        let mut hasher = DefaultHasher::new();
        (base, &symbols, &kernel, kallsyms).hash(&mut hasher);
        let (hash, kallsyms) = (hasher.finish(), kallsyms.map(Box::from));
        Self(Arc::new(RecordedContents { hash, base, symbols, kernel, kallsyms }))
    }

    /// Returns the same symbols, whose addresses are those at run time.
    fn at_run_time(&self) -> Self {
        let copy =
            |symbol: &RecordedSymbol| RecordedSymbol { name: symbol.name.clone(), ..*symbol };
        Self::new(Base::Zero, self.0.symbols.iter().map(copy).collect(), None, None)
    }
}

impl PartialEq for RecordedSymbols {
    fn eq(&self, other: &Self) -> bool {
        self.0.hash == other.0.hash
    }
}

impl Eq for RecordedSymbols {}

impl Hash for RecordedSymbols {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash.hash(state);
    }
}

impl PartialOrd for RecordedSymbols {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for RecordedSymbols {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.hash.cmp(&other.0.hash)
    }
}

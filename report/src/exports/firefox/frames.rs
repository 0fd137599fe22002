//! Frames: functions of libraries, with a category.
//!
//! The crate finds the name of a frame by its address in a library, so each function has one address:
//! its first one, if that is known, else the lowest sampled one, or the next that is free. Addresses
//! in a library have 32 bits; those of the kernel and of JITs are counted from the lowest one.

use std::collections::BTreeMap;
use std::sync::Arc;

use fxprof_processed_profile::debugid::DebugId;
use fxprof_processed_profile::{
    CategoryColor, CategoryHandle, Frame, FrameFlags, FrameInfo, LibraryHandle, LibraryInfo,
    Profile, Symbol, SymbolTable,
};

use crate::exports::frames::{CodeType, ExportedFrame, Frames};
use crate::profile::names::{CodeKind, ModuleName};

/// Frames of the file, by their numbers in chains.
pub(super) struct FirefoxFrames {
    all: Vec<Option<FrameInfo>>,
}

/// Categories of frames.
struct Categories {
    user: CategoryHandle,
    kernel: CategoryHandle,
    jit: CategoryHandle,
    python: CategoryHandle,
}

/// A library with the functions in it.
struct Library {
    handle: LibraryHandle,
    /// Lowest address, which is 0 in the file.
    base: u64,
    /// Functions by their addresses.
    functions: BTreeMap<u32, usize>,
}

impl FirefoxFrames {
    /// Adds libraries with their functions to a profile.
    pub(super) fn add_to(built: &mut Profile, frames: &Frames<'_>) -> Self {
        let categories = Categories::add_to(built);
        let mut libraries: Vec<Library> = frames
            .modules
            .iter()
            .zip(bases(frames))
            .map(|(module, base)| Library {
                handle: built.add_lib(library_info(module)),
                base,
                functions: BTreeMap::new(),
            })
            .collect();
        let addresses = addresses(frames, &mut libraries);
        for Library { handle, functions, .. } in &libraries {
            let symbol = |(address, function): (&u32, &usize)| {
                let name = frames.functions.get(*function)?.name.clone();
                Some(Symbol { address: *address, size: Some(1), name })
            };
            let symbols = functions.iter().filter_map(symbol).collect();
            built.set_lib_symbol_table(*handle, Arc::new(SymbolTable::new(symbols)));
        }
        let info = |frame: &ExportedFrame| {
            let library = frame.module.and_then(|module| libraries.get(module));
            let address = match frame.function {
                Some(function) => addresses.get(function).copied().flatten(),
                None => library.zip(frame.address).and_then(|(library, at)| library.relative(at)),
            };
            let frame_at = match library.zip(address) {
                Some((library, address)) => {
                    Frame::RelativeAddressFromInstructionPointer(library.handle, address)
                }
                None => Frame::Label(built.intern_string(&frames.text(frame))),
            };
            let category = categories.of(frames, frame);
            FrameInfo {
                frame: frame_at,
                category_pair: category.into(),
                flags: FrameFlags::empty(),
            }
        };
        Self { all: frames.iter().map(info).map(Some).collect() }
    }

    /// Returns a frame, given its number in chains.
    pub(super) fn get(&self, number: u32) -> Option<FrameInfo> {
        self.all.get(number as usize).cloned().flatten()
    }
}

impl Categories {
    fn add_to(built: &mut Profile) -> Self {
        Self {
            user: built.add_category("User", CategoryColor::Yellow),
            kernel: built.add_category("Kernel", CategoryColor::Orange),
            jit: built.add_category("JIT", CategoryColor::Green),
            python: built.add_category("Python", CategoryColor::Blue),
        }
    }

    fn of(&self, frames: &Frames<'_>, frame: &ExportedFrame) -> CategoryHandle {
        match frames.kind(frame) {
            Some(CodeType::Kernel) => self.kernel,
            Some(CodeType::Jit) => self.jit,
            Some(CodeType::Python) => self.python,
            Some(CodeType::Native) => self.user,
            None => CategoryHandle::OTHER,
        }
    }
}

impl Library {
    fn relative(&self, address: u64) -> Option<u32> {
        u32::try_from(address.checked_sub(self.base)?).ok()
    }

    /// Returns the address of a function: `wanted`, or the next one that no other has.
    fn place(&mut self, function: usize, wanted: u64) -> Option<u32> {
        let mut address = self.relative(wanted)?;
        while self.functions.get(&address).is_some_and(|other| *other != function) {
            address = address.checked_add(1)?;
        }
        self.functions.insert(address, function);
        Some(address)
    }
}

/// Returns the lowest address of each module that is no file, and 0 of those that are.
fn bases(frames: &Frames<'_>) -> Vec<u64> {
    let mut lowest = vec![u64::MAX; frames.modules.len()];
    let mut add = |module: Option<usize>, address: Option<u64>| {
        let slot = module.and_then(|module| lowest.get_mut(module));
        if let Some((slot, address)) = slot.zip(address) {
            *slot = address.min(*slot);
        }
    };
    for frame in frames.iter() {
        add(frame.module, frame.address);
    }
    for function in &frames.functions {
        add(function.module, function.start);
    }
    let is_file = |module: &ModuleName| module.code == CodeKind::User;
    let bases = lowest.iter().zip(&frames.modules);
    bases.map(|(lowest, module)| if is_file(module) { 0 } else { *lowest }).collect()
}

/// Returns the address of each function in its library; `None` if it has none.
fn addresses(frames: &Frames<'_>, libraries: &mut [Library]) -> Vec<Option<u32>> {
    let mut wanted: Vec<Option<u64>> = frames.functions.iter().map(|one| one.start).collect();
    let mut lowest = vec![None::<u64>; wanted.len()];
    for frame in frames.iter() {
        let slot = frame.function.and_then(|function| lowest.get_mut(function));
        if let Some((slot, address)) = slot.zip(frame.address) {
            *slot = Some(slot.map_or(address, |known| known.min(address)));
        }
    }
    for (wanted, lowest) in wanted.iter_mut().zip(&lowest) {
        *wanted = wanted.or(*lowest);
    }
    // Those whose first addresses are known have them for sure.
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    let has_start =
        |number: &usize| frames.functions.get(*number).is_some_and(|of| of.start.is_some());
    order.sort_by_key(|number| !has_start(number));
    let mut addresses = vec![None; wanted.len()];
    for number in order {
        let function = frames.functions.get(number).and_then(|function| function.module);
        let library = function.and_then(|module| libraries.get_mut(module));
        let wanted = wanted.get(number).copied().flatten();
        if let (Some(library), Some(wanted), Some(slot)) =
            (library, wanted, addresses.get_mut(number))
        {
            *slot = library.place(number, wanted);
        }
    }
    addresses
}

fn library_info(module: &ModuleName) -> LibraryInfo {
    let build_id = module.identity.build_id;
    let guid = build_id.and_then(|id| id.padded().first_chunk::<16>().copied());
    LibraryInfo {
        name: module.name.clone(),
        debug_name: module.name.clone(),
        path: module.path.clone(),
        debug_path: module.path.clone(),
        debug_id: guid.and_then(|guid| DebugId::from_guid_age(&guid, 0).ok()).unwrap_or_default(),
        code_id: build_id.map(|id| id.to_string()),
        arch: None,
        symbol_table: None,
    }
}

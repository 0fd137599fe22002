//! The code that a trace is of: that of the recorded files, and of JITs' dumps, where it is mapped at
//! a time.

use std::ops::Range;
use std::sync::{Mutex, OnceLock, PoisonError};

use indexmap::IndexMap;
use recrep_format::abi::CpuMode;
use rustc_hash::FxBuildHasher;

use super::samples::is_kernel;
use crate::symbols::{JitFrames, Module, ModuleKind, Modules, Resolver};
use crate::timeline::{ModuleId, Moment, SpaceId, Timeline};

/// Length of the pieces in which code is read.
const PIECE: u64 = 8 << 20;
/// What is read behind a piece: more than an instruction has.
const OVERLAP: u64 = 64;
/// Number of pieces of a module; the largest programs have fewer.
const PIECES: usize = 64;

/// Code at addresses of a module.
#[derive(Debug)]
struct CodePiece {
    start: u64,
    bytes: Vec<u8>,
}

/// The pieces of a module's code that were asked for.
#[derive(Debug)]
struct ModuleCode {
    module: Module,
    pieces: Vec<OnceLock<Option<CodePiece>>>,
    /// The code if it is a JIT's.
    jit: OnceLock<Option<JitFrames>>,
}

/// Version of an address space, in which an address means the same.
pub(super) type SpaceVersion = (Option<SpaceId>, u32);

/// An address space and a moment.
pub(super) type SpaceMoment = (Option<SpaceId>, Moment);

/// Code of all modules.
#[derive(Debug)]
pub(super) struct RecordedCode<'i> {
    resolver: &'i Resolver,
    modules: Vec<ModuleCode>,
    /// Versions of address spaces by number, each with a moment of it.
    spaces: Mutex<IndexMap<SpaceVersion, Moment, FxBuildHasher>>,
}

impl<'i> RecordedCode<'i> {
    pub(super) fn new(modules: &Modules, resolver: &'i Resolver) -> Self {
        let code = |module: &Module| ModuleCode {
            module: module.clone(),
            pieces: (0..PIECES).map(|_| OnceLock::new()).collect(),
            jit: OnceLock::new(),
        };
        let modules = modules.iter().map(code).collect();
        Self { resolver, modules, spaces: Mutex::default() }
    }

    /// Returns the code at an address of a module. `mapped` are the addresses of the mapping.
    fn bytes(&self, module: ModuleId, address: u64, mapped: &Range<u64>) -> Option<&[u8]> {
        let ModuleCode { module, pieces, jit } = self.modules.get(module.0 as usize)?;
        if matches!(module.kind, ModuleKind::PerfMap { .. }) {
            let frames = jit.get_or_init(|| self.resolver.jit_frames(module)).as_ref()?;
            return frames.code_in(&(address..mapped.end)).filter(|code| !code.is_empty());
        }
        // A kernel is mapped once, in the upper half.
        let first = if is_kernel(mapped.start) { mapped.start } else { 0 };
        let number = address.checked_sub(first)? / PIECE;
        let piece = pieces.get(usize::try_from(number).ok()?)?.get_or_init(|| {
            let start = mapped.start.max(first + number * PIECE);
            let end = (first + number * PIECE).saturating_add(PIECE + OVERLAP).min(mapped.end);
            let code = self.resolver.load(module).code(&(start..end)).ok()?;
            Some(CodePiece { start, bytes: code.bytes })
        });
        let CodePiece { start, bytes } = piece.as_ref()?;
        let from = usize::try_from(address.checked_sub(*start)?).ok()?;
        let left = usize::try_from(mapped.end.saturating_sub(address)).unwrap_or(usize::MAX);
        let rest = bytes.get(from..).filter(|rest| !rest.is_empty())?;
        rest.get(..left.min(rest.len()))
    }

    /// Returns the code at an address of a space at a moment, or at the end: the times of a trace may lag
    /// behind those of the records.
    pub(super) fn at(
        &self,
        timeline: &Timeline,
        (space, at): SpaceMoment,
        address: u64,
    ) -> Option<&[u8]> {
        let code = self.code_at(timeline, space, address, at);
        code.or_else(|| self.code_at(timeline, space, address, Moment::END))
    }

    fn code_at(
        &self,
        timeline: &Timeline,
        space: Option<SpaceId>,
        address: u64,
        at: Moment,
    ) -> Option<&[u8]> {
        let mode = if is_kernel(address) { CpuMode::Kernel } else { CpuMode::User };
        let (place, range) = timeline.place_in(mode, space, address, at);
        let before = address - range.start;
        let start = place.address.checked_sub(before)?;
        let mapped = start..start.saturating_add(range.end - range.start);
        self.bytes(place.module?, place.address, &mapped)
    }

    /// Returns the number of a version.
    pub(super) fn number(&self, version: SpaceVersion, at: Moment) -> u32 {
        let mut spaces = self.spaces.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = spaces.entry(version);
        let number = u32::try_from(entry.index()).unwrap_or(u32::MAX);
        entry.or_insert(at);
        number
    }

    /// Returns the address space of a version's number, and a moment of it.
    pub(super) fn space(&self, number: u32) -> Option<SpaceMoment> {
        let spaces = self.spaces.lock().unwrap_or_else(PoisonError::into_inner);
        spaces.get_index(number as usize).map(|((space, _), at)| (*space, *at))
    }
}

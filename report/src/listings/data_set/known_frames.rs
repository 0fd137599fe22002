//! Frames in place of addresses, which are looked up once for all workers.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;
use sha2::{Digest as _, Sha256};

use crate::callchain::Frame;
use crate::engine::{FrameTexts, Labeller};
use crate::scan::Naming as _;

/// Frames that the workers found.
pub(super) struct KnownFrames<'l> {
    labeller: &'l Labeller<'l>,
    /// By the number of their module: while one worker reads its debug information, others need not
    /// read the same.
    modules: Vec<Mutex<KnownModule>>,
}

/// Frames in a module.
#[derive(Default)]
struct KnownModule {
    /// By address.
    replacing: FxHashMap<Frame, ReplacingFrames>,
    /// IDs of functions, and of addresses without one.
    ids: FxHashMap<Frame, i64>,
    described: BTreeMap<i64, FrameTexts>,
}

/// Frames that replace an address.
#[derive(Clone, Default)]
pub(super) struct ReplacingFrames {
    /// Their IDs, innermost first.
    pub(super) ids: Box<[i64]>,
    /// Source file and line of the innermost, if they were looked up and are known.
    pub(super) line: Option<(String, u32)>,
}

impl<'l> KnownFrames<'l> {
    pub(super) fn new(labeller: &'l Labeller<'l>) -> Self {
        // Number 0 is that of addresses at which nothing was mapped.
        let modules = (0..=labeller.modules.len()).map(|_| Mutex::default()).collect();
        Self { labeller, modules }
    }

    /// Returns the frames that replace one with an address.
    pub(super) fn replacing(&self, frame: &Frame) -> ReplacingFrames {
        let Some(mut module) = self.module(frame) else { return ReplacingFrames::default() };
        if let Some(known) = module.replacing.get(frame) {
            return known.clone();
        }
        let mut named = Vec::new();
        self.labeller.frames(*frame, &mut named);
        let ids: Box<[i64]> = named.iter().map(|one| module.id(one, self.labeller)).collect();
        let innermost = ids.first().and_then(|id| module.described.get(id));
        let line = innermost.and_then(|innermost| innermost.line.clone());
        let found = ReplacingFrames { ids, line };
        module.replacing.insert(*frame, found.clone());
        found
    }

    /// Returns the ID of a frame with a function in place of its address.
    pub(super) fn id(&self, frame: &Frame) -> i64 {
        let module = self.module(frame);
        module.map_or(0, |mut module| module.id(frame, self.labeller))
    }

    /// Returns what is known of a frame with this function, and its ID.
    pub(super) fn described(&self, frame: &Frame) -> (i64, FrameTexts) {
        let Some(mut module) = self.module(frame) else { return Default::default() };
        let id = module.id(frame, self.labeller);
        (id, module.described.get(&id).cloned().unwrap_or_default())
    }

    fn module(&self, frame: &Frame) -> Option<MutexGuard<'_, KnownModule>> {
        let module = self.modules.get(frame.module as usize)?;
        Some(module.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns all frames by their IDs.
    pub(super) fn finish(self) -> BTreeMap<i64, FrameTexts> {
        let modules = self.modules.into_iter();
        let modules = modules.map(|one| one.into_inner().unwrap_or_else(PoisonError::into_inner));
        modules.flat_map(|module| module.described).collect()
    }
}

impl KnownModule {
    /// Returns the ID of a frame with a function in place of its address.
    fn id(&mut self, frame: &Frame, labeller: &Labeller<'_>) -> i64 {
        // Nothing else of it is in its texts.
        let Frame { module, end, address, line, .. } = *frame;
        let frame = Frame { module, end, address, line, ..Frame::default() };
        *self.ids.entry(frame).or_insert_with(|| {
            let texts = labeller.frame_texts(&frame);
            let id = frame_id(&texts);
            self.described.entry(id).or_insert(texts);
            id
        })
    }
}

/// Returns the ID of a frame.
fn frame_id(texts: &FrameTexts) -> i64 {
    let FrameTexts { function, linkage_name, module, path, build_id, cpu_mode, is_inlined, line } =
        texts;
    let (file, line) = line.as_ref().map_or(("", 0), |(file, line)| (file.as_str(), *line));
    let optional = [linkage_name, path, build_id].map(|text| text.as_deref().unwrap_or_default());
    let mut hash = Sha256::new();
    for text in [function, module, *cpu_mode, file].into_iter().chain(optional) {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text);
    }
    hash.update(line.to_le_bytes());
    hash.update([u8::from(*is_inlined)]);
    id_of(&hash.finalize())
}

/// Returns the first bytes of a hash as a number, which is not that of the stack without frames.
pub(super) fn id_of(hash: &[u8]) -> i64 {
    let id = hash.iter().take(8).fold(0, |id: u64, byte| id << 8 | u64::from(*byte));
    if id == 0 { 1 } else { id.cast_signed() }
}

//! Interned values of a sequence: texts, modules, frames and callstacks, each sent with the first sample
//! that has it.

use rustc_hash::FxHashMap;

use super::messages::{
    Callstack, InternedData, InternedFrame, InternedMapping, InternedText, NEEDS_SEQUENCE,
    TracePacket,
};
use crate::callchain::{Chains, Sample};
use crate::exports::frames::{ExportedFrame, Frames};

/// Number of the mapping of frames that are in no module.
const NO_MODULE: u64 = 1;

/// What was sent of a sequence, and what is to be sent with its next packet.
pub(super) struct Interned<'f> {
    frames: &'f Frames<'f>,
    chains: &'f Chains,
    /// Numbers of callstacks, by callers and frame of the sampled instruction.
    callstacks: FxHashMap<(u32, Option<u32>), u64>,
    /// By the numbers of frames in chains.
    of_frames: FxHashMap<u32, u64>,
    of_texts: FxHashMap<String, u64>,
    /// By the numbers of functions.
    of_functions: FxHashMap<usize, u64>,
    of_sources: FxHashMap<&'f str, u64>,
    of_modules: FxHashMap<usize, u64>,
    new: InternedData,
}

impl<'f> Interned<'f> {
    pub(super) fn new(frames: &'f Frames<'f>, chains: &'f Chains) -> Self {
        let unknown = InternedText { id: NO_MODULE, text: b"[unknown]".to_vec() };
        let mapping = InternedMapping { id: NO_MODULE, build_id: 0, path: vec![NO_MODULE] };
        let new = InternedData {
            mapping_paths: vec![unknown],
            mappings: vec![mapping],
            ..InternedData::default()
        };
        Self {
            frames,
            chains,
            callstacks: FxHashMap::default(),
            of_frames: FxHashMap::default(),
            of_texts: FxHashMap::default(),
            of_functions: FxHashMap::default(),
            of_sources: FxHashMap::default(),
            of_modules: FxHashMap::default(),
            new,
        }
    }

    /// Adds what is new to a packet, and its sequence.
    pub(super) fn complete(&mut self, packet: TracePacket, sequence: u32) -> TracePacket {
        let new = std::mem::take(&mut self.new);
        TracePacket {
            sequence,
            sequence_flags: packet.sequence_flags | NEEDS_SEQUENCE,
            interned: Some(new).filter(|new| *new != InternedData::default()),
            ..packet
        }
    }

    /// Returns the number of a sample's callstack; `None` for an empty one.
    pub(super) fn callstack(&mut self, sample: &Sample) -> Option<u64> {
        let own = sample.is_in_chain.then_some(sample.frame);
        if let Some(known) = self.callstacks.get(&(sample.callers, own)) {
            return Some(*known);
        }
        let numbers: Vec<u32> = sample.frames(self.chains).collect();
        let mut frames: Vec<u64> =
            numbers.into_iter().filter_map(|number| self.frame(number)).collect();
        if frames.is_empty() {
            return None;
        }
        frames.reverse();
        let id = self.callstacks.len() as u64 + 1;
        self.callstacks.insert((sample.callers, own), id);
        self.new.callstacks.push(Callstack { id, frames });
        Some(id)
    }

    fn frame(&mut self, number: u32) -> Option<u64> {
        if let Some(known) = self.of_frames.get(&number) {
            return Some(*known);
        }
        let frame = *self.frames.get(number)?;
        let function = match frame.function {
            Some(function) => self.function(function)?,
            None => {
                let text = self.frames.text(&frame).into_owned();
                self.text(text)
            }
        };
        let id = self.of_frames.len() as u64 + 1;
        self.of_frames.insert(number, id);
        let (mapping, source_path) = (self.mapping(&frame), self.source_path(&frame));
        self.new.frames.push(InternedFrame {
            id,
            function,
            mapping,
            address: frame.address.unwrap_or(0),
            source_path,
            line: frame.line,
        });
        Some(id)
    }

    fn function(&mut self, number: usize) -> Option<u64> {
        if let Some(known) = self.of_functions.get(&number) {
            return Some(*known);
        }
        let name = self.frames.functions.get(number)?.name.clone();
        let id = self.text(name);
        self.of_functions.insert(number, id);
        Some(id)
    }

    fn text(&mut self, text: String) -> u64 {
        if let Some(known) = self.of_texts.get(&text) {
            return *known;
        }
        let id = self.of_texts.len() as u64 + 1;
        self.new.functions.push(InternedText { id, text: text.clone().into_bytes() });
        self.of_texts.insert(text, id);
        id
    }

    fn source_path(&mut self, frame: &ExportedFrame) -> u64 {
        let file = frame.function.and_then(|function| self.frames.functions.get(function));
        let Some(file) = file.map(|function| function.file).filter(|file| !file.is_empty()) else {
            return 0;
        };
        let next = self.of_sources.len() as u64 + 1;
        *self.of_sources.entry(file).or_insert_with(|| {
            self.new.source_paths.push(InternedText { id: next, text: file.as_bytes().to_vec() });
            next
        })
    }

    fn mapping(&mut self, frame: &ExportedFrame) -> u64 {
        let Some((number, module)) =
            frame.module.and_then(|number| Some((number, self.frames.modules.get(number)?)))
        else {
            return NO_MODULE;
        };
        if let Some(known) = self.of_modules.get(&number) {
            return *known;
        }
        // Number 1 is taken, of mappings, paths and build IDs alike.
        let id = self.of_modules.len() as u64 + NO_MODULE + 1;
        self.of_modules.insert(number, id);
        let path = if module.path.is_empty() { &module.name } else { &module.path };
        self.new.mapping_paths.push(InternedText { id, text: path.as_bytes().to_vec() });
        let build_id = module.identity.build_id;
        if let Some(build_id) = build_id {
            self.new.build_ids.push(InternedText { id, text: build_id.as_bytes().to_vec() });
        }
        let build_id = if build_id.is_some() { id } else { 0 };
        self.new.mappings.push(InternedMapping { id, build_id, path: vec![id] });
        id
    }
}

//! Frames and stacks, by IDs that follow from what they are: equal ones have one ID in all files, so
//! that the tables of a thousand recordings can be joined.
//!
//! ```text
//!   frame  hash of function, name in the symbol table, module, path, build ID, CPU mode, line
//!   stack  hash of the stack of the callers, and of the innermost frame
//! ```

use rustc_hash::{FxHashMap, FxHashSet};
use sha2::{Digest as _, Sha256};

use super::cells::{DataCell, DataTexts, TextCode};
use super::columns::{ColumnType, DataColumn};
use super::known_frames::{KnownFrames, ReplacingFrames, id_of};
use crate::callchain::{ChainRef, Frame, Stacks, Step};
use crate::engine::FrameTexts;

/// A stack, as the table has it.
pub(super) struct StackCells {
    pub(super) id: i64,
    /// IDs of its frames, innermost first.
    pub(super) frames: Vec<i64>,
}

/// Columns of the table of stacks.
pub(super) static STACKS: [DataColumn<StackCells>; 3] = [
    DataColumn { name: "stack", kind: ColumnType::Long, cell: |one| DataCell::Long(one.id) },
    DataColumn {
        name: "depth",
        kind: ColumnType::Int,
        cell: |one| DataCell::int(u32::try_from(one.frames.len()).ok()),
    },
    DataColumn {
        name: "frames",
        kind: ColumnType::Longs,
        cell: |one| DataCell::Longs(&one.frames),
    },
];

/// ID of the stack without frames.
const EMPTY: i64 = 0;

/// A stack of samples.
#[derive(Clone, Copy)]
pub(super) struct SampledStack {
    pub(super) id: i64,
    chain: u32,
    /// ID of a frame that the chain calls.
    own: Option<i64>,
}

/// IDs of the frames and stacks that a worker found.
pub(super) struct StackIds<'l> {
    known_frames: &'l KnownFrames<'l>,
    /// Frames that replace each of the worker's.
    replacing: Vec<ReplacingFrames>,
    /// ID of the frame that stands for callers that are not known.
    missing: Option<i64>,
    /// IDs by chain.
    chains: Vec<i64>,
    /// IDs of stacks of sampled frames and the chains that call them.
    owned: FxHashMap<(u32, i64), i64>,
    /// Stacks of the row group at hand, in the order of their first samples.
    sampled: Vec<SampledStack>,
    known: FxHashSet<i64>,
}

impl<'l> StackIds<'l> {
    pub(super) fn new(known_frames: &'l KnownFrames<'l>) -> Self {
        Self {
            known_frames,
            replacing: Vec::new(),
            missing: None,
            chains: vec![EMPTY],
            owned: FxHashMap::default(),
            sampled: Vec::new(),
            known: FxHashSet::default(),
        }
    }

    /// Returns the ID of a sample's stack; `None` if it has no frames. `own` is the ID of the sampled
    /// frame.
    pub(super) fn stack(&mut self, stacks: &Stacks, chain: ChainRef, own: i64) -> Option<i64> {
        self.extend(stacks);
        let callers = self.chains.get(chain.callers as usize).copied()?;
        let (id, own) = match chain.own {
            true => {
                let stack = self.owned.entry((chain.callers, own));
                (*stack.or_insert_with(|| longer(callers, own)), Some(own))
            }
            false => (callers, None),
        };
        if id == EMPTY {
            return None;
        }
        if self.known.insert(id) {
            self.sampled.push(SampledStack { id, chain: chain.callers, own });
        }
        Some(id)
    }

    /// Forgets the IDs of chains, whose numbers begin anew.
    pub(super) fn forget_chains(&mut self) {
        self.chains.truncate(1);
        self.owned.clear();
    }

    /// Takes the stacks of a row group.
    pub(super) fn take_sampled(&mut self) -> Vec<SampledStack> {
        self.known.clear();
        std::mem::take(&mut self.sampled)
    }

    /// Returns the line of the innermost frame of a chain.
    pub(super) fn line(&self, stacks: &Stacks, chain: ChainRef) -> Option<&(String, u32)> {
        let frame = stacks.chains.node(chain.callers)?.frame;
        self.replacing.get(frame as usize)?.line.as_ref()
    }

    /// Finds the IDs of new frames and chains.
    fn extend(&mut self, stacks: &Stacks) {
        while let Some(frame) = stacks.frames.get_index(self.replacing.len()) {
            self.replacing.push(self.known_frames.replacing(frame));
            if self.missing.is_none() && frame.step != Step::Unchecked {
                self.missing = Some(self.known_frames.id(&Frame::missing(frame.end.cpu_mode)));
            }
        }
        while let Some(node) = stacks.chains.nodes().get(self.chains.len() - 1) {
            let link = stacks.link(*node);
            let callers = self.chains.get(node.callers as usize).copied();
            let mut stack = callers.filter(|_| link.keeps_callers).unwrap_or(EMPTY);
            let missing = self.missing.filter(|_| link.lacks_callers);
            for frame in missing.iter().chain(self.replacing(node.frame).iter().rev()) {
                stack = longer(stack, *frame);
            }
            self.chains.push(stack);
        }
    }

    /// Returns the IDs of the frames that replace one of the worker's, innermost first.
    fn replacing(&self, frame: u32) -> &[i64] {
        self.replacing.get(frame as usize).map_or(&[], |replacing| &replacing.ids)
    }

    /// Returns a stack with its frames.
    pub(super) fn cells(&self, stacks: &Stacks, stack: SampledStack) -> StackCells {
        let (mut frames, mut chain) = (Vec::from_iter(stack.own), stack.chain);
        while let Some(node) = stacks.chains.node(chain) {
            let link = stacks.link(node);
            frames.extend(self.replacing(node.frame));
            frames.extend(self.missing.filter(|_| link.lacks_callers));
            chain = if link.keeps_callers { node.callers } else { 0 };
        }
        StackCells { id: stack.id, frames }
    }
}

/// Returns the ID of a stack with one more frame.
fn longer(callers: i64, frame: i64) -> i64 {
    let hash = Sha256::new().chain_update(callers.to_le_bytes()).chain_update(frame.to_le_bytes());
    id_of(&hash.finalize())
}

/// A frame, as the table has it.
pub(super) struct FrameCells {
    id: i64,
    pub(super) names: FunctionCells,
    path: Option<TextCode>,
    is_inlined: bool,
    file: Option<TextCode>,
    line: Option<u32>,
}

/// Function and module of a frame.
#[derive(Clone, Copy)]
pub(super) struct FunctionCells {
    pub(super) function: TextCode,
    pub(super) linkage_name: Option<TextCode>,
    pub(super) module: TextCode,
    pub(super) build_id: Option<TextCode>,
    pub(super) cpu_mode: TextCode,
}

impl FunctionCells {
    pub(super) fn of(frame: &FrameTexts, texts: &mut DataTexts) -> Self {
        Self {
            function: texts.code(&frame.function),
            linkage_name: frame.linkage_name.as_ref().map(|name| texts.code(name)),
            module: texts.code(&frame.module),
            build_id: frame.build_id.as_ref().map(|id| texts.code(id)),
            cpu_mode: texts.code(frame.cpu_mode),
        }
    }
}

impl FrameCells {
    pub(super) fn of(id: i64, frame: &FrameTexts, texts: &mut DataTexts) -> Self {
        Self {
            id,
            names: FunctionCells::of(frame, texts),
            path: frame.path.as_ref().map(|path| texts.code(path)),
            is_inlined: frame.is_inlined,
            file: frame.line.as_ref().map(|(file, _)| texts.code(file)),
            line: frame.line.as_ref().map(|(_, line)| *line),
        }
    }
}

/// Columns of the table of frames.
pub(super) static FRAMES: [DataColumn<FrameCells>; 10] = [
    DataColumn { name: "frame", kind: ColumnType::Long, cell: |one| DataCell::Long(one.id) },
    DataColumn {
        name: "function",
        kind: ColumnType::Text,
        cell: |one| DataCell::Text(one.names.function),
    },
    DataColumn {
        name: "linkage_name",
        kind: ColumnType::Text,
        cell: |one| DataCell::of(one.names.linkage_name, DataCell::Text),
    },
    DataColumn {
        name: "module",
        kind: ColumnType::Text,
        cell: |one| DataCell::Text(one.names.module),
    },
    DataColumn {
        name: "path",
        kind: ColumnType::Text,
        cell: |one| DataCell::of(one.path, DataCell::Text),
    },
    DataColumn {
        name: "build_id",
        kind: ColumnType::Text,
        cell: |one| DataCell::of(one.names.build_id, DataCell::Text),
    },
    DataColumn {
        name: "cpumode",
        kind: ColumnType::Text,
        cell: |one| DataCell::Text(one.names.cpu_mode),
    },
    DataColumn {
        name: "inlined",
        kind: ColumnType::Bool,
        cell: |one| DataCell::Bool(one.is_inlined),
    },
    DataColumn {
        name: "file",
        kind: ColumnType::Text,
        cell: |one| DataCell::of(one.file, DataCell::Text),
    },
    DataColumn { name: "line", kind: ColumnType::Int, cell: |one| DataCell::int(one.line) },
];

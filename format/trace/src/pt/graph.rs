//! Code as blocks, from any address to the next instruction that needs a packet, and edges.

use rustc_hash::FxHashMap;

use super::instruction::{BranchKind, Instruction, Instructions, Next};
use super::size::CodeSize;

/// Most instructions of a block; a longer run of them is two blocks.
const LONGEST: u32 = 2_000;

/// Index of a block in its graph.
pub(super) type BlockId = u32;
/// Index of an edge in its graph.
pub(super) type EdgeId = u32;

/// A number that is no block's and no edge's.
const NONE: u32 = u32::MAX;

/// Code by address.
pub trait Code {
    /// Returns the code from `address` to the end of what is known of its mapping; `None` if none is.
    fn bytes(&self, address: u64) -> Option<&[u8]>;
}

/// A direct jump or call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Direct {
    /// Address of the instruction.
    pub from: u64,
    /// Its target.
    pub to: u64,
    /// A jump or a call.
    pub kind: BranchKind,
    /// Length of the instruction.
    pub len: u8,
}

/// How a block ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exit {
    Conditional,
    Indirect(BranchKind),
    /// At the end of a mapping, or because the block is long: no packet is needed.
    Continue,
    NoCode,
    Invalid,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    /// Address of the first instruction.
    pub(super) start: u64,
    /// Address of the last instruction.
    pub(super) last: u64,
    /// Length of the last instruction.
    pub(super) last_len: u8,
    /// Number of instructions.
    pub(super) instructions: u32,
    pub(super) exit: Exit,
    /// Conditional: the edge of outcome 0, before that of 1. Indirect: the edge that was last taken.
    edge: EdgeId,
    directs: (u32, u32),
    pushes: (u32, u32),
}

/// A way out of a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub(super) block: BlockId,
    /// The block that follows, once it is known.
    link: BlockId,
    /// Address that follows.
    pub(super) to: u64,
}

/// Blocks of the code of one address space.
#[derive(Debug)]
pub struct Graph {
    size: CodeSize,
    blocks: Vec<Block>,
    edges: Vec<Edge>,
    directs: Vec<Direct>,
    /// Return addresses of the calls in blocks.
    pushes: Vec<u64>,
    by_start: FxHashMap<u64, BlockId>,
    by_target: FxHashMap<(BlockId, u64), EdgeId>,
}

impl Graph {
    /// Returns a graph without blocks, of code of this size.
    pub fn new(size: CodeSize) -> Self {
        Self {
            size,
            blocks: Vec::new(),
            edges: Vec::new(),
            directs: Vec::new(),
            pushes: Vec::new(),
            by_start: FxHashMap::default(),
            by_target: FxHashMap::default(),
        }
    }

    /// Returns the number of edges.
    pub(super) fn edge_count(&self) -> usize {
        self.edges.len()
    }

    #[inline]
    pub(super) fn block(&self, id: BlockId) -> Option<&Block> {
        self.blocks.get(id as usize)
    }

    #[inline]
    pub(super) fn edge(&self, id: EdgeId) -> Option<&Edge> {
        self.edges.get(id as usize)
    }

    /// Returns the block that starts at `address`.
    pub(super) fn block_at(&mut self, address: u64, code: &dyn Code) -> BlockId {
        if let Some(&known) = self.by_start.get(&address) {
            return known;
        }
        let id = index(self.blocks.len());
        let block = self.build(address, id, code);
        self.blocks.push(block);
        self.by_start.insert(address, id);
        id
    }

    /// Returns the block behind an edge.
    #[inline]
    pub(super) fn follow(&mut self, edge: EdgeId, code: &dyn Code) -> BlockId {
        match self.edges.get(edge as usize) {
            Some(&Edge { link, .. }) if link != NONE => link,
            Some(&Edge { to, .. }) => self.link(edge, to, code),
            None => NONE,
        }
    }

    #[cold]
    fn link(&mut self, edge: EdgeId, to: u64, code: &dyn Code) -> BlockId {
        let block = self.block_at(to, code);
        if let Some(edge) = self.edges.get_mut(edge as usize) {
            edge.link = block;
        }
        block
    }

    /// Returns the edge of a conditional block for an outcome.
    #[inline]
    pub(super) fn outcome(block: &Block, is_taken: bool) -> EdgeId {
        block.edge + EdgeId::from(is_taken)
    }

    /// Returns the edge of an indirect block to `target`.
    #[inline]
    pub(super) fn target(&mut self, id: BlockId, target: u64) -> EdgeId {
        let last = self.block(id).map_or(NONE, |block| block.edge);
        match self.edge(last) {
            Some(edge) if edge.to == target => last,
            _ => self.other_target(id, target),
        }
    }

    fn other_target(&mut self, id: BlockId, target: u64) -> EdgeId {
        let next = index(self.edges.len());
        let edge = *self.by_target.entry((id, target)).or_insert(next);
        if edge == next {
            self.edges.push(Edge { block: id, link: NONE, to: target });
        }
        if let Some(block) = self.blocks.get_mut(id as usize) {
            block.edge = edge;
        }
        edge
    }

    /// Returns the edge of a block that goes on without a packet.
    pub(super) fn continuation(block: &Block) -> EdgeId {
        block.edge
    }

    /// Returns the direct branches of a block, in order.
    pub(super) fn directs(&self, block: &Block) -> &[Direct] {
        let (from, to) = block.directs;
        self.directs.get(from as usize..to as usize).unwrap_or_default()
    }

    /// Returns the return addresses that a block pushes, in order.
    #[inline]
    pub(super) fn pushes(&self, block: &Block) -> &[u64] {
        let (from, to) = block.pushes;
        if from == to {
            return &[];
        }
        self.pushes.get(from as usize..to as usize).unwrap_or_default()
    }

    fn build(&mut self, start: u64, id: BlockId, code: &dyn Code) -> Block {
        let (directs, pushes) = (index(self.directs.len()), index(self.pushes.len()));
        let mut walk = Walk { graph: self, last: start, last_len: 0, instructions: 0, next: start };
        let exit = walk.run_to_exit(code);
        let Walk { last, last_len, instructions, next, .. } = walk;
        let edge = index(self.edges.len());
        let mut add = |to: u64| self.edges.push(Edge { block: id, link: NONE, to });
        let (exit, edge) = match exit {
            Walked::Conditional(taken) => {
                add(next);
                add(taken);
                (Exit::Conditional, edge)
            }
            Walked::Continue => {
                add(next);
                (Exit::Continue, edge)
            }
            Walked::Indirect(kind) => {
                if kind == BranchKind::Call {
                    self.pushes.push(next);
                }
                (Exit::Indirect(kind), NONE)
            }
            Walked::NoCode => (Exit::NoCode, NONE),
            Walked::Invalid => (Exit::Invalid, NONE),
        };
        let directs = (directs, index(self.directs.len()));
        let pushes = (pushes, index(self.pushes.len()));
        Block { start, last, last_len, instructions, exit, edge, directs, pushes }
    }

    /// Visits the instructions from `start` on, up to `end`, or to the exit of the block; direct branches
    /// are followed. Returns whether `end` was met.
    pub fn visit(
        &self,
        start: u64,
        end: Option<u64>,
        code: &dyn Code,
        mut visit: impl FnMut(&Instruction),
    ) -> bool {
        let (mut address, mut count) = (start, 0);
        'run: loop {
            if Some(address) == end {
                return true;
            }
            let Some(bytes) = code.bytes(address) else { return false };
            for instruction in Instructions::new(bytes, address, self.size) {
                if Some(instruction.address) == end {
                    return true;
                }
                if count == LONGEST || instruction.next == Next::Invalid {
                    return false;
                }
                count += 1;
                visit(&instruction);
                address = instruction.end;
                match instruction.next {
                    Next::Following => {}
                    Next::Direct(_, to) => {
                        address = to;
                        continue 'run;
                    }
                    _ => return false,
                }
            }
            return Some(address) == end;
        }
    }
}

/// Length of a table as an index of 32 bits; tables that long do not fit into memory.
fn index(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(NONE)
}

/// A block that is being built.
struct Walk<'a> {
    graph: &'a mut Graph,
    last: u64,
    last_len: u8,
    instructions: u32,
    next: u64,
}

enum Walked {
    Conditional(u64),
    Indirect(BranchKind),
    Continue,
    NoCode,
    Invalid,
}

impl Walk<'_> {
    fn run_to_exit(&mut self, code: &dyn Code) -> Walked {
        loop {
            let Some(bytes) = code.bytes(self.next).filter(|bytes| !bytes.is_empty()) else {
                return if self.instructions == 0 { Walked::NoCode } else { Walked::Continue };
            };
            if let Some(walked) = self.run(bytes) {
                return walked;
            }
        }
    }

    /// Walks to the next branch; returns the exit, if it is one.
    fn run(&mut self, bytes: &[u8]) -> Option<Walked> {
        for instruction in Instructions::new(bytes, self.next, self.graph.size) {
            if self.instructions == LONGEST {
                return Some(Walked::Continue);
            }
            if instruction.next == Next::Invalid {
                let is_first = self.instructions == 0;
                return Some(if is_first { Walked::Invalid } else { Walked::Continue });
            }
            self.instructions += 1;
            self.last = instruction.address;
            self.last_len = instruction.length();
            self.next = instruction.end;
            match instruction.next {
                Next::Following => {}
                Next::Direct(kind, to) => {
                    // Calls of the next instruction only ask for an address.
                    if kind == BranchKind::Call && to != instruction.end {
                        self.graph.pushes.push(instruction.end);
                    }
                    let (from, len) = (instruction.address, instruction.length());
                    self.graph.directs.push(Direct { from, to, kind, len });
                    self.next = to;
                    return None;
                }
                Next::Conditional(to) => return Some(Walked::Conditional(to)),
                Next::Indirect(kind) => return Some(Walked::Indirect(kind)),
                Next::Invalid => return Some(Walked::Invalid),
            }
        }
        Some(Walked::Continue)
    }
}

//! Counts of steps, for answers that need no order: branches and instructions, each block looked at once.

use rustc_hash::FxHashMap;

use super::graph::{Code, Direct, EdgeId, Exit, Graph};
use super::instruction::{BranchKind, Instruction, Next};
use super::step::{Branch, Step};

/// How often an edge was taken.
#[derive(Clone, Copy, Debug, Default)]
struct EdgeCount {
    count: u64,
    /// Instructions of its block.
    instructions: u64,
}

/// Counts of the steps of a task.
#[derive(Clone, Debug, Default)]
pub struct StepCounts {
    /// By number of the edge.
    edges: Vec<EdgeCount>,
    /// Edges with a count.
    taken: Vec<EdgeId>,
    pieces: FxHashMap<(u64, u64), u64>,
    branches: FxHashMap<Branch, u64>,
}

impl StepCounts {
    /// Counts a step, and returns the number of its instructions. All must be of the same graph until
    /// [`Self::clear`].
    #[inline]
    pub fn add(&mut self, graph: &Graph, code: &dyn Code, step: Step) -> u64 {
        match step {
            Step::Edge(edge) => match self.edges.get_mut(edge as usize) {
                Some(EdgeCount { count: count @ 1.., instructions }) => {
                    *count += 1;
                    *instructions
                }
                _ => self.first(graph, code, edge),
            },
            Step::Piece { start, end } => {
                *self.pieces.entry((start, end)).or_default() += 1;
                graph.instruction_count(step, code).into()
            }
            Step::Branch(branch) => {
                *self.branches.entry(branch).or_default() += 1;
                0
            }
        }
    }

    #[cold]
    fn first(&mut self, graph: &Graph, code: &dyn Code, edge: EdgeId) -> u64 {
        let instructions = graph.instruction_count(Step::Edge(edge), code).into();
        if self.edges.len() <= edge as usize {
            self.edges.resize(graph.edge_count(), EdgeCount::default());
        }
        if let Some(counted) = self.edges.get_mut(edge as usize) {
            *counted = EdgeCount { count: 1, instructions };
            self.taken.push(edge);
        }
        instructions
    }

    /// Forgets all counts.
    pub fn clear(&mut self) {
        for edge in self.taken.drain(..) {
            if let Some(counted) = self.edges.get_mut(edge as usize) {
                counted.count = 0;
            }
        }
        self.pieces.clear();
        self.branches.clear();
    }

    /// Visits the branches, with their counts; a branch may come several times.
    pub fn branches(&self, graph: &Graph, code: &dyn Code, mut visit: impl FnMut(Branch, u64)) {
        for (branch, count) in &self.branches {
            visit(*branch, *count);
        }
        for (&(start, end), count) in &self.pieces {
            graph.branches(Step::Piece { start, end }, code, |branch, _| visit(branch, *count));
        }
        for (edge, count) in self.edges() {
            graph.branches(Step::Edge(edge), code, |branch, _| visit(branch, count));
        }
    }

    /// Visits the addresses of the instructions, with their counts; an address may come several
    /// times.
    pub fn instructions(&self, graph: &Graph, code: &dyn Code, mut visit: impl FnMut(u64, u64)) {
        let blocks = self.edges().filter_map(|(edge, count)| {
            Some((graph.block(graph.edge(edge)?.block)?.start, None, count))
        });
        let pieces = self.pieces.iter().map(|(&(start, end), &count)| (start, Some(end), count));
        let mut runs: FxHashMap<_, u64> = FxHashMap::default();
        for (start, end, count) in blocks.chain(pieces) {
            *runs.entry((start, end)).or_default() += count;
        }
        for ((start, end), count) in runs {
            graph.visit(start, end, code, |instruction| visit(instruction.address, count));
        }
    }

    fn edges(&self) -> impl Iterator<Item = (EdgeId, u64)> {
        let count = |edge: &EdgeId| Some((*edge, self.edges.get(*edge as usize)?.count));
        self.taken.iter().filter_map(count)
    }
}

impl Graph {
    /// Visits the branches of a step, in order, each with whether it is the last branch of the
    /// step, which has the later of its times.
    pub fn branches(&self, step: Step, code: &dyn Code, mut visit: impl FnMut(Branch, bool)) {
        match step {
            Step::Branch(_) => {}
            Step::Piece { start, end } => {
                self.visit(start, Some(end), code, |instruction| {
                    if let Next::Direct(kind, to) = instruction.next {
                        let (from, len) = (instruction.address, instruction.length());
                        visit(Branch { from, to, kind, len }, false);
                    }
                });
            }
            Step::Edge(id) => {
                let block = self.edge(id).and_then(|edge| self.block(edge.block));
                for &Direct { from, to, kind, len } in
                    block.map(|block| self.directs(block)).unwrap_or_default()
                {
                    visit(Branch { from, to, kind, len }, false);
                }
            }
        }
        if let Some(last) = self.last_branch(step) {
            visit(last, true);
        }
    }

    /// Returns the branch with which a step ends.
    pub(super) fn last_branch(&self, step: Step) -> Option<Branch> {
        match step {
            Step::Branch(branch) => Some(branch),
            Step::Piece { .. } => None,
            Step::Edge(id) => {
                let edge = self.edge(id)?;
                let block = self.block(edge.block)?;
                let kind = match block.exit {
                    Exit::Conditional if id == Self::outcome(block, true) => {
                        BranchKind::Conditional
                    }
                    Exit::Indirect(kind) => kind,
                    _ => return None,
                };
                Some(Branch { from: block.last, to: edge.to, kind, len: block.last_len })
            }
        }
    }

    /// Returns the address of the instruction that leaves the block of an edge.
    pub(super) fn end_of_edge(&self, step: Step) -> Option<u64> {
        let Step::Edge(id) = step else { return None };
        Some(self.block(self.edge(id)?.block)?.last)
    }

    /// Visits the instructions of a step, in order.
    pub fn instructions(&self, step: Step, code: &dyn Code, visit: impl FnMut(&Instruction)) {
        let (start, end) = match step {
            Step::Branch(_) => return,
            Step::Piece { start, end } => (start, Some(end)),
            Step::Edge(id) => match self.edge(id).and_then(|edge| self.block(edge.block)) {
                Some(block) => (block.start, None),
                None => return,
            },
        };
        self.visit(start, end, code, visit);
    }

    /// Returns the number of instructions of a step.
    pub fn instruction_count(&self, step: Step, code: &dyn Code) -> u32 {
        match step {
            Step::Branch(_) => 0,
            Step::Piece { start, end } => {
                let mut count = 0;
                self.visit(start, Some(end), code, |_| count += 1);
                count
            }
            Step::Edge(id) => {
                let block = self.edge(id).and_then(|edge| self.block(edge.block));
                block.map_or(0, |block| block.instructions)
            }
        }
    }
}

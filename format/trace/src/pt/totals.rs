//! Sums over the whole of what was decoded: branches and instructions, by counts of edges.

use rustc_hash::FxHashMap;

use super::graph::{Code, Direct, Exit, Graph};
use super::instruction::{BranchKind, Instruction, Next};
use super::size::CodeSize;
use super::state::{Counts, Flow, GraphKey};
use super::step::{Branch, Step, Task};

/// Counts of all tasks.
#[derive(Debug)]
pub struct Totals {
    graphs: FxHashMap<GraphKey, Graph>,
    counts: FxHashMap<(GraphKey, u32), Counts>,
}

/// Counts of a task.
#[derive(Clone, Copy, Debug)]
pub struct TaskTotals<'a> {
    /// The task.
    pub task: Task,
    /// Width of its code.
    pub size: CodeSize,
    graph: &'a Graph,
    counts: &'a Counts,
}

impl Flow {
    /// Returns what was counted.
    pub fn into_totals(self) -> Totals {
        let (graphs, counts) = self.into_parts();
        Totals { graphs, counts }
    }
}

impl Totals {
    /// Returns the counts of each task, in no order.
    pub fn tasks(&self) -> impl Iterator<Item = TaskTotals<'_>> {
        self.counts.iter().filter_map(|(&(key, thread), counts)| {
            let (space, size) = key;
            let graph = self.graphs.get(&key)?;
            Some(TaskTotals { task: Task { space, thread }, size, graph, counts })
        })
    }
}

impl TaskTotals<'_> {
    /// Visits the branches, with their counts; a branch may come several times.
    pub fn branches(&self, code: &dyn Code, mut visit: impl FnMut(Branch, u64)) {
        for (branch, count) in &self.counts.branches {
            visit(*branch, *count);
        }
        for (&(start, end), count) in &self.counts.pieces {
            self.graph
                .branches(Step::Piece { start, end }, code, |branch, _| visit(branch, *count));
        }
        for (edge, count) in self.edges() {
            self.graph.branches(Step::Edge(edge), code, |branch, _| visit(branch, count));
        }
    }

    /// Visits the addresses of the instructions, with their counts; an address may come several times.
    pub fn instructions(&self, code: &dyn Code, mut visit: impl FnMut(u64, u64)) {
        let blocks = self.edges().filter_map(|(edge, count)| {
            Some((self.graph.block(self.graph.edge(edge)?.block)?.start, None, count))
        });
        let pieces =
            self.counts.pieces.iter().map(|(&(start, end), &count)| (start, Some(end), count));
        let mut runs: FxHashMap<_, u64> = FxHashMap::default();
        for (start, end, count) in blocks.chain(pieces) {
            *runs.entry((start, end)).or_default() += count;
        }
        for ((start, end), count) in runs {
            self.graph.visit(start, end, code, |instruction| visit(instruction.address, count));
        }
    }

    fn edges(&self) -> impl Iterator<Item = (u32, u64)> {
        let counted = (0..).zip(self.counts.edges.iter().copied());
        counted.filter(|(_, count)| *count > 0)
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

//! Steps of the flow of control, and who takes them.

use super::clock::Clock;
use super::event::SideEvent;
use super::graph::{Code, EdgeId, Graph};
use super::instruction::{BranchKind, Instruction, Next};

/// Who runs: an address space, and a thread in it. The numbers are the caller's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Task {
    /// Code at a time: what is mapped where.
    pub space: u32,
    /// The thread.
    pub thread: u32,
}

/// What the trace itself does not tell.
pub trait World {
    /// Returns who runs at this time stamp.
    fn task(&mut self, tsc: u64) -> Task;

    /// Returns the code of an address space from `address` to the end of what is known of its
    /// mapping.
    fn code(&self, space: u32, address: u64) -> Option<&[u8]>;
}

/// Reasons why a stretch of a trace gives no branches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Gap {
    /// The processor lost packets.
    Overflow,
    /// Bytes that are no packet.
    Damaged,
    /// The trace ends inside a packet.
    Truncated,
    /// There is no code at this address.
    NoCode(u64),
    /// The bytes at this address are no instruction.
    Invalid(u64),
    /// A packet does not fit the instruction: the code is not what ran.
    Mismatch,
    /// A return whose call was not seen.
    ReturnStack,
    /// Outcomes or targets while nothing was traced.
    Off,
    /// A loop that needs no packet.
    Endless,
    /// A PSB that is not followed by its PSBEND.
    Header,
}

/// A branch that is not the end of a block, or leaves it unexpectedly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Branch {
    /// Address of the instruction; 0 if tracing began.
    pub from: u64,
    /// Its target; 0 if tracing ended and it is not known.
    pub to: u64,
    /// What it is.
    pub kind: BranchKind,
    /// Length of the instruction; 0 if it did not branch itself.
    pub len: u8,
}

impl Branch {
    /// Returns where tracing begins.
    pub(super) fn begin_at(to: u64) -> Self {
        Self { from: 0, to, kind: BranchKind::Begin, len: 0 }
    }

    /// Returns the way from an event to its handler.
    pub(super) fn event_at(from: u64, to: Option<u64>) -> Self {
        Self { from, to: to.unwrap_or(0), kind: BranchKind::Asynchronous, len: 0 }
    }
}

/// A step of the flow.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// A block was executed and left by this edge.
    Edge(EdgeId),
    /// Instructions from `start` up to, not including, `end`.
    Piece {
        /// Address of the first instruction.
        start: u64,
        /// Address behind the last.
        end: u64,
    },
    /// A branch between pieces and blocks.
    Branch(Branch),
}

/// A step of a task, with the code that it is of.
#[derive(Clone, Copy)]
pub struct TakenStep<'a> {
    /// The blocks of the code.
    pub graph: &'a Graph,
    /// The code.
    pub code: &'a dyn Code,
    /// What was executed.
    pub step: Step,
    /// Who executed it.
    pub task: Task,
    /// When that was.
    pub times: Times,
    /// The clock of the packets so far.
    pub clock: &'a Clock,
    /// Tracing ended with the last branch.
    pub is_end: bool,
}

/// A part of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Executed {
    /// An instruction at this address, and whether it is the one that ends the step.
    Instruction(u64, bool),
    /// A branch, and whether it is the last of the step, which has the later of its times.
    Branch(Branch, bool),
}

impl TakenStep<'_> {
    /// Visits the branches, in order, each with whether it is the last branch of the step, which
    /// has the later of its times.
    pub fn branches(&self, visit: impl FnMut(Branch, bool)) {
        self.graph.branches(self.step, self.code, visit);
    }

    /// Visits the instructions, in order.
    pub fn instructions(&self, visit: impl FnMut(&Instruction)) {
        self.graph.instructions(self.step, self.code, visit);
    }

    /// Visits the instructions and the branches, in order: a branch after its instruction.
    pub fn executed(&self, mut visit: impl FnMut(Executed)) {
        let end = self.graph.end_of_edge(self.step);
        self.graph.instructions(self.step, self.code, |instruction| {
            let Instruction { address, next, .. } = *instruction;
            visit(Executed::Instruction(address, Some(address) == end));
            if let Next::Direct(kind, to) = next {
                let branch = Branch { from: address, to, kind, len: instruction.length() };
                visit(Executed::Branch(branch, false));
            }
        });
        if let Some(last) = self.graph.last_branch(self.step) {
            visit(Executed::Branch(last, true));
        }
    }

    /// Returns the number of instructions.
    pub fn instruction_count(&self) -> u32 {
        self.graph.instruction_count(self.step, self.code)
    }
}

/// An event of a task.
#[derive(Clone, Copy, Debug)]
pub struct TakenEvent<'a> {
    /// What happened.
    pub event: &'a SideEvent,
    /// Address where it did; the last one that is known, if the trace does not have its address. 0: none.
    pub ip: u64,
    /// Who ran.
    pub task: Task,
    /// Its time stamp.
    pub time: u64,
}

/// Takes the steps of the flow, in order.
pub trait Sink {
    /// Takes a step.
    fn step(&mut self, step: &TakenStep<'_>);

    /// Ends the steps of a task and its code: those of another follow, or none.
    fn finish_task(&mut self, _graph: &Graph, _code: &dyn Code) {}

    /// Takes an event beside the flow.
    fn event(&mut self, _event: &TakenEvent<'_>) {}

    /// Takes a gap.
    fn gap(&mut self, gap: Gap, task: Task, time: u64);
}

/// Time stamps of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Of the direct branches in front of the last.
    pub before: u64,
    /// Of the last branch.
    pub now: u64,
}

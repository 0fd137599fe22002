//! The state of a decoder: where the flow is, and what is known of the code.

use rustc_hash::FxHashMap;

use super::clock::Clock;
use super::event::WaitingEvents;
use super::graph::{BlockId, Code, Graph};
use super::ip::LastIp;
use super::read::Packets;
use super::size::CodeSize;
use super::stack::ReturnStack;
use super::step::{Task, World};

/// Identifies a graph: an address space and the size of its code.
pub(super) type GraphKey = (u32, CodeSize);

/// Where the flow is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Behind a gap.
    Lost,
    /// Tracing is off.
    Off,
    /// At the start of this block.
    At(BlockId),
}

/// What a FUP belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fup {
    /// An asynchronous event: a TIP follows.
    Event,
    /// The packet before: the flow goes on.
    Alone,
    /// The end of an overflow.
    Overflow,
}

/// The content of a PSB+.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Header {
    pub(super) ip: Option<u64>,
    pub(super) size: Option<CodeSize>,
    /// Offset of the PSB.
    pub(super) offset: usize,
    pub(super) is_last: bool,
}

/// Decodes the parts of a trace.
#[derive(Debug)]
pub struct Flow {
    pub(super) graphs: FxHashMap<GraphKey, Graph>,
    /// That of the task that runs, taken out of the map above.
    pub(super) graph: Graph,
    pub(super) task: Task,
    pub(super) size: CodeSize,
    pub(super) next_size: Option<CodeSize>,
    pub(super) place: Place,
    pub(super) last_ip: LastIp,
    pub(super) stack: ReturnStack,
    pub(super) clock: Clock,
    /// Time of the last branch.
    pub(super) time: u64,
    pub(super) fup: Fup,
    /// Address of an asynchronous event whose TIP is awaited.
    pub(super) event: Option<u64>,
    /// The packet that is taken ends tracing.
    pub(super) is_ending: bool,
    pub(super) header: Option<Header>,
    pub(super) waiting: WaitingEvents,
}

/// A part that is being decoded.
pub(super) struct Run<'a, W, S> {
    pub(super) flow: &'a mut Flow,
    pub(super) packets: Packets<'a>,
    pub(super) world: &'a mut W,
    pub(super) sink: &'a mut S,
}

/// The code of one address space.
pub(super) struct SpaceCode<'a, W>(pub(super) &'a W, pub(super) u32);

impl<W: World> Code for SpaceCode<'_, W> {
    fn bytes(&self, address: u64) -> Option<&[u8]> {
        self.0.code(self.1, address)
    }
}

impl Default for Flow {
    fn default() -> Self {
        Self::new()
    }
}

impl Flow {
    /// Returns a decoder that knows no code yet.
    pub fn new() -> Self {
        Self {
            graphs: FxHashMap::default(),
            graph: Graph::new(CodeSize::Bits64),
            task: Task::default(),
            size: CodeSize::Bits64,
            next_size: None,
            place: Place::Lost,
            last_ip: LastIp::default(),
            stack: ReturnStack::default(),
            clock: Clock::default(),
            time: 0,
            fup: Fup::Event,
            event: None,
            is_ending: false,
            header: None,
            waiting: WaitingEvents::default(),
        }
    }

    /// Puts the graph of the task that ran back into the table, and takes that of `task`.
    pub(super) fn switch(&mut self, task: Task, size: CodeSize) {
        let (before, after) = ((self.task.space, self.size), (task.space, size));
        if before != after {
            let graph = self.graphs.remove(&after).unwrap_or_else(|| Graph::new(size));
            self.graphs.insert(before, std::mem::replace(&mut self.graph, graph));
        }
        (self.task, self.size) = (task, size);
    }
}

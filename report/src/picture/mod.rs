//! Pictures of a profile: the flame graph as SVG, and the page.
//!
//! ```text
//!   profiles, one for each side and kind of event
//!     └─► frames  functions by module and name, with their kinds ─┐
//!         tree    chains of these, callers first                  ├─► Picture ─┬─► svg
//!         cells   (thread, CPU, step of time) of rows             │            └─► page
//!         entries samples by (node of the tree, cell) ────────────┘
//! ```
//!
//! A picture has no texts of columns and no limits: it is what was counted, in an order that does
//! not depend on how it was found.

mod build;
mod frames;
pub(crate) mod page;
mod path;
mod path_pieces;
mod sides;
mod sums;
pub(crate) mod svg;
mod text;
mod tree;
mod waits;

pub(crate) use build::{PictureBuilder, RenamedProgram, columns, columns_of_times};
pub(crate) use path::PicturePiece;
pub(crate) use waits::{PictureWait, ThreadWait, keep_longest};

use crate::count::Count;
use crate::query::Extent;
use crate::timeline::RanSpan;

/// What two recordings can differ in: a picture has one side, or two that are compared.
pub(crate) const SIDES: usize = 2;

/// Kind of a frame's code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum FrameKind {
    #[default]
    User,
    Kernel,
    /// Code without a name, of a module or of nothing that was mapped.
    NoName,
    Jit,
    /// It stands for frames that are not known, or not kept.
    Cut,
    InlinedUser,
    InlinedKernel,
    /// A function without a name, whose start is known.
    Inferred,
}

/// A function, or what stands for one.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct PictureFrame {
    /// Number of the module plus one; 0 for none.
    pub(crate) module: u32,
    pub(crate) kind: FrameKind,
    pub(crate) name: String,
}

impl FrameKind {
    /// Returns whether the function has no name, or is not known.
    pub(crate) fn is_without_name(self) -> bool {
        matches!(self, Self::NoName | Self::Inferred | Self::Cut)
    }
}

impl PictureFrame {
    /// Returns the frame that stands for stacks with few samples.
    pub(crate) fn rare_stacks() -> Self {
        Self { module: 0, kind: FrameKind::Cut, name: "(rare stacks)".into() }
    }
}

/// A module: its name for people, and its path.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub(crate) struct PictureModule {
    pub(crate) name: String,
    pub(crate) path: String,
}

/// A node of the tree: a frame below its callers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PictureNode {
    pub(crate) frame: u32,
    /// 1 for the outermost frame.
    pub(crate) depth: u32,
}

/// A thread of one side, under one name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct PictureThread {
    /// Number in [`Picture::commands`].
    pub(crate) command: u32,
    pub(crate) side: u32,
    pub(crate) pid: i32,
    pub(crate) tid: i32,
}

/// Where and when samples were taken. Cells are sorted by their threads, then by time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Cell {
    pub(crate) thread: u32,
    /// Number of the step, from the first sample of the side on.
    pub(crate) step: u64,
    /// Number of the CPU plus one; 0 if it is not known.
    pub(crate) cpu: u32,
    /// What the thread did, and up to which step.
    pub(crate) extent: Extent,
}

/// Time in which a thread had a CPU. Spans are sorted by their threads, then by time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PictureRan {
    pub(crate) thread: u32,
    pub(crate) span: RanSpan,
}

/// Samples that ended in one node of the tree, in one cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PictureEntry {
    pub(crate) node: u32,
    pub(crate) cell: u32,
    pub(crate) count: Count,
}

/// Samples of an event.
#[derive(Clone, Debug, Default)]
pub(crate) struct PictureEvent {
    pub(crate) name: String,
    /// `true` if periods are nanoseconds.
    pub(crate) counts_time: bool,
    pub(crate) is_tracepoint: bool,
    pub(crate) lost_samples: u64,
    pub(crate) cells: Vec<Cell>,
    /// Sorted by node, then by cell.
    pub(crate) entries: Vec<PictureEntry>,
    /// When threads ran, of an event that counts what threads did.
    pub(crate) ran: Vec<PictureRan>,
    /// `true` if cells have extents.
    pub(crate) has_extents: bool,
    /// All samples of each side.
    pub(crate) totals: [Count; SIDES],
}

/// Samples of one or two sides by callchain, thread, CPU and time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Picture {
    /// Sorted.
    pub(crate) modules: Vec<PictureModule>,
    /// Sorted by module, kind and name.
    pub(crate) frames: Vec<PictureFrame>,
    /// In preorder, children sorted by their frames.
    pub(crate) nodes: Vec<PictureNode>,
    pub(crate) commands: Vec<String>,
    /// Sorted by the names of their commands.
    pub(crate) threads: Vec<PictureThread>,
    pub(crate) events: Vec<PictureEvent>,
    /// The critical path, in order of time.
    pub(crate) path: Vec<PicturePiece>,
    /// Long waits, by threads and in order of time.
    pub(crate) waits: Vec<PictureWait>,
    /// Texts of what waits were for, of who ended them, and of their stacks.
    pub(crate) wait_texts: Vec<String>,
    /// Length of a step in nanoseconds, a power of two.
    pub(crate) step: u64,
    /// Number of sides.
    pub(crate) sides: usize,
}

impl Picture {
    /// Returns the number of steps up to the end of the last sample.
    pub(crate) fn steps(&self) -> u64 {
        self.side_steps().into_iter().max().unwrap_or(0)
    }

    /// Returns the number of steps of each side.
    pub(crate) fn side_steps(&self) -> [u64; SIDES] {
        let mut steps = [0; SIDES];
        let mut extend = |side: usize, step: u64, extent: Extent| {
            if let Some(steps) = steps.get_mut(side) {
                *steps = (step + extent.more + 1).max(*steps);
            }
        };
        for event in &self.events {
            for cell in &event.cells {
                extend(self.side(cell.thread), cell.step, cell.extent);
            }
            for ran in &event.ran {
                extend(self.side(ran.thread), ran.span.step, ran.span.extent);
            }
        }
        steps
    }

    /// Returns the greatest CPU number plus one; 0 if samples have no CPU.
    pub(crate) fn cpus(&self) -> u32 {
        let cells = self.events.iter().flat_map(|event| &event.cells);
        cells.map(|cell| cell.cpu).max().unwrap_or(0)
    }

    /// Returns what a count weighs in an event: its period, or samples of tracepoints.
    pub(crate) fn weight(event: &PictureEvent, count: Count) -> u64 {
        if event.is_tracepoint { count.samples } else { count.period }
    }

    /// Returns the side of a thread.
    pub(crate) fn side(&self, thread: u32) -> usize {
        self.threads.get(thread as usize).map_or(0, |thread| thread.side as usize)
    }
}

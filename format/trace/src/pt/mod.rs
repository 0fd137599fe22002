//! Intel Processor Trace (Intel SDM, volume 3, chapter "Intel Processor Trace").
//!
//! ```text
//!  calls         calls that have not returned, of parts that are joined
//!  totals        steps ─► counts of branches and instructions
//!  side          what packets tell of beside the flow ─► events
//!  flow          packets + code ─► steps from block to block, gaps     (World: who runs, which code)
//!  state         where the flow is, and what is known of the code
//!  step          steps, gaps, and who takes them
//!  event         events beside the flow
//!  graph         code ─► blocks and edges, built once
//!  stack         return addresses
//!  instruction   what an instruction does to the flow
//!  clock         packets of time ─► time stamp
//!  cycles        packets of time ─► cycles of the core
//!  text          a packet as `perf script --dump` prints it
//!  read          a trace ─► its packets, with offsets
//!  packet        bytes ⇄ packets
//!  ip            addresses in packets, compressed against the one before
//!  layout        opcode and payload length of each packet
//! ```
//!
//! A *block* is a run of instructions from any address to the next one that needs a packet; it passes direct jumps and calls. An outcome
//! follows an edge to the next block: no instruction is looked at again. Where no order is needed, only edges are counted.
//!
//! A trace may be cut at PSBs, where all that the flow needs is stated anew: parts are decoded in any order, with the same
//! result.

mod calls;
mod clock;
mod cycles;
mod event;
mod flow;
mod graph;
mod instruction;
mod ip;
mod layout;
mod packet;
mod read;
mod side;
mod size;
mod stack;
mod state;
mod step;
mod text;
mod totals;

pub use calls::{CallBase, CallBases, CallChange, CallJoiner, Closing, OpenCall, OpenCalls};
pub use clock::{Clock, ClockRates};
pub use cycles::CycleSource;
pub use event::SideEvent;
pub use graph::{Code, Direct, Graph};
pub use instruction::{BranchKind, Instruction, Instructions, Next};
pub use ip::{Ip, IpForm, LastIp};
pub use packet::{Context, Damage, Outcomes, Packet, Width};
pub use read::{Located, Packets, find_psb};
pub use size::CodeSize;
pub use state::Flow;
pub use step::{Branch, Executed, Gap, Sink, Step, TakenEvent, TakenStep, Task, Times, World};
pub use totals::StepCounts;

#[cfg(test)]
mod tests;

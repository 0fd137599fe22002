//! Intel Processor Trace (Intel SDM, volume 3, chapter "Intel Processor Trace").
//!
//! ```text
//!  layout   opcode and payload length of each packet
//!  ip       addresses in packets, compressed against the one before
//!  packet   bytes ⇄ packets
//!  read     a trace ─► its packets, with offsets
//!  text     a packet as `perf script --dump` prints it
//! ```

mod ip;
mod layout;
mod packet;
mod read;
mod text;

pub use ip::{Ip, IpForm, LastIp};
pub use packet::{CodeSize, Context, Damage, Outcomes, Packet, Width};
pub use read::{Located, Packets, find_psb};

#[cfg(test)]
mod tests;

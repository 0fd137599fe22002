//! Arm's Statistical Profiling Extension: packets, and the records that they make up.
//!
//! ```text
//!   B0 …  62 …  49 …  99 …  B2 …  71 ……        a record: its packets, up to a timestamp
//!   B0 …  52 …  4A …  98 …  01  00 00 00        or to END; padding may follow
//! ```

mod packet;
mod record;
mod text;

pub use packet::{Packet, PacketError, PacketKind};
pub use record::{Record, RecordReader, events, operations};

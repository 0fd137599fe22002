//! TRACING_DATA: the formats of tracepoints, which name the fields in their raw bytes.
//!
//! ```text
//!  17 08 44 "tracing" version\0 order:u8 long:u8 page:u32
//!  "header_page\0" size:u64 …   "header_event\0" size:u64 …
//!  count:u32 { size:u64 format }                                 the formats of ftrace itself
//!  count:u32 { system\0 count:u32 { size:u64 format } }
//!  kallsyms size:u32 …   printk_formats size:u32 …   [ saved_cmdlines size:u64 …   since version 0.6 ]
//! ```
//!
//! [`Tracing`] finds the parts and writes them back as they were; [`EventFormat`] reads one
//! `format` text. The numbers have the byte order that the block itself names. A count is never
//! believed further than there are bytes, so the work is bounded by the length of the block.
//! Source: `trace-cmd.dat(5)`, versions 0.5 and 0.6 (perf's), and the kernel's
//! `kernel/trace/trace_events.c`.

mod block;
mod event;
mod field;
mod value;

pub use block::{Part, System, Tracing};
pub use event::EventFormat;
pub use field::EventField;
pub use value::{FieldNumbers, FieldValue, RawFields};

use crate::wire;

wire! {
    /// Contents of TRACING_DATA as they are: any bytes. [`Tracing`] reads them.
    pub struct TracingData<'a> {
        /// Bytes of the section.
        pub data: &'a [u8] => "data_bytes",
    }
}

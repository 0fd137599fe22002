//! Event specs: the argument of `-e`, in perf's syntax.
//!
//! ```text
//! list  = item { "," item }
//! item  = event | "{" event { "," event } "}" [ ":" modifiers ]
//! event = name [ ":" modifiers ]                           cycles:u   L1-dcache-load-misses   r1a8:k   cpu-clock
//!       | pmu "/" terms "/" [ modifiers ]                  cpu/event=0x3c,umask=1/u   intel_pt//   uprobe/path=…,func=main/
//!       | system ":" tracepoint [ "/" terms "/" ] [ ":" modifiers ]      sched:sched_switch   syscalls:*_openat
//!       | "mem:" address [ "/" length ] [ ":" rwx ] [ ":" modifiers ]    mem:0x1000/8:w
//! ```
//!
//! ```text
//!  text  ──▶ pieces with positions ─────▶ parse ──▶ EventSpec …
//!            text                          │ names · breakpoint · pmu_event (terms, probe) · tracepoints
//!                                          ▼
//!                                        EventSources: sysfs's PMUs, tracefs
//! ```
//!
//! [`EventSources`](crate::machine::sources::EventSources) describes the machine. Its roots are
//! paths, so events of any machine can be planned on any other. Errors name the position and the
//! most similar known name.

mod breakpoint;
mod error;
mod filter;
mod memory;
mod modifiers;
mod names;
mod parse;
mod pmu_event;
mod probe;
pub(crate) mod sampling;
pub(crate) mod spec;
mod terms;
mod text;
mod tracepoints;

pub(crate) use filter::{attach_filter, exclude_process};
pub(crate) use memory::{Accesses, DEFAULT_LATENCY, MemoryEvent, memory_events};
pub(crate) use names::{DURATION_TIME, KnownEvent, SYSTEM_TIME, TOOL_KIND, USER_TIME, known};
pub(crate) use parse::{append, default_events, parse};
pub(crate) use probe::own_terms as probe_terms;
pub(crate) use spec::Probe;
pub use spec::{EventSpec, PmuUse};

#[cfg(test)]
mod tests;

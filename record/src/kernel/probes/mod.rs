//! Probes as tracepoints, which threads and children can inherit, for as long as a recording goes
//! on.
//!
//! ```text
//!  event uprobe/path=…,func=…/ ──▶ line in tracefs' uprobe_events ──▶ tracepoint N ──▶ counters of tracepoint N
//!                                         ▲
//!  guard (a process) ── at rec's end, however it ends: removes the line
//! ```
//!
//! A counter of the PMU `uprobe` or `kprobe` is opened from a text in rec's memory. Inherited, it
//! would be opened anew in the task that forks, which has no such text, and `fork` and
//! `pthread_create` of the recorded program would fail. A tracepoint is only a number. Its samples
//! are the same, and its breakpoint is put only into the processes that are counted.
//!
//! A probe is registered
//!
//! - in the mounted tracefs, or else in a private mount, which ends with its descriptor;
//! - under a unique name: PID namespace, process, the time when that started, number;
//! - for a file by its path, or by rec's descriptor if the path has characters that the kernel's
//!   parser splits at.
//!
//! If guard and rec are killed together, the next recording with a probe removes the one that is
//! left.

mod definition;
pub mod guard;
mod owner;
mod tracing;

use std::fs::File;
use std::path::Path;

use recrep_format::abi::AttrFlags;

use crate::messages::error::{Error, why_words};
use crate::plan::PlannedEvent;
use definition::{Definition, GROUP};
use guard::Guard;
use owner::Owner;
use tracing::{NoTracing, Tracing};

/// The probes of a recording. They go when this is dropped, which must come after the counters.
#[derive(Debug, Default)]
pub(crate) struct Probes {
    registers: Vec<Register>,
}

/// A file of tracefs that lists probes, and who removes those of rec.
#[derive(Debug)]
struct Register {
    kind: &'static str,
    list: File,
    guard: Guard,
}

impl Probes {
    /// Registers the probes that threads and children are to inherit, and makes their events those
    /// of tracepoints. `tracefs`: where it is mounted.
    pub(crate) fn register(
        events: &mut [PlannedEvent],
        tracefs: Option<&Path>,
    ) -> Result<Self, Error> {
        let mut probes = Self::default();
        let mut tracing = None;
        for (number, event) in events.iter_mut().enumerate().filter(|(_, event)| follows(event)) {
            let whole = event.full_name();
            let refused = |why: &str| refusal(&whole, why);
            let definition = Definition::of(event).map_err(|why| refused(&why))?;
            let tracing = match &mut tracing {
                Some(tracing) => tracing,
                missing => missing.insert(
                    Tracing::find(tracefs, definition.list())
                        .map_err(|why| no_tracefs(&whole, &why))?,
                ),
            };
            let owner = Owner::current().map_err(|why| refused(&why_words(&why)))?;
            let register =
                probes.list(tracing, definition.list(), &owner).map_err(|why| refused(&why))?;
            let name = owner.name(number);
            // The guard knows of it first: rec may be killed in between.
            register.guard.add(&name).map_err(|why| refused(&why_words(&why)))?;
            tracing::write(&register.list, &definition.line(GROUP, &name))
                .map_err(|why| refused(&definition.why(&why)))?;
            let id = tracing.id(GROUP, &name).map_err(|why| refused(&why_words(&why)))?;
            if let Some(probe) = &mut event.probe {
                probe.tracepoint = Some(id);
                event.attr.flags |= AttrFlags::INHERIT;
            }
        }
        Ok(probes)
    }

    /// Returns the register of probes of a kind, with those left over removed at its first use.
    fn list(
        &mut self,
        tracing: &Tracing,
        kind: &'static str,
        owner: &Owner,
    ) -> Result<&mut Register, String> {
        if let Some(found) = self.registers.iter().position(|register| register.kind == kind) {
            return self.registers.get_mut(found).ok_or_else(String::new);
        }
        let list = tracing.open(kind)?;
        for name in owner.left_over(&tracing.read(kind), GROUP) {
            // The kernel refuses to remove a probe that is in use.
            let _ = tracing::write(&list, &definition::removal(GROUP, &name));
        }
        let guard = Guard::start(&list)
            .map_err(|why| format!("cannot start its guard: {}", why_words(&why)))?;
        self.registers.push(Register { kind, list, guard });
        self.registers.last_mut().ok_or_else(String::new)
    }
}

/// Returns whether threads and children of the target are to be counted by a probe that is no
/// tracepoint yet.
fn follows(event: &PlannedEvent) -> bool {
    event.probe.as_ref().is_some_and(|probe| probe.inherits && probe.tracepoint.is_none())
}

fn refusal(name: &str, why: &str) -> Error {
    Error::Failed(format!(
        "cannot count {name} in threads and children too: {why}; without these, use -i; or count \
         all processes (-a)"
    ))
}

fn no_tracefs(name: &str, why: &NoTracing) -> Error {
    match why {
        NoTracing::Unusable(why) => refusal(name, &format!("that takes tracefs, but {why}")),
        NoTracing::Unprivileged => Error::Failed(format!(
            "cannot count {name}: probes require root or CAP_SYS_ADMIN, as they modify code for all its users; get either"
        )),
    }
}

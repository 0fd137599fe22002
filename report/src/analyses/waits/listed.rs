//! Waits one by one, for pictures.

use super::answer::{wait_text, waker_text};
use super::found::{WakerKey, WakerKind, chains, for_waits};
use super::stacks::WakerStacks;
use crate::analyses::collected::{Collected, Findings};
use crate::picture::{ThreadWait, keep_longest};
use crate::query::{Mode, Query};
use crate::samples::Session;
use crate::symbols::Resolver;
use crate::timeline::Wake;

/// Waits of one input, or of more.
#[derive(Debug, Default)]
struct ListedWaits(Vec<ThreadWait>);

impl Findings for ListedWaits {
    const NOTHING: &'static str = "no thread waited";

    fn add(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Returns the waits of all threads that last so many nanoseconds.
pub(crate) fn listed(query: &Query, least: u64) -> anyhow::Result<Vec<ThreadWait>> {
    let of_input =
        |session: &Session<'_>, resolver: &Resolver| waits(session, query, resolver, least);
    let all = Collected::read(query, Mode::CriticalPath, "single switches of threads", of_input)?;
    Ok(all.found.0)
}

fn waits(session: &Session<'_>, query: &Query, resolver: &Resolver, least: u64) -> ListedWaits {
    let mut all = Vec::new();
    let Some(waits) = &session.waits else { return ListedWaits(all) };
    let functions = session.functions(resolver);
    let chains = chains(session, resolver, &functions);
    for_waits(session, waits, query, &chains, |_, wait| {
        let Some(thread) = waits.thread(wait.thread) else { return };
        let (from, to) = (wait.stretch.off, wait.stretch.on);
        if to - from < least {
            return;
        }
        let WakerKey { kind, name, site } = &wait.waker;
        let place = wait.place;
        let is_of_thread = matches!(kind, WakerKind::Thread | WakerKind::Stranger);
        all.push(ThreadWait {
            pid: thread.pid,
            tid: thread.tid,
            from,
            woken: wait.until,
            to,
            what: wait_text(place.kind, place.behind_fault, wait.object.as_deref()),
            woken_by: name
                .as_ref()
                .map_or_else(String::new, |name| waker_text(Some(name), site.as_deref())),
            wake: thread.wake(wait.stretch).and_then(Wake::sample).filter(|_| is_of_thread),
            waker_stack: String::new(),
        });
    });
    keep_longest(&mut all);
    WakerStacks::read(session, &chains, &all).name(&mut all);
    ListedWaits(all)
}

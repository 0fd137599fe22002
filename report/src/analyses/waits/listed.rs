//! Waits one by one, for pictures.

use super::answer::{wait_text, waker_text};
use super::found::{WakerKey, for_waits};
use crate::analyses::collected::{Collected, Findings};
use crate::picture::ThreadWait;
use crate::query::{Mode, Query};
use crate::samples::Session;
use crate::symbols::Resolver;

/// Waits of one input, or of more.
#[derive(Debug, Default)]
struct ListedWaits(Vec<ThreadWait>);

impl Findings for ListedWaits {
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
    let mut all = ListedWaits::default();
    let Some(waits) = &session.waits else { return all };
    for_waits(session, waits, query, resolver, |_, wait| {
        let Some(thread) = waits.thread(wait.thread) else { return };
        let (from, to) = (wait.stretch.off, wait.stretch.on);
        if to - from < least {
            return;
        }
        let WakerKey { name, site, .. } = &wait.waker;
        let place = wait.place;
        all.0.push(ThreadWait {
            pid: thread.pid,
            tid: thread.tid,
            from,
            woken: wait.until,
            to,
            what: wait_text(place.kind, place.behind_fault, wait.object.as_deref()),
            woken_by: name
                .as_ref()
                .map_or_else(String::new, |name| waker_text(Some(name), site.as_deref())),
        });
    });
    all
}

//! Mapping of the rings, and redirection of each counter's records to a ring.

use std::collections::BTreeMap;

use rustix::io::Errno;

use super::counter::Counters;
use crate::kernel::ring::Ring;
use crate::kernel::{Kernel, RingKey};
use crate::messages::Messages;
use crate::messages::error::{Error, Result};
use crate::plan::Plan;

use std::os::fd::AsFd as _;

impl Counters {
    /// Maps the rings, and halves them until they fit the user's limit on locked memory.
    pub(super) fn map_rings<K: Kernel>(
        &mut self,
        kernel: &K,
        plan: &Plan,
        messages: &Messages,
    ) -> Result<()> {
        self.owners = self.owners_by_ring().into_values().collect();
        let mut pages = plan.ring_pages;
        loop {
            match self.try_map(kernel, pages) {
                Ok(rings) => self.rings = rings,
                Err(Errno::PERM) if pages > 1 => {
                    pages /= 2;
                    continue;
                }
                Err(errno) => return Err(Error::Failed(unmappable(errno, pages))),
            }
            break;
        }
        if pages != plan.ring_pages {
            messages.note(format_args!(
                "rings have {pages} pages instead of {}, because of the limit on locked memory; \
                 raise kernel.perf_event_mlock_kb or ulimit -l",
                plan.ring_pages
            ));
        }
        messages.explain(|| format!("rings: {} of {pages} pages", self.rings.len()));
        self.redirect(kernel)
    }

    fn try_map<K: Kernel>(&self, kernel: &K, pages: usize) -> Result<Vec<Ring>, Errno> {
        let owners = self.owners.iter().filter_map(|owner| self.all.get(*owner));
        owners.map(|owner| kernel.map(owner.as_fd(), pages, self.ring_of(owner).backward)).collect()
    }

    /// Returns the owner of each ring: a counter with an AUX area, if any, as the area must belong
    /// to the ring's owner; otherwise the first counter.
    fn owners_by_ring(&self) -> BTreeMap<RingKey, usize> {
        let mut owners = BTreeMap::new();
        let has_aux = |index: usize| {
            let event = self.all.get(index).and_then(|counter| self.events.get(counter.event));
            event.is_some_and(|event| event.has_aux)
        };
        for (index, counter) in self.all.iter().enumerate() {
            let owner = owners.entry(self.ring_of(counter)).or_insert(index);
            if has_aux(index) && !has_aux(*owner) {
                *owner = index;
            }
        }
        owners
    }

    /// Redirects each counter without its own ring to the ring of its CPU or thread.
    fn redirect<K: Kernel>(&self, kernel: &K) -> Result<()> {
        let owners = self.owners_by_ring();
        for (index, counter) in self.all.iter().enumerate() {
            let owner = owners.get(&self.ring_of(counter)).filter(|owner| **owner != index);
            if let Some(owner) = owner.and_then(|owner| self.all.get(*owner)) {
                kernel.redirect(counter.as_fd(), owner.as_fd()).map_err(|e| {
                    let whose = match (counter.place.cpu, counter.place.thread) {
                        (Some(cpu), _) => format!("CPU {cpu}"),
                        (None, Some(thread)) => format!("thread {thread}"),
                        (None, None) => "its place".to_owned(),
                    };
                    Error::io(format!("cannot send a counter's records to the ring of {whose}"), e)
                })?;
            }
        }
        Ok(())
    }
}

fn unmappable(errno: Errno, pages: usize) -> String {
    let why = match errno {
        Errno::PERM => {
            "the limit on locked memory leaves not even one page; raise kernel.perf_event_mlock_kb \
                        or ulimit -l, or end another recording"
                .to_owned()
        }
        Errno::NOMEM => {
            "there is not enough contiguous memory; request smaller rings with -m".to_owned()
        }
        other => crate::messages::error::why_words(&other.into()),
    };
    format!("cannot map rings of {pages} pages: {why}")
}

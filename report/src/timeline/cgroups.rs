//! Sockets of CPUs, cgroups, and cgroup namespaces of threads. Read only if a query needs them.

use std::collections::HashSet;

use indexmap::IndexSet;
use recrep_format::feature::{CpuTopology, NrCpus};
use recrep_format::read::File;
use recrep_format::record::{Body, RawRecord};
use rustc_hash::FxHashMap;

use crate::timeline::{Clock, Moment};

/// Index of the cgroup namespace in a `NAMESPACES` record.
const CGROUP_NS_INDEX: usize = 6;

/// Sockets, cgroups and cgroup namespaces recorded in one file.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    sockets: Vec<u32>,
    cgroups: FxHashMap<u64, String>,
    spaces: IndexSet<(u64, u64)>,
    /// Cgroup namespaces of each thread over time, as indices into `spaces`.
    threads: FxHashMap<i32, Vec<(Moment, usize)>>,
}

impl Groups {
    pub(crate) fn read(file: &File<'_>, records: &[RawRecord<'_>], clock: &Clock<'_>) -> Self {
        let mut groups = Self { sockets: sockets(file).unwrap_or_default(), ..Self::default() };
        for raw in records {
            let Ok(record) = file.attrs.decode(raw) else { continue };
            match &record.body {
                Body::Cgroup(cgroup) => {
                    groups.cgroups.insert(cgroup.id, cgroup.path.to_text().into_owned());
                }
                Body::Namespaces(all) => {
                    if let Some(space) = all.iter().nth(CGROUP_NS_INDEX) {
                        let (place, _) = groups.spaces.insert_full((space.dev, space.inode));
                        let at = clock.moment(record.trailer.time, raw.offset);
                        groups.threads.entry(all.tid.cast_signed()).or_default().push((at, place));
                    }
                }
                _ => {}
            }
        }
        for spaces in groups.threads.values_mut() {
            spaces.sort_unstable();
        }
        groups
    }

    pub(crate) fn socket(&self, cpu: u32) -> Option<u32> {
        self.sockets.get(usize::try_from(cpu).ok()?).copied()
    }

    pub(crate) fn cpus_of(&self, socket: u32) -> HashSet<u32> {
        (0u32..).zip(&self.sockets).filter(|(_, of)| **of == socket).map(|(cpu, _)| cpu).collect()
    }

    pub(crate) fn cgroup(&self, id: u64) -> Option<&str> {
        self.cgroups.get(&id).map(String::as_str)
    }

    /// Returns the number of the cgroup namespace that a thread was in; 0 if not recorded.
    pub(crate) fn space_number(&self, tid: i32, at: Moment) -> u64 {
        let space = self.threads.get(&tid).and_then(|spaces| {
            let next = spaces.partition_point(|(since, _)| *since <= at);
            spaces.get(next.checked_sub(1)?)
        });
        space.map_or(0, |(_, place)| *place as u64 + 1)
    }

    /// Returns device and inode of the cgroup namespace with this number.
    pub(crate) fn space(&self, number: u64) -> Option<(u64, u64)> {
        self.spaces.get_index(usize::try_from(number).ok()?.checked_sub(1)?).copied()
    }
}

/// Returns the socket of each CPU, if recorded.
fn sockets(file: &File<'_>) -> Option<Vec<u32>> {
    let cpus = file.feature::<NrCpus>().and_then(Result::ok).map_or(0, |cpus| cpus.available);
    let topology = file.feature::<CpuTopology<'_>>()?.ok()?;
    Some(topology.tail.cpus(cpus).ok()?.into_iter().map(|(_, socket)| socket).collect())
}

//! Sets of CPUs: NUMA nodes, and conversion for the scheduler.

use std::fs;
use std::path::Path;

use rustix::thread::CpuSet;

use crate::tasks;

/// Returns the CPUs of each NUMA node.
pub(crate) fn nodes(sysfs: &Path) -> Vec<Vec<u32>> {
    let entries = fs::read_dir(sysfs.join("devices/system/node")).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| fs::read_to_string(entry.path().join("cpulist")).ok())
        .filter_map(|list| tasks::parse_cpus(&list).ok())
        .collect()
}

/// Converts CPUs to a set for the scheduler.
pub(crate) fn set(cpus: &[u32]) -> CpuSet {
    let mut set = CpuSet::new();
    let numbers = cpus.iter().filter_map(|cpu| usize::try_from(*cpu).ok());
    for cpu in numbers.filter(|cpu| *cpu < CpuSet::MAX_CPU) {
        set.set(cpu);
    }
    set
}

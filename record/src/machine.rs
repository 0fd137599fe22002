//! Facts about the machine that the plan depends on, read once.

use std::fs;

use crate::error::{Error, Result};
use crate::target;

/// What the kernel allows and has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Bytes in a page.
    pub page_size: usize,
    /// The CPUs that are online.
    pub online: Vec<u32>,
    /// `kernel.perf_event_paranoid`.
    pub paranoid: i64,
    /// `kernel.perf_event_max_sample_rate`, in Hz.
    pub max_rate: u64,
    /// `kernel.perf_event_mlock_kb`: what each user may map for each CPU.
    pub mlock_kb: u64,
}

impl Machine {
    /// Asks the kernel.
    ///
    /// # Errors
    /// A kernel without perf events, or one that does not say which CPUs it has.
    pub fn read() -> Result<Self> {
        let paranoid = sysctl("perf_event_paranoid").ok_or_else(|| {
            Error::Failed(
                "cannot record: this kernel has no perf events (/proc/sys/kernel/perf_event_paranoid cannot be read); \
                 it needs CONFIG_PERF_EVENTS and a mounted /proc"
                    .to_owned(),
            )
        })?;
        Ok(Self {
            page_size: rustix::param::page_size(),
            online: online()?,
            paranoid,
            max_rate: sysctl("perf_event_max_sample_rate").and_then(|n| u64::try_from(n).ok()).unwrap_or(100_000),
            mlock_kb: sysctl("perf_event_mlock_kb").and_then(|n| u64::try_from(n).ok()).unwrap_or(516),
        })
    }
}

fn sysctl(name: &str) -> Option<i64> {
    fs::read_to_string(format!("/proc/sys/kernel/{name}")).ok()?.trim().parse().ok()
}

fn online() -> Result<Vec<u32>> {
    const PATH: &str = "/sys/devices/system/cpu/online";
    match fs::read_to_string(PATH) {
        Ok(list) => target::parse_cpus(&list).map_err(|e| Error::Failed(format!("{PATH}: {e}"))),
        // Without /sys, as in some containers: those this process may run on are online at least.
        Err(_) => {
            let set = rustix::thread::sched_getaffinity(None)
                .map_err(|e| Error::io(format!("cannot find out which CPUs are online: no {PATH}"), e))?;
            Ok((0u32..)
                .zip(0..rustix::thread::CpuSet::MAX_CPU)
                .filter(|(_, n)| set.is_set(*n))
                .map(|(c, _)| c)
                .collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_a_cpu() {
        assert!(!online().unwrap().is_empty());
        assert_eq!(sysctl("no_such_setting"), None);
    }
}

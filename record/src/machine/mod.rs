//! Facts about the machine that the plan depends on: read once, or given in a file to plan for
//! another machine.

pub(crate) mod cpus;
pub(crate) mod event_tables;
pub(crate) mod kernel_image;
pub(crate) mod pmu;
pub(crate) mod registers;
pub(crate) mod sources;
pub(crate) mod topology;
pub(crate) mod tracepoint;

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::{Resource, getrlimit};
use serde::{Deserialize, Serialize};

use crate::machine::registers::Arch;
use crate::machine::tracepoint::Tracefs;
use crate::messages::error::{Error, Result};
use crate::tasks;

/// Facts about kernel and machine. In JSON (`--dry-run --machine FILE`) each fact has its field's
/// name; missing ones are taken from [`Machine::default`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Machine {
    pub page_size: usize,
    /// Online CPUs.
    pub online: Vec<u32>,
    /// `kernel.perf_event_paranoid`.
    pub paranoid: i64,
    /// `kernel.perf_event_max_sample_rate`, in Hz.
    pub max_rate: u64,
    /// `kernel.perf_event_mlock_kb`: KiB that each user may map per CPU.
    pub mlock_kb: u64,
    /// `RLIMIT_MEMLOCK`: KiB that rec may lock beyond that.
    pub memlock_kb: u64,
    /// `true` if `perf_event_paranoid` does not restrict the user: CAP_PERFMON or CAP_SYS_ADMIN.
    pub privileged: bool,
    /// Architecture, which determines the registers.
    pub arch: Arch,
    /// `true` if the machine has scalable vectors (aarch64).
    pub sve: bool,
    /// Version of the kernel, as far as features depend on it; 0, 0 if unknown.
    pub kernel: (u16, u16),
    /// `kernel.perf_event_max_stack`.
    pub max_stack: u16,
    /// `true` if guests can trace themselves with Intel PT (`kvm_intel.pt_mode=1`), so that the
    /// host excludes them.
    pub guests_trace: bool,
    /// The CPU as perf's event tables spell it (`GenuineIntel-6-55-4`); `None` if each core
    /// says so in sysfs (Arm), or if it is unknown.
    pub cpuid: Option<String>,
    /// Root of sysfs, which has the PMUs.
    pub sysfs: PathBuf,
    /// Root of tracefs if mounted, which has the tracepoints.
    pub tracefs: Option<PathBuf>,
}

impl Default for Machine {
    /// Returns one CPU, an unprivileged user, and the kernel's default settings.
    fn default() -> Self {
        Self {
            page_size: 4096,
            online: vec![0],
            paranoid: 2,
            max_rate: 100_000,
            mlock_kb: 516,
            memlock_kb: 0,
            privileged: false,
            arch: Arch::NATIVE,
            sve: false,
            kernel: (0, 0),
            max_stack: 127,
            guests_trace: false,
            cpuid: None,
            sysfs: "/sys".into(),
            tracefs: None,
        }
    }
}

impl Machine {
    pub fn read() -> Result<Self> {
        let paranoid = sysctl("perf_event_paranoid").ok_or_else(|| {
            Error::Failed(
                "cannot record: this kernel has no perf events \
                 (/proc/sys/kernel/perf_event_paranoid cannot be read); it needs \
                 CONFIG_PERF_EVENTS and a mounted /proc"
                    .to_owned(),
            )
        })?;
        Ok(Self {
            page_size: rustix::param::page_size(),
            online: online()?,
            paranoid,
            max_rate: max_rate().unwrap_or(100_000),
            mlock_kb: sysctl("perf_event_mlock_kb")
                .and_then(|n| u64::try_from(n).ok())
                .unwrap_or(516),
            memlock_kb: getrlimit(Resource::Memlock).current.unwrap_or(u64::MAX) >> 10,
            privileged: fs::read_to_string("/proc/self/status")
                .is_ok_and(|status| may_all(&status)),
            sve: Path::new("/proc/sys/abi/sve_default_vector_length").exists(),
            tracefs: Tracefs::find(Path::new("/proc/mounts"))
                .map(|tracefs| tracefs.root().to_owned()),
            kernel: version(&rustix::system::uname().release().to_string_lossy()),
            max_stack: sysctl("perf_event_max_stack")
                .and_then(|n| u16::try_from(n).ok())
                .unwrap_or(127),
            guests_trace: fs::read_to_string("/sys/module/kvm_intel/parameters/pt_mode")
                .is_ok_and(|m| m.trim() == "1"),
            ..Self::default()
        })
    }

    /// Adds the CPU's identifier, for event tables. Reading it takes a while on a machine with many
    /// CPUs.
    pub fn with_cpuid(self) -> Self {
        Self { cpuid: event_tables::cpuid::read(), ..self }
    }

    /// Reads the facts from a file.
    pub fn from_file(path: &Path) -> Result<Self> {
        let wrong = |why: String| Error::Usage(format!("--machine {}: {why}", path.display()));
        let text =
            fs::read_to_string(path).map_err(|e| wrong(crate::messages::error::why_words(&e)))?;
        let machine: Self = serde_json::from_str(&text).map_err(|e| wrong(e.to_string()))?;
        if machine.online.is_empty()
            || !machine.page_size.is_power_of_two()
            || machine.max_rate == 0
        {
            return Err(wrong(
                "a machine needs a CPU online, a page size that is a power of two, and a max_rate \
                 above 0"
                    .to_owned(),
            ));
        }
        Ok(machine)
    }

    /// Returns the limit on samples a second that holds now: the kernel lowers it when sampling
    /// takes too long.
    pub fn max_rate_now(&self) -> u64 {
        max_rate().unwrap_or(self.max_rate)
    }

    /// Returns the share of a CPU's time that sampling may take before that, in percent.
    pub fn sampling_time_percent(&self) -> Option<u64> {
        sysctl("perf_cpu_time_max_percent").and_then(|percent| u64::try_from(percent).ok())
    }

    /// Returns whether this user may count the processes of all users on a CPU.
    pub fn allows_system(&self) -> bool {
        self.privileged || self.paranoid < 1
    }
}

/// Returns `kernel.perf_event_max_sample_rate`, in Hz.
fn max_rate() -> Option<u64> {
    sysctl("perf_event_max_sample_rate").and_then(|rate| u64::try_from(rate).ok())
}

fn sysctl(name: &str) -> Option<i64> {
    fs::read_to_string(format!("/proc/sys/kernel/{name}")).ok()?.trim().parse().ok()
}

/// Returns the first two numbers of a release such as `6.1.187-1-amd64`.
fn version(release: &str) -> (u16, u16) {
    let mut numbers =
        release.split(|c: char| !c.is_ascii_digit()).map(|digits| digits.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// Returns whether the effective capabilities include CAP_PERFMON (38) or CAP_SYS_ADMIN (21).
fn may_all(status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let mask = mask.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
    mask.is_some_and(|mask| mask & (1 << 38 | 1 << 21) != 0)
}

fn online() -> Result<Vec<u32>> {
    const PATH: &str = "/sys/devices/system/cpu/online";
    match fs::read_to_string(PATH) {
        Ok(list) => tasks::parse_cpus(&list).map_err(|e| Error::Failed(format!("{PATH}: {e}"))),
        // Without /sys, as in some containers, use the CPUs that this process may run on, which are
        // online.
        Err(_) => {
            let set = rustix::thread::sched_getaffinity(None).map_err(|e| {
                Error::io(format!("cannot find out which CPUs are online: no {PATH}"), e)
            })?;
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

    #[test]
    fn kernel_versions() {
        assert_eq!(version("6.1.187-1-amd64"), (6, 1));
        assert_eq!(version("5.14.0-70.el9"), (5, 14));
        assert_eq!((version("6"), version("x.y")), ((6, 0), (0, 0)));
    }

    #[test]
    fn who_is_beyond_paranoid() {
        assert!(may_all("Name:\tx\nCapEff:\t000001ffffffffff\n"));
        assert!(may_all("CapEff:\t0000004000000000\n"));
        assert!(may_all("CapEff:\t0000000000200000\n"));
        assert!(!may_all("CapEff:\t0000000000000000\n"));
        assert!(!may_all(""));
    }

    #[test]
    fn facts_from_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.json");
        let given = |text: &str| {
            fs::write(&path, text).unwrap();
            Machine::from_file(&path).map_err(|e| e.to_string())
        };
        let machine =
            given(r#"{"online": [0, 2], "arch": "aarch64", "privileged": true}"#).unwrap();
        assert_eq!(
            (machine.online, machine.arch, machine.max_rate),
            (vec![0, 2], Arch::Aarch64, 100_000)
        );
        assert!(given(r#"{"onlin": [0]}"#).unwrap_err().contains("onlin"));
        assert!(given(r#"{"online": []}"#).unwrap_err().contains("CPU online"));
        assert!(
            Machine::from_file(Path::new("/no/such"))
                .unwrap_err()
                .to_string()
                .contains("No such file")
        );
    }
}

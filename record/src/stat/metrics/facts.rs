//! Facts about the machine and the target that formulas use: `#smt_on`, `#num_cpus`, …

use std::fs;
use std::path::{Path, PathBuf};

use crate::machine::Machine;
use crate::machine::event_tables::{Parts, cpuid};
use crate::machine::topology::{self, Siblings};
use crate::tasks;

/// Facts for formulas.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    sysfs: PathBuf,
    online: Vec<u32>,
    /// The CPU; `None` if each core says itself which it is (Arm).
    cpuid: Option<String>,
    /// CPUs that are counted; `None` for all.
    cpus: Option<Vec<u32>>,
    /// Whole CPUs are counted, not tasks.
    system: bool,
    /// The NMI watchdog takes a counter.
    pub(super) has_watchdog: bool,
}

impl Facts {
    /// Creates the facts of a machine on which these CPUs (all if `None`) are counted; `system`: as
    /// a whole, not for tasks.
    pub(crate) fn new(machine: &Machine, cpus: Option<&[u32]>, system: bool) -> Self {
        let watchdog = fs::read_to_string("/proc/sys/kernel/nmi_watchdog");
        Self {
            sysfs: machine.sysfs.clone(),
            online: machine.online.clone(),
            cpuid: machine.cpuid.clone(),
            cpus: cpus.map(<[u32]>::to_vec),
            system,
            has_watchdog: watchdog.is_ok_and(|state| state.trim() != "0"),
        }
    }

    /// Returns the value of a literal; `core`: name of the cores' PMU.
    pub(super) fn literal(&self, name: &str, core: Option<&str>) -> Option<f64> {
        match name {
            "num_cpus" => self.present().map(|last| f64::from(last) + 1.0),
            "num_cpus_online" => count(self.online.len()),
            "num_packages" => count(self.siblings().packages.len()),
            "num_dies" => count(self.siblings().dies.len()),
            "num_cores" => count(self.siblings().cores.len()),
            "smt_on" => Some(truth(self.is_smt_on())),
            "core_wide" => Some(truth(self.is_core_wide())),
            "slots" => self.slots(core?),
            "system_tsc_freq" => self.tsc_frequency(&text(Path::new("/proc/cpuinfo"))?),
            "has_pmem" => Some(truth(self.sysfs.join("firmware/acpi/tables/NFIT").exists())),
            _ => None,
        }
    }

    /// Returns whether the cores are those with this ID; `None` if they do not say what they are.
    pub(super) fn is_cpu(&self, id: &str) -> Option<bool> {
        let first = self.online.first().copied().unwrap_or(0);
        let own = self.cpuid.clone().or_else(|| cpuid::of_core(&self.sysfs, first))?;
        Some(cpuid::is_meant_by(&own, id))
    }

    /// Returns the number of parts that a metric is computed for, one by one.
    pub(super) fn parts(&self, parts: Parts) -> u32 {
        let file = match parts {
            Parts::Chips => "sockets",
            Parts::Cores => "coresperchip",
        };
        let count = text(&self.sysfs.join("devices/hv_24x7/interface").join(file));
        count.and_then(|count| count.parse().ok()).unwrap_or(1)
    }

    pub(super) fn is_smt_on(&self) -> bool {
        match text(&self.sysfs.join("devices/system/cpu/smt/active")) {
            Some(active) => active == "1",
            None => self.siblings().cores.iter().any(|core| core.contains([',', '-'])),
        }
    }

    /// Returns whether everything is counted that runs on a core, if anything of it is.
    fn is_core_wide(&self) -> bool {
        let Some(counted) = &self.cpus else { return self.system };
        let is_whole = |core: &String| {
            let threads = tasks::parse_cpus(core).unwrap_or_default();
            let mut counted = threads.iter().map(|thread| counted.contains(thread));
            let first = counted.next();
            counted.all(|next| Some(next) == first)
        };
        self.system && (!self.is_smt_on() || self.siblings().cores.iter().all(is_whole))
    }

    fn siblings(&self) -> Siblings {
        topology::siblings(&self.sysfs, &self.online)
    }

    /// Returns the last CPU that is present.
    fn present(&self) -> Option<u32> {
        let list = text(&self.sysfs.join("devices/system/cpu/present"))?;
        tasks::parse_cpus(&list).ok()?.into_iter().max()
    }

    /// Returns the slots that a core has in each cycle (Arm).
    fn slots(&self, core: &str) -> Option<f64> {
        let file = self.sysfs.join("bus/event_source/devices").join(core).join("caps/slots");
        let slots = text(&file)?;
        let slots = match slots.strip_prefix("0x") {
            Some(digits) => u32::from_str_radix(digits, 16).ok()?,
            None => slots.parse().ok()?,
        };
        (slots > 0).then_some(f64::from(slots))
    }

    /// Returns the frequency of the time stamp counter in Hz: the nominal one, which is part of
    /// many CPUs' names, and which the driver of Intel's CPUs knows.
    fn tsc_frequency(&self, cpuinfo: &str) -> Option<f64> {
        if cpuid::field(cpuinfo, "vendor_id") != Some("GenuineIntel") {
            return None;
        }
        let named = cpuid::field(cpuinfo, "model name").and_then(|name| {
            let (_, frequency) = name.rsplit_once(" @ ")?;
            frequency.strip_suffix("GHz")?.trim().parse::<f64>().ok()
        });
        let known = || {
            let khz = text(&self.sysfs.join("devices/system/cpu/cpu0/cpufreq/base_frequency"))?;
            khz.parse::<f64>().ok().map(|khz| khz * 1e3)
        };
        named.map(|ghz| ghz * 1e9).or_else(known)
    }
}

fn text(path: &Path) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

fn truth(is_true: bool) -> f64 {
    f64::from(u8::from(is_true))
}

/// Returns a number of CPUs or the like; `None` if none is known.
fn count(count: usize) -> Option<f64> {
    (count > 0).then_some(count as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two cores with two threads each, in one package.
    fn machine() -> (tempfile::TempDir, Machine) {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{text}\n")).unwrap();
        };
        for cpu in 0..4 {
            let core = if cpu % 2 == 0 { "0,2" } else { "1,3" };
            let topology = format!("devices/system/cpu/cpu{cpu}/topology");
            write(&format!("{topology}/core_cpus_list"), core);
            write(&format!("{topology}/package_cpus_list"), "0-3");
            write(&format!("{topology}/die_cpus_list"), "0-3");
        }
        write("devices/system/cpu/present", "0-7");
        write("devices/hv_24x7/interface/sockets", "2");
        write("bus/event_source/devices/armv8_pmuv3_0/caps/slots", "0x00000008");
        write("devices/system/cpu/cpu0/cpufreq/base_frequency", "2000000");
        let sysfs = dir.path().to_owned();
        (dir, Machine { online: vec![0, 1, 2, 3], sysfs, ..Machine::default() })
    }

    #[test]
    fn literals_of_a_machine() {
        let (dir, machine) = machine();
        let facts = Facts::new(&machine, None, true);
        for (name, value) in [
            ("num_cpus", Some(8.0)),
            ("num_cpus_online", Some(4.0)),
            ("num_packages", Some(1.0)),
            ("num_dies", Some(1.0)),
            ("num_cores", Some(2.0)),
            ("smt_on", Some(1.0)),
            ("core_wide", Some(1.0)),
            ("has_pmem", Some(0.0)),
            ("slots", Some(8.0)),
            ("nonsense", None),
        ] {
            assert_eq!(facts.literal(name, Some("armv8_pmuv3_0")), value, "{name}");
        }
        assert_eq!(facts.literal("slots", Some("cpu")), None);
        assert_eq!((facts.parts(Parts::Chips), facts.parts(Parts::Cores)), (2, 1));
        fs::create_dir_all(dir.path().join("devices/system/cpu/smt")).unwrap();
        fs::write(dir.path().join("devices/system/cpu/smt/active"), "0\n").unwrap();
        assert_eq!(facts.literal("smt_on", None), Some(0.0));
    }

    #[test]
    fn a_core_is_counted_whole_or_not_at_all() {
        let (_dir, machine) = machine();
        for (cpus, system, is) in [
            (None, true, 1.0),
            (None, false, 0.0),
            (Some(&[0, 2][..]), true, 1.0),
            (Some(&[0, 1][..]), true, 0.0),
            (Some(&[0, 2][..]), false, 0.0),
        ] {
            let facts = Facts::new(&machine, cpus, system);
            assert_eq!(facts.literal("core_wide", None), Some(is), "{cpus:?} {system}");
        }
    }

    #[test]
    fn frequencies_and_cpus() {
        let (_dir, machine) = machine();
        let facts = Facts::new(&machine, None, true);
        let named = "vendor_id\t: GenuineIntel\nmodel name\t: Intel(R) CPU X @ 2.60GHz\n";
        assert_eq!(facts.tsc_frequency(named), Some(2.6e9));
        let unnamed = "vendor_id\t: GenuineIntel\nmodel name\t: Intel(R) CPU X\n";
        assert_eq!(facts.tsc_frequency(unnamed), Some(2e9));
        assert_eq!(
            facts.tsc_frequency("vendor_id\t: AuthenticAMD\nmodel name\t: A @ 3GHz\n"),
            None
        );
        let cpuid = Some("0x00000000411fd491".to_owned());
        let facts = Facts::new(&Machine { cpuid, ..machine }, None, true);
        assert_eq!(facts.is_cpu("0x410fd490"), Some(true), "an earlier version");
        assert_eq!(facts.is_cpu("0x411fd493"), Some(false));
        assert_eq!(facts.is_cpu("0x410fd0c0"), Some(false));
    }
}

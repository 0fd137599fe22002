//! CPUs of a machine with Arm SPE, which decoders must know: each kind of CPU numbers the sources of
//! data in its own way.

use std::fs;
use std::path::Path;

use super::pmu_values::PmuValues;
use crate::machine::event_tables::cpuid;
use crate::tasks::parse_cpus;

/// A CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SpeCpu {
    pub cpu: u32,
    /// Its identification (`MIDR_EL1`).
    pub midr: u64,
    /// `true` if the PMU is that of this CPU.
    pub has_pmu: bool,
}

/// Version of the form that describes CPUs.
const VERSION: u64 = 2;
/// Words before those of the first CPU.
const HEAD: u64 = 4;
/// Begin of the words of a CPU.
const MAGIC: u64 = 0x1010_1010_1010_1010;
/// Number of words of a CPU after this number.
const PARAMETERS: u64 = 3;
/// Number of a PMU that does not exist.
const NO_PMU: u64 = u64::MAX;

/// Returns the CPUs of a machine, if they are of several kinds. Those of one kind are in the file's
/// header.
pub(super) fn of_several_kinds(sysfs: &Path, pmu: &str, online: &[u32]) -> Vec<SpeCpu> {
    let path = sysfs.join("bus/event_source/devices").join(pmu).join("cpumask");
    let of_pmu = fs::read_to_string(path).ok().and_then(|list| parse_cpus(&list).ok());
    let mut cpus = Vec::new();
    for cpu in online {
        let id = cpuid::of_core(sysfs, *cpu);
        let digits = id.as_deref().map(|id| id.trim_start_matches("0x"));
        let Some(midr) = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok()) else {
            return Vec::new();
        };
        let has_pmu = of_pmu.as_ref().is_none_or(|of_pmu| of_pmu.contains(cpu));
        cpus.push(SpeCpu { cpu: *cpu, midr, has_pmu });
    }
    let first = cpus.first().map(|cpu| cpu.midr);
    if cpus.iter().all(|cpu| Some(cpu.midr) == first) { Vec::new() } else { cpus }
}

/// Returns the private words of AUXTRACE_INFO. Those that describe CPUs are in a form that perf
/// reads from version 6.14 on; older versions would find no event. So they are written only where
/// the older form lacks something.
pub(super) fn private(facts: &PmuValues, per_cpu: bool, cpus: &[SpeCpu]) -> Vec<u64> {
    let number = u64::from(facts.number);
    if cpus.is_empty() {
        return vec![number, u64::from(per_cpu)];
    }
    let mut words = vec![VERSION, HEAD, number, cpus.len() as u64];
    for SpeCpu { cpu, midr, has_pmu } in cpus {
        let (pmu, interval) = if *has_pmu { (number, facts.min_interval) } else { (NO_PMU, 0) };
        words.extend([MAGIC, u64::from(*cpu), PARAMETERS, *midr, pmu, interval]);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    const BIG: u64 = 0x410f_d0c1;
    const LITTLE: u64 = 0x410f_d034;

    /// Returns the CPUs of a machine whose cores identify themselves so; the last has no SPE.
    fn cpus(midrs: &[u64]) -> Vec<SpeCpu> {
        let dir = tempfile::tempdir().unwrap();
        for (cpu, midr) in midrs.iter().enumerate() {
            let id = format!("devices/system/cpu/cpu{cpu}/regs/identification/midr_el1");
            let path = dir.path().join(id);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{midr:#018x}\n")).unwrap();
        }
        let pmu = dir.path().join("bus/event_source/devices/arm_spe_0");
        fs::create_dir_all(&pmu).unwrap();
        fs::write(pmu.join("cpumask"), "0-1\n").unwrap();
        let online: Vec<u32> = (0..).take(midrs.len()).collect();
        of_several_kinds(dir.path(), "arm_spe_0", &online)
    }

    #[test]
    fn cpus_of_several_kinds_are_described() {
        let facts = PmuValues { number: 9, min_interval: 256, ..PmuValues::default() };
        let words = private(&facts, true, &cpus(&[BIG, BIG, LITTLE]));
        let expected = [
            &[2, 4, 9, 3][..],
            &[MAGIC, 0, 3, BIG, 9, 256],
            &[MAGIC, 1, 3, BIG, 9, 256],
            &[MAGIC, 2, 3, LITTLE, u64::MAX, 0],
        ];
        assert_eq!(words, expected.concat());
    }

    #[test]
    fn cpus_of_one_kind_need_no_description() {
        let facts = PmuValues { number: 9, ..PmuValues::default() };
        assert_eq!(private(&facts, true, &cpus(&[BIG, BIG])), [9, 1]);
        assert_eq!(private(&facts, false, &cpus(&[])), [9, 0]);
    }
}

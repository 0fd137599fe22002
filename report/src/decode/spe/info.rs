//! What AUXTRACE_INFO says of a trace of SPE.
//!
//! ```text
//!   old   PMU  per-CPU
//!   new   version  length  PMU  CPUs  │ magic  CPU  number  MIDR  PMU  interval │ …     for each CPU
//!         └──── length words ───────┘           └ words that follow
//! ```

use rustc_hash::FxHashMap;

use super::source::Sources;

/// Number of words of the old form.
const OLD: usize = 2;
/// Words of a CPU before those that are counted.
const CPU_HEAD: usize = 3;

/// Facts about the trace.
#[derive(Debug, Default)]
pub(super) struct SpeInfo {
    /// Number of the PMU.
    pub pmu: u64,
    /// MIDR of CPUs; none in the old form.
    midrs: Vec<(u32, u64)>,
}

impl SpeInfo {
    /// Reads the words of AUXTRACE_INFO.
    pub(super) fn of_words(words: &[u64]) -> Self {
        if words.len() <= OLD {
            return Self { pmu: words.first().copied().unwrap_or(0), midrs: Vec::new() };
        }
        let word = |at: usize| words.get(at).copied().unwrap_or(0);
        let mut info = Self { pmu: word(2), midrs: Vec::new() };
        let mut rest = words.get(usize::try_from(word(1)).unwrap_or(usize::MAX)..);
        for _ in 0..word(3) {
            let Some([_, cpu, number, midr, ..]) = rest else { break };
            if let Ok(cpu) = u32::try_from(*cpu) {
                info.midrs.push((cpu, *midr));
            }
            let number = usize::try_from(*number).unwrap_or(usize::MAX);
            rest = rest.and_then(|words| words.get(CPU_HEAD.saturating_add(number)..));
        }
        info
    }
}

/// The numbers of sources that each CPU has.
#[derive(Debug)]
pub(super) struct CpuSources {
    cpus: FxHashMap<u32, Sources>,
    /// Of all CPUs that are not known to have others.
    usual: Sources,
}

impl CpuSources {
    /// Creates them from the trace's own facts, else from the CPUID in the file's header.
    pub(super) fn new(info: &SpeInfo, cpu_id: Option<&str>) -> Self {
        let of_header = cpu_id.map_or(0, midr);
        let first = info.midrs.first().map(|(_, midr)| *midr);
        // Of several kinds of CPUs, none is known for a ring that is on all of them.
        let is_one = info.midrs.iter().all(|(_, midr)| Some(*midr) == first);
        let usual = match first {
            None => of_header,
            Some(first) if is_one => first,
            Some(_) => 0,
        };
        let cpus = info.midrs.iter().map(|(cpu, midr)| (*cpu, Sources::of_cpu(*midr)));
        Self { cpus: cpus.collect(), usual: Sources::of_cpu(usual) }
    }

    /// Returns those of the CPU of a ring.
    pub(super) fn of(&self, cpu: Option<u32>) -> Sources {
        cpu.and_then(|cpu| self.cpus.get(&cpu)).copied().unwrap_or(self.usual)
    }
}

/// Parses a CPUID of Arm: the MIDR, in hexadecimal.
fn midr(cpu_id: &str) -> u64 {
    let digits = cpu_id.trim().trim_start_matches("0x");
    let len = digits.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(digits.len());
    digits.get(..len).and_then(|digits| u64::from_str_radix(digits, 16).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const N1: u64 = 0x413f_d0c1;
    const A53: u64 = 0x410f_d034;

    #[test]
    fn both_forms_are_read() {
        let old = SpeInfo::of_words(&[9, 1]);
        assert_eq!((old.pmu, old.midrs.len()), (9, 0));
        let new = [2, 4, 9, 2, 0x10, 0, 3, N1, 9, 0, 0x10, 5, 4, A53, 9, 0, 77];
        let new = SpeInfo::of_words(&new);
        assert_eq!((new.pmu, new.midrs), (9, vec![(0, N1), (5, A53)]));
        for damaged in [
            &[2, 4, 9, u64::MAX, 1, 2][..],
            &[2, u64::MAX, 9, 1],
            &[2, 4, 9, 2, 0, 0, u64::MAX, N1],
        ] {
            assert_eq!(SpeInfo::of_words(damaged).pmu, 9);
        }
        assert_eq!(SpeInfo::of_words(&[]).pmu, 0);
    }

    #[test]
    fn a_cpu_id_is_a_hexadecimal_number() {
        assert_eq!(
            [midr("0x00000000413fd0c1"), midr("413fd0c1,x"), midr("GenuineIntel")],
            [N1, N1, 0]
        );
    }
}

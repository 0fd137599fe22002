//! Contents of AUXTRACE_INFO for each kind of trace: private words, which perf's decoders read by
//! position.

use recrep_format::bytes::{Encoder, U64s};
use recrep_format::endian::Endian;
use recrep_format::record::{Body, Record};

use super::kind::TraceKind;
use super::pmu_values::PmuValues;
use super::spe_cpus::{self, SpeCpu};
use crate::kernel::ring::Clock;

/// Properties of a recording that decoders need.
#[derive(Clone, Debug, Default)]
pub(super) struct TraceSetup<'a> {
    /// Conversion from the CPU's cycle counter to timestamps.
    pub clock: Option<Clock>,
    /// `true` if the trace consists of snapshots.
    pub snapshot: bool,
    /// `true` if areas are per CPU, not per thread.
    pub per_cpu: bool,
    /// Source of context switches.
    pub switches: Switches,
    /// Address filter of the AUX event.
    pub filter: Option<&'a str>,
    /// CPUs, if they are of several kinds and the trace depends on that.
    pub cpus: Vec<SpeCpu>,
}

/// Source of context switches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Switches {
    #[default]
    None,
    Tracepoint,
    /// SWITCH records of threads.
    Thread,
    /// SWITCH_CPU_WIDE records.
    Cpu,
}

pub(super) fn private(kind: TraceKind, facts: &PmuValues, recorded: &TraceSetup<'_>) -> Vec<u64> {
    let number = u64::from(facts.number);
    let clock = recorded.clock.unwrap_or_default();
    // A zero multiplier means that the conversion is unknown.
    let known = recorded.clock.is_some_and(|clock| clock.mult != 0);
    let time = [u64::from(clock.shift), u64::from(clock.mult), clock.zero, u64::from(known)];
    match kind {
        TraceKind::IntelPt => {
            let filter = recorded.filter.unwrap_or_default().as_bytes();
            let mut words = vec![number];
            words.extend(time);
            words.extend([
                facts.tsc,
                facts.noretcomp,
                recorded.switches as u64,
                u64::from(recorded.snapshot),
                u64::from(recorded.per_cpu),
                facts.mtc,
                facts.mtc_period,
                u64::from(facts.tsc_ctc.0),
                u64::from(facts.tsc_ctc.1),
                facts.cyc,
                facts.max_nonturbo_ratio,
                filter.len() as u64,
            ]);
            words.extend(text_words(filter));
            words.push(facts.event_trace);
            words
        }
        TraceKind::IntelBts => {
            let mut words = vec![number];
            words.extend(time);
            words.push(u64::from(recorded.snapshot));
            words
        }
        TraceKind::ArmSpe => spe_cpus::private(facts, recorded.per_cpu, &recorded.cpus),
        TraceKind::HisiPtt | TraceKind::CoreSight => vec![number],
        TraceKind::S390 => Vec::new(),
    }
}

/// Returns text as words in memory order, with at least one terminating zero byte; empty for empty
/// text.
fn text_words(text: &[u8]) -> Vec<u64> {
    let mut bytes = text.to_vec();
    if !bytes.is_empty() {
        bytes.resize((text.len() + 1).next_multiple_of(8), 0);
    }
    U64s::new(&bytes, Endian::NATIVE).iter().collect()
}

pub(super) fn put(e: &mut Encoder, body: Body<'_>) {
    // No record exceeds the size limit: a filter is shorter than a command line, and the number of
    // ids is limited.
    let _ = Record::new(0, body).encode(e);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aux::pmu_values::tests::intel_pt;

    #[test]
    fn processor_trace_word_by_word() {
        let clock = Clock { shift: 31, mult: 0x4000_0000, zero: 77, ..Clock::default() };
        let recorded = TraceSetup {
            clock: Some(clock),
            snapshot: true,
            per_cpu: true,
            switches: Switches::Cpu,
            filter: Some("filter 0x10/0x8"),
            cpus: Vec::new(),
        };
        let words = private(TraceKind::IntelPt, &intel_pt(), &recorded);
        let fixed = [
            8,
            31,
            0x4000_0000,
            77,
            1,
            1 << 10,
            1 << 11,
            3,
            1,
            1,
            1 << 9,
            0xf << 14,
            168,
            2,
            2,
            24,
            15,
        ];
        assert_eq!(words[..17], fixed);
        let text: Vec<u8> = words[17..19].iter().flat_map(|word| word.to_ne_bytes()).collect();
        assert_eq!(text, b"filter 0x10/0x8\0");
        assert_eq!(words[19..], [1]);
    }

    #[test]
    fn without_a_clock_and_a_filter() {
        let words = private(
            TraceKind::IntelPt,
            &PmuValues { number: 8, ..PmuValues::default() },
            &TraceSetup::default(),
        );
        assert_eq!(words, [&[8][..], &[0; 17]].concat());
        let bts = private(
            TraceKind::IntelBts,
            &PmuValues { number: 9, ..PmuValues::default() },
            &TraceSetup::default(),
        );
        assert_eq!(bts, [9, 0, 0, 0, 0, 0]);
        assert!(private(TraceKind::S390, &PmuValues::default(), &TraceSetup::default()).is_empty());
    }
}

//! Records that decoders of AUX trace need before all others.

use recrep_format::abi::{AttrFlags, Cpu, Tid};
use recrep_format::bytes::{Encoder, U64s};
use recrep_format::endian::Endian;
use recrep_format::record::{AuxtraceInfo, Body, IdIndex, IdIndexEntry, TimeConv, TimeConvShort};
use rustc_hash::FxHashMap;

use super::areas::Areas;
use super::info::{self, Switches, TraceSetup, put};
use super::kind::TraceKind;
use super::pmu_values::PmuValues;
use super::spe_cpus;
use crate::kernel::counters::Counters;
use crate::kernel::ring::Clock;
use crate::machine::Machine;
use crate::messages::error::Result;
use crate::output::Output;

/// Maximum entries of an ID_INDEX record.
const IDS: usize = 2000;

impl Areas {
    /// Writes the records that decoders need before all others: TIME_CONV, ID_INDEX, AUXTRACE_INFO.
    pub(crate) fn write_head(
        &self,
        counters: &Counters,
        machine: &Machine,
        output: &Output,
    ) -> Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        let mut e = Encoder::new(Endian::NATIVE);
        if let Some(clock) = self.clock {
            put(&mut e, Body::TimeConv(time_conv(clock)));
        }
        id_index(counters, &mut e);
        if let Some(kind) = self.kind {
            let words = self.private(kind, counters, machine);
            let mut bytes = Encoder::new(Endian::NATIVE);
            for word in words {
                bytes.u64(word);
            }
            let private = U64s::new(bytes.as_bytes(), Endian::NATIVE);
            let info = AuxtraceInfo { kind: kind.number(), reserved: 0, private };
            put(&mut e, Body::AuxtraceInfo(info));
        }
        output.write(e.as_bytes())
    }

    fn private(&self, kind: TraceKind, counters: &Counters, machine: &Machine) -> Vec<u64> {
        let Some(event) = counters.events.iter().find(|event| event.has_aux) else {
            return Vec::new();
        };
        let pmu = event.pmu.as_deref().unwrap_or_default();
        let facts = PmuValues::read(&machine.sysfs, pmu, event.attr.kind.0);
        let cpus = match kind {
            TraceKind::ArmSpe => spe_cpus::of_several_kinds(&machine.sysfs, pmu, &machine.online),
            _ => Vec::new(),
        };
        let recorded = TraceSetup {
            clock: self.clock,
            snapshot: self.snapshots().is_some(),
            per_cpu: self.are_per_cpu(),
            switches: switches(counters),
            filter: event.filter.as_deref(),
            cpus,
        };
        info::private(kind, &facts, &recorded)
    }
}

/// Returns the source of context switches, by which decoders assign per-CPU trace to threads.
fn switches(counters: &Counters) -> Switches {
    let mut with_switches = counters.all.iter().filter(|counter| {
        let event = counters.events.get(counter.event);
        event.is_some_and(|event| event.attr.flags.contains(AttrFlags::CONTEXT_SWITCH))
    });
    match with_switches.next() {
        Some(first) if with_switches.chain([first]).any(|c| c.place.thread.is_none()) => {
            Switches::Cpu
        }
        Some(_) => Switches::Thread,
        None if counters.events.iter().any(|event| event.name == "sched:sched_switch") => {
            Switches::Tracepoint
        }
        None => Switches::None,
    }
}

/// Writes the ID_INDEX records: ring, CPU and thread of each id.
fn id_index(counters: &Counters, e: &mut Encoder) {
    let owners = counters.owners.iter().filter_map(|owner| counters.all.get(*owner));
    let rings: FxHashMap<_, _> = owners.map(|owner| counters.ring_of(owner)).zip(0u64..).collect();
    for some in counters.all.chunks(IDS) {
        let entries = some.iter().map(|counter| {
            let idx = rings.get(&counters.ring_of(counter)).copied().unwrap_or(u64::MAX);
            let (cpu, tid) = (
                counter.place.cpu.map_or(Cpu::ANY, Cpu),
                counter.place.thread.map_or(Tid::ANY, Tid),
            );
            IdIndexEntry { id: counter.id, idx, cpu, tid, guest: None }
        });
        let words = IdIndex::words_of(&entries.collect::<Vec<_>>(), Endian::NATIVE);
        let words = U64s::new(&words, Endian::NATIVE);
        put(e, Body::IdIndex(IdIndex { nr: some.len() as u64, words }));
    }
}

fn time_conv(clock: Clock) -> TimeConv {
    let short = TimeConvShort {
        time_cycles: clock.cycles,
        time_mask: clock.mask,
        cap_user_time_zero: 1,
        cap_user_time_short: u8::from(clock.short),
        reserved: [0; 6],
    };
    TimeConv {
        time_shift: u64::from(clock.shift),
        time_mult: u64::from(clock.mult),
        time_zero: clock.zero,
        short: Some(short),
    }
}

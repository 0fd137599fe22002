//! Events that sample memory accesses, as each maker's CPUs have them (`rec mem`, `rec c2c`).
//!
//! | CPU | event | as |
//! |---|---|---|
//! | Intel, where the core's PMU names them | `mem-loads` with `ldlat`, `mem-stores` | `cpu/mem-loads,ldlat=30/P` |
//! | Intel from Sapphire Rapids on | loads need `mem-loads-aux` as their group's leader | `{cpu/mem-loads-aux/,cpu/mem-loads,ldlat=30/}:P` |
//! | AMD | instruction-based sampling: loads and stores together | `ibs_op//` |
//! | Arm | statistical profiling: loads, stores, or both | `arm_spe_0/…,min_latency=30/` |
//! | others | `mem-loads`, `mem-stores` of the core's PMU | `cpu/mem-loads/` |
//!
//! The names in [`MemoryEvent::name`] are those that `perf mem record -e` takes.

use crate::machine::pmu::Pmu;
use crate::machine::sources::EventSources;

/// Latency in cycles below which loads are not sampled, where the user gives none.
pub(crate) const DEFAULT_LATENCY: u32 = 30;

/// The kinds of accesses that an event samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Accesses {
    Loads,
    Stores,
    /// Loads and stores.
    Both,
}

impl Accesses {
    /// Returns whether samples are of loads, which have latencies.
    pub(crate) fn have_loads(self) -> bool {
        self != Self::Stores
    }
}

/// An event of this machine that samples memory accesses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MemoryEvent {
    /// The name that `-e` selects it by.
    pub name: &'static str,
    pub accesses: Accesses,
    /// The event, as `rec -e` takes it.
    pub spec: String,
    /// `true` if the spec has the latency below which loads are not sampled.
    pub has_latency: bool,
    /// The CPUs of its PMU, unless it is on all.
    pub cpus: Option<Vec<u32>>,
}

/// Returns the events that sample memory accesses, of each PMU that has some; `latency`: of the
/// shortest loads sampled.
pub(crate) fn memory_events(sources: &EventSources, latency: u32) -> Vec<MemoryEvent> {
    sources.pmus().iter().flat_map(|pmu| of(pmu, latency)).collect()
}

fn of(pmu: &Pmu, latency: u32) -> Vec<MemoryEvent> {
    let name = &pmu.name;
    let event = |name, accesses, has_latency, spec: String| MemoryEvent {
        name,
        accesses,
        spec,
        has_latency,
        cpus: pmu.cpus.clone(),
    };
    if name == "ibs_op" {
        return vec![event("mem-ldst", Accesses::Both, false, format!("{name}//"))];
    }
    if name.starts_with("arm_spe_") {
        let spe = |loads: u8, stores: u8| {
            let latency =
                if loads == 1 { format!(",min_latency={latency}") } else { String::new() };
            format!(
                "{name}/ts_enable=1,pa_enable=1,load_filter={loads},store_filter={stores}{latency}/"
            )
        };
        return vec![
            event("spe-load", Accesses::Loads, true, spe(1, 0)),
            event("spe-store", Accesses::Stores, false, spe(0, 1)),
            event("spe-ldst", Accesses::Both, true, spe(1, 1)),
        ];
    }
    if !pmu.core {
        return Vec::new();
    }
    // Those that take a latency are precise: the address is of the instruction that the sample is
    // about.
    let has_latency = pmu.formats().iter().any(|term| term == "ldlat");
    let (latency, precise) =
        if has_latency { (format!(",ldlat={latency}"), "P") } else { (String::new(), "") };
    let loads = match pmu.alias("mem-loads-aux") {
        Some(_) => format!("{{{name}/mem-loads-aux/,{name}/mem-loads{latency}/}}:P"),
        None => format!("{name}/mem-loads{latency}/{precise}"),
    };
    let named = [
        ("mem-loads", event("ldlat-loads", Accesses::Loads, has_latency, loads)),
        (
            "mem-stores",
            event("ldlat-stores", Accesses::Stores, false, format!("{name}/mem-stores/{precise}")),
        ),
    ];
    named
        .into_iter()
        .filter(|(alias, _)| pmu.alias(alias).is_some())
        .map(|(_, event)| event)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit::sysfs::machine;

    fn specs(pmus: &[(&str, &str)]) -> Vec<String> {
        let dir = machine(pmus);
        let sources = EventSources::new(&dir.path().join("sys"), None);
        memory_events(&sources, 50)
            .into_iter()
            .map(|event| format!("{} {}", event.name, event.spec))
            .collect()
    }

    #[test]
    fn a_core_has_what_it_names() {
        let named = [
            ("cpu/type", "4"),
            ("cpu/events/mem-loads", "event=1"),
            ("cpu/events/mem-stores", "event=2"),
        ];
        assert_eq!(specs(&named), ["ldlat-loads cpu/mem-loads/", "ldlat-stores cpu/mem-stores/"]);
        assert_eq!(specs(&named[..2]), ["ldlat-loads cpu/mem-loads/"]);
        let latency = [&named[..2], &[("cpu/format/ldlat", "config1:0-15")]].concat();
        assert_eq!(specs(&latency), ["ldlat-loads cpu/mem-loads,ldlat=50/P"]);
        let aux = [&latency[..], &[("cpu/events/mem-loads-aux", "event=3")]].concat();
        assert_eq!(specs(&aux), ["ldlat-loads {cpu/mem-loads-aux/,cpu/mem-loads,ldlat=50/}:P"]);
    }

    #[test]
    fn other_pmus_are_known_by_name() {
        assert_eq!(
            specs(&[("ibs_op/type", "11"), ("ibs_fetch/type", "12"), ("cpu/type", "4")]),
            ["mem-ldst ibs_op//"]
        );
        let spe = specs(&[("arm_spe_0/type", "11")]);
        assert_eq!(
            spe[1],
            "spe-store arm_spe_0/ts_enable=1,pa_enable=1,load_filter=0,store_filter=1/"
        );
        assert_eq!(spe.len(), 3);
        assert!(
            specs(&[("uncore_imc_0/type", "20"), ("uncore_imc_0/events/mem-loads", "event=1")])
                .is_empty()
        );
    }
}

//! Opening of counters, their rings and AUX areas, before the first file.

use super::coverage::Coverage;
use crate::aux::Areas;
use crate::kernel::Kernel;
use crate::kernel::counters::{self, Counters};
use crate::kernel::ring::Ring;
use crate::machine::Machine;
use crate::messages::Messages;
use crate::messages::error::Result;
use crate::plan::Plan;
use crate::plan::config::Config;
use crate::tasks::Target;

/// Opens the plan's counters. If the limit on locked memory shrinks rings or areas so much that the
/// kernel would wake rec too late, the counters are opened again with another watermark, as the
/// watermark of an open counter cannot change.
pub(super) fn open<K: Kernel>(
    kernel: &K,
    config: &Config,
    mut plan: Plan,
    coverage: &Coverage,
    machine: &Machine,
    messages: &Messages,
) -> Result<(Counters, Vec<Ring>, Areas)> {
    // Whole CPUs are counted here, so errors name the system, not the target.
    let target = if *coverage == Coverage::Filtered { &Target::System } else { &config.target };
    loop {
        let mut threads = || coverage.threads(&config.target);
        let mut counters = counters::open(kernel, &plan, &mut threads, target, machine, messages)?;
        let rings = std::mem::take(&mut counters.rings);
        let areas = Areas::open(kernel, config, &plan, &counters, &rings, messages)?;
        let page = machine.page_size;
        let ring = rings.iter().map(Ring::size).min().unwrap_or(0) / page;
        match plan.refitted(&counters.events, ring, areas.pages(page), page) {
            // Sizes only decrease, so the loop ends.
            Some(smaller) => plan = smaller,
            None => {
                areas.warn(messages);
                return Ok((counters, rings, areas));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{EventSpec, PmuUse};
    use crate::messages::Verbosity;
    use crate::testkit::fake_kernel::FakeKernel;
    use recrep_format::abi::EventType;

    #[test]
    fn what_the_budget_halves_wakes_in_time_all_the_same() {
        let mut config = crate::cli::parse(["rec", "-a", "-m", "16,64"].map(Into::into)).unwrap();
        let mut event = EventSpec::numbered("intel_pt//", EventType(8), 0);
        event.pmu =
            Some(PmuUse { name: "intel_pt".to_owned(), has_aux: true, ..PmuUse::default() });
        config.events = vec![event];
        let machine = Machine { privileged: true, ..Machine::default() };
        let plan = crate::plan::plan(&config, &machine).unwrap();
        for (most, watermark, wakeup) in [
            ((16, 64), 64 << 10, 16 << 10),
            ((8, 32), 64 << 10, 16 << 10),
            ((4, 8), 8 << 10, 4 << 10),
        ] {
            let kernel = FakeKernel::new(|_, _| Vec::new()).with_most_pages(most.0, most.1);
            let messages = Messages::to(Verbosity::Quiet, Box::new(std::io::sink()));
            let (counters, rings, areas) = open(
                &kernel,
                &config,
                plan.clone(),
                &Coverage::Listed(vec![None]),
                &machine,
                &messages,
            )
            .unwrap();
            assert_eq!((rings[0].size() / 4096, areas.pages(4096)), most);
            let attr = &counters.events[0].attr;
            assert_eq!((attr.aux_watermark, attr.wakeup), (watermark, wakeup), "{most:?}");
        }
    }
}

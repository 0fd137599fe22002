//! Capabilities of PMUs, and the groups that events form.

use super::HeaderString;
use crate::wire::{List, wire};

wire! {
    /// One thing that a PMU can do.
    pub struct PmuCap<'a> {
        /// Name (`max_precise`, `branches`, …).
        pub name: HeaderString<'a>,
        /// Value.
        pub value: HeaderString<'a>,
    }

    /// A group of events.
    pub struct GroupDescEntry<'a> {
        /// Its name; `{anon_group}` where it has none.
        pub name: HeaderString<'a>,
        /// The place of its leader among the attrs.
        pub leader: u32 => "leader_idx",
        /// Number of events, the leader included.
        pub members: u32 => "nr_members",
    }
}

wire! {
    /// Capabilities of the CPU's PMU (`CPU_PMU_CAPS`).
    pub owned struct CpuPmuCaps<'a> {
        /// The things.
        pub caps: List<PmuCap<'a>>,
    }

    /// Capabilities of one PMU.
    pub owned struct PmuCapsEntry<'a> {
        /// The things.
        pub caps: List<PmuCap<'a>>,
        /// The PMU.
        pub pmu: HeaderString<'a> => "pmu_name",
    }

    /// Capabilities of all PMUs (`PMU_CAPS`).
    pub owned struct PmuCaps<'a> {
        /// The PMUs.
        pub pmus: List<PmuCapsEntry<'a>>,
    }

    /// The groups of events (`GROUP_DESC`).
    pub owned struct GroupDesc<'a> {
        /// The groups.
        pub groups: List<GroupDescEntry<'a>>,
    }
}

//! What PMUs can do, and which events form groups.

use super::HeaderString;
use crate::wire;
use crate::wire::List;

wire! {
    /// One thing that a PMU can do.
    pub struct PmuCap<'a> {
        /// What (`max_precise`, `branches`, …).
        pub name: HeaderString<'a>,
        /// How much.
        pub value: HeaderString<'a>,
    }

    /// A group of events.
    pub struct GroupDescEntry<'a> {
        /// Its name; `{anon_group}` where it has none.
        pub name: HeaderString<'a>,
        /// The place of its leader among the attrs.
        pub leader: u32,
        /// How many events it has, with its leader.
        pub members: u32,
    }
}

wire! {
    /// What the CPU's PMU can do (`CPU_PMU_CAPS`).
    pub owned struct CpuPmuCaps<'a> {
        /// The things.
        pub caps: List<PmuCap<'a>>,
    }

    /// What one PMU can do.
    pub owned struct PmuCapsEntry<'a> {
        /// The things.
        pub caps: List<PmuCap<'a>>,
        /// The PMU.
        pub pmu: HeaderString<'a>,
    }

    /// What the PMUs can do (`PMU_CAPS`).
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

//! Records of `perf sched stats record`: what `/proc/schedstat` showed, SCHEDSTAT_CPU and
//! SCHEDSTAT_DOMAIN.

use crate::endian::Endian;
use crate::wire;

wire! {
    /// Counts of a CPU's scheduler (`PERF_RECORD_SCHEDSTAT_CPU`).
    pub struct SchedstatCpu {
        /// Time of the reading, in jiffies.
        pub timestamp: u64,
        /// The CPU.
        pub cpu: u32,
        /// Version of `/proc/schedstat`: 15, 16 or 17.
        pub version: u16,
        /// Padding.
        pub reserved: [u8; 2] => hidden,
        /// Calls of `sched_yield`.
        pub yld_count: u32,
        /// Not used by kernels since 2.6.23.
        pub array_exp: u32,
        /// Calls of the scheduler.
        pub sched_count: u32,
        /// Calls of it that left the CPU idle.
        pub sched_goidle: u32,
        /// Wake-ups of tasks.
        pub ttwu_count: u32,
        /// Wake-ups on this CPU.
        pub ttwu_local: u32,
        /// Time that tasks ran, in nanoseconds.
        pub rq_cpu_time: u64,
        /// Time that tasks waited to run, in nanoseconds.
        pub run_delay: u64,
        /// Number of time slices.
        pub pcount: u64,
    }

    /// Counts of a scheduling domain (`PERF_RECORD_SCHEDSTAT_DOMAIN`).
    pub struct SchedstatDomain<'a> {
        /// Time of the reading, in jiffies.
        pub timestamp: u64,
        /// The CPU.
        pub cpu: u32,
        /// Version of `/proc/schedstat`: 15, 16 or 17.
        pub version: u16,
        /// Number of the domain among those of the CPU.
        pub domain: u16,
        /// Counts of 32 bits ([`SchedstatDomain::counts`]), and room for those of other versions.
        pub counts: &'a [u8] => hidden,
    }
}

/// Counts of balancing from CPUs of a kind, up to version 16.
const BALANCING: [&str; 8] = [
    "lb_count",
    "lb_balanced",
    "lb_failed",
    "lb_imbalance",
    "lb_gained",
    "lb_hot_gained",
    "lb_nobusyq",
    "lb_nobusyg",
];

/// Counts of balancing from version 17 on, which tells imbalances apart.
const BALANCING_BY_CAUSE: [&str; 11] = [
    "lb_count",
    "lb_balanced",
    "lb_failed",
    "lb_imbalance_load",
    "lb_imbalance_util",
    "lb_imbalance_task",
    "lb_imbalance_misfit",
    "lb_gained",
    "lb_hot_gained",
    "lb_nobusyq",
    "lb_nobusyg",
];

/// Counts behind those of balancing.
const OTHERS: [&str; 12] = [
    "alb_count",
    "alb_failed",
    "alb_pushed",
    "sbe_count",
    "sbe_balanced",
    "sbe_pushed",
    "sbf_count",
    "sbf_balanced",
    "sbf_pushed",
    "ttwu_wake_remote",
    "ttwu_move_affine",
    "ttwu_move_balance",
];

impl SchedstatDomain<'_> {
    /// Returns kind, name and value of each count; the kind is that of the CPUs, where there is one.
    /// Nothing of versions that are not known.
    pub fn counts(&self, endian: Endian) -> Vec<(&'static str, &'static str, u32)> {
        let (kinds, balancing): ([&str; 3], &[&str]) = match self.version {
            15 => (["idle", "busy", "newidle"], &BALANCING),
            16 => (["busy", "idle", "newidle"], &BALANCING),
            17 => (["busy", "idle", "newidle"], &BALANCING_BY_CAUSE),
            _ => return Vec::new(),
        };
        let of_kinds =
            kinds.iter().flat_map(|kind| balancing.iter().map(move |name| (*kind, *name)));
        let names = of_kinds.chain(OTHERS.iter().map(|name| ("", *name)));
        let words = self.counts.as_chunks::<4>().0.iter().map(|word| endian.u32(*word));
        names.zip(words).map(|((kind, name), value)| (kind, name, value)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_names_the_counts() {
        let bytes: Vec<u8> = (1..=48_u32).flat_map(u32::to_be_bytes).collect();
        let domain =
            |version| SchedstatDomain { timestamp: 1, cpu: 0, version, domain: 0, counts: &bytes };
        let at = |version, place: usize| domain(version).counts(Endian::Big)[place];
        assert_eq!(at(15, 0), ("idle", "lb_count", 1));
        assert_eq!(at(16, 11), ("idle", "lb_imbalance", 12));
        assert_eq!(at(17, 5), ("busy", "lb_imbalance_task", 6));
        assert_eq!(at(17, 44), ("", "ttwu_move_balance", 45));
        let lengths = [15, 16, 17, 18].map(|version| domain(version).counts(Endian::Big).len());
        assert_eq!(lengths, [36, 36, 45, 0]);
        let cut = SchedstatDomain { counts: &bytes[..7], ..domain(17) };
        assert_eq!(cut.counts(Endian::Big).len(), 1);
    }
}

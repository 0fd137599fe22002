//! Where the data of an access came from: by the CPU's own numbers, else by the record's events.

use recrep_format::abi::mem::{
    self, LVL_HIT as HIT, LVL_IO, LVL_L1, LVL_L2, LVL_L3, LVL_LOCAL_RAM, LVL_MISS as MISS, LVL_NA,
};
use recrep_trace::spe::{Record, events, operations};

/// Implementers of CPUs (`MIDR`, bits 31:24).
const ARM: u64 = 0x41;
const HISILICON: u64 = 0x48;
const AMPERE: u64 = 0xc0;

/// A level of memory, as fields of `union perf_mem_data_src`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct MemoryLevel {
    lvl: u32,
    lvl_num: u32,
    snoop: u32,
    snoopx: u32,
    remote: u32,
}

// Values of the fields that [`mem`] does not tell apart.
const LVL_REM_RAM1: u32 = 0x100;
const LVL_REM_CCE1: u32 = 0x400;
const LVL_REM_CCE2: u32 = 0x800;
const NUM_L1: u32 = 1;
const NUM_L2: u32 = 2;
const NUM_L3: u32 = 3;
const NUM_IO: u32 = 0xa;
const NUM_ANY_CACHE: u32 = 0xb;
const NUM_RAM: u32 = 0xd;
const NUM_NA: u32 = 0xf;
const SNOOP_NA: u32 = 0x1;
const SNOOP_NONE: u32 = 0x2;
const TLB_HIT: u32 = 0x2;
const TLB_MISS: u32 = 0x4;
const TLB_WALKER: u32 = 0x20;

const fn level(lvl: u32, lvl_num: u32, snoop: u32) -> MemoryLevel {
    MemoryLevel { lvl, lvl_num, snoop, snoopx: 0, remote: 0 }
}

const fn peer(level: MemoryLevel) -> MemoryLevel {
    MemoryLevel { snoopx: mem::SNOOPX_PEER, ..level }
}

const fn remote(level: MemoryLevel) -> MemoryLevel {
    MemoryLevel { remote: 1, ..level }
}

const L1: MemoryLevel = level(LVL_L1 | HIT, NUM_L1, SNOOP_NONE);
const L2: MemoryLevel = level(LVL_L2 | HIT, NUM_L2, SNOOP_NONE);
const PEER_CORE: MemoryLevel = peer(level(LVL_L2 | HIT, NUM_L2, 0));
const PEER_CLUSTER: MemoryLevel = peer(level(LVL_L3 | HIT, NUM_L3, 0));
const SYSTEM_CACHE: MemoryLevel = level(LVL_L3 | HIT, NUM_L3, mem::SNOOP_HIT);
const REMOTE: MemoryLevel = remote(peer(level(LVL_NA, NUM_NA, 0)));
const DRAM: MemoryLevel = level(LVL_LOCAL_RAM | HIT, NUM_RAM, SNOOP_NONE);

/// Number of a source, and its level.
type SourceCode = (u16, MemoryLevel);

/// Sources of Arm's Neoverse cores, and of the Cortex cores that have them.
const NEOVERSE: &[SourceCode] = &[
    (0x0, L1),
    (0x8, L2),
    (0x9, PEER_CORE),
    (0xa, PEER_CLUSTER),
    (0xb, SYSTEM_CACHE),
    (0xc, PEER_CLUSTER),
    (0xd, REMOTE),
    (0xe, DRAM),
];

/// Sources of AmpereOne.
const AMPERE_ONE: &[SourceCode] =
    &[(0x0, PEER_CORE), (0x3, SYSTEM_CACHE), (0x5, REMOTE), (0x7, DRAM), (0x8, L1), (0x9, L2)];

/// Sources of HiSilicon's HIP12.
const HIP: &[SourceCode] = &[
    (0, PEER_CORE),
    (1, peer(level(LVL_L2 | HIT, NUM_L2, mem::SNOOP_HITM))),
    (2, SYSTEM_CACHE),
    (3, level(LVL_L3 | HIT, NUM_L3, mem::SNOOP_HITM)),
    (4, peer(level(LVL_REM_CCE1 | HIT, NUM_L3, 0))),
    (5, peer(level(LVL_REM_CCE1 | HIT, NUM_L3, mem::SNOOP_HITM))),
    (6, remote(peer(level(LVL_REM_CCE2, NUM_ANY_CACHE, 0)))),
    (7, remote(peer(level(LVL_REM_CCE2, NUM_ANY_CACHE, mem::SNOOP_HITM)))),
    (8, DRAM),
    (9, remote(level(LVL_REM_RAM1 | HIT, NUM_RAM, 0))),
    (13, level(LVL_IO | HIT, NUM_IO, SNOOP_NONE)),
    (16, L2),
    (17, level(LVL_L2 | HIT, NUM_L2, mem::SNOOP_HITM)),
    (18, L1),
];

/// CPUs that number sources alike.
struct CpuKind {
    implementer: u64,
    parts: &'static [u64],
    sources: &'static [SourceCode],
}

/// All CPUs whose numbers are known.
const CPUS: [CpuKind; 3] = [
    // Neoverse N1, N2, V1, V2; Cortex A720, A725, X1C, X3, X925.
    CpuKind {
        implementer: ARM,
        parts: &[0xd0c, 0xd49, 0xd40, 0xd4f, 0xd81, 0xd87, 0xd4c, 0xd4e, 0xd85],
        sources: NEOVERSE,
    },
    CpuKind { implementer: AMPERE, parts: &[0xac4], sources: AMPERE_ONE },
    CpuKind { implementer: HISILICON, parts: &[0xd06], sources: HIP },
];

/// The numbers that a CPU has for sources of data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sources(Option<&'static [SourceCode]>);

impl Sources {
    /// Returns the numbers of the CPU with this identification (`MIDR_EL1`).
    pub(super) fn of_cpu(midr: u64) -> Self {
        let (implementer, part) = (midr >> 24 & 0xff, midr >> 4 & 0xfff);
        let mut cpus = CPUS.iter();
        let found = cpus.find(|kind| kind.implementer == implementer && kind.parts.contains(&part));
        Self(found.map(|kind| kind.sources))
    }

    /// Returns the source of a record's data as `union perf_mem_data_src`; 0 if it is no access.
    pub(super) fn data_src(self, record: &Record) -> u64 {
        let is_load = record.operations & operations::LOAD != 0;
        if record.operations & operations::MEMORY == 0 {
            return 0;
        }
        let op = if is_load { mem::OP_LOAD } else { mem::OP_STORE };
        let level = match self.0 {
            // These CPUs tell no source of stores.
            Some(_) if record.operations & operations::STORE != 0 => {
                level(LVL_NA, NUM_NA, SNOOP_NA)
            }
            Some(sources) => {
                let found = sources.iter().find(|(number, _)| *number == record.source);
                found.map(|(_, level)| *level).unwrap_or_default()
            }
            None => level_of_events(record.events),
        };
        let tlb = match record.events & (events::TLB_ACCESS | events::TLB_WALK) {
            0 => 0,
            seen if seen & events::TLB_WALK != 0 => TLB_WALKER | TLB_MISS,
            _ => TLB_WALKER | TLB_HIT,
        };
        u64::from(op)
            | u64::from(level.lvl) << 5
            | u64::from(level.snoop) << 19
            | u64::from(tlb) << 26
            | u64::from(level.lvl_num) << 33
            | u64::from(level.remote) << 37
            | u64::from(level.snoopx) << 38
    }
}

/// Returns the level that a record's events show.
fn level_of_events(seen: u64) -> MemoryLevel {
    let outcome = |miss: u64| if seen & miss != 0 { MISS } else { HIT };
    let lvl = if seen & (events::LLC_ACCESS | events::LLC_MISS) != 0 {
        LVL_L3 | outcome(events::LLC_MISS)
    } else if seen & (events::L1D_ACCESS | events::L1D_REFILL) != 0 {
        LVL_L1 | outcome(events::L1D_REFILL)
    } else {
        0
    };
    MemoryLevel {
        lvl,
        remote: u32::from(seen & events::REMOTE_ACCESS != 0),
        ..MemoryLevel::default()
    }
}

#[cfg(test)]
mod tests {
    use recrep_format::abi::DataSrc;

    use super::*;

    const N1: u64 = 0x413f_d0c1;

    fn record(operation: u8, source: u16, events: u64) -> Record {
        let operations = operations::MEMORY | operation;
        Record { operations, source, events, ..Record::default() }
    }

    #[test]
    fn sources_are_those_of_the_cpu() {
        let told = |midr: u64, source: u16| {
            let record = record(operations::LOAD, source, 0);
            let src = DataSrc(Sources::of_cpu(midr).data_src(&record));
            (src.mem(), src.snoop_name())
        };
        let pair = |level: &str, snoop: &str| (level.to_owned(), snoop.to_owned());
        assert_eq!(told(N1, 0), pair("L1 hit", "None"));
        assert_eq!(told(N1, 9), pair("L2 hit", "Peer"));
        assert_eq!(told(N1, 0xe), pair("RAM hit", "None"));
        assert_eq!(told(0xc00f_ac41, 8), pair("L1 hit", "None"));
        assert_eq!(told(0x480f_d060, 3), pair("L3 hit", "HitM"));
    }

    #[test]
    fn other_cpus_have_events_alone() {
        let generic = Sources::of_cpu(0x410f_d030);
        let src = |events: u64| generic.data_src(&record(operations::LOAD, 9, events));
        assert_eq!(src(events::L1D_ACCESS), 2 | u64::from(LVL_L1 | HIT) << 5);
        assert_eq!(src(events::LLC_MISS | events::L1D_ACCESS), 2 | u64::from(LVL_L3 | MISS) << 5);
        assert_eq!(src(events::REMOTE_ACCESS), 2 | 1 << 37);
        assert_eq!(src(events::TLB_WALK | events::TLB_ACCESS), 2 | u64::from(0x24_u32) << 26);
    }

    #[test]
    fn stores_have_no_source_and_other_operations_no_data() {
        let store = record(operations::STORE, 0, 0);
        let na = 4 | u64::from(LVL_NA) << 5 | u64::from(SNOOP_NA) << 19 | u64::from(NUM_NA) << 33;
        assert_eq!(Sources::of_cpu(N1).data_src(&store), na);
        let branch = Record { operations: operations::BRANCH, ..Record::default() };
        assert_eq!(Sources::of_cpu(N1).data_src(&branch), 0);
    }
}

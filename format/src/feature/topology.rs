//! The machine: CPUs, memory nodes, kinds of cores, memory blocks, caches.

use super::HeaderString;
use crate::bytes::{Cursor, Encoder, U64s};
use crate::error::{Error, Result};
use crate::fields::{Value, named, shown};
use crate::wire::{List, Wire, items, wire};

/// The rest of CPU_TOPOLOGY behind its lists. Its shape depends on the number of CPUs in NRCPUS.
#[derive(Clone, Copy, Debug)]
pub struct CpuTopologyTail<'a>(Cursor<'a>);

impl PartialEq for CpuTopologyTail<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes()
    }
}

impl Eq for CpuTopologyTail<'_> {}

impl<'a> CpuTopologyTail<'a> {
    fn bytes(&self) -> &'a [u8] {
        let mut c = self.0;
        c.rest()
    }

    /// Returns core and socket of each of `available` CPUs.
    ///
    /// # Errors
    /// Returns an error if there are fewer.
    pub fn cpus(&self, available: u32) -> Result<Vec<(u32, u32)>> {
        const WHAT: &str = "CPU_TOPOLOGY";
        let mut c = self.0;
        (0..available).map(|_| Ok((c.u32(WHAT)?, c.u32(WHAT)?))).collect()
    }

    /// Returns the lists of CPUs that share a die; none in old files.
    ///
    /// # Errors
    /// Returns an error if the section is too short for what it says.
    pub fn dies(&self, available: u32) -> Result<Vec<HeaderString<'a>>> {
        let mut c = self.0;
        let ids = (available as usize).saturating_mul(8);
        c.take(ids, "CPU_TOPOLOGY")?;
        if c.is_empty() {
            Ok(Vec::new())
        } else {
            List::decode(&mut c, "CPU_TOPOLOGY").map(|list| list.0)
        }
    }
}

impl CpuTopologyTail<'_> {
    /// Returns the die of each of `available` CPUs; none in old files.
    ///
    /// # Errors
    /// Returns an error if the section is too short for what it says.
    pub fn die_ids(&self, available: u32) -> Result<Vec<u32>> {
        const WHAT: &str = "CPU_TOPOLOGY";
        let mut c = self.0;
        c.take((available as usize).saturating_mul(8), WHAT)?;
        if c.is_empty() {
            return Ok(Vec::new());
        }
        List::<HeaderString<'_>>::decode(&mut c, WHAT)?;
        (0..available).map(|_| c.u32(WHAT)).collect()
    }
}

shown! {
    CpuTopologyTail<'_>: |tail| Value::Bytes(tail.bytes());
}

impl<'a> Wire<'a> for CpuTopologyTail<'a> {
    fn decode(c: &mut Cursor<'a>, _: &'static str) -> Result<Self> {
        let tail = Self(*c);
        c.rest();
        Ok(tail)
    }
    fn encode(&self, e: &mut Encoder) -> Result<()> {
        e.bytes(self.bytes());
        Ok(())
    }
}

wire! {
    /// A memory node.
    pub struct NumaNode<'a> {
        /// Its number.
        pub node: u32,
        /// Its memory in KiB.
        pub mem_total: u64 => "mem_total_kib",
        /// Free memory.
        pub mem_free: u64 => "mem_free_kib",
        /// Its CPUs, as a list (`0-3`).
        pub cpus: HeaderString<'a>,
    }

    /// The cores of one kind.
    pub struct HybridCores<'a> {
        /// Their PMU.
        pub pmu: HeaderString<'a> => "pmu_name",
        /// Their CPUs, as a list.
        pub cpus: HeaderString<'a>,
    }

    /// A cache.
    pub struct CacheLevel<'a> {
        /// 1, 2, 3.
        pub level: u32,
        /// The length of a line in bytes.
        pub line_size: u32,
        /// Number of sets.
        pub sets: u32,
        /// Number of ways.
        pub ways: u32,
        /// `Data`, `Instruction`, `Unified`.
        pub kind: HeaderString<'a> => "type",
        /// Its size (`32K`).
        pub size: HeaderString<'a>,
        /// The CPUs that share it, as a list.
        pub map: HeaderString<'a>,
    }
}

named! {
    /// A node of MEM_TOPOLOGY and its memory blocks.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct MemNode<'a> {
        /// Its number.
        pub node: u64,
        /// Number of bits of its set.
        pub size: u64,
        /// The number of bits once more, as the set says it.
        pub bits: u64 => hidden,
        /// The set: a bit for each block.
        pub set: U64s<'a> => "blocks",
    }
}

impl<'a> Wire<'a> for MemNode<'a> {
    fn decode(c: &mut Cursor<'a>, what: &'static str) -> Result<Self> {
        let (node, size, bits) = (c.u64(what)?, c.u64(what)?, c.u64(what)?);
        Ok(Self { node, size, bits, set: c.take_u64s(bits.div_ceil(64), what)? })
    }
    fn encode(&self, e: &mut Encoder) -> Result<()> {
        e.u64(self.node);
        e.u64(self.size);
        e.u64(self.bits);
        if self.bits.div_ceil(64) != self.set.len() as u64 {
            let detail = format!("{} bits in {} words", self.bits, self.set.len());
            return Err(Error::invalid(e.len() as u64, "a set of memory blocks", detail));
        }
        e.u64s(&self.set);
        Ok(())
    }
}

named! {
    /// Memory blocks and the nodes they belong to (`MEM_TOPOLOGY`).
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct MemTopology<'a> {
        /// 1.
        pub version: u64,
        /// The length of a block in bytes.
        pub block_size: u64 => "block_size_bytes" hex,
        /// The nodes.
        pub nodes: Vec<MemNode<'a>>,
    }
}

impl<'a> Wire<'a> for MemTopology<'a> {
    fn decode(c: &mut Cursor<'a>, what: &'static str) -> Result<Self> {
        let (version, block_size, count) = (c.u64(what)?, c.u64(what)?, c.u64(what)?);
        Ok(Self { version, block_size, nodes: items(c, count, what)? })
    }
    fn encode(&self, e: &mut Encoder) -> Result<()> {
        e.u64(self.version);
        e.u64(self.block_size);
        e.u64(self.nodes.len() as u64);
        self.nodes.iter().try_for_each(|node| node.encode(e))
    }
}

wire! {
    /// Cores, threads, dies (`CPU_TOPOLOGY`).
    pub owned struct CpuTopology<'a> {
        /// The lists of CPUs that share a socket.
        pub sockets: List<HeaderString<'a>>,
        /// The lists of CPUs that share a core.
        pub cores: List<HeaderString<'a>>,
        /// Core, socket and die of each CPU.
        pub tail: CpuTopologyTail<'a>,
    }

    /// Memory nodes (`NUMA_TOPOLOGY`).
    pub owned struct NumaTopology<'a> {
        /// The nodes.
        pub nodes: List<NumaNode<'a>>,
    }

    /// The kinds of cores (`HYBRID_TOPOLOGY`).
    pub owned struct HybridTopology<'a> {
        /// The kinds.
        pub kinds: List<HybridCores<'a>>,
    }

    /// The caches (`CACHE`).
    pub owned struct Caches<'a> {
        /// 1.
        pub version: u32,
        /// The caches.
        pub levels: List<CacheLevel<'a>> => "caches",
    }
}

named! {
    /// A scheduling domain of a CPU.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct SchedDomain<'a> {
        /// Its number among those of the CPU.
        pub domain: u32,
        /// Its name (`MC`, `PKG`); `/proc/schedstat` has none before version 17.
        pub name: Option<HeaderString<'a>>,
        /// Its CPUs, as a mask.
        pub cpumask: HeaderString<'a>,
        /// Its CPUs, as a list.
        pub cpulist: HeaderString<'a>,
    }

    /// The scheduling domains of a CPU.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct CpuDomains<'a> {
        /// The CPU.
        pub cpu: u32,
        /// Its domains.
        pub domains: Vec<SchedDomain<'a>>,
    }

    /// The scheduling domains (`CPU_DOMAIN_INFO`).
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct CpuDomainInfo<'a> {
        /// Version of `/proc/schedstat`.
        pub version: u32 => "schedstat_version",
        /// Most domains that a CPU has.
        pub max_domains: u32 => "max_sched_domains",
        /// The CPUs that have domains.
        pub cpus: Vec<CpuDomains<'a>>,
    }
}

/// Version of `/proc/schedstat` from which on domains have names.
const NAMED_DOMAINS: u32 = 17;

impl<'a> Wire<'a> for CpuDomainInfo<'a> {
    fn decode(c: &mut Cursor<'a>, what: &'static str) -> Result<Self> {
        let (version, max_domains, mut cpus) = (c.u32(what)?, c.u32(what)?, Vec::new());
        // Nothing says how many there are.
        while !c.is_empty() {
            let (cpu, count, mut domains) = (c.u32(what)?, c.u32(what)?, Vec::new());
            for _ in 0..count {
                let domain = c.u32(what)?;
                let is_named = version >= NAMED_DOMAINS;
                let name = is_named.then(|| Wire::decode(c, what)).transpose()?;
                let (cpumask, cpulist) = (Wire::decode(c, what)?, Wire::decode(c, what)?);
                domains.push(SchedDomain { domain, name, cpumask, cpulist });
            }
            cpus.push(CpuDomains { cpu, domains });
        }
        Ok(Self { version, max_domains, cpus })
    }

    fn encode(&self, e: &mut Encoder) -> Result<()> {
        e.u32(self.version);
        e.u32(self.max_domains);
        for CpuDomains { cpu, domains } in &self.cpus {
            e.u32(*cpu);
            e.u32(u32::try_from(domains.len()).unwrap_or(u32::MAX));
            for SchedDomain { domain, name, cpumask, cpulist } in domains {
                e.u32(*domain);
                if name.is_some() != (self.version >= NAMED_DOMAINS) {
                    let detail = format!("version {} and a name: {}", self.version, name.is_some());
                    return Err(Error::invalid(e.len() as u64, "CPU_DOMAIN_INFO", detail));
                }
                for text in [name.as_ref(), Some(cpumask), Some(cpulist)].into_iter().flatten() {
                    text.encode(e)?;
                }
            }
        }
        Ok(())
    }
}

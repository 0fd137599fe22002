//! Topology of the machine for the file's header: packages, cores, dies, nodes, caches, memory
//! blocks, and capabilities of PMUs; read from sysfs, in the layout of perf record.
//!
//! Features that sysfs lacks are omitted: their readers return `None`, and the header marks them as
//! missing.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use recrep_counts::CpuTopology;
use recrep_format::bytes::{Cursor, Encoder, U64s};
use recrep_format::endian::Endian;
use recrep_format::feature::{
    CacheLevel, Caches, CpuPmuCaps, CpuTopology as CpuTopologyFeature, CpuTopologyTail,
    HeaderString, HybridCores, HybridTopology, MemNode, MemTopology, NumaNode, NumaTopology,
    PmuCap, PmuCaps, PmuCapsEntry,
};
use recrep_format::wire::{List, Wire as _};
use recrep_format::write::FeatureWriter;

use crate::tasks;

/// Maximum number of caches of a CPU (`MAX_CACHE_LVL` in perf).
const CACHES: u32 = 4;
/// Value that readers take as unknown: -1.
const UNKNOWN: u32 = u32::MAX;

/// Files with the CPUs of a package and of a core: today's names, and those before.
const PACKAGES: [&str; 2] = ["package_cpus_list", "core_siblings_list"];
const CORES: [&str; 2] = ["core_cpus_list", "thread_siblings_list"];

/// Adds all topology features. `online` are the CPUs; `available` is the number of CPUs in NRCPUS.
pub(crate) fn add(features: &mut FeatureWriter, sysfs: &Path, online: &[u32], available: u32) {
    let sysfs = Sysfs(sysfs);
    sysfs.hybrid(features);
    sysfs.caches(features, online);
    sysfs.pmus(features);
    // Missing features are marked as such in the header.
    let _ = sysfs.cpus(features, online, available);
    let _ = sysfs.nodes(features);
    let _ = sysfs.memory(features);
}

/// Returns the location of each CPU; zeroes where sysfs has none.
pub(crate) fn locations(sysfs: &Path, cpus: &[u32]) -> BTreeMap<u32, CpuTopology> {
    let sysfs = Sysfs(sysfs);
    let mut all: BTreeMap<u32, CpuTopology> = cpus
        .iter()
        .map(|cpu| {
            let [socket, die, core] = ["physical_package_id", "die_id", "core_id"]
                .map(|name| sysfs.topology_id(*cpu, name))
                .map(|id| if id == UNKNOWN { 0 } else { id });
            (*cpu, CpuTopology { socket, die, core, node: 0 })
        })
        .collect();
    for node in sysfs.numbered("devices/system/node", "node") {
        let list = sysfs.text(&format!("devices/system/node/node{node}/cpulist"));
        for cpu in list.and_then(|list| tasks::parse_cpus(&list).ok()).unwrap_or_default() {
            if let Some(location) = all.get_mut(&cpu) {
                location.node = node;
            }
        }
    }
    all
}

/// Lists of the CPUs that are in one package, die or core.
pub(crate) struct Siblings {
    pub packages: Vec<String>,
    pub dies: Vec<String>,
    pub cores: Vec<String>,
}

/// Returns the packages, dies and cores of these CPUs.
pub(crate) fn siblings(sysfs: &Path, cpus: &[u32]) -> Siblings {
    let sysfs = Sysfs(sysfs);
    Siblings {
        packages: sysfs.sibling_lists(cpus, &PACKAGES),
        dies: sysfs.sibling_lists(cpus, &["die_cpus_list"]),
        cores: sysfs.sibling_lists(cpus, &CORES),
    }
}

struct Sysfs<'a>(&'a Path);

impl Sysfs<'_> {
    /// Reads a file, without the newline at its end.
    fn text(&self, path: &str) -> Option<String> {
        Some(fs::read_to_string(self.0.join(path)).ok()?.trim().to_owned())
    }

    fn number(&self, path: &str) -> Option<u32> {
        self.text(path)?.parse().ok()
    }

    /// Returns the entries of a directory, sorted by name.
    fn entries(&self, path: impl AsRef<Path>) -> Vec<String> {
        let entries = fs::read_dir(self.0.join(path)).into_iter().flatten().flatten();
        let mut names: Vec<_> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort_unstable();
        names
    }

    fn numbered(&self, path: &str, name: &str) -> Vec<u32> {
        let names = self.entries(path);
        let mut all: Vec<_> =
            names.iter().filter_map(|n| n.strip_prefix(name)?.parse().ok()).collect();
        all.sort_unstable();
        all
    }

    /// Adds CPU_TOPOLOGY.
    fn cpus(&self, features: &mut FeatureWriter, online: &[u32], available: u32) -> Option<()> {
        let sockets = self.sibling_lists(online, &PACKAGES);
        let cores = self.sibling_lists(online, &CORES);
        let dies = self.sibling_lists(online, &["die_cpus_list"]);
        if sockets.is_empty() || cores.is_empty() {
            return None;
        }
        let mut tail = Encoder::new(Endian::NATIVE);
        for cpu in 0..available {
            tail.u32(self.topology_id(cpu, "core_id"));
            tail.u32(self.topology_id(cpu, "physical_package_id"));
        }
        if !dies.is_empty() {
            strings(&dies).encode(&mut tail).ok()?;
            for cpu in 0..available {
                tail.u32(self.topology_id(cpu, "die_id"));
            }
        }
        let mut cursor = Cursor::new(tail.as_bytes(), 0, Endian::NATIVE);
        let tail = CpuTopologyTail::decode(&mut cursor, "CPU_TOPOLOGY").ok()?;
        features.add(&CpuTopologyFeature {
            sockets: strings(&sockets),
            cores: strings(&cores),
            tail,
        });
        Some(())
    }

    fn topology_id(&self, cpu: u32, name: &str) -> u32 {
        self.number(&format!("devices/system/cpu/cpu{cpu}/topology/{name}")).unwrap_or(UNKNOWN)
    }

    /// Returns each CPU's list under the first of these names that it has; each list once, in the
    /// order of CPUs.
    fn sibling_lists(&self, online: &[u32], names: &[&str]) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        for cpu in online {
            let directory = format!("devices/system/cpu/cpu{cpu}/topology");
            let list = names.iter().find_map(|name| self.text(&format!("{directory}/{name}")));
            if let Some(list) = list.filter(|list| !all.contains(list)) {
                all.push(list);
            }
        }
        all
    }

    /// Adds NUMA_TOPOLOGY.
    fn nodes(&self, features: &mut FeatureWriter) -> Option<()> {
        let online = tasks::parse_cpus(&self.text("devices/system/node/online")?).ok()?;
        let mut all: Vec<(u32, u64, u64, String)> = Vec::new();
        for node in online {
            let meminfo = self.text(&format!("devices/system/node/node{node}/meminfo"))?;
            let cpus = self.text(&format!("devices/system/node/node{node}/cpulist"))?;
            let total = meminfo_field(&meminfo, "MemTotal:")?;
            all.push((node, total, meminfo_field(&meminfo, "MemFree:")?, cpus));
        }
        let nodes = all.iter().map(|(node, mem_total, mem_free, cpus)| NumaNode {
            node: *node,
            mem_total: *mem_total,
            mem_free: *mem_free,
            cpus: HeaderString::new(cpus),
        });
        features.add(&NumaTopology { nodes: List(nodes.collect()) });
        Some(())
    }

    /// Adds HYBRID_TOPOLOGY, if there is more than one kind of cores.
    fn hybrid(&self, features: &mut FeatureWriter) {
        let cpus = |pmu: String| {
            let cpus = self
                .text(&format!("bus/event_source/devices/{pmu}/cpus"))
                .filter(|cpus| !cpus.is_empty())?;
            Some((pmu, cpus))
        };
        let kinds: Vec<_> =
            self.entries("bus/event_source/devices").into_iter().filter_map(cpus).collect();
        let cores = kinds.iter().map(|(pmu, cpus)| HybridCores {
            pmu: HeaderString::new(pmu),
            cpus: HeaderString::new(cpus),
        });
        if kinds.len() > 1 {
            features.add(&HybridTopology { kinds: List(cores.collect()) });
        }
    }

    /// Adds CACHE.
    fn caches(&self, features: &mut FeatureWriter, online: &[u32]) {
        let cache = |cpu: u32, index: u32| {
            let dir = format!("devices/system/cpu/cpu{cpu}/cache/index{index}");
            let [level, line_size, sets, ways] =
                ["level", "coherency_line_size", "number_of_sets", "ways_of_associativity"]
                    .map(|name| self.number(&format!("{dir}/{name}")));
            let [kind, size, map] =
                ["type", "size", "shared_cpu_list"].map(|name| self.text(&format!("{dir}/{name}")));
            Some(([level?, line_size?, sets?, ways?], [kind?, size?, map?]))
        };
        let mut all = Vec::new();
        for cpu in online {
            // The caches of a CPU are numbered without gaps.
            for found in (0..CACHES).map_while(|index| cache(*cpu, index)) {
                if !all.contains(&found) {
                    all.push(found);
                }
            }
        }
        all.sort_by_key(|([level, ..], _)| *level);
        let levels =
            all.iter().map(|([level, line_size, sets, ways], [kind, size, map])| CacheLevel {
                level: *level,
                line_size: *line_size,
                sets: *sets,
                ways: *ways,
                kind: HeaderString::new(kind),
                size: HeaderString::new(size),
                map: HeaderString::new(map),
            });
        if !all.is_empty() {
            features.add(&Caches { version: 1, levels: List(levels.collect()) });
        }
    }

    /// Adds MEM_TOPOLOGY.
    fn memory(&self, features: &mut FeatureWriter) -> Option<()> {
        let block_size = self.text("devices/system/memory/block_size_bytes")?;
        let block_size = u64::from_str_radix(block_size.trim_start_matches("0x"), 16).ok()?;
        let set = |node: u32| {
            let blocks = self.numbered(&format!("devices/system/node/node{node}"), "memory");
            let bits = blocks.last().map_or(1, |last| u64::from(*last) + 1);
            let mut words = vec![0u64; usize::try_from(bits.div_ceil(64)).ok()?];
            for block in blocks {
                *words.get_mut(block as usize / 64)? |= 1 << (block % 64);
            }
            let mut e = Encoder::new(Endian::NATIVE);
            for word in &words {
                e.u64(*word);
            }
            Some((node, bits, e.into_bytes()))
        };
        let all: Vec<_> = self
            .numbered("devices/system/node", "node")
            .into_iter()
            .map(set)
            .collect::<Option<_>>()?;
        let nodes = all.iter().map(|(node, bits, set)| MemNode {
            node: u64::from(*node),
            size: *bits,
            bits: *bits,
            set: U64s::new(set, Endian::NATIVE),
        });
        features.add(&MemTopology { version: 1, block_size, nodes: nodes.collect() });
        Some(())
    }

    /// Adds CPU_PMU_CAPS and PMU_CAPS.
    fn pmus(&self, features: &mut FeatureWriter) {
        let devices = PathBuf::from("bus/event_source/devices");
        let caps = |pmu: String| {
            let caps: Vec<(String, String)> = self
                .entries(devices.join(&pmu).join("caps"))
                .into_iter()
                .filter_map(|name| {
                    let value =
                        self.text(&format!("bus/event_source/devices/{pmu}/caps/{name}"))?;
                    Some((name, value))
                })
                .collect();
            (pmu, caps)
        };
        let all: Vec<_> = self.entries(&devices).into_iter().map(caps).collect();
        let (cpu, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|(pmu, _)| pmu == "cpu");
        for (_, caps) in &cpu {
            features.add(&CpuPmuCaps { caps: pmu_caps(caps) });
        }
        let pmus = others
            .iter()
            .filter(|(_, caps)| !caps.is_empty())
            .map(|(pmu, caps)| PmuCapsEntry { caps: pmu_caps(caps), pmu: HeaderString::new(pmu) });
        features.add(&PmuCaps { pmus: List(pmus.collect()) });
    }
}

/// Parses a line such as `Node 0 MemTotal:       24684084 kB`.
fn meminfo_field(meminfo: &str, name: &str) -> Option<u64> {
    let mut lines = meminfo.lines().map(str::split_ascii_whitespace);
    lines
        .find_map(|mut words| (words.nth(2)? == name).then(|| words.next()?.parse().ok()).flatten())
}

fn pmu_caps(all: &[(String, String)]) -> List<PmuCap<'_>> {
    let caps = all.iter().map(|(name, value)| PmuCap {
        name: HeaderString::new(name),
        value: HeaderString::new(value),
    });
    List(caps.collect())
}

fn strings(all: &[String]) -> List<HeaderString<'_>> {
    List(all.iter().map(|text| HeaderString::new(text)).collect())
}

//! Assignment of rings and CPUs to drain threads, by perf record's specs (`--threads=SPEC`).

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use recrep_console::units;
use rustix::thread::CpuSet;

use crate::machine::Machine;
use crate::machine::cpus;
use crate::messages::error::{Error, Result};
use crate::plan::config::Split;
use crate::tasks;

/// A drain thread: the indices of its rings, and the CPUs that it runs on (`None` for any).
#[derive(Debug)]
pub(super) struct RingGroup {
    pub(super) rings: Vec<usize>,
    pub(super) affinity: Option<CpuSet>,
}

/// Returns the drain threads for rings of these CPUs. Rings of a thread (without a CPU) are
/// distributed over as many drain threads as there are CPUs; the rings of CPUs that no mask names
/// get one more drain thread.
pub(super) fn groups(
    split: &Split,
    rings: &[Option<u32>],
    machine: &Machine,
) -> Result<Vec<RingGroup>> {
    // Key of a drain thread: the CPUs that it runs on, and a number to distinguish those that run on
    // any CPU.
    let mut all: BTreeMap<(Vec<u32>, usize), Vec<usize>> = BTreeMap::new();
    let nodes = if *split == Split::Numa { cpus::nodes(&machine.sysfs) } else { Vec::new() };
    for (index, cpu) in rings.iter().enumerate() {
        let key = match cpu {
            Some(cpu) => (place(split, *cpu, &nodes, &machine.sysfs), 0),
            None => (Vec::new(), 1 + index % machine.online.len().max(1)),
        };
        all.entry(key).or_default().push(index);
    }
    if let Split::Masks(masks) = split {
        let unused = masks.iter().find(|mask| !all.keys().any(|(cpus, _)| *cpus == mask.affinity));
        if let Some(mask) = unused {
            return Err(Error::Usage(format!(
                "--threads: none of the CPUs {} is recorded; leave that mask out, or name \
                 recorded CPUs",
                units::list(&mask.cpus)
            )));
        }
    }
    Ok(all
        .into_iter()
        .map(|((place, _), rings)| RingGroup {
            rings,
            affinity: (!place.is_empty()).then(|| cpus::set(&place)),
        })
        .collect())
}

/// Returns the CPUs of the thread that drains a CPU's ring.
fn place(split: &Split, cpu: u32, nodes: &[Vec<u32>], sysfs: &Path) -> Vec<u32> {
    let topology = |names: [&str; 2]| {
        names
            .into_iter()
            .find_map(|name| {
                let path = sysfs.join(format!("devices/system/cpu/cpu{cpu}/topology/{name}"));
                tasks::parse_cpus(&fs::read_to_string(path).ok()?).ok()
            })
            .unwrap_or_else(|| vec![cpu])
    };
    match split {
        Split::Cpu => vec![cpu],
        Split::Core => topology(["core_cpus_list", "thread_siblings_list"]),
        Split::Package => topology(["package_cpus_list", "core_siblings_list"]),
        Split::Numa => {
            nodes.iter().find(|node| node.contains(&cpu)).cloned().unwrap_or_else(|| vec![cpu])
        }
        Split::Masks(masks) => masks
            .iter()
            .find(|mask| mask.cpus.contains(&cpu))
            .map(|mask| mask.affinity.clone())
            .unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::config::Mask;

    /// A machine with four CPUs: two packages, each a node with one core.
    fn machine() -> (tempfile::TempDir, Machine) {
        let dir = tempfile::tempdir().unwrap();
        let file = |path: String, text: &str| {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        for (cpu, siblings) in [(0, "0-1\n"), (1, "0-1\n"), (2, "2-3\n"), (3, "2-3\n")] {
            file(format!("devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"), siblings);
            file(format!("devices/system/cpu/cpu{cpu}/topology/package_cpus_list"), siblings);
        }
        file("devices/system/node/node0/cpulist".to_owned(), "0,2\n");
        file("devices/system/node/node1/cpulist".to_owned(), "1,3\n");
        let machine = Machine {
            sysfs: dir.path().to_owned(),
            online: vec![0, 1, 2, 3],
            ..Machine::default()
        };
        (dir, machine)
    }

    /// Rings of a thread, and the CPUs that it runs on.
    type Shape = (Vec<usize>, Option<Vec<usize>>);

    fn split(split: &Split, rings: &[Option<u32>]) -> Result<Vec<Shape>> {
        let (_dir, machine) = machine();
        let cpus = |set: &CpuSet| (0..4).filter(|cpu| set.is_set(*cpu)).collect();
        let shape = |group: RingGroup| (group.rings, group.affinity.as_ref().map(cpus));
        Ok(groups(split, rings, &machine)?.into_iter().map(shape).collect())
    }

    #[test]
    fn as_the_machine_is_divided() {
        let all = [Some(0), Some(1), Some(2), Some(3)];
        let of = |wanted: &Split| split(wanted, &all).unwrap();
        assert_eq!(
            of(&Split::Cpu),
            (0..4).map(|cpu| (vec![cpu], Some(vec![cpu]))).collect::<Vec<_>>()
        );
        assert_eq!(
            of(&Split::Core),
            [(vec![0, 1], Some(vec![0, 1])), (vec![2, 3], Some(vec![2, 3]))]
        );
        assert_eq!(of(&Split::Package), of(&Split::Core));
        assert_eq!(
            of(&Split::Numa),
            [(vec![0, 2], Some(vec![0, 2])), (vec![1, 3], Some(vec![1, 3]))]
        );
    }

    #[test]
    fn by_masks_and_what_no_mask_names() {
        let masks = |masks: &[(&[u32], &[u32])]| {
            let mask = |(cpus, affinity): &(&[u32], &[u32])| Mask {
                cpus: cpus.to_vec(),
                affinity: affinity.to_vec(),
            };
            Split::Masks(masks.iter().map(mask).collect())
        };
        let rings = [Some(0), Some(1), Some(2)];
        let found = split(&masks(&[(&[0, 3], &[1]), (&[2], &[2, 3])]), &rings).unwrap();
        assert_eq!(found, [(vec![1], None), (vec![0], Some(vec![1])), (vec![2], Some(vec![2, 3]))]);
        assert!(
            split(&masks(&[(&[3], &[1])]), &rings).unwrap_err().to_string().contains("is recorded")
        );
    }

    #[test]
    fn rings_of_threads_are_dealt_out() {
        let found = split(&Split::Cpu, &[None; 6]).unwrap();
        assert_eq!(
            found,
            [(vec![0, 4], None), (vec![1, 5], None), (vec![2], None), (vec![3], None)]
        );
    }
}

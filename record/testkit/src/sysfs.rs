//! Fake machines for tests: directories with the files of sysfs and tracefs.

use std::fs;

use tempfile::TempDir;

/// An Intel machine, with some devices of other vendors.
pub const CORE: &[(&str, &str)] = &[
    ("cpu/type", "4"),
    ("cpu/format/event", "config:0-7,32-35"),
    ("cpu/format/umask", "config:8-15"),
    ("cpu/format/inv", "config:23"),
    ("cpu/format/ldlat", "config1:0-15"),
    ("cpu/events/cpu-cycles", "event=0x3c"),
    ("cpu/events/mem-loads", "event=0xcd,umask=0x1,ldlat=3"),
    ("cpu/events/param", "event=0x1,umask=?"),
    ("uncore_imc_0/type", "20"),
    ("uncore_imc_0/cpumask", "0"),
    ("uncore_imc_0/format/event", "config:0-7"),
    ("uncore_imc_0/events/cas", "event=0x4"),
    ("uncore_imc_0/events/cas.scale", "6.1e-5"),
    ("uncore_imc_0/events/cas.unit", "MiB"),
    ("uncore_imc_1/type", "21"),
    ("uncore_imc_1/cpumask", "0,8"),
    ("uncore_imc_1/format/event", "config:0-7"),
    ("uncore_imc_1/events/cas", "event=0x4"),
    ("intel_pt/type", "8"),
    ("intel_pt/nr_addr_filters", "2"),
    ("intel_pt/format/pt", "config:0"),
    ("intel_pt/format/tsc", "config:10"),
    ("intel_pt/format/branch", "config:13"),
    ("cs_etm/type", "9"),
    ("cs_etm/sinks/tmc_etr0", "0x1b2c"),
    ("uprobe/type", "7"),
    ("uprobe/format/retprobe", "config:0"),
];

/// A machine with two kinds of cores.
pub const HYBRID: &[(&str, &str)] = &[
    ("cpu_core/type", "4"),
    ("cpu_core/cpus", "0-7"),
    ("cpu_core/format/event", "config:0-7"),
    ("cpu_atom/type", "10"),
    ("cpu_atom/cpus", "8-15"),
    ("cpu_atom/format/event", "config:0-7"),
];

/// Creates a machine with these PMUs (each file as `pmu/file`) below `sys`, and some tracepoints
/// below `tracing`.
pub fn machine(pmus: &[(&str, &str)]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{text}\n")).unwrap();
    };
    for (path, text) in pmus {
        write(&format!("sys/bus/event_source/devices/{path}"), text);
    }
    for (path, text) in [
        ("sched/sched_switch/id", "314"),
        (
            "sched/sched_switch/format",
            "format:\n\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;",
        ),
        ("sched/sched_wakeup/id", "316"),
        ("sched/enable", "0"),
        ("irq/softirq_entry/id", "12"),
        ("ftrace/function/format", "x"),
    ] {
        write(&format!("tracing/events/{path}"), text);
    }
    dir
}

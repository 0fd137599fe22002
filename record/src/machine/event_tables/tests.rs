//! Small tables written by hand, on machines that are directories.

use super::*;
use crate::machine::pmu;
use crate::testkit::sysfs::machine;
use tempfile::TempDir;

/// A directory with tables for two architectures.
fn tables() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (path, text) in [
        (
            "x86/mapfile.csv",
            "Family-model,Version,Filename,EventType\nTestVendor-6-55-[0-4],v1,old,core\nTestVendor-6-55,v1,new,core\nTestVendor-6-77,v1,gone,core\n",
        ),
        ("x86/old/core.json", r#"[{"EventName": "OLD.ONE", "EventCode": "0x1"}]"#),
        (
            "x86/new/core.json",
            r#"[{"EventName": "NEW.ONE", "EventCode": "0x2", "UMask": "0x10", "BriefDescription": "Counts ones."},
                {"EventName": "CPU-CYCLES", "EventCode": "0x3d"}, {"MetricName": "ipc", "MetricExpr": "1"}]"#,
        ),
        (
            "x86/new/uncore.json",
            r#"[{"EventName": "CAS", "EventCode": "0x4", "Unit": "iMC", "ScaleUnit": "64Bytes"}]"#,
        ),
        ("x86/new/metricgroups.json", r#"{"a": "b"}"#),
        (
            "arm64/mapfile.csv",
            "MIDR,Version,Path,Type\n# a comment\n0x00000000410fd490,v1,maker/core,core\n",
        ),
        (
            "arm64/common.json",
            r#"[{"EventName": "CYCLES", "EventCode": "0x11", "BriefDescription": "Cycles"}]"#,
        ),
        (
            "arm64/maker/core/all.json",
            r#"[{"ArchStdEvent": "cycles"}, {"EventName": "OWN", "ConfigCode": "0x100"}]"#,
        ),
        (
            "arm64/maker/mesh/sys/mesh.json",
            r#"[{"EventName": "hops", "EventidCode": "0x7", "Unit": "arm_cmn", "Compat": "(434|436).*"}]"#,
        ),
    ] {
        let path = dir.path().join("arch").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    dir
}

const X86: &[(&str, &str)] = &[
    ("cpu/type", "4"),
    ("cpu/events/cpu-cycles", "event=0x3c"),
    ("uncore_imc_0/type", "20"),
    ("uncore_imc_0/cpumask", "0"),
    ("uncore_imc_free/type", "21"),
    ("uncore_imc_free/cpumask", "0"),
];

/// The tables used, and each PMU's events and their terms.
fn named(
    dir: &str,
    pmus: &[(&str, &str)],
    cpuid: Option<&str>,
) -> Result<(Vec<String>, Vec<String>), String> {
    let (tables, machine) = (tables(), machine(pmus));
    let sys = machine.path().join("sys");
    let midr = sys.join("devices/system/cpu/cpu4/regs/identification/midr_el1");
    fs::create_dir_all(midr.parent().unwrap()).unwrap();
    fs::write(midr, "0x00000000411fd490\n").unwrap();
    let mut pmus = pmu::all(&sys);
    let tables = EventTables::open(&tables.path().join(dir))?;
    let used = tables.name_events(&mut pmus, cpuid, &sys)?.used;
    let of = |pmu: &Pmu| {
        pmu.table().map(|(name, e)| format!("{} {name} {}", pmu.name, e.terms)).collect::<Vec<_>>()
    };
    Ok((used, pmus.iter().flat_map(of).collect()))
}

#[test]
fn the_cpu_s_own_table() {
    let new =
        ["cpu cpu-cycles event=0x3d", "cpu new.one event=2,umask=0x10", "uncore_imc_0 cas event=4"];
    for dir in ["", "arch", "arch/x86"] {
        let (used, events) = named(dir, X86, Some("TestVendor-6-55-9")).unwrap();
        assert_eq!(used, ["new for CPU TestVendor-6-55-9"]);
        assert_eq!(events, new);
    }
    let (_, old) = named("", X86, Some("TestVendor-6-55-4")).unwrap();
    assert_eq!(old, ["cpu old.one event=1"]);
}

#[test]
fn cores_that_say_themselves_what_they_are() {
    let arm = [
        ("armv8_pmuv3/type", "10"),
        ("armv8_pmuv3/cpus", "4-5"),
        ("arm_cmn_0/type", "11"),
        ("arm_cmn_0/cpumask", "4"),
        ("arm_cmn_0/identifier", "43602"),
        ("arm_cmn_1/type", "12"),
        ("arm_cmn_1/cpumask", "4"),
        ("arm_cmn_1/identifier", "99902"),
    ];
    let (used, events) = named("", &arm, None).unwrap();
    assert_eq!(used, ["maker/core for CPU 0x00000000411fd490"]);
    assert_eq!(
        events,
        [
            "arm_cmn_0 hops eventid=7",
            "armv8_pmuv3 cycles event=0x11",
            "armv8_pmuv3 own config=0x100"
        ]
    );
}

/// The metrics of a machine with these PMUs, and the kind of cores that each is for.
fn metrics_of(pmus: &[(&str, &str)], json: &str) -> Vec<(String, Option<String>)> {
    let (tables, machine) = (tables(), machine(pmus));
    fs::write(tables.path().join("arch/x86/new/metrics.json"), json).unwrap();
    let sys = machine.path().join("sys");
    let mut pmus = pmu::all(&sys);
    let tables = EventTables::open(tables.path()).unwrap();
    let named = tables.name_events(&mut pmus, Some("TestVendor-6-55-9"), &sys).unwrap();
    named.metrics.into_iter().map(|metric| (metric.name, metric.pmu)).collect()
}

#[test]
fn metrics_are_for_pmus_of_the_machine() {
    let json = r#"[{"MetricName": "any", "MetricExpr": "1"},
        {"MetricName": "big", "MetricExpr": "1", "Unit": "cpu_core"},
        {"MetricName": "memory", "MetricExpr": "1", "Unit": "iMC"},
        {"MetricName": "device", "MetricExpr": "1", "Unit": "arm_cmn", "Compat": "434.*"}]"#;
    let plain = |names: &[&str]| -> Vec<(String, Option<String>)> {
        names.iter().map(|name| ((*name).to_owned(), None)).collect()
    };
    assert_eq!(metrics_of(X86, json), plain(&["ipc", "any", "memory"]));
    let hybrid = [
        ("cpu_atom/type", "10"),
        ("cpu_atom/cpus", "8-15"),
        ("cpu_core/type", "4"),
        ("cpu_core/cpus", "0-7"),
    ];
    let mut expected = plain(&["ipc", "any"]);
    expected.push(("big".to_owned(), Some("cpu_core".to_owned())));
    assert_eq!(metrics_of(&hybrid, json), expected);
}

#[test]
fn tables_replace_the_kernel_s_words() {
    let (tables, machine) = (tables(), machine(X86));
    let sys = machine.path().join("sys");
    let mut pmus = pmu::all(&sys);
    EventTables::open(tables.path())
        .unwrap()
        .name_events(&mut pmus, Some("TestVendor-6-55-9"), &sys)
        .unwrap();
    assert_eq!(pmus[0].alias("cpu-cycles").unwrap().terms, "event=0x3d");
    assert_eq!(pmus[0].alias("New.One").unwrap().description.as_deref(), Some("Counts ones"));
    let cas = pmus[1].alias("cas").unwrap();
    assert_eq!((cas.scale.as_deref(), cas.unit.as_deref()), (Some("64"), Some("Bytes")));
}

#[test]
fn why_there_are_no_names() {
    let wrong = |dir: &str, pmus: &[(&str, &str)], cpuid| named(dir, pmus, cpuid).unwrap_err();
    assert!(wrong("nowhere", X86, None).contains("there is no mapfile.csv in"));
    assert!(
        wrong("arch/arm64", X86, Some("TestVendor-6-55-4"))
            .contains("no table for this machine's CPU, TestVendor-6-55-4")
    );
    assert!(wrong("", X86, Some("TestVendor-6-77-1")).contains("no tables (*.json)"));
    assert!(wrong("", X86, None).contains("does not tell which CPU"));
    let vm = [("software/type", "1")];
    assert!(
        wrong("", &vm, Some("TestVendor-6-55-4")).contains("no PMU that could count its events")
    );
}

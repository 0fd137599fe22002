//! Events by the names in perf's tables (`--event-tables`): small tables, written by hand.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::machine::machine;

const CORE: &str = r#"[
    {"EventName": "OPS.DONE", "EventCode": "0xC0", "UMask": "0x1", "CounterMask": "2", "SampleAfterValue": "2000003",
     "BriefDescription": "Operations that are done."},
    {"EventName": "OPS.SLOW", "EventCode": "0xCD", "UMask": "0x1", "MSRIndex": "0x3F6", "MSRValue": "0x40", "PEBS": "2",
     "SampleAfterValue": "1009", "BriefDescription": "Slow operations"}
]"#;
const UNCORE: &str =
    r#"[{"EventName": "READS", "EventCode": "0x4", "Unit": "iMC", "PerPkg": "1"}]"#;

/// The machine of `x86.txt` as one whose CPU is known, and tables for it.
fn known() -> TempDir {
    let dir = machine("x86");
    let write = |path: &str, text: &str| {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let facts = dir.path().join("machine.json");
    let mut machine: Value = serde_json::from_slice(&fs::read(&facts).unwrap()).unwrap();
    machine["cpuid"] = json!("TestVendor-6-55-4");
    fs::write(facts, machine.to_string()).unwrap();
    write("sys/bus/event_source/devices/cpu/format/cmask", "config:24-31\n");
    write(
        "arch/x86/mapfile.csv",
        "Family-model,Version,Filename,EventType\nTestVendor-6-55-[01234],v1,model,core\n",
    );
    write("arch/x86/model/core.json", CORE);
    write("arch/x86/model/uncore.json", UNCORE);
    dir
}

fn rec(dir: &Path, line: &str) -> Output {
    let mut rec = Command::new(env!("CARGO_BIN_EXE_rec"));
    rec.args(["--dry-run", "--json", "--machine"]).arg(dir.join("machine.json"));
    rec.arg("--event-tables").arg(dir.join("arch")).args(line.split_whitespace()).output().unwrap()
}

/// The first event's name, config, config1, and period or, negative, frequency.
fn event(line: &str) -> (String, u64, u64, i64) {
    let dir = known();
    let output = rec(dir.path(), line);
    let plan: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{line}: {}", String::from_utf8_lossy(&output.stderr)));
    let event = &plan["events"][0];
    let number = |name: &str| event["attr"][name].as_u64().unwrap();
    let period = i64::try_from(number("sample_period")).unwrap();
    let rate = if number("freq") == 1 { -period } else { period };
    (event["name"].as_str().unwrap().to_owned(), number("config"), number("config1"), rate)
}

#[test]
fn names_in_tables_are_events() {
    for (line, expected) in [
        ("-e ops.done x", ("ops.done", 0x0200_01c0, 0, 2_000_003)),
        ("-e OPS.DONE:u x", ("OPS.DONE:u", 0x0200_01c0, 0, 2_000_003)),
        ("-e cpu/Ops.Done/u x", ("cpu/Ops.Done/u", 0x0200_01c0, 0, 2_000_003)),
        ("-e cpu/event=ops.done/ x", ("cpu/event=ops.done/", 0x0200_01c0, 0, 2_000_003)),
        ("-e cpu/ops.done,period=77/ x", ("cpu/ops.done,period=77/", 0x0200_01c0, 0, 77)),
        ("-e cpu/period=77,ops.done/ x", ("cpu/period=77,ops.done/", 0x0200_01c0, 0, 77)),
        ("-e ops.done -c 5 x", ("ops.done", 0x0200_01c0, 0, 5)),
        ("-e ops.done -F 99 x", ("ops.done", 0x0200_01c0, 0, -99)),
        ("-e ops.slow:pp x", ("ops.slow:pp", 0x1cd, 0x40, 1009)),
        ("-e reads -a", ("reads", 4, 0, -4000)),
    ] {
        let (name, config, config1, rate) = event(line);
        assert_eq!((&name[..], config, config1, rate), expected, "{line}");
    }
}

#[test]
fn names_that_no_table_has() {
    let dir = known();
    let said = |line: &str| String::from_utf8(rec(dir.path(), line).stderr).unwrap();
    let unknown = said("-e ops.dome x");
    assert!(unknown.contains("did you mean 'ops.done'?"), "{unknown}");
    assert!(
        unknown.contains("the table of events is model for CPU TestVendor-6-55-4"),
        "{unknown}"
    );
    fs::remove_file(dir.path().join("arch/x86/mapfile.csv")).unwrap();
    assert!(said("-e ops.done x").contains("--event-tables: there is no mapfile.csv"));
    let without =
        Command::new(env!("CARGO_BIN_EXE_rec")).args(["-e", "ops.done", "x"]).output().unwrap();
    assert!(String::from_utf8(without.stderr).unwrap().contains("(--event-tables DIR)"));
}

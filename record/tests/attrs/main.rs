//! Command lines, and every field of every attr that they must give: as perf record 6.12 has them,
//! but for rec's own rules (`record/docs/options.md`).
//!
//! The cases are in `attrs/*.cases`:
//!
//! ```text
//! machine x86                       what follows is planned for the machine of attrs/x86.txt
//! $ -e cpu-clock -g x               a command line
//! cpu-clock: type=1 sample_freq=4000 sample_type=+CALLCHAIN|PERIOD disabled inherit freq
//! rings: pages=64                   of the rings, what is not as without flags
//! ```
//!
//! Each event in its order has its name and the fields that are not 0; a field without a value
//! is 1. `+` in `sample_type` and `read_format` stands for what every attr has, `mmap2` for
//! `build_id` too, unless `build_id=0` is there. `leader`, `cpus`, `pids`, `filter` and `cgroup`
//! are told where they are not the plan's. `size` is 128 unless told.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod machine;
mod options;
mod tables;

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use recrep_format::abi::{ReadFormat, SampleType};
use serde_json::{Value, json};
use tempfile::TempDir;

use machine::{data, machine};

/// The plan for a command line, which may begin with a command of rec's.
fn plan(line: &str, machine: &TempDir) -> Result<Value, String> {
    let mut rec = Command::new(env!("CARGO_BIN_EXE_rec"));
    let mut words = line.split_whitespace().peekable();
    rec.args(words.next_if(|word| ["mem", "c2c"].contains(word)));
    rec.args(["--dry-run", "--json", "--machine"]).arg(machine.path().join("machine.json"));
    let output = rec.args(words).output().unwrap();
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    Ok(serde_json::from_slice(&output.stdout).unwrap())
}

/// A plan, written as the cases are.
fn shown(plan: &Value) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for (index, event) in plan["events"].as_array().unwrap().iter().enumerate() {
        let mut words = vec![format!("{}:", event["name"].as_str().unwrap())];
        let attr = event["attr"].as_object().unwrap();
        words.extend(FIELDS.iter().filter_map(|name| word(name, attr)));
        words.extend(
            attr.iter().filter(|(name, _)| !is_told(name)).filter_map(|(name, _)| word(name, attr)),
        );
        let mut differs = |name: &str, value: &Value, usual: &Value| {
            if value != usual {
                let text =
                    value.as_str().map_or_else(|| value.to_string(), |text| format!("'{text}'"));
                words.push(format!("{name}={}", text.replace(' ', "")));
            }
        };
        differs("leader", &event["group_leader"], &json!(index));
        differs("cpus", &event["cpus"], &plan["cpus"]);
        differs("pids", &event["pids"], &plan["target"]["ids"]);
        for name in ["filter", "cgroup"] {
            differs(name, &event[name], &Value::Null);
        }
        lines.push(words.join(" "));
    }
    let rings = plan["rings"].as_object().unwrap();
    let told =
        ["pages", "aux_pages", "snapshot_bytes"].map(|name| (name, rings[name].as_u64().unwrap()));
    let usual = BTreeMap::from([("pages", 128)]);
    let told: Vec<_> =
        told.into_iter().filter(|(name, n)| *n != *usual.get(name).unwrap_or(&0)).collect();
    if !told.is_empty() {
        let words: Vec<_> = told.iter().map(|(name, n)| format!("{name}={n}")).collect();
        lines.push(format!("rings: {}", words.join(" ")));
    }
    lines
}

/// The fields that are told first; the flags follow.
const FIELDS: &[&str] = &[
    "type",
    "size",
    "config",
    "config1",
    "config2",
    "config3",
    "config4",
    "bp_type",
    "sample_freq",
    "sample_period",
    "sample_type",
    "read_format",
    "branch_sample_type",
    "sample_regs_user",
    "sample_stack_user",
    "sample_regs_intr",
    "sample_max_stack",
    "clockid",
    "wakeup_watermark",
    "wakeup_events",
    "aux_watermark",
    "aux_sample_size",
    "sig_data",
    "precise_ip",
];

/// Returns whether a field is among [`FIELDS`], by its own name or that of the one it shares its
/// place with.
fn is_told(name: &str) -> bool {
    FIELDS.contains(&name) || ["bp_addr", "bp_len"].contains(&name)
}

/// A field as the cases have it; none: there is nothing to tell.
fn word(name: &str, attr: &serde_json::Map<String, Value>) -> Option<String> {
    let number = |name: &str| attr[name].as_i64().unwrap();
    let value = number(name);
    let (freq, watermark) = (number("freq") == 1, number("watermark") == 1);
    let bits = || u64::try_from(value).unwrap();
    match name {
        "size" => (value != 128).then(|| format!("size={value}")),
        "sample_freq" => (freq && value != 0).then(|| format!("sample_freq={value}")),
        "sample_period" => (!freq && value != 0).then(|| format!("sample_period={value}")),
        "wakeup_watermark" => {
            (watermark && value != 0).then(|| format!("wakeup_watermark={value}"))
        }
        "wakeup_events" => (!watermark && value != 0).then(|| format!("wakeup_events={value}")),
        "sample_type" => {
            use SampleType as S;
            let always = S::IDENTIFIER | S::IP | S::TID | S::TIME | S::CPU;
            let bits = S::from_bits(bits()).unwrap();
            assert!(bits.contains(always), "{bits:?}");
            let more: Vec<_> = (bits - always).iter_names().map(|(name, _)| name).collect();
            (!more.is_empty()).then(|| format!("sample_type=+{}", more.join("|")))
        }
        "read_format" => {
            let always = ReadFormat::ID | ReadFormat::LOST;
            let bits = ReadFormat::from_bits(bits()).unwrap();
            assert!(bits.contains(always), "{bits:?}");
            let more: Vec<_> = (bits - always).iter_names().map(|(name, _)| name).collect();
            (!more.is_empty()).then(|| format!("read_format=+{}", more.join("|")))
        }
        "sample_regs_user" | "sample_regs_intr" | "config" | "config1" | "config2"
        | "branch_sample_type" => (value != 0).then(|| format!("{name}={value:#x}")),
        "build_id" => (value != number("mmap2")).then(|| format!("build_id={value}")),
        _ if value == 1 && !FIELDS.contains(&name) => Some(name.to_owned()),
        _ => (value != 0).then(|| format!("{name}={value}")),
    }
}

struct Case {
    machine: String,
    line: String,
    expected: Vec<String>,
}

fn cases(file: &str) -> Vec<Case> {
    let text = fs::read_to_string(data(file)).unwrap();
    let (mut machine, mut cases) = (String::new(), Vec::<Case>::new());
    for line in
        text.lines().map(str::trim_end).filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        if let Some(name) = line.strip_prefix("machine ") {
            machine = name.to_owned();
        } else if let Some(line) = line.strip_prefix("$ ") {
            cases.push(Case {
                machine: machine.clone(),
                line: line.to_owned(),
                expected: Vec::new(),
            });
        } else {
            cases.last_mut().unwrap().expected.push(line.to_owned());
        }
    }
    cases
}

/// Holds every case of a file.
fn hold(file: &str, least: usize) {
    let cases = cases(file);
    assert!(cases.len() >= least, "{file} has {} cases", cases.len());
    let mut machines: BTreeMap<&str, TempDir> = BTreeMap::new();
    let mut wrong = Vec::new();
    for case in &cases {
        let machine = machines.entry(&case.machine).or_insert_with(|| machine(&case.machine));
        let found = plan(&case.line, machine)
            .map_or_else(|e| vec![format!("refused: {e}")], |plan| shown(&plan));
        if found != case.expected {
            let (must, is) = (case.expected.join("\n"), found.join("\n"));
            wrong.push(format!("{}: $ {}\nmust be\n{must}\nis\n{is}\n", case.machine, case.line));
        }
    }
    assert!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[test]
fn what_is_counted_and_how_often() {
    hold("events.cases", 20);
}

#[test]
fn the_default_event_is_on_each_kind_of_core() {
    hold("hybrid.cases", 4);
}

#[test]
fn what_samples_carry() {
    hold("samples.cases", 30);
}

#[test]
fn whom_and_what_beside_samples() {
    hold("targets.cases", 20);
}

#[test]
fn context_switches_beside_cpu_samples() {
    hold("off_cpu.cases", 15);
}

#[test]
fn wakes_beside_context_switches() {
    hold("waits.cases", 12);
    let wakes = machine("wakes");
    for (line, named) in [
        ("-n x", "cannot be used with"),
        ("--all-user x", "leave it out, or use --off-cpu"),
        ("--per-thread x", "leave it out, or use --off-cpu"),
        ("--threads x", "leave --threads out"),
        ("--no-switch-events x", "leave it out"),
    ] {
        let said = plan(&format!("--waits {line}"), &wakes).unwrap_err();
        assert!(said.contains(named), "{line}: {said}");
    }
    assert!(plan("--waits --threads -a -e cpu-clock", &wakes).is_ok());
    // Another tracefs than that of a plain user has the tracepoints.
    for (name, why) in [("x86", "sched:sched_waking"), ("user", "CAP_PERFMON")] {
        let said = plan("--waits x", &machine(name)).unwrap_err();
        assert!(said.contains(why) && said.contains("--off-cpu"), "{name}: {said}");
    }
}

#[test]
fn memory_accesses() {
    hold("memory.cases", 15);
}

#[test]
fn the_memory_events_that_a_machine_has() {
    let listed = |name: &str| {
        let machine = machine(name);
        let mut rec = Command::new(env!("CARGO_BIN_EXE_rec"));
        rec.args(["mem", "-e", "list", "--dry-run", "--machine"])
            .arg(machine.path().join("machine.json"));
        let output = rec.output().unwrap();
        (
            output.status.code().unwrap(),
            String::from_utf8([output.stdout, output.stderr].concat()).unwrap(),
        )
    };
    assert_eq!(listed("amd"), (0, "mem-ldst      ibs_op//\n".to_owned()));
    let (status, none) = listed("user");
    assert!(
        status == 125 && none.starts_with("rec: rec mem: this machine cannot sample"),
        "{none}"
    );
    assert!(
        listed("spr")
            .1
            .starts_with("ldlat-loads   {cpu/mem-loads-aux/,cpu/mem-loads,ldlat=30/}:P\n")
    );
}

#[test]
fn areas_that_are_traced_into() {
    hold("aux.cases", 8);
}

/// The JSON has the schema's name, and each attr all fields of the struct.
#[test]
fn the_plan_s_form() {
    let plan = plan("-e {cycles,instructions} x", &machine("x86")).unwrap();
    assert_eq!(plan["schema"], "recrep-plan/1");
    assert_eq!(plan["events"][0]["group_leader"], 0);
    assert_eq!(plan["events"][1]["group_leader"], 0);
    assert_eq!(plan["rings"]["bytes"], 512 << 10);
    let attr = plan["events"][0]["attr"].as_object().unwrap();
    for name in [
        "type",
        "size",
        "config",
        "sample_period",
        "sample_freq",
        "sample_type",
        "read_format",
        "disabled",
        "inherit",
        "pinned",
        "exclusive",
        "exclude_user",
        "exclude_kernel",
        "exclude_hv",
        "exclude_idle",
        "mmap",
        "comm",
        "freq",
        "inherit_stat",
        "enable_on_exec",
        "task",
        "watermark",
        "precise_ip",
        "mmap_data",
        "sample_id_all",
        "exclude_host",
        "exclude_guest",
        "exclude_callchain_kernel",
        "exclude_callchain_user",
        "mmap2",
        "comm_exec",
        "use_clockid",
        "context_switch",
        "write_backward",
        "namespaces",
        "ksymbol",
        "bpf_event",
        "aux_output",
        "cgroup",
        "text_poke",
        "build_id",
        "inherit_thread",
        "remove_on_exec",
        "sigtrap",
        "wakeup_events",
        "wakeup_watermark",
        "bp_type",
        "bp_addr",
        "config1",
        "bp_len",
        "config2",
        "branch_sample_type",
        "sample_regs_user",
        "sample_stack_user",
        "clockid",
        "sample_regs_intr",
        "aux_watermark",
        "sample_max_stack",
        "aux_sample_size",
        "sig_data",
        "config3",
        "config4",
    ] {
        assert!(attr.contains_key(name), "{name}");
    }
    assert_eq!(attr["sample_type"], 0x10187);
}

#[test]
fn what_does_not_go_together_is_told_with_what_to_do() {
    let x86 = machine("x86");
    for (line, named) in [
        ("-S x", "add such an event"),
        ("-m ,64K x", "-m ,SIZE applies to AUX areas"),
        ("--aux-sample -e intel_pt// -e cycles x", "group them"),
        ("-e cycles/aux-sample-size=4096/ x", "group it"),
        ("-e {intel_pt//,cycles/aux-sample-size=70000/} x", "do not fit into a sample"),
        ("-e intel_pt// -k mono x", "leave out -k"),
        ("-e intel_bts// x", "add --per-thread"),
        ("-e {intel_bts//,cycles} --aux-sample --per-thread x", "leave out --aux-sample"),
        ("-e intel_pt// -S0x100000 -m ,64K x", "enlarge it with -m ,SIZE"),
        ("-e intel_pt// -m ,1 x", "at least 8K"),
        ("-e cycles/time=0/ x", "leave it out"),
        ("-e cycles -F 200000 --strict-freq x", "--strict-freq"),
        ("-e cycles -m 2G x", "too large; use at most 1G"),
        ("--off-cpu --no-switch-events x", "leave it out"),
        ("--off-cpu -n x", "cannot be used with"),
        ("--off-cpu -a -e cycles,faults -G one,two", "name one with -G"),
        ("mem -t all x", "neither load nor store"),
        ("mem -e spe-load x", "there is ldlat-loads, ldlat-stores"),
        ("mem -t store --ldlat 4 x", "leave it out"),
        ("mem -t load -e loads x", "cannot be used with"),
        ("mem", "nothing to record"),
    ] {
        let said = plan(line, &x86).unwrap_err();
        assert!(said.contains(named), "{line}: {said}");
    }
    let said = plan("mem x", &machine("user")).unwrap_err();
    assert!(
        said.contains("this machine cannot sample memory accesses")
            && said.contains("virtual machine"),
        "{said}"
    );
    assert!(plan("mem -t load x", &machine("amd")).unwrap_err().contains("leave -t out"));
}

/// As in perf, whose words these are; but `--` begins a command in rec, whatever its name.
#[test]
fn record_and_report_are_words_of_perf_not_programs() {
    let x86 = machine("x86");
    for line in [
        "mem report",
        "mem report -i x",
        "mem -t load report x",
        "c2c report",
        "c2c rep",
        "mem repor -- x",
    ] {
        let tool = &line[..3];
        let said = plan(line, &x86).unwrap_err();
        assert!(said.contains(&format!("rep {tool} [FILE]")), "{line}: {said}");
        assert!(said.contains(&format!("rec {tool} -- report")), "{line}: {said}");
    }
    for line in ["mem record", "c2c rec", "mem reco -v"] {
        let said = plan(line, &x86).unwrap_err();
        assert!(said.contains("nothing to record"), "{line}: {said}");
    }
    for line in [
        "mem -- report",
        "mem record report",
        "mem rec -- rep",
        "c2c -o report re",
        "c2c x report",
        "mem reports",
    ] {
        assert_eq!(plan(line, &x86).map(drop), Ok(()), "{line}");
    }
}

#[test]
fn accesses_that_some_cpus_cannot_sample_are_noted() {
    let hybrid = machine("hybrid");
    let atom = hybrid.path().join("sys/bus/event_source/devices/cpu_atom/events");
    fs::remove_dir_all(atom).unwrap();
    let noted = plan("mem x", &hybrid).unwrap();
    assert_eq!(
        noted["notes"][0],
        "sampling memory accesses on CPU 0-1 only; CPU 2-3 has no events for them"
    );
}

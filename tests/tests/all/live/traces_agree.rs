//! Tracepoints: what `rep` and perf print of them, by the text that the kernel would print and by
//! single fields.
//!
//! perf runs without its plugins, which print some events in words of their own. Both file mode and
//! pipe mode, of both recorders.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use recrep_tests::programs::{rec, rep};
use recrep_tests::report::report_of;
use recrep_tests::run::run;
use recrep_tests::table::{Table, assert_same};
use recrep_tests::tracing::{with_tracefs, without_plugins};
use recrep_tests::{lock, needs, perf};

/// Events whose print fmts have strings, numbers, flags, tables of names, functions.
const EVENTS: &str = "sched:sched_switch,sched:sched_wakeup,sched:sched_process_exec,irq:softirq_entry,kmem:kfree,syscalls:sys_enter_openat,signal:signal_generate";

const SCRIPT: &str = "for i in 1 2 3; do ls /usr/lib | sort | md5sum >/dev/null; sleep 0.01; done";

/// Recorded by rec; none where tracefs cannot be mounted.
fn recorded(dir: &Path, events: &str, whom: &[&str]) -> Option<PathBuf> {
    if !needs::perf_events() || !needs::root() {
        return None;
    }
    let file = dir.join("traced.data");
    let mut recording = rec();
    recording.args(["-e", events, "-c", "1"]).args(whom).arg("-o").arg(&file);
    recording.args(["--", "sh", "-c", SCRIPT]);
    let outcome = run(&mut with_tracefs(&recording));
    if outcome.code() != 0 && outcome.stderr.contains("mount") {
        println!("did not run: no tracefs can be mounted: {}", outcome.stderr.trim());
        return None;
    }
    outcome.expect(0);
    Some(file)
}

/// The events of everybody, recorded once.
fn everybodys(dir: &Path) -> Option<PathBuf> {
    static RECORDED: OnceLock<Option<Vec<u8>>> = OnceLock::new();
    let bytes = RECORDED.get_or_init(|| Some(fs::read(recorded(dir, EVENTS, &["-a"])?).unwrap()));
    let file = dir.join("everybodys.data");
    fs::write(&file, bytes.as_ref()?).unwrap();
    Some(file)
}

fn ours(file: &Path, flags: &[&str], sort: &str) -> Vec<Table> {
    let mut tables = report_of(file, flags, sort).tables();
    tables.retain(|table| table.samples() > 0);
    tables
}

#[test]
fn texts_are_perfs() {
    let dir = tempfile::tempdir().unwrap();
    let Some(file) = everybodys(dir.path()) else { return };
    let tables = ours(&file, &[], "trace");
    assert_same("trace", &tables, &perf::traced_tables(&file, &[], "trace"));
    let switches = tables.iter().find(|table| table.event == "sched:sched_switch").unwrap();
    let text = &switches.rows.keys().next().unwrap()[0];
    assert!(text.starts_with("prev_comm=") && text.contains(" ==> next_comm="), "{text}");
    let frees = tables.iter().find(|table| table.event == "kmem:kfree").unwrap();
    assert!(
        frees.rows.keys().any(|key| key[0].contains("+0x")),
        "functions have names: {:?}",
        frees.rows.keys().next()
    );
    let rows: usize = tables.iter().map(|table| table.rows.len()).sum();
    println!("{} events, {rows} texts", tables.len());
    assert!(tables.len() >= 6 && rows > 50, "{rows}");
}

#[test]
fn fields_are_perfs() {
    let dir = tempfile::tempdir().unwrap();
    let Some(file) = recorded(dir.path(), "sched:sched_switch", &["-a"]) else { return };
    for sort in [
        "trace,comm",
        "sched_switch.prev_comm,next_pid",
        "sched:sched_switch.prev_state,prev_prio",
        "comm,next_comm",
        "%1.next_prio/raw,cpu",
        "prev_state/raw,common_pid",
    ] {
        let tables = ours(&file, &[], sort);
        assert_same(sort, &tables, &perf::traced_tables(&file, &[], sort));
        assert!(tables[0].rows.len() > 1, "{sort}");
    }
    let fields = &ours(&file, &[], "sched_switch.*")[0];
    let text = &fields.rows.keys().next().unwrap()[0];
    let names = [
        "prev_comm=",
        "prev_pid=",
        "prev_prio=",
        "prev_state=",
        "next_comm=",
        "next_pid=",
        "next_prio=",
    ];
    assert!(names.iter().all(|name| text.contains(name)), "{text}");
    assert_eq!(fields.samples(), ours(&file, &[], "trace_fields")[0].samples());
    for (sort, word) in [
        ("nope", "nope"),
        ("switch.nope", "nope"),
        ("%2.prev_pid", "%2"),
        ("prev_pid/hex", "prev_pid/hex"),
    ] {
        let outcome = run(rep().args(["-s", sort]).arg(&file)).expect(2);
        assert!(outcome.stderr.contains(word), "{}", outcome.stderr);
    }
}

#[test]
fn samples_of_other_events_have_no_text() {
    let dir = tempfile::tempdir().unwrap();
    let Some(file) =
        recorded(dir.path(), "sched:sched_switch,sched:sched_wakeup,context-switches", &["-a"])
    else {
        return;
    };
    let tables = ours(&file, &[], "prev_pid,trace");
    let of = |event: &str| tables.iter().find(|table| table.event.starts_with(event)).unwrap();
    let (switches, wakeups) = (of("sched:sched_switch"), of("sched:sched_wakeup"));
    assert!(
        switches
            .rows
            .keys()
            .all(|key| key[0].parse::<i32>().is_ok() && key[1].contains("prev_pid="))
    );
    assert!(
        wakeups.rows.keys().all(|key| key[0] == "N/A" && key[1].starts_with("comm=")),
        "{wakeups:?}"
    );
    assert_eq!(of("context-switches").rows.keys().collect::<Vec<_>>(), [&["N/A", "N/A"]]);
    let ambiguous = run(rep().args(["-s", "sched_.pid"]).arg(&file)).expect(2);
    assert!(
        ambiguous.stderr.contains("sched:sched_switch, sched:sched_wakeup"),
        "{}",
        ambiguous.stderr
    );
}

#[test]
fn files_of_tracepoints_are_grouped_by_what_they_recorded() {
    let dir = tempfile::tempdir().unwrap();
    let Some(file) = recorded(dir.path(), "sched:sched_switch,sched:sched_wakeup", &[]) else {
        return;
    };
    let sorts = |file: &Path| {
        let outcome = run(rep().arg("--json").arg(file)).expect(0);
        let json: serde_json::Value = serde_json::from_slice(&outcome.stdout).unwrap();
        json["events"][0]["sort"].clone()
    };
    assert_eq!(sorts(&file), serde_json::json!(["trace"]));
    let table = run(rep().arg(&file)).expect(0).text().to_owned();
    assert!(table.contains("Trace output") && table.contains("prev_comm="), "{table}");
    let raw = run(rep().arg("--raw-trace").arg(&file)).expect(0).text().to_owned();
    assert!(raw.contains("prev_state=") && !raw.contains("==>"), "{raw}");
    let Some(mixed) = recorded(dir.path(), "sched:sched_switch,page-faults", &["-a"]) else {
        return;
    };
    assert_eq!(sorts(&mixed), serde_json::json!(["comm", "dso", "symbol"]));
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let Some(file) = everybodys(dir.path()) else { return };
    let with = |threads: &str, sort: &str| {
        let mut rep = rep();
        run(rep.env("RAYON_NUM_THREADS", threads).args(["--json", "-s", sort]).arg(&file))
            .expect(0)
            .stdout
    };
    for sort in ["trace", "comm,prev_pid,trace_fields/raw"] {
        let one = with("1", sort);
        assert!(one.len() > 1000);
        assert!(one == with("2", sort) && one == with("7", sort), "{sort}");
    }
}

/// The text behind the event of each line.
fn listed(mut command: Command) -> Vec<String> {
    let outcome = run(&mut command).expect(0);
    let text = |line: &str| {
        line.split_once(": ").map(|(_, rest)| rest.trim().to_owned()).unwrap_or_default()
    };
    String::from_utf8_lossy(&outcome.stdout).lines().map(text).collect()
}

#[test]
fn script_prints_what_perf_script_prints() {
    let dir = tempfile::tempdir().unwrap();
    let Some(file) = everybodys(dir.path()) else { return };
    let arguments = |mut command: Command| {
        command.args(["script", "-F", "event,trace", "-i"]).arg(&file);
        command
    };
    let (ours, perfs) =
        (listed(arguments(rep())), listed(without_plugins(&arguments(perf::perf()))));
    assert!(ours.len() > 100 && ours.iter().all(|text| !text.is_empty()), "{}", ours.len());
    for (place, (our, their)) in ours.iter().zip(&perfs).enumerate() {
        assert_eq!(our, their, "line {}", place + 1);
    }
    assert_eq!(ours.len(), perfs.len());
    // Nobody has to ask for it.
    let usual = run(rep().arg("script").arg(&file)).expect(0);
    assert_eq!(
        String::from_utf8_lossy(&usual.stdout)
            .lines()
            .filter(|line| line.contains("prev_state="))
            .count(),
        ours.iter().filter(|text| text.contains("prev_state=")).count()
    );
}

#[test]
fn pipes_tell_of_tracepoints_too() {
    let dir = tempfile::tempdir().unwrap();
    if !needs::perf_events() || !needs::root() {
        return;
    }
    let file = dir.path().join("pipe.data");
    let mut shell = Command::new("sh");
    let quoted = rec().get_program().to_string_lossy().into_owned();
    let line = format!(
        "'{quoted}' -e sched:sched_switch -a -c 1 -o - -- sh -c '{SCRIPT}' > '{}'",
        file.display()
    );
    shell.args(["-c", &line]);
    let _cpus = lock::cpus();
    let outcome = run(&mut with_tracefs(&shell));
    if outcome.code() != 0 && outcome.stderr.contains("mount") {
        println!("did not run: no tracefs can be mounted: {}", outcome.stderr.trim());
        return;
    }
    outcome.expect(0);
    assert_same("a pipe", &ours(&file, &[], "trace"), &perf::traced_tables(&file, &[], "trace"));
}

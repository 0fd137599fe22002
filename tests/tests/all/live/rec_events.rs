//! Events of every kind, recorded: those that can be counted exactly are, and perf names the fields
//! of tracepoints.
//!
//! tracefs is mounted by the tests themselves, each time in a mount namespace of its own, so that
//! the machine stays as it was. Breakpoints need addresses that are known beforehand: `setarch -R`
//! keeps them where they are from one run to the next.

use std::fs;
use std::path::Path;
use std::process::Command;

use recrep_fixtures::CALLED;
use recrep_tests::agreement::{Extent, assert_agrees};
use recrep_tests::perf::{self, perf};
use recrep_tests::programs::{programs, rec, workload};
use recrep_tests::record::{record, recording};
use recrep_tests::run::{Outcome, run, start};
use recrep_tests::tracing::{with_tracefs, without_tracefs};
use recrep_tests::{needs, report};
use serde_json::Value;

/// Records with tracefs mounted.
#[track_caller]
fn traced(file: &Path, args: &[&str], command: &[String]) -> Outcome {
    let mut recording = rec();
    recording.arg("-o").arg(file).args(args).arg("--").args(command);
    run(&mut with_tracefs(&recording)).expect(0)
}

/// Returns the number of the workload's sleeps that were switches, by the kernel's own count: one
/// whose timer fires before the thread has left the CPU is none.
#[track_caller]
fn sleeps(outcome: &Outcome) -> u64 {
    outcome.text().trim().parse().unwrap()
}

/// Returns what perf prints of a file, without a warning but of loss.
#[track_caller]
fn perf_says(args: &[&str], file: &Path) -> String {
    let outcome = run(perf().args(args).arg("-i").arg(file)).expect(0);
    assert_eq!(perf::without_loss(&outcome.stderr, &perf::stats(file).records), "", "{args:?}");
    outcome.text().to_owned()
}

/// Returns the places of the function and the variable of `workload calls`, as long as addresses
/// are not random.
fn places() -> (String, String) {
    let mut fixed = Command::new("setarch");
    let outcome = run(fixed.arg("-R").args(workload("calls --count 0"))).expect(0);
    let (function, variable) = outcome.text().trim().split_once(' ').unwrap();
    (function.to_owned(), variable.to_owned())
}

/// Records with addresses that are not random, on one CPU: a group's counters are read on the CPU of
/// the leader's sample, and a thread that moves between a call and a write has counted the call on
/// another.
#[track_caller]
fn at_fixed_addresses(file: &Path, args: &str, command: &[String]) -> Outcome {
    let recording = recording(file, args, command);
    let mut fixed = Command::new("taskset");
    fixed.args(["-c", &first_cpu(), "setarch", "-R"]);
    run(fixed.arg(recording.get_program()).args(recording.get_args())).expect(0)
}

/// Returns a CPU that this process may use.
fn first_cpu() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let cpus = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    cpus.trim().split(['-', ',']).next().unwrap().to_owned()
}

#[test]
fn each_hit_of_a_breakpoint_is_a_sample() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("breakpoints.data");
    let (function, variable) = places();
    for event in [
        format!("mem:{variable}/8:w:u"),
        format!("mem:{function}:x:u"),
        format!("mem:{variable}/8:rw/name=var/u"),
    ] {
        let outcome =
            at_fixed_addresses(&file, &format!("-e {event}"), &workload("calls --count 777"));
        assert_eq!(outcome.summary(&file).samples, 777, "{event}: {}", outcome.stderr);
        assert_agrees(&file, Extent::Command);
    }
    let table = report::report(&file, "symbol").events[0].table();
    assert_eq!(table.samples_where(|key| key[0].strip_prefix("[.] ") == Some(CALLED)), 777);
    assert!(perf_says(&["evlist"], &file).starts_with("var\n"));
}

#[test]
fn breakpoints_of_a_list_and_of_a_group_are_counted_each() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("breakpoints.data");
    let (function, variable) = places();
    for events in [
        format!("mem:{variable}/8:w:u,mem:{function}:x:u"),
        format!("{{mem:{function}:x,mem:{variable}/8:w}}:u"),
        // Only the leader samples.
        format!("{{mem:{variable}/8:w,mem:{function}:x}}:uS"),
    ] {
        at_fixed_addresses(&file, &format!("-e {events}"), &workload("calls --count 777"));
        let report = report::report(&file, "symbol");
        let counted: Vec<u64> = report.events.iter().map(|event| event.samples).collect();
        assert_eq!(counted, [777, 777], "{events}");
    }
}

/// Every rule of breakpoints and groups that the kernel answers with EINVAL alone.
#[cfg(target_arch = "x86_64")]
#[test]
fn a_refusal_names_the_rule_that_was_broken() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("refused.data");
    let mut refusals = vec![
        ("mem:0x404080:r", "x86 cannot watch for reads alone"),
        ("mem:0x404080/3:w", "1, 2, 4 or 8 bytes"),
        ("mem:0x404081/8:w", "a multiple of its length"),
        ("mem:0x404080:rwx", "not both"),
        ("mem:0x404080/4:x", "leave /LENGTH out"),
        ("{cs,faults:D}", "D (pinned)"),
        ("{cs,faults:e}", "e (exclusive)"),
    ];
    if Path::new("/sys/bus/event_source/devices/msr/events/tsc").exists() && needs::root() {
        refusals.push(("msr/tsc/", "'{cpu-clock,msr/tsc/}:S'"));
    }
    for (event, rule) in refusals {
        let outcome =
            run(&mut recording(&file, &format!("-e {event}"), &["true".to_owned()])).expect(125);
        assert!(
            outcome.stderr.contains(rule) && outcome.stderr.lines().count() == 1,
            "{event}: {}",
            outcome.stderr
        );
        assert!(!file.exists());
    }
}

/// The kernel says EINTR to perf where a probe serves ftrace, and the other way round.
#[test]
fn a_probe_that_ftrace_uses_is_told() {
    if !needs::tracefs() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("probe.data");
    let script = r#"cd /sys/kernel/tracing && echo "p:recrep_tests/used $1:0x1000" >> uprobe_events || exit 77
        echo 1 > events/recrep_tests/used/enable
        shift; "$@"; status=$?
        echo 0 > events/recrep_tests/used/enable
        echo -:recrep_tests/used >> uprobe_events
        exit $status"#;
    let recording = recording(&file, "-e recrep_tests:used", &["true".to_owned()]);
    let mut probed = Command::new("sh");
    probed
        .args(["-c", script, "sh"])
        .arg(&programs().workload)
        .arg(recording.get_program())
        .args(recording.get_args());
    let outcome = run(&mut with_tracefs(&probed));
    if outcome.code() == 77 {
        // A kernel without uprobe_events.
        return;
    }
    let stderr = outcome.expect(125).stderr;
    assert!(
        stderr.contains("in use by ftrace") && stderr.contains("events/recrep_tests/used/enable"),
        "{stderr}"
    );
}

#[test]
fn each_call_of_a_probed_function_is_a_sample() {
    if !needs::perf_events() || !needs::root() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("probes.data");
    let path = programs().workload.display();
    for terms in [
        format!("func={CALLED}"),
        format!("func={CALLED},ret"),
        format!("name=mine,func={CALLED}+0x0"),
    ] {
        let samples = record(
            &file,
            &format!("-e uprobe/path={path},{terms}/u -g"),
            &workload("calls --count 555"),
        );
        assert_eq!(samples.summary(&file).samples, 555, "{terms}: {}", samples.stderr);
        assert_agrees(&file, Extent::Command);
    }
    assert!(perf_says(&["evlist"], &file).starts_with("mine\n"));
    let missing = run(&mut recording(
        &file,
        &format!("-e uprobe/path={path},func=nope/"),
        &workload("calls"),
    ));
    assert!(missing.expect(2).stderr.contains("has no function 'nope'"));
}

#[test]
fn functions_of_cpp_are_probed_by_the_names_that_rep_prints() {
    if !needs::perf_events() || !needs::root() || !needs::commands("g++") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (source, program) = (dir.path().join("a.cc"), dir.path().join("app"));
    let text = "namespace lib {\n\
        __attribute__((noinline)) void one(int) { __asm__ volatile(\"\"); }\n\
        __attribute__((noinline)) void two(int) { __asm__ volatile(\"\"); }\n\
        __attribute__((noinline)) void two(char, const char *) { __asm__ volatile(\"\"); }\n\
        }\n\
        int main() { for (int i = 0; i < 5; i++) { lib::one(i); lib::two(i); lib::two('a', \"\"); \
            } }\n";
    fs::write(&source, text).unwrap();
    run(Command::new("g++").args(["-O1", "-o"]).args([&program, &source])).expect(0);
    let (file, path) = (dir.path().join("probes.data"), program.display());
    let probing = |event: String| {
        let mut rec = rec();
        run(rec.args(["-q", "-e", &event, "-o"]).arg(&file).arg(&program))
    };
    for (pmu, name) in [
        ("uprobe", "lib::one"),
        ("uprobe", "lib::two(int)"),
        ("uprobe", "'lib::two(char, char const*)'"),
        ("uretprobe", "lib::one"),
    ] {
        let outcome = probing(format!("{pmu}/path={path},func={name}/u"));
        assert_eq!(outcome.code(), 0, "{name}: {}", outcome.stderr);
        assert_eq!(report::report(&file, "symbol").events[0].samples, 5, "{pmu} {name}");
    }
    // Several functions, and none: the message has names that can be copied.
    for (name, words) in
        [("lib::two", "several functions"), ("two", "did you mean"), ("lib::tow", "did you mean")]
    {
        let said = probing(format!("uprobe/path={path},func={name}/")).expect(2).stderr;
        assert!(
            [words, "_ZN3lib3twoEi (lib::two(int)"].iter().all(|part| said.contains(part)),
            "{said}"
        );
    }
}

/// A sleep is one switch out of the state "interruptible"; what else switches the thread out leaves
/// it in another.
#[test]
fn each_sleep_is_a_sample_of_sched_switch() {
    if !needs::tracefs() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("sleeps.data");
    let args = ["-e", "sched:sched_switch", "--filter", "prev_state == 1"];
    let outcome = traced(&file, &args, &workload("switches --count 321"));
    let sleeps = sleeps(&outcome);
    assert!(sleeps > 0);
    assert_eq!(outcome.summary(&file).samples, sleeps);
    assert_agrees(&file, Extent::Command);
    let script = perf_says(&["script", "-F", "trace:event,trace"], &file);
    let lines: Vec<_> =
        script.lines().filter(|line| line.contains("sched:sched_switch:")).collect();
    assert_eq!(lines.len() as u64, sleeps);
    for line in lines {
        assert!(line.contains("prev_comm=workload") && line.contains("prev_state=S"), "{line}");
    }
    assert_eq!(perf::stats(&file).records["SAMPLE"], sleeps);
}

/// The tracepoint and the kernel's own counter of the same.
#[test]
fn a_tracepoint_and_a_software_event_count_alike() {
    if !needs::tracefs() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("alike.data");
    let outcome = traced(
        &file,
        &["-c", "1", "-e", "{sched:sched_switch,cs}"],
        &workload("switches --count 200"),
    );
    let stats = perf::stats(&file);
    let samples: Vec<_> = stats.events.iter().map(|(_, records)| records["SAMPLE"]).collect();
    let sleeps = sleeps(&outcome);
    assert!(
        sleeps > 0 && samples[0] >= sleeps && samples[0] == samples[1],
        "{samples:?}, {sleeps} sleeps"
    );
    assert_eq!(perf_says(&["evlist", "-g"], &file).lines().next(), Some("{sched:sched_switch,cs}"));
}

#[test]
fn patterns_name_all_tracepoints_that_fit() {
    if !needs::tracefs() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("patterns.data");
    let events = ["-e", "sched:sched_process_*,syscalls:sys_enter_exit_group"];
    let samples = traced(&file, &events, &workload("end")).summary(&file).samples;
    let list = perf_says(&["evlist", "-v"], &file);
    for name in ["exec", "exit", "fork", "free"] {
        assert!(list.contains(&format!("sched:sched_process_{name}: type: 2,")), "{list}");
    }
    let script = perf_says(&["script", "-F", "trace:comm,event,trace"], &file);
    assert_eq!(script.lines().filter(|line| !line.trim().is_empty()).count() as u64, samples);
    assert!(
        script.contains(&format!(
            "sched:sched_process_exec: filename={}",
            programs().workload.display()
        )),
        "{script}"
    );
    assert!(script.contains("syscalls:sys_enter_exit_group: error_code: 0x00000000"), "{script}");
}

#[test]
fn a_stream_names_the_fields_too() {
    if !needs::tracefs() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("stream.data");
    let mut recording = rec();
    recording.args(["-o", "-", "-e", "sched:sched_process_exit", "--"]).args(workload("end"));
    let stream = run(&mut with_tracefs(&recording)).expect(0);
    fs::write(&file, stream.stdout).unwrap();
    let script = perf_says(&["script", "-F", "trace:event,trace"], &file);
    assert!(script.contains("sched:sched_process_exit: comm=workload pid="), "{script}");
}

#[test]
fn rec_leaves_itself_out() {
    if !needs::tracefs() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("all.data");
    let all = recording(
        &file,
        "-a -e sched:sched_switch --exclude-perf",
        &workload("switches --count 100"),
    );
    // One process after another, by exec: the last is rec.
    let running = start(&mut with_tracefs(&all));
    let pid = running.pid();
    let outcome = running.finish().expect(0);
    let summary = outcome.summary(&file);
    assert!(summary.samples + summary.lost_samples >= sleeps(&outcome), "{}", outcome.stderr);
    let script = perf_says(&["script", "-F", "trace:trace"], &file);
    let lines = |what: &str| {
        script.lines().filter(|line| line.contains(&format!("{what}_pid={pid} "))).count()
    };
    assert!(lines("next") > 0, "rec never ran");
    assert_eq!(lines("prev"), 0);
}

#[test]
fn a_filter_that_the_kernel_does_not_take() {
    if !needs::tracefs() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut recording = rec();
    recording.arg("-o").arg(dir.path().join("x.data"));
    recording
        .args(["-e", "sched:sched_switch", "--filter", "nope == 1", "--"])
        .args(workload("end"));
    let refusal = run(&mut with_tracefs(&recording)).expect(125);
    assert!(
        refusal.stderr.contains("cannot set the filter 'nope == 1' on sched:sched_switch"),
        "{}",
        refusal.stderr
    );
    assert!(refusal.stderr.contains("rec list sched:sched_switch"), "{}", refusal.stderr);
}

#[test]
fn without_tracefs_there_is_advice() {
    if !needs::perf_events() || !needs::root() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let recording =
        recording(&dir.path().join("x.data"), "-e sched:sched_switch", &workload("end"));
    let refusal = run(&mut without_tracefs(&recording)).expect(2);
    assert!(
        refusal.stderr.contains("mount -t tracefs nodev /sys/kernel/tracing"),
        "{}",
        refusal.stderr
    );
    let mut list = rec();
    let list = run(&mut without_tracefs(list.arg("list"))).expect(0);
    assert!(list.stderr.contains("mount -t tracefs"), "{}", list.stderr);
    assert!(list.text().contains("page-faults"));
}

/// The kernel says which software events it has.
#[test]
fn each_software_event_records() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let list = run(rec().args(["list", "--json", "sw"])).expect(0);
    let list: Value = serde_json::from_str(list.text()).unwrap();
    let names: Vec<&str> = list["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["name"].as_str().unwrap())
        .collect();
    for name in [
        "cpu-clock",
        "task-clock",
        "page-faults",
        "context-switches",
        "cpu-migrations",
        "minor-faults",
        "dummy",
    ] {
        assert!(names.contains(&name), "{name} is not in {names:?}");
    }
    for name in names {
        let file = dir.path().join(format!("{name}.data"));
        let command = match name {
            "cpu-clock" | "task-clock" => workload("hot --ms 50"),
            "context-switches" => workload("switches --count 50"),
            _ => workload("faults --pages 100"),
        };
        let samples = record(&file, &format!("-e {name}"), &command).summary(&file).samples;
        let counts = ["cpu-clock", "task-clock", "page-faults", "minor-faults", "context-switches"]
            .contains(&name);
        assert!(samples > 0 || !counts, "{name}");
        if samples > 0 {
            assert_agrees(&file, Extent::Command);
        }
        assert!(perf_says(&["evlist"], &file).starts_with(&format!("{name}\n")));
    }
}

#[test]
fn a_group_is_a_group_in_the_file() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("group.data");
    record(&file, "-e {page-faults,task-clock} -c 1000", &workload("hot --ms 100"));
    record(&file, "-e {cpu-clock,page-faults}:S", &workload("faults --pages 3000"));
    let list = perf_says(&["evlist", "-v"], &file);
    let events: Vec<_> = list.lines().filter(|line| line.contains("sample_type:")).collect();
    assert_eq!(events.len(), 2, "{list}");
    assert!(events[0].contains("|READ|") && events[0].contains("GROUP"), "{list}");
    assert!(
        events[0].contains("sample_freq }: 4000") && !events[1].contains("sample_freq"),
        "{list}"
    );
    assert_eq!(perf_says(&["evlist", "-g"], &file).trim(), "{cpu-clock,page-faults}");
    let header = perf_says(&["report", "--header-only"], &file);
    assert!(header.contains("group: {cpu-clock,page-faults}"), "{header}");
}

#[test]
fn a_list_of_what_there_is() {
    if !needs::tracefs() {
        return;
    }
    let listed = |what: &[&str]| {
        let mut list = rec();
        list.arg("list").args(what);
        run(&mut with_tracefs(&list))
    };
    let fields = listed(&["sched:sched_switch"]).expect(0);
    assert!(fields.text().contains("    prev_comm: char[16]\n"), "{}", fields.text());
    let some = listed(&["sched:sched_process_*", "page-faults"]).expect(0);
    assert!(
        some.text().contains("sched:sched_process_fork\n") && some.text().contains("or faults\n"),
        "{}",
        some.text()
    );
    let none = listed(&["shced:sched_switch"]).expect(125);
    assert!(none.stderr.contains("did you mean 'sched:sched_switch'?"), "{}", none.stderr);
}

//! Steering of a recording: what it is told while it goes on, when it counts, how much it keeps,
//! and whom it records.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use recrep_tests::agreement::{Extent, assert_reads};
use recrep_tests::perf::perf;
use recrep_tests::programs::{programs, rec, workload};
use recrep_tests::record::{record, record_for, recording};
use recrep_tests::report::report;
use recrep_tests::run::{Running, has_thread, run, start, until, until_it_has};
use recrep_tests::{lock, needs};
use rustix::process::Signal;
use serde_json::Value;

/// The times of all samples, in seconds, in order.
fn times(file: &Path) -> Vec<f64> {
    let script = run(perf().args(["script", "-F", "time", "-i"]).arg(file)).expect(0);
    script.text().lines().map(|line| line.trim().trim_end_matches(':').parse().unwrap()).collect()
}

/// A time of a thread in which a recording of 2000 samples a second has enough of them.
const SOME_TIME: Duration = Duration::from_millis(100);

fn attaching(file: &Path, whom: &[&str]) -> Command {
    let mut recorder = rec();
    recorder.args(["-e", "cpu-clock", "-F", "2000"]).args(whom).arg("-o").arg(file);
    recorder
}

/// The workload as a process of its own, ended when dropped.
struct Busy(Option<Running>);

impl Busy {
    fn start(args: &str) -> Busy {
        let words = workload(args);
        Busy(Some(start(Command::new(&words[0]).args(&words[1..]))))
    }

    fn pid(&self) -> String {
        self.0.as_ref().unwrap().pid().as_raw_nonzero().to_string()
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        if let Some(running) = self.0.take() {
            running.signal(Signal::KILL);
            running.finish();
        }
    }
}

/// Commands go in, and each that is done is acknowledged.
struct Controlled {
    rec: Running,
    commands: File,
    acks: BufReader<File>,
}

impl Controlled {
    #[track_caller]
    fn start(dir: &Path, args: &str) -> Controlled {
        let pipes = [dir.join("commands"), dir.join("acks")];
        let open = |path: &Path| OpenOptions::new().read(true).write(true).open(path).unwrap();
        let [commands, acks] = pipes.each_ref().map(|path| {
            run(Command::new("mkfifo").arg(path)).expect(0);
            open(path)
        });
        let args = format!("--control=fifo:{},{} {args}", pipes[0].display(), pipes[1].display());
        let rec = start(&mut recording(&dir.join("x.data"), &args, &workload("hot --ms 60000")));
        Controlled { rec, commands, acks: BufReader::new(acks) }
    }

    /// Waits until the workload has had [`SOME_TIME`].
    #[track_caller]
    fn let_it_run(&self) {
        let before = self.rec.childs_cpu_time();
        let has_run = || self.rec.childs_cpu_time() >= before + SOME_TIME;
        until(has_run, || format!("the workload does not run: {}", self.rec.said()));
    }

    #[track_caller]
    fn tell(&mut self, command: &str) {
        self.commands.write_all(format!("{command}\n").as_bytes()).unwrap();
        let mut ack = String::new();
        self.acks.read_line(&mut ack).unwrap();
        assert_eq!(ack, "ack\n", "{command}: {}", self.rec.said());
    }
}

#[test]
fn commands_are_done_and_acknowledged() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x.data");
    let mut rec = Controlled::start(dir.path(), "-D -1 -e cpu-clock,page-faults -F 2000");
    rec.tell("ping");
    sleep(Duration::from_millis(200));
    rec.tell("evlist");
    rec.tell("enable");
    rec.let_it_run();
    rec.tell("disable");
    sleep(Duration::from_millis(300));
    rec.tell("enable cpu-clock");
    rec.let_it_run();
    rec.tell("disable cpu-clock");
    rec.tell("stop");
    let outcome = rec.rec.finish();
    assert_ne!(outcome.code(), 125, "{}", outcome.stderr);
    assert!(
        outcome.stderr.contains("cpu-clock") && outcome.stderr.contains("page-faults"),
        "{}",
        outcome.stderr
    );
    assert_eq!(assert_reads(&file, Extent::Command), outcome.summary(&file).samples);
    let times = times(&file);
    let gap = times.windows(2).map(|two| two[1] - two[0]).fold(0.0, f64::max);
    assert!(times.len() > 10 && gap > 0.25, "{} samples, the longest pause {gap} s", times.len());
}

#[test]
fn a_command_that_is_none_is_told() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut rec = Controlled::start(dir.path(), "-e cpu-clock");
    rec.commands.write_all(b"halt\n").unwrap();
    rec.tell("enable nonsense");
    rec.tell("stop");
    let outcome = rec.rec.finish();
    assert!(outcome.stderr.contains("unknown command 'halt'"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("no event is named 'nonsense'"), "{}", outcome.stderr);
}

#[test]
fn it_counts_in_these_ranges_only() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x.data");
    // On a machine that is busy otherwise, the command may have no time in one of both.
    let both = |_| {
        let outcome =
            record(&file, "-e cpu-clock -F 2000 -D 100-300,700-900", &workload("hot --ms 1200"));
        assert_eq!(assert_reads(&file, Extent::Command), outcome.summary(&file).samples);
        let times = times(&file);
        let gap = times.windows(2).map(|two| two[1] - two[0]).fold(0.0, f64::max);
        let all = times.last().zip(times.first()).map_or(0.0, |(last, first)| last - first);
        println!("{} samples in {all} s, a pause of {gap} s", times.len());
        gap > 0.3 && all < 1.0
    };
    assert!((0..5).any(both));
    // Later than the command: nothing at all, and still a file.
    let outcome = record(&file, "-e cpu-clock -D 60000", &workload("hot --ms 50"));
    assert_eq!((outcome.summary(&file).samples, assert_reads(&file, Extent::Command)), (0, 0));
}

#[test]
fn what_is_only_counted_is_told() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x.data");
    let counted = |args: &str, pages: u64| -> u64 {
        let outcome = record(&file, args, &workload(&format!("faults --pages {pages}")));
        // Counts alone are not in the file.
        assert_eq!(outcome.stderr.contains("view: rep"), !args.starts_with("-n"), "{args}");
        let line = outcome.stderr.lines().find(|line| line.contains("counted, not sampled: "));
        let line = line.unwrap_or_else(|| panic!("{args}: {}", outcome.stderr));
        let count = line.split("page-faults ").nth(1).unwrap().split(", ").next().unwrap();
        count.replace(',', "").parse().unwrap()
    };
    for args in ["-n -e page-faults,task-clock", "-e {task-clock,page-faults}:S"] {
        let [few, many] = [100, 4100].map(|pages| counted(args, pages));
        let more = many - few;
        assert!((3900..4200).contains(&more), "{args}: {few}, {many}");
    }
}

#[test]
fn so_much_and_no_more() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x.data");
    let outcome = run(&mut recording(
        &file,
        "-e cpu-clock -F 10000 -m 8 --max-size=50K",
        &workload("hot --ms 60000"),
    ));
    assert!(outcome.stderr.contains("--max-size"), "{}", outcome.stderr);
    assert_reads(&file, Extent::Command);
    let length = fs::metadata(&file).unwrap().len();
    assert!((50 << 10..150 << 10).contains(&length), "{length}");
    // One that comes seldom wakes nobody.
    for (args, most) in [("-e cpu-clock -F 10000", 100), ("-e page-faults -c 1", 1)] {
        let args = format!("{args} --max-samples={most}");
        let outcome = run(&mut recording(&file, &args, &workload("hot --ms 60000")));
        assert!(outcome.stderr.contains("--max-samples"), "{}", outcome.stderr);
        let samples = report(&file, "symbol").events.iter().map(|event| event.samples).sum::<u64>();
        assert!(samples >= most, "{args}: {samples}");
        let plan = run(rec().args(["--dry-run", "--json"]).args(args.split(' ')).arg("true"));
        let plan: Value = serde_json::from_str(plan.expect(0).text()).unwrap();
        assert_eq!(plan["events"][0]["attr"]["wakeup_events"], most, "{plan}");
    }
    let pieces = dir.path().join("pieces");
    fs::create_dir(&pieces).unwrap();
    let args = "-e cpu-clock -F 10000 -m 8 --switch-output=20K --switch-max-files=2";
    let outcome = record(&pieces.join("x.data"), args, &workload("hot --ms 500"));
    let mut files: Vec<_> =
        fs::read_dir(&pieces).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert_eq!(files.len(), 2, "{files:?}");
    let made = outcome.stderr.lines().filter(|line| line.starts_with("rec: recorded "));
    let made: Vec<_> = made.map(|line| line.rsplit("; view: rep ").next().unwrap()).collect();
    assert!(made.len() > 2, "{}", outcome.stderr);
    assert_eq!(
        files.iter().map(|file| file.to_str().unwrap()).collect::<Vec<_>>(),
        made[made.len() - 2..]
    );
}

#[test]
fn several_processes_at_once() {
    if !needs::perf_events() {
        return;
    }
    let _cpus = lock::cpus();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x.data");
    let all = [(); 3].map(|()| Busy::start("hot --ms 60000"));
    let pids = all.each_ref().map(Busy::pid);
    let both = format!("{},{}", pids[0], pids[2]);
    record_for(SOME_TIME, &[&pids[0], &pids[2]], &mut attaching(&file, &["-p", &both]));
    assert_reads(&file, Extent::Command);
    let table = report(&file, "pid").events[0].table();
    let found: Vec<_> =
        table.rows.keys().map(|key| key[0].split(':').next().unwrap().trim().to_owned()).collect();
    let mut asked = [pids[0].clone(), pids[2].clone()];
    asked.sort();
    assert_eq!(found, asked, "{table:?}");
    // One that ends is no end; the last one is.
    let [first, _, last] = all;
    fs::remove_file(&file).unwrap();
    let rec = start(rec().args(["-e", "cpu-clock", "-p", &both, "-o"]).arg(&file));
    // With the mappings of both, which are written when their counters are open.
    until_it_has(2000, &file, &rec);
    drop(first);
    sleep(Duration::from_millis(200));
    drop(last);
    rec.finish().expect(0);
    assert_reads(&file, Extent::Command);
}

#[test]
fn all_of_a_user_and_nobody_else() {
    if !needs::perf_events() || !needs::root() {
        return;
    }
    let _cpus = lock::cpus();
    let dir = tempfile::tempdir().unwrap();
    let (file, copy) = (dir.path().join("x.data"), dir.path().join("theirs"));
    fs::copy(&programs().workload, &copy).unwrap();
    run(Command::new("chmod").args(["755"]).arg(dir.path()).arg(&copy)).expect(0);
    let mut theirs = Command::new("setpriv");
    theirs.args(["--reuid=54321", "--regid=54321", "--clear-groups"]).arg(&copy);
    let theirs = start(theirs.args(["hot", "--ms", "60000", "--threads", "2"]));
    let ours = Busy::start("hot --ms 60000");
    let pid = theirs.pid().as_raw_nonzero().to_string();
    until(|| has_thread(&pid, "hot-1"), || format!("no second thread: {}", theirs.said()));
    record_for(SOME_TIME, &[&pid], &mut attaching(&file, &["-u", "54321"]));
    let table = report(&file, "comm").events[0].table();
    assert_eq!(
        table.rows.keys().map(|key| key[0].as_str()).collect::<Vec<_>>(),
        ["hot-1", "theirs"]
    );
    drop(ours);
    theirs.signal(Signal::KILL);
    theirs.finish();
    let none = run(&mut recording(&file, "-e cpu-clock -u no-such-user", &["true".to_owned()]));
    assert!(
        [2, 125].contains(&none.code()) && none.stderr.contains("no-such-user"),
        "{}",
        none.stderr
    );
}

/// A cgroup of the hierarchy that perf events go by, removed when dropped.
struct Group(PathBuf);

impl Group {
    /// None where there is no such hierarchy that can be written to.
    fn new(name: &str) -> Option<Group> {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        let at = |line: &str| line.split(' ').nth(1).unwrap_or_default().to_owned();
        let first =
            mounts.lines().find(|line| line.contains(" cgroup ") && line.contains("perf_event"));
        let root =
            first.or_else(|| mounts.lines().find(|line| line.contains(" cgroup2 "))).map(at)?;
        let path = Path::new(&root).join(name);
        fs::create_dir(&path).ok()?;
        Some(Group(path))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Whoever was in it may take a moment to be gone.
        for _ in 0..100 {
            if fs::remove_dir(&self.0).is_ok() {
                break;
            }
            sleep(Duration::from_millis(10));
        }
    }
}

#[test]
fn a_cgroup_and_nothing_else() {
    if !needs::perf_events() || !needs::root() {
        return;
    }
    let name = format!("recrep-{}", std::process::id());
    let Some(group) = Group::new(&name) else {
        eprintln!("skipped: needs a cgroup hierarchy for perf events that can be written");
        return;
    };
    let _cpus = lock::cpus();
    let (inside, outside) = (Busy::start("hot --ms 60000"), Busy::start("hot --ms 60000"));
    fs::write(group.0.join("cgroup.procs"), inside.pid()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x.data");
    let pid = inside.pid();
    record_for(SOME_TIME, &[&pid, &outside.pid()], &mut attaching(&file, &["-a", "-G", &name]));
    drop((inside, outside));
    let table = report(&file, "pid").events[0].table();
    assert!(
        table.samples() > 20 && table.rows.keys().all(|key| key[0].starts_with(&pid)),
        "{table:?}"
    );
    let missing =
        run(&mut recording(&file, "-a -e cpu-clock -G no/such/group", &["true".to_owned()]))
            .expect(125);
    assert!(
        missing.stderr.contains("no/such/group") && missing.stderr.contains("-G"),
        "{}",
        missing.stderr
    );
}

#[test]
fn real_time_priority_is_roots() {
    if !needs::perf_events() || !needs::root() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x.data");
    record(&file, "-r 1 -e cpu-clock", &workload("hot --ms 50"));
    assert_reads(&file, Extent::Command);
    let copy = dir.path().join("rec");
    fs::copy(&programs().rec, &copy).unwrap();
    run(Command::new("chmod").args(["777"]).arg(dir.path()).arg(&copy)).expect(0);
    let mut nobody = Command::new("setpriv");
    nobody.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"]).arg(&copy);
    let file = dir.path().join("nobodys.data");
    let outcome =
        run(nobody.arg("-o").arg(&file).args(["-r", "1", "-e", "cpu-clock:u", "--", "true"]))
            .expect(125);
    assert!(
        outcome.stderr.contains("CAP_SYS_NICE") && outcome.stderr.contains("-r"),
        "{}",
        outcome.stderr
    );
    assert!(!file.exists());
}

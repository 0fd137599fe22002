//! Recordings of a user without privileges: their own programs, in user mode, and a sentence about
//! the rest.
//!
//! Each test becomes nobody through setpriv; the programs are copied to a directory that nobody can
//! reach, which a checkout in root's home is not.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use recrep_fixtures::{HOT_ONE_QUARTER, HOT_SHARE, HOT_THREE_QUARTERS};
use recrep_tests::needs;
use recrep_tests::programs::programs;
use recrep_tests::report::report;
use recrep_tests::run::run;

/// A directory of nobody's with the programs in it.
struct Home(tempfile::TempDir);

impl Home {
    /// None where the machine does not let us.
    #[track_caller]
    fn new() -> Option<Home> {
        if !needs::perf_events() || !needs::root() {
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), Permissions::from_mode(0o777)).unwrap();
        for program in [&programs().rec, &programs().rep, &programs().workload] {
            let copy = dir.path().join(program.file_name().unwrap());
            fs::copy(program, &copy).unwrap();
            fs::set_permissions(&copy, Permissions::from_mode(0o755)).unwrap();
        }
        Some(Home(dir))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A program of this directory, to be run there as nobody.
    fn nobody(&self, program: &str) -> Command {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"]);
        command.arg(self.path(program)).current_dir(self.0.path());
        command
    }
}

fn paranoid() -> i32 {
    fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap().trim().parse().unwrap()
}

#[test]
fn own_programs_are_recorded_in_user_mode() {
    let Some(home) = Home::new() else { return };
    let mut rec = home.nobody("rec");
    rec.args(["-o", "mine.data", "--"]).arg(home.path("workload")).args(["hot", "--ms", "700"]);
    let outcome = run(&mut rec).expect(0);
    let file = home.path("mine.data");
    let report = report(&file, "symbol");
    let [event] = &report.events[..] else {
        panic!("one event is the default: {:?}", report.events)
    };
    let table = event.table();
    if paranoid() >= 2 {
        assert!(
            event.name.ends_with(":u")
                || event.name.ends_with(":Pu")
                || event.name.ends_with(":uP"),
            "{}",
            event.name
        );
        let told = outcome
            .stderr
            .lines()
            .filter(|line| line.contains("user") && line.contains("perf_event_paranoid"));
        assert_eq!(
            told.count(),
            1,
            "one line says that only user mode is recorded: {}",
            outcome.stderr
        );
        assert_eq!(table.samples_where(|key| !key[0].starts_with("[.] ")), 0, "{table:?}");
    }
    let of = |name| table.samples_where(|key| key[0].strip_prefix("[.] ") == Some(name));
    let (major, minor) = (of(HOT_THREE_QUARTERS), of(HOT_ONE_QUARTER));
    assert!(major + minor >= 200, "{major} and {minor}");
    let share =
        f64::from(u32::try_from(major).unwrap()) / f64::from(u32::try_from(major + minor).unwrap());
    assert!((share - HOT_SHARE).abs() <= 0.03, "{share}");
}

/// Runs `rec` as nobody with arguments that need more rights; it must fail as itself, say which
/// setting or right would allow it, and leave no file behind.
#[track_caller]
fn assert_refused(args: &[&str], also_says: &str) {
    let Some(home) = Home::new() else { return };
    let outcome = run(home.nobody("rec").args(["-o", "theirs.data"]).args(args)).expect(125);
    assert!(outcome.stderr.contains(also_says), "{also_says:?} in {}", outcome.stderr);
    assert!(!outcome.stderr.contains("panicked"), "{}", outcome.stderr);
    let advice = ["perf_event_paranoid", "CAP_PERFMON", "ptrace"];
    assert!(
        advice.iter().any(|word| outcome.stderr.contains(word)),
        "what would allow it: {}",
        outcome.stderr
    );
    assert!(!home.path("theirs.data").exists());
}

#[test]
fn the_whole_machine_is_refused() {
    if paranoid() >= 1 {
        assert_refused(&["-a", "-e", "cpu-clock", "--", "sleep", "1"], "CPU");
    }
}

#[test]
fn the_kernel_is_refused() {
    if paranoid() >= 2 {
        assert_refused(&["-e", "cpu-clock:k", "--", "true"], "cpu-clock:k");
    }
}

#[test]
fn somebody_elses_process_is_refused() {
    let pid = std::process::id().to_string();
    assert_refused(&["-e", "cpu-clock:u", "-p", &pid, "--", "sleep", "1"], &pid);
}

#[test]
fn a_file_of_somebody_elses_is_not_reported() {
    let Some(home) = Home::new() else { return };
    let file = home.path("secret.data");
    fs::write(&file, "PERFILE2").unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    let outcome = run(home.nobody("rep").arg("secret.data")).expect(1);
    assert!(
        outcome.stderr.contains("secret.data") && outcome.stderr.contains("ermission"),
        "{}",
        outcome.stderr
    );
}

/// The kernel ends the counters of what has rights of its own at its execution: it runs as alone,
/// and rec says so.
#[test]
fn a_program_with_rights_of_its_own_is_told() {
    let Some(home) = Home::new() else { return };
    let program = home.path("own");
    fs::copy("/bin/sh", &program).unwrap();
    // The first cannot be read; the second is root's, if the file system allows it.
    for mode in [0o711, 0o4755] {
        fs::set_permissions(&program, Permissions::from_mode(mode)).unwrap();
        let alone = run(home.nobody("own").args(["-p", "-c", "id -u; exit 3"])).expect(3);
        if mode == 0o4755 && alone.text() != "0\n" {
            continue;
        }
        for command in [
            &["./own", "-p", "-c", "id -u; exit 3"][..],
            &["sh", "-c", "./own -p -c 'id -u; exit 3'; exit 3"],
        ] {
            let mut rec = home.nobody("rec");
            let recorded =
                run(rec.args(["-q", "-e", "cpu-clock:u", "-o", "own.data", "--"]).args(command))
                    .expect(3);
            assert_eq!(recorded.text(), alone.text(), "{mode:o}");
            assert!(
                recorded.stderr.starts_with("rec: 'own' is not recorded: "),
                "{mode:o}: {}",
                recorded.stderr
            );
            assert_eq!(recorded.stderr.lines().count(), 1, "{mode:o}: {}", recorded.stderr);
        }
    }
    let mut rec = home.nobody("rec");
    let recorded = run(rec.args([
        "-q",
        "-e",
        "cpu-clock:u",
        "-o",
        "own.data",
        "--",
        "sh",
        "-c",
        "id -u >&2; ls; :",
    ]));
    assert_eq!(recorded.expect(0).stderr, "65534\n");
}

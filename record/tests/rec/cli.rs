//! The command line's promises: exit statuses, messages, what happens to files. Most need no perf
//! events.

use super::common::{can_record, place, rec, run, said};
use std::os::unix::fs::PermissionsExt;

fn status(words: &[&str]) -> i32 {
    let (_dir, path) = place();
    run(&path, words).status.code().unwrap()
}

#[test]
fn help_and_version() {
    let help = rec().arg("--help").output().unwrap();
    assert!(help.status.success());
    assert!(String::from_utf8(help.stdout).unwrap().contains("--call-graph"));
    let version = rec().arg("--version").output().unwrap();
    assert!(version.status.success());
    assert!(version.stdout.starts_with(b"rec "));
}

#[test]
fn usage_errors_are_2_and_name_what_is_wrong() {
    for (words, named) in [
        (&["--kcore", "--", "true"][..], "--kcore is a flag of perf record"),
        (&["--aio=2", "--", "true"], "--aio is a flag of perf record"),
        (&["--call-graph", "backwards", "--", "true"], "backwards"),
        (&["--switch-output=1X", "--", "true"], "--switch-output"),
        (&["-e", "no-such-event", "--", "true"], "no-such-event"),
        (&["-e", "no_such:tracepoint", "--", "true"], "tracepoint"),
        (&["-a", "-p", "1"], "cannot be used with"),
        (&["-F", "0", "--", "true"], "-F"),
        (&[], "nothing to record"),
        (&["-e", "no-such-pmu/event=1/", "--", "true"], "(see rec list pmu)"),
    ] {
        let (_dir, path) = place();
        let output = run(&path, words);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(said(&output).contains(named), "{words:?}: {}", said(&output));
        assert!(!path.exists(), "{words:?} left a file");
    }
}

#[test]
fn usage_errors_of_lists_are_one_line_too() {
    let output = rec().args(["list", "--jsn"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        said(&output),
        "rec: there is no option '--jsn'; did you mean '--json'? (see rec list --help)\n"
    );
}

#[test]
fn a_process_that_is_gone() {
    let (_dir, path) = place();
    let output = run(&path, &["-p", "2147483000"]);
    assert_eq!(output.status.code(), Some(125));
    assert!(said(&output).contains("there is no process"), "{}", said(&output));
    assert!(!path.exists());
}

/// Tests that record.
mod live {
    use super::*;

    #[test]
    fn the_command_s_status_is_rec_s() {
        if !can_record() {
            return;
        }
        assert_eq!(status(&["--", "true"]), 0);
        assert_eq!(status(&["--", "sh", "-c", "exit 42"]), 42);
        assert_eq!(status(&["--", "sh", "-c", "kill -KILL $$"]), 137);
        assert_eq!(status(&["--", "no-such-command-anywhere"]), 127);
        assert_eq!(status(&["--", "/"]), 126);
    }

    #[test]
    fn a_command_that_cannot_run_leaves_the_files_as_they_were() {
        if !can_record() {
            return;
        }
        let (_dir, path) = place();
        std::fs::write(&path, "precious").unwrap();
        assert_eq!(run(&path, &["--", "no-such-command-anywhere"]).status.code(), Some(127));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
        assert!(!path.with_extension("data.old").exists());
    }

    #[test]
    fn the_file_is_out_data_private_and_the_old_one_is_kept() {
        if !can_record() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        for _ in 0..2 {
            assert!(
                rec()
                    .args(["-q", "--", "true"])
                    .current_dir(dir.path())
                    .status()
                    .unwrap()
                    .success()
            );
        }
        let mut names: Vec<_> =
            std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["out.data", "out.data.old"]);
        let mode = std::fs::metadata(dir.path().join("out.data")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn quiet_says_nothing_and_verbose_explains() {
        if !can_record() {
            return;
        }
        let (_dir, path) = place();
        assert_eq!(said(&run(&path, &["-q", "--", "true"])), "");
        let verbose = said(&run(&path, &["-v", "-e", "cpu-clock", "--", "true"]));
        assert!(verbose.contains("event cpu-clock") && verbose.contains("rings:"), "{verbose}");
        // Bits by their names alone, and the last line is the last.
        assert!(
            verbose.contains("sample_type IP|TID|TIME|")
                && verbose.contains("flags DISABLED|INHERIT|"),
            "{verbose}"
        );
        assert!(verbose.contains("rec: kept 0 recorded files (0 bytes)"), "{verbose}");
        assert!(verbose.lines().last().unwrap().starts_with("rec: recorded "), "{verbose}");
    }

    #[test]
    fn a_file_that_cannot_be_made_is_125_and_the_command_does_not_run() {
        if !can_record() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let made = dir.path().join("made");
        let output =
            run(&dir.path().join("no/such/x.data"), &["--", "touch", made.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(125));
        assert!(said(&output).contains("cannot create"), "{}", said(&output));
        assert!(!made.exists());
    }

    #[test]
    fn a_command_s_end_is_noticed_where_the_signal_of_it_was_blocked() {
        if !can_record() {
            return;
        }
        let (_dir, path) = place();
        let blocked = [
            "--block-signal=CHLD",
            "--block-signal=TERM",
            "timeout",
            "-sKILL",
            "20",
            env!("CARGO_BIN_EXE_rec"),
            "-q",
            "-o",
        ];
        let mut env = std::process::Command::new("env");
        let output =
            env.args(blocked).arg(&path).args(["-e", "cpu-clock", "--", "true"]).output().unwrap();
        assert_eq!((said(&output).as_str(), output.status.code()), ("", Some(0)));
    }

    #[test]
    fn a_full_disk_ends_the_recording_and_not_the_command() {
        if !can_record() {
            return;
        }
        // A file that may not grow beyond 8 KiB; a command that goes on for long after that.
        let script = "ulimit -f 16; exec \"$@\"";
        for (end, status) in [(0, 125), (3, 3)] {
            let dir = tempfile::tempdir().unwrap();
            let (file, done) = (dir.path().join("x.data"), dir.path().join("done"));
            let work = "i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done";
            let command =
                format!("ulimit -f unlimited; {work}; echo > {}; exit {end}", done.display());
            let mut sh = std::process::Command::new("sh");
            sh.args([
                "-c",
                script,
                "sh",
                env!("CARGO_BIN_EXE_rec"),
                "-e",
                "cpu-clock",
                "-F",
                "20000",
                "-m",
                "2",
                "-o",
            ]);
            let output = sh.arg(&file).args(["--", "sh", "-c", &command]).output().unwrap();
            let said = said(&output);
            assert_eq!(output.status.code(), Some(status), "{said}");
            assert!(said.contains("cannot write") && said.contains("File too large"), "{said}");
            assert!(said.contains("the command goes on"), "{said}");
            assert!(done.exists(), "the command was ended");
            let bytes = std::fs::read(&file).unwrap();
            let parsed = recrep_format::read::File::parse(&bytes).unwrap();
            assert!(parsed.warnings.is_empty(), "{:?}", parsed.warnings);
            assert!(parsed.records().all(|record| record.is_ok()) && parsed.records().count() > 10);
            assert!(parsed.feature::<recrep_format::feature::Hostname<'_>>().is_some());
        }
    }

    #[test]
    fn the_command_has_its_own_output_and_input() {
        if !can_record() {
            return;
        }
        let (_dir, path) = place();
        let output = run(&path, &["--", "sh", "-c", "echo out; echo err >&2"]);
        assert_eq!(output.stdout, b"out\n");
        assert!(said(&output).starts_with("err\n") || said(&output).contains("\nerr\n"));
    }
}

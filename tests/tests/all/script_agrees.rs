//! `rep script` against `perf script`: the same values line by line, on files recorded here, on
//! fixtures, on a corpus.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use recrep_fixtures::manifest::cases;
use recrep_fixtures::recorded;
use recrep_tests::agreement::Extent;
use recrep_tests::campaign::originals;
use recrep_tests::listing::{FIELDS, Form, Listing, compare};
use recrep_tests::programs::workload;
use recrep_tests::record::record;
use recrep_tests::run::run;
use recrep_tests::{needs, perf};

/// A file that perf must be able to read.
#[track_caller]
fn agreed(file: &Path, extent: Extent<'_>, fields: &[&'static str]) -> Listing {
    let listing = compare(file, extent, fields)
        .unwrap_or_else(|said| panic!("perf cannot read {}: {said}", file.display()));
    println!(
        "{:?}: {} lines, {:?} in form",
        file.file_name().unwrap_or_default(),
        listing.lines,
        listing.forms
    );
    listing
}

fn shell() -> Vec<String> {
    let script = "for i in 1 2 3; do ls -l /usr/bin /usr/lib >/dev/null; seq 30000 | sort -rn | \
                  md5sum; done";
    ["sh", "-c", script].map(str::to_owned).to_vec()
}

/// Records with perf, then with rec, by the same options, and compares both.
#[track_caller]
fn both(args: &str, extent: Extent<'_>, command: &[String], fields: &[&str]) {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    for (name, recorder) in
        [("perf.data", perf::record as fn(&Path, &str, &[String]) -> _), ("rec.data", record)]
    {
        let file = dir.path().join(name);
        recorder(&file, args, command);
        let listing = agreed(&file, extent, &FIELDS);
        assert!(listing.lines > 20, "too few to mean anything: {listing:?}");
        for field in fields {
            assert!(listing.fields.contains(field), "{field} is not compared: {listing:?}");
        }
    }
}

#[test]
fn fixtures() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (mut files, mut lines, mut forms) = (0, 0, BTreeMap::new());
    for case in cases() {
        // Samples have the same fields in each form, and perf names one at a time that they do not
        // have.
        let mut fields = FIELDS.to_vec();
        for form in case.forms() {
            // Where perf differs is in the manifest, and is tested by it; of pipes it cannot say
            // what it cannot print.
            let differs = case.differences(form).next().is_some();
            // perf script divides by a zero of the first's trace even where it decodes nothing,
            // lists the counts of the second, and cannot read the name of an event whose attr is
            // longer than it knows.
            if differs
                || form.container.is_pipe()
                || ["aux-spe", "stat", "unknown-bits"].contains(&case.name)
            {
                continue;
            }
            let file = dir.path().join(format!("{}.{form}.data", case.name));
            std::fs::write(&file, case.bytes(form)).unwrap();
            let listing = agreed(&file, Extent::Foreign, &fields);
            files += 1;
            lines += listing.lines;
            add(&mut forms, &listing);
            fields = listing.fields;
        }
    }
    for recorded in recorded::ALL.iter().filter(|recorded| !recorded.is_pipe) {
        let file = dir.path().join(recorded.name);
        std::fs::write(&file, recorded.bytes).unwrap();
        lines += agreed(&file, Extent::Foreign, &FIELDS).lines;
        files += 1;
    }
    println!("{lines} lines of {files} files, of which in form {forms:?}");
    assert!(files > 100 && lines > 500, "{files} {lines}");
}

fn add(forms: &mut BTreeMap<Form, usize>, listing: &Listing) {
    listing.forms.iter().for_each(|(form, count)| *forms.entry(*form).or_insert(0) += count);
}

#[test]
fn a_corpus() {
    let Some(dir) = needs::corpus() else { return };
    if !needs::perf_events() {
        return;
    }
    let (mut lines, mut forms, mut refused, mut read) = (0, BTreeMap::new(), Vec::new(), 0);
    for (name, _) in originals(&dir).unwrap() {
        match compare(&dir.join(&name), Extent::Foreign, &FIELDS) {
            Ok(listing) => {
                println!("{name}: {} lines, {:?} in form", listing.lines, listing.forms);
                read += 1;
                lines += listing.lines;
                add(&mut forms, &listing);
            }
            Err(said) => refused.push((name, said)),
        }
    }
    println!(
        "{lines} lines of {read} files, of which in form {forms:?}; perf refused {refused:#?}"
    );
    // Attrs longer than perf knows, packed records that it does not know, a pipe with a record of
    // size zero.
    let whys = ["incompatible file format", "failed to process type: 83", "bad event header size"];
    let known = |said: &String| whys.iter().any(|why| said.contains(why));
    assert!(refused.iter().all(|(_, said)| known(said)), "{refused:?}");
    assert!(read > refused.len() * 4, "{read} files");
}

/// Tests that record.
mod live {
    use super::*;

    #[test]
    fn flat() {
        both(
            "-e cpu-clock",
            Extent::Command,
            &shell(),
            &["comm", "pid", "tid", "time", "event", "ip", "sym", "dso", "period"],
        );
    }

    #[test]
    fn callchains() {
        both("-e cpu-clock -g", Extent::Command, &shell(), &["ip", "sym", "dso"]);
    }

    #[test]
    fn system_wide() {
        if needs::root() {
            both(
                "-e cpu-clock -a -F 999",
                Extent::System(&["workload"]),
                &workload("hot --ms 150 --threads 2 --forks 1"),
                &["cpu"],
            );
        }
    }

    #[test]
    fn two_events() {
        both("-e cpu-clock,page-faults", Extent::Command, &shell(), &["event"]);
    }

    #[test]
    fn page_faults_with_addresses() {
        both("-e page-faults -c 1 -d", Extent::Command, &workload("faults --pages 200"), &["addr"]);
    }

    #[test]
    fn tracepoints() {
        if !needs::perf_events() || !needs::root() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("perf.data");
        // In a mount namespace, so that nothing is left of it here.
        let script = "mount -t tracefs tracefs /sys/kernel/tracing && exec \"$@\"";
        let mut unshare = Command::new("unshare");
        unshare.args(["--mount", "sh", "-c", script, "sh"]).arg(perf::perf().get_program());
        unshare.args(perf::recorder().get_args()).args([
            "-e",
            "sched:sched_switch,sched:sched_process_exec",
            "-a",
            "-o",
        ]);
        unshare.arg(&file);
        let recorded =
            run(unshare.args(["--", "sh", "-c", "ls >/dev/null; sleep 0.02; ls >/dev/null"]));
        if recorded.code() != 0 {
            println!("did not run: no tracefs can be mounted: {}", recorded.stderr.trim());
            return;
        }
        let listing = agreed(&file, Extent::System(&["sh", "ls", "sleep"]), &FIELDS);
        assert!(listing.lines > 4, "{listing:?}");
    }
}

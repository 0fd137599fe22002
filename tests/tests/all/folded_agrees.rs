//! `rep --format folded` against `perf script` and the well-known collapse library, line by line.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::process::Command;

use inferno::collapse::Collapse;
use inferno::collapse::perf::{Folder, Options};
use recrep_fixtures::build::{Event, SampleSpec, Stream};
use recrep_fixtures::manifest::cases;
use recrep_format::abi::{EventType, SampleType, context};
use recrep_format::endian::Endian;
use recrep_tests::aliases::with_shortest_names;
use recrep_tests::campaign::originals;
use recrep_tests::forms::{forms, is_full};
use recrep_tests::programs::{rep, workload};
use recrep_tests::record::record;
use recrep_tests::report::{listed, without_hash};
use recrep_tests::run::run;
use recrep_tests::table::is_plt;
use recrep_tests::{needs, perf};
use serde_json::Value;

/// Lines by their stacks. Linkage-table entries are one: perf before 6.3 names them by their
/// position among the relocations (see [`recrep_tests::table`]), or not at all (see
/// [`with_entries_named`]).
fn lines_of(text: &str) -> BTreeMap<String, u64> {
    let plain = |stack: &str| -> String {
        let name = |frame: &str| match is_plt(frame) {
            true => "@plt".to_owned(),
            false => with_shortest_names(&without_hash(frame)),
        };
        stack.split(';').map(name).collect::<Vec<_>>().join(";")
    };
    let mut lines = BTreeMap::new();
    for line in text.lines() {
        let (stack, count) = line.rsplit_once(' ').unwrap();
        *lines.entry(plain(stack)).or_default() += count.parse::<u64>().unwrap();
    }
    lines
}

/// Returns the places of a module's linkage tables in its file.
fn linkage_tables(module: &str) -> Vec<Range<u64>> {
    let listed = run(Command::new("readelf").args(["-SW", module]));
    let sections = listed.text().lines().filter_map(|line| {
        let fields: Vec<_> = line.split_once(']')?.1.split_whitespace().collect();
        let [name, _type, _address, offset, size, ..] = fields[..] else { return None };
        let number = |field| u64::from_str_radix(field, 16).ok();
        let (offset, size) = (number(offset)?, number(size)?);
        name.starts_with(".plt").then_some(offset..offset + size)
    });
    sections.collect()
}

/// Returns the output of `perf script`, with a name for the entries of linkage tables that perf
/// finds none for: of a frame in a file it tells the place there.
fn with_entries_named(script: &str) -> String {
    let mut known: BTreeMap<String, Vec<Range<u64>>> = BTreeMap::new();
    let mut named = |line: &str| {
        let (place, module) = line.trim().split_once(" [unknown] (")?;
        let (place, module) = (u64::from_str_radix(place, 16).ok()?, module.strip_suffix(')')?);
        let tables = known.entry(module.to_owned()).or_insert_with(|| linkage_tables(module));
        tables.iter().any(|table| table.contains(&place)).then(|| line.replace("[unknown]", "@plt"))
    };
    script.lines().map(|line| named(line).unwrap_or_else(|| line.to_owned()) + "\n").collect()
}

fn ours(file: &Path, flags: &[&str]) -> BTreeMap<String, u64> {
    // perf does not check the kernel's chains, and infers no functions.
    let folded = ["--format", "folded", "--no-check-callchains", "--no-inferred"];
    let outcome = run(rep().args(folded).args(flags).arg(file)).expect(0);
    assert!(
        outcome.text().lines().is_sorted_by_key(|line| line.rsplit_once(' ').unwrap().0),
        "lines are in order"
    );
    lines_of(outcome.text())
}

/// Collapses `perf script` with the collapse library. It leaves out samples whose callchain is
/// empty: they are listed with the sampled function as their only frame, as `perf script` prints it
/// without callchains. The second number is how many those are.
fn collapsed(file: &Path) -> (BTreeMap<String, u64>, usize) {
    let listed =
        |words: &[&str]| run(perf::perf().arg("script").args(words).arg("-i").arg(file)).expect(0);
    let (chains, own) =
        (listed(&["--no-inline"]), listed(&["--no-inline", "-G", "-F", "ip,sym,dso"]));
    let mut own = own.text().lines().filter(|line| !line.trim().is_empty());
    let (mut script, mut empty) = (String::new(), 0);
    let mut lines = chains.text().lines().peekable();
    while let Some(line) = lines.next() {
        script += &format!("{line}\n");
        if line.is_empty() || line.starts_with('\t') {
            continue;
        }
        let own = own.next().unwrap();
        if lines.peek().is_none_or(|next| !next.starts_with('\t')) {
            script += &format!("\t{}\n\n", own.trim());
            empty += 1;
        }
    }
    assert_eq!(own.next(), None, "both list all samples");
    let mut options = Options::default();
    options.nthreads = 1;
    let mut folded = Vec::new();
    let script = with_entries_named(&script);
    Folder::from(options).collapse(script.as_bytes(), &mut folded).unwrap();
    (lines_of(std::str::from_utf8(&folded).unwrap()), empty)
}

/// Compares the folded stacks of rep and perf. Returns the number of samples that have an empty
/// callchain.
#[track_caller]
fn assert_agrees(file: &Path, flags: &[&str]) -> usize {
    let (ours, (theirs, empty)) = (ours(file, flags), collapsed(file));
    assert!(theirs.len() > 5, "{} lines are too few to compare", theirs.len());
    for (stack, count) in &theirs {
        assert_eq!(ours.get(stack), Some(count), "{stack}");
    }
    for stack in ours.keys() {
        assert!(theirs.contains_key(stack), "only rep has {stack}");
    }
    empty
}

/// Samples with callchains, without, and with one that is damaged, in code that has names.
#[test]
fn samples_with_empty_callchains() {
    if !needs::perf_events() {
        return;
    }
    let (pid, code) = (std::process::id(), 0x10_0000u64);
    let map = format!("/tmp/perf-{pid}.map");
    let name = |number: u64| format!("{:x} 40 function_{number:02}\n", code + number * 0x40);
    std::fs::write(&map, (0..8).map(name).collect::<String>()).unwrap();
    let event = Event::new("cycles:u").sampling(SampleType::CALLCHAIN);
    let mut stream = Stream::new(Endian::NATIVE).event(event).task(pid, pid).comm("chains");
    stream = stream.map("//anon", code, 0x200, 0).at(10);
    for turn in 0..64u64 {
        let ip = code + turn % 8 * 0x40 + 4;
        let chain = [context::USER, ip, code + turn % 3 * 0x40 + 8];
        let chain = match turn % 4 {
            0 => &[][..],
            1 => &[u64::MAX - 1, ip],
            _ => &chain,
        };
        stream = stream.sample(SampleSpec::at(ip).period(1 + turn).callchain(chain));
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("empty.data");
    std::fs::write(&file, stream.file()).unwrap();
    // The map is of this process; nothing but the test knows that.
    let flags = &["--trust-paths"];
    let empty = assert_agrees(&file, flags);
    std::fs::remove_file(&map).unwrap();
    assert_eq!(empty, 32);
    assert_eq!(ours(&file, flags).values().sum::<u64>(), (1..=64).sum::<u64>());
}

/// The sum of the lines, of what `rep --json` counts, by samples, and by periods where there are
/// any, with the same filters. Returns whether the file is answered.
#[track_caller]
fn assert_adds_up(file: &Path, filters: &[&str], has_periods: bool) -> bool {
    let json = run(rep().args(["--json", "-s", "comm"]).args(filters).arg(file));
    if json.code() != 0 {
        return false;
    }
    let answer: Value = serde_json::from_slice(&json.stdout).unwrap();
    for (name, flags) in
        [("samples", &["-n"][..]), ("period", &[])].into_iter().take(1 + usize::from(has_periods))
    {
        let folded =
            listed(run(rep().args(["--format", "folded"]).args(flags).args(filters).arg(file)));
        let text = String::from_utf8_lossy(&folded.stdout);
        let counts =
            text.lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap());
        let sum = counts.fold(0, u64::wrapping_add);
        let sum_of = |list: &Value, of: fn(&Value) -> Vec<&Value>| {
            let counts =
                list.as_array().unwrap().iter().flat_map(of).map(|one| one[name].as_u64().unwrap());
            counts.fold(0, u64::wrapping_add)
        };
        if filters.is_empty() {
            assert_eq!(
                sum,
                sum_of(&answer["events"], |event| vec![event]),
                "the total of {}",
                file.display()
            );
        }
        let rows =
            sum_of(&answer["events"], |event| event["rows"].as_array().unwrap().iter().collect());
        assert_eq!(sum, rows, "the rows of {} with {filters:?}", file.display());
    }
    true
}

#[test]
fn lines_add_up_to_the_totals() {
    let dir = tempfile::tempdir().unwrap();
    let (mut files, mut several) = (0, 0);
    for case in cases() {
        for form in forms(&case, |form| !form.container.is_pipe()) {
            let file = dir.path().join(format!("{}.{form}.data", case.name));
            std::fs::write(&file, case.bytes(form)).unwrap();
            let stream = (case.make)(form.endian).stream;
            // Of tracepoints, samples are counted.
            let has_periods =
                stream.events().iter().all(|entry| entry.attr.kind != EventType::TRACEPOINT);
            if assert_adds_up(&file, &[], has_periods) {
                // What filters leave does not depend on the byte order.
                if form.endian == Endian::NATIVE {
                    assert_adds_up(&file, &["--max-stack", "1"], false);
                    assert_adds_up(&file, &["--cpu", "0"], false);
                }
                files += 1;
                several += usize::from(stream.events().len() > 1);
            }
        }
    }
    println!("the lines of {files} fixtures add up, {several} of them with several events");
    assert!(files > if is_full() { 100 } else { 50 } && several > 10, "{files} {several}");
}

#[test]
fn lines_of_a_corpus_add_up() {
    let Some(folder) = std::env::var_os("RECREP_CORPUS") else {
        println!("did not run: RECREP_CORPUS is not set");
        return;
    };
    let dir = Path::new(&folder);
    let mut files = 0;
    for (name, _) in originals(dir).unwrap() {
        let file = dir.join(name);
        for filters in [
            &[][..],
            &["--event", "cycles"],
            &["--comm", "ls,swapper"],
            &["--dso", "[kernel.kallsyms]"],
        ] {
            files += usize::from(assert_adds_up(&file, filters, true) && filters.is_empty());
        }
    }
    println!("the lines of {files} files add up");
    assert!(files > 0);
}

/// Tests that record.
mod live {
    use super::*;

    #[test]
    fn callchains_recorded_by_perf() {
        if !needs::perf_events() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("perf.data");
        let script = "for i in 1 2 3 4 5; do ls -l /usr/bin /usr/lib >/dev/null; seq 40000 | sort -rn \
                      | md5sum; done";
        perf::record(&file, "-e cpu-clock -g", &["sh", "-c", script].map(str::to_owned));
        assert_agrees(&file, &[]);
    }

    #[test]
    fn callchains_recorded_by_rec() {
        if !needs::perf_events() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("rec.data");
        record(
            &file,
            "-e cpu-clock -g",
            &workload("hot --ms 200 --threads 2 --forks 1 --children 1"),
        );
        assert_agrees(&file, &[]);
    }

    /// A line's number is its samples where that is asked for, and its leaf is the sampled function
    /// where there is no chain.
    #[test]
    fn samples_without_callchains() {
        if !needs::perf_events() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("flat.data");
        record(&file, "-e cpu-clock", &workload("hot --ms 300"));
        let outcome = run(rep().args(["--format", "folded", "-n"]).arg(&file)).expect(0);
        let samples: u64 = lines_of(outcome.text()).values().sum();
        assert_eq!(samples, recrep_tests::report::report(&file, "comm").events[0].samples);
        let hot = format!("workload;{} ", recrep_fixtures::HOT_THREE_QUARTERS);
        assert!(outcome.text().contains(&hot), "{hot}: {}", outcome.text());
    }
}

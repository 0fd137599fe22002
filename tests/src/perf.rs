//! perf as the oracle.
//!
//! Run with no configuration and a home of its own in the target directory, so that a user's
//! settings do not change its answer; its cache of binaries there goes by build ID, so an old one
//! does no harm, and gives perf the symbols of the vdso. `PERF` names another perf than the one in
//! `PATH`; names agree with builds that demangle as Debian's 6.1 does.
//!
//! perf's tables are read with a separator that no name contains, by the header line that perf
//! prints above each event's rows; cells lose their padding. What is compared as one although perf
//! tells it apart is said in [`crate::table`].

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use crate::programs::programs;
use crate::run::{Outcome, run};
use crate::table::Table;
use crate::tracing::without_plugins;

/// Separates the cells: perf replaces it inside names, so it must be one that no name has.
const SEPARATOR: char = '\u{1}';

/// perf, about to be given arguments.
pub fn perf() -> Command {
    version(&std::env::var_os("PERF").unwrap_or_else(|| "perf".into()))
}

/// Returns that perf, and perf 6.12 where `RECREP_PERF612` names one: for what each version must
/// read.
pub fn versions() -> Vec<OsString> {
    std::iter::once(perf().get_program().to_owned())
        .chain(std::env::var_os("RECREP_PERF612"))
        .collect()
}

/// One of these, about to be given arguments.
pub fn version(program: &OsStr) -> Command {
    let mut command = Command::new(program);
    let home = programs().dir.join("perf-home");
    std::fs::create_dir_all(&home).expect("the target directory can be written");
    command.env("PERF_CONFIG", "/dev/null").env("HOME", home).env("LC_ALL", "C");
    command
}

/// `perf record`, about to be given arguments. For root it would also listen for BPF programs that
/// come and go, and notice only after a second that the recording is over.
pub fn recorder() -> Command {
    let mut perf = perf();
    perf.args(["record", "-q", "--no-bpf-event"]);
    perf
}

/// Records with perf: `args`, split at spaces, then the command.
#[track_caller]
pub fn record(file: &Path, args: &str, command: &[String]) -> Outcome {
    run(recorder().arg("-o").arg(file).args(args.split_whitespace()).arg("--").args(command))
        .expect(0)
}

/// Counts of `perf report --stats`.
#[derive(Debug, Default)]
pub struct Stats {
    /// Standard error of perf.
    pub warnings: String,
    /// Records by name, without `TOTAL`.
    pub records: BTreeMap<String, u64>,
    /// For each event that has any, its own counts.
    pub events: Vec<(String, BTreeMap<String, u64>)>,
}

/// The statistics.
#[track_caller]
pub fn stats(file: &Path) -> Stats {
    parse_stats(&run(perf().args(["report", "--stats", "-i"]).arg(file)).expect(0))
}

/// The statistics in what `perf report --stats` printed; there are none where it gave up.
#[track_caller]
pub fn parse_stats(outcome: &Outcome) -> Stats {
    let mut stats = Stats { warnings: outcome.stderr.clone(), ..Stats::default() };
    for line in outcome.text().lines() {
        if let Some((name, count)) = line.split_once(" events:") {
            let count = count
                .split_whitespace()
                .next()
                .and_then(|count| count.parse().ok())
                .expect("a count of records");
            let records =
                stats.events.last_mut().map_or(&mut stats.records, |(_, records)| records);
            records.insert(name.trim().to_owned(), count);
        } else if let Some(event) =
            line.strip_suffix(" stats:").filter(|event| *event != "Aggregated")
        {
            stats.events.push((event.to_owned(), BTreeMap::new()));
        }
    }
    stats.records.remove("TOTAL");
    stats
}

/// Returns perf's warnings but for those of loss, where `records` say that something was lost: perf
/// must tell of that.
pub fn without_loss<'w>(warnings: &'w str, records: &BTreeMap<String, u64>) -> &'w str {
    let lost = |kind: &str| records.get(kind).copied().unwrap_or(0);
    let of_records =
        format!(" events and lost {} chunks!\n\nCheck IO/CPU overload!\n\n", lost("LOST"));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let mut rest = warnings;
    for (lost, before, after) in [
        (lost("LOST"), of_records.as_str(), ""),
        (lost("LOST_SAMPLES"), " samples and lost ", "%!\n\n"),
    ] {
        let told = rest.strip_prefix("Warning:\nProcessed ").filter(|_| lost > 0);
        let told = told
            .and_then(|told| told.split_once(before))
            .filter(|(processed, _)| is_number(processed));
        let left =
            told.and_then(|(_, told)| told.split_once(after)).filter(|(share, _)| is_number(share));
        rest = left.map_or(rest, |(_, left)| left);
    }
    rest
}

/// The histograms of the events that have samples, in the file's order, by sort keys separated by
/// commas.
#[track_caller]
pub fn tables(file: &Path, sort: &str) -> Vec<Table> {
    tables_of(file, &[], sort)
}

/// The same of what some flags make perf count: `-b`, `--mem-mode`.
#[track_caller]
pub fn tables_of(file: &Path, flags: &[&str], sort: &str) -> Vec<Table> {
    tables_by(perf(), file, flags, sort)
}

/// The same with a table for each event of a group. `--no-group` says so too, but makes perf 6.1
/// write a 1 into the table by which it finds the events of a stream: where the number of an event
/// is at that place, it crashes.
#[track_caller]
pub fn tables_apart(file: &Path, sort: &str) -> Vec<Table> {
    let mut config = tempfile::NamedTempFile::new().expect("a temporary file");
    config.write_all(b"[report]\ngroup = false\n").expect("a temporary file is written");
    let mut perf = perf();
    perf.env("PERF_CONFIG", config.path());
    tables_by(perf, file, &[], sort)
}

#[track_caller]
fn tables_by(mut perf: Command, file: &Path, flags: &[&str], sort: &str) -> Vec<Table> {
    perf.arg("report").args(flags);
    perf.args([
        "--stdio",
        "--no-children",
        "-g",
        "none",
        "-t",
        &SEPARATOR.to_string(),
        "-w",
        &widths(2, sort),
    ]);
    perf.arg("-F").arg(format!("sample,period,{}", perfs_names(sort))).arg("-i").arg(file);
    let outcome = run(&mut perf).expect(0);
    // It says 0 of what it cannot do, too.
    assert!(!outcome.stderr.contains("Error"), "{}: {}", outcome.command, outcome.stderr);
    parse_tables(outcome.text(), sort.split(',').count())
}

/// The names of sort keys in perf, whose `pid` is the thread.
pub fn perfs_names(sort: &str) -> String {
    let named = |key| if key == "tid" { "pid" } else { key };
    sort.split(',').map(named).collect::<Vec<_>>().join(",")
}

/// The histograms by what tracepoints recorded, as the kernel prints it; `-F` does not take the
/// fields of tracepoints.
#[track_caller]
pub fn traced_tables(file: &Path, flags: &[&str], sort: &str) -> Vec<Table> {
    let mut perf = perf();
    perf.arg("report").args(flags).args([
        "--stdio",
        "--no-children",
        "-g",
        "none",
        "-n",
        "--show-total-period",
    ]);
    perf.args(["-t", &SEPARATOR.to_string(), "-w", &widths(3, sort), "-s", sort, "-i"]).arg(file);
    let outcome = run(&mut without_plugins(&perf)).expect(0);
    assert!(!outcome.stderr.contains("Error"), "{}: {}", outcome.command, outcome.stderr);
    let without_share = |line: &str| match line.split_once(SEPARATOR) {
        Some((_, rest)) if !line.starts_with('#') => format!("{rest}\n"),
        _ => format!("{line}\n"),
    };
    parse_tables(
        &outcome.text().lines().map(without_share).collect::<String>(),
        sort.split(',').count(),
    )
}

/// The widths of perf's columns, these numbers first, in which all names are whole; 0 where perf
/// cuts none.
fn widths(numbers: usize, sort: &str) -> String {
    let width = |key: &str| if ["comm", "dso_from", "dso_to"].contains(&key) { "255" } else { "0" };
    std::iter::repeat_n("0", numbers)
        .chain(sort.split(',').map(width))
        .collect::<Vec<_>>()
        .join(",")
}

fn parse_tables(text: &str, keys: usize) -> Vec<Table> {
    let mut tables: Vec<Table> = Vec::new();
    // What follows the tables of `-b`.
    for line in text.lines().take_while(|line| *line != "# Branch Statistics:") {
        if line.starts_with('#') {
            // The plural where groups were taken apart.
            if let Some((_, event)) =
                line.split_once(" of event '").or_else(|| line.split_once(" of events '"))
            {
                tables.push(Table::new(event.trim_end_matches('\'')));
            }
            continue;
        }
        let mut cells = line.split(SEPARATOR).map(str::trim);
        let Some(samples) = cells.next().filter(|cell| !cell.is_empty()) else {
            continue;
        };
        let samples =
            samples.parse().unwrap_or_else(|_| panic!("not a row of perf's table: {line:?}"));
        let period = cells
            .next()
            .and_then(|cell| cell.parse().ok())
            .expect("the period is the second column");
        let key = cells.take(keys).map(str::to_owned).collect();
        tables.last_mut().expect("perf names the event above its rows").add(key, samples, period);
    }
    tables.retain(|table| !table.rows.is_empty());
    tables
}

/// Returns the number of lost records, by the sum of the file's LOST records.
#[track_caller]
pub fn lost_events(file: &Path) -> u64 {
    let outcome =
        run(perf().args(["script", "--show-lost-events", "-F", "comm,time", "-i"]).arg(file))
            .expect(0);
    let counts =
        outcome.text().lines().filter_map(|line| line.split_once("PERF_RECORD_LOST lost "));
    counts.map(|(_, count)| count.trim().parse::<u64>().expect("a count of lost records")).sum()
}

/// The callchains of all samples as `perf script` prints them, the sampled function first: symbol
/// names, `[unknown]` included.
#[track_caller]
pub fn callchains(file: &Path) -> Vec<Vec<String>> {
    let mut perf = perf();
    perf.args(["script", "--no-inline", "-F", "ip,sym", "-i"]).arg(file);
    let outcome = run(&mut perf).expect(0);
    let blocks = outcome.text().trim_end().split("\n\n");
    let name = |line: &str| {
        line.trim().split_once(' ').map_or_else(String::new, |(_, name)| name.to_owned())
    };
    blocks.map(|block| block.lines().map(name).filter(|name| !name.is_empty()).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_loss_that_is_in_the_file_may_be_told() {
        let told =
            "Warning:\nProcessed 599 events and lost 1 chunks!\n\nCheck IO/CPU overload!\n\n";
        let samples = "Warning:\nProcessed 1020 samples and lost 16.08%!\n\n";
        let records = |lost: u64, samples: u64| {
            [("LOST", lost), ("LOST_SAMPLES", samples)]
                .map(|(kind, count)| (kind.to_owned(), count))
                .into()
        };
        assert_eq!(without_loss(told, &records(1, 0)), "");
        assert_eq!(without_loss(samples, &records(0, 1)), "");
        assert_eq!(without_loss(&format!("{told}{samples}more"), &records(1, 2)), "more");
        assert_eq!(without_loss(&format!("{told}more"), &records(1, 0)), "more");
        assert_eq!(without_loss(told, &records(2, 0)), told);
        assert_eq!(without_loss(told, &records(0, 1)), told);
        assert_eq!(without_loss(samples, &records(1, 0)), samples);
        assert_eq!(without_loss("x", &records(1, 1)), "x");
    }

    #[test]
    fn rows_are_read_by_event_and_added_up() {
        let text = "# Samples: 3  of event 'cpu-clock'\n#\n# \
                    Samples\u{1}Period\u{1}Command\u{1}Symbol\n\
                    2       \u{1} 500 \u{1}sh  \u{1}[.] a b  \u{1}-  -\n1\u{1}250\u{1}sh\u{1}[.] a \
                    b\u{1}-  -\n\n\
                    # Samples: 0  of event 'page-faults'\n# Samples: 1  of event \
                    'page-faults:u'\n4\u{1}4\u{1}ls\u{1}[k] f\n";
        let tables = parse_tables(text, 2);
        assert_eq!(
            tables.iter().map(|table| &table.event[..]).collect::<Vec<_>>(),
            ["cpu-clock", "page-faults:u"]
        );
        let counts = tables[0].rows[&["sh".to_owned(), "[.] a b".to_owned()][..]];
        assert_eq!((counts.samples, counts.period), (3, 750));
        assert_eq!(tables[1].samples(), 4);
    }
}

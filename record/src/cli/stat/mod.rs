//! The command line of `rec stat`: the options of perf stat, under the same names.

mod flags;

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{CommandFactory as _, FromArgMatches as _};

use super::{Refusal, refusal, words};
use crate::kernel::Kernel;
use crate::machine::Machine;
use crate::messages::Messages;
use crate::messages::error::{Error, Result};
use crate::stat::{self, Settings};
use flags::PERFS_OWN;
pub(super) use flags::StatFlags;

/// Returns whether the command line, which begins with the program's name, is `rec stat`.
pub fn is_asked_for(args: &[OsString]) -> bool {
    args.get(1).is_some_and(|word| word == "stat")
}

/// Counts, and returns the exit status.
pub fn run<K: Kernel>(args: &[OsString], kernel: &K) -> Result<u8> {
    match parse(args) {
        Ok(settings) => {
            let messages = Messages::stderr(settings.verbosity);
            stat::run(&settings, kernel, &messages)
        }
        Err(Refusal::Failed(error)) => Err(error),
        Err(refusal) => Ok(refusal.print()),
    }
}

/// Parses the command line, which begins with `rec stat`.
pub(crate) fn parse(args: &[OsString]) -> Result<Settings, Refusal> {
    let cmdline = args.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let mut command = words::with_negations(StatFlags::command());
    let subcommands = ["record", "report"];
    let named = args.iter().take_while(|word| *word != "--");
    let named: Vec<&str> =
        named.filter_map(|word| subcommands.iter().find(|name| word == *name).copied()).collect();
    let own = args.iter().skip(1).cloned().collect();
    let (words, subcommand) = words::separated(own, &command, &named);
    if subcommand == Some("report") {
        let why = "report: rec only counts; rep shows the file: rep stat [FILE]. To count a \
                   program that is called report: rec stat -- report";
        return Err(Refusal::Usage(command.error(ErrorKind::ValueValidation, why)));
    }
    let matches = command.try_get_matches_from_mut(words).map_err(|error| {
        let error = words::name_flag(error, &mut command);
        let error = words::name_unsupported(error, &mut command, "perf stat", PERFS_OWN);
        let error = refusal::name_nearest(error, &mut command);
        if error.use_stderr() {
            let sentence = refusal::sentence_with(&error, "rec stat --help");
            return Refusal::Failed(Error::Usage(sentence));
        }
        Refusal::Usage(error)
    })?;
    let flags = StatFlags::from_arg_matches(&matches).map_err(Refusal::Usage)?;
    let machine = Machine::read().map_err(Refusal::Failed)?;
    let machine = if flags.event_tables.is_some() { machine.with_cpuid() } else { machine };
    let record = subcommand == Some("record");
    flags
        .settings(&matches, machine, record, cmdline)
        .map_err(|why| Refusal::Failed(Error::Usage(format!("{why} (see rec stat --help)"))))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use recrep_counts::{Aggregation, Format};

    use super::*;
    use crate::stat::Repeat;
    use crate::tasks::Target;

    fn parsed(line: &str) -> Result<Settings, String> {
        let words = ["rec", "stat"].into_iter().chain(line.split_whitespace());
        let words: Vec<OsString> = words.map(OsString::from).collect();
        parse(&words).map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn flags_have_perfs_letters() {
        let settings = parsed("-e cpu-clock -r 3 -x, -- ./app -a").unwrap();
        assert_eq!(settings.repeat, Repeat::Times(3));
        assert_eq!(settings.command, ["./app", "-a"]);
        assert_eq!(settings.format, Format::Csv { separator: ",".to_owned() });
        let settings = parsed("-aA -I 100 --interval-count=2 --no-big-num").unwrap();
        assert_eq!((settings.target, settings.by), (Target::System, Aggregation::Cpu));
        assert_eq!(settings.interval, Some(Duration::from_millis(100)));
        assert_eq!(settings.format, Format::Text { big_numbers: false });
        assert_eq!(parsed("-ddd x").unwrap().detail, 3);
        assert!(parsed("--no-scale x").unwrap().unscaled && !parsed("--scale x").unwrap().unscaled);
    }

    const TABLE: &str = include_str!("../../../docs/options.md");

    /// The long names of perf stat 7.0, in the order of its help, and what others have.
    const PERF: &str = "all-cpus no-aggr big-num cpu delay detailed event cgroup interval-print \
                        no-inherit json-output metrics null output pid repeat sync tid transaction \
                        verbose field-separator all-kernel all-user append control cputype filter \
                        for-each-cgroup hybrid-merge interval-clear interval-count iostat log-fd \
                        metric-no-group metric-no-merge metric-no-threshold metric-only \
                        no-affinity no-csv-summary no-merge per-cache per-cluster per-core per-die per-node \
                        per-socket per-thread percore-show-thread post pre quiet record-tpebs scale \
                        smi-cost summary table td-level timeout topdown tpebs-mode group bpf-prog \
                        bpf-counters bpf-attr-map";

    #[test]
    fn every_option_of_perf_stat_has_its_row_that_is_true() {
        let (_, table) = TABLE.split_once("# The options of perf stat").unwrap();
        let rows: Vec<Vec<&str>> = table
            .lines()
            .filter(|line| line.starts_with("| `"))
            .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
            .collect();
        let names = |row: &[&'static str]| -> Vec<&'static str> {
            row[0].split(", ").map(|name| name.trim_matches('`')).collect()
        };
        let told: Vec<&str> =
            rows.iter().map(|row| names(row).last().unwrap().trim_start_matches('-')).collect();
        assert_eq!(told, PERF.split_whitespace().collect::<Vec<_>>());
        let mut command = words::with_negations(StatFlags::command());
        let help = command.render_long_help().to_string();
        for row in &rows {
            let [_, answer, why, tried] = row[..] else { panic!("{row:?}") };
            let tried = tried.trim_matches('`');
            let attached = ["-p", "-t"].iter().any(|flag| tried.starts_with(flag));
            let result = parsed(&format!("{tried}{}", if attached { "" } else { " x" }));
            let names = names(row);
            assert!(
                names
                    .iter()
                    .any(|name| tried.contains(name.trim_start_matches("--"))
                        || tried.contains(name)),
                "{tried}"
            );
            match (answer, result) {
                ("not", Err(said)) => {
                    assert!(said.contains("is a flag of perf stat that rec stat does not have: "));
                    assert!(why.len() > 30, "{tried}: what instead?");
                }
                // A filter is for tracepoints, of which not every machine has some.
                ("different", Err(said)) if tried.contains("--filter") => {
                    assert!(said.contains("tracepoint"), "{said}");
                }
                // Metrics are in tables that the user has.
                ("same" | "different", Err(said))
                    if ["-M ", "--topdown"].iter().any(|flag| tried.contains(flag)) =>
                {
                    assert!(said.contains("--event-tables DIR"), "{tried}: {said}");
                }
                ("same" | "different", Ok(_)) => {
                    assert!(answer == "same" || why.len() > 30, "{tried}: why different?");
                    if let [letter, long] = names[..] {
                        assert!(help.contains(&format!("{letter}, {long}")), "{letter} {long}");
                    }
                }
                (answer, result) => panic!("{tried}: {answer}, but {:?}", result.map(|_| ())),
            }
        }
        for arg in StatFlags::command().get_arguments().filter_map(clap::Arg::get_long) {
            let arg = arg.trim_start_matches("no-");
            assert!(table.contains(arg) || TABLE.contains(arg), "{arg} is not told of");
        }
    }

    #[test]
    fn record_is_a_word_before_the_command() {
        let path = |line: &str| parsed(line).unwrap().record;
        assert_eq!(path("record -o x ./app"), Some("x".into()));
        assert_eq!(path("-e faults record ./app"), Some("out.data".into()));
        assert_eq!(path("./app record"), None);
        assert_eq!(path("-- record"), None);
        assert!(parsed("report").unwrap_err().contains("rep stat"));
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        for (line, part) in [
            ("", "give a COMMAND"),
            ("-e cpu-clock", "give a COMMAND"),
            ("-p 1 -r 2", "no COMMAND to repeat"),
            ("--per-thread ./app", "rec -n -s"),
            ("--for-each-cgroup a ./app", "-a or -C"),
            ("-I 0 x", "one millisecond"),
            ("-x, -j x", "cannot be used with"),
            ("record -r 2 x", "single run"),
            ("-e nothing x", "nothing"),
            ("-D -1 x", "starts once"),
            ("--iostat x", "is a flag of perf stat that rec stat does not have"),
            ("-M IPC x", "give their folder with --event-tables DIR"),
            ("--topdown x", "give their folder with --event-tables DIR"),
            ("-M a,,b --event-tables /x x", "a name is empty"),
            ("-M IPC --event-tables /no/such/dir x", "there is no mapfile.csv"),
            ("--td-level 1 x", "--topdown"),
            ("--metric-no-group x", "--metrics"),
            ("--no-such x", "there is no option '--no-such'"),
        ] {
            let error = parsed(line).map(|_| ()).unwrap_err();
            assert!(error.contains(part), "{line}: {error}");
        }
    }
}

//! perf reads every fixture that it can know, in both byte orders and in every container, with the
//! same counts and values.
//!
//! Where it does not, the manifest says how that shows and why we know better; that it still shows
//! is tested too, so a reason cannot outlive its cause.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use recrep_fixtures::manifest::{
    Case, DIRECTORIES, Difference, Fact, Form, List, Number, Perf, cases,
};
use recrep_fixtures::recorded;
use recrep_format::abi::RecordType;
use recrep_format::endian::Endian;
use recrep_tests::perf::perf;
use recrep_tests::run::{Outcome, run};
use recrep_tests::{needs, perf};

#[test]
fn perf_reads_every_fixture_as_the_manifest_says() {
    if !needs::perf_events() {
        return;
    }
    let exact = run(perf().arg("--version")).text().starts_with("perf version 6.1.");
    let dir = tempfile::tempdir().unwrap();
    let all: Vec<(Case, Form)> =
        cases().into_iter().flat_map(|case| case.forms().map(move |form| (case, form))).collect();
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let compared = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some((case, form)) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let path = dir.path().join(format!("{}.{form}.data", case.name));
                    std::fs::write(&path, case.bytes(*form)).unwrap();
                    let mut checked = Checked {
                        case,
                        form: *form,
                        file: &path,
                        exact,
                        wrong: Vec::new(),
                        compared: 0,
                    };
                    checked.check();
                    compared.fetch_add(checked.compared, Ordering::Relaxed);
                    wrong.lock().unwrap().extend(checked.wrong);
                    std::fs::remove_file(&path).unwrap();
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    println!("{} values of {} streams compared with perf's", compared.into_inner(), all.len());
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn the_numbers_of_what_perf_recorded_are_perfs() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    for recorded in recorded::ALL {
        let path = dir.path().join(recorded.name);
        std::fs::write(&path, recorded.bytes).unwrap();
        let mut stats =
            perf::parse_stats(&through(&path, recorded.is_pipe, &["report", "--stats"]));
        stats.records.remove("COMPRESSED");
        let counts = recorded.counts.iter().map(|(kind, count)| (kind.to_string(), *count));
        assert_eq!(stats.records, counts.collect(), "{}", recorded.name);
        let samples: Vec<u64> =
            stats.events.iter().filter_map(|(_, counts)| counts.get("SAMPLE").copied()).collect();
        assert_eq!(samples, recorded.samples, "{}", recorded.name);
    }
}

#[test]
fn perf_reads_every_directory_as_the_manifest_says() {
    if !needs::perf_events() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let by_name = |counts: &mut dyn Iterator<Item = (RecordType, u64)>| -> BTreeMap<String, u64> {
        counts.map(|(kind, count)| (kind.to_string(), count)).collect()
    };
    for case in DIRECTORIES {
        for endian in [Endian::Little, Endian::Big] {
            let path = dir.path().join(format!("{}.{endian:?}", case.name));
            case.directory(endian).write(&path).unwrap();
            let mut stats = perf::stats(&path);
            stats.records.remove("COMPRESSED");
            assert_eq!(stats.warnings, "", "{}", path.display());
            assert_eq!(
                stats.records,
                by_name(&mut case.counts(endian).into_iter()),
                "{}",
                path.display()
            );
            for fact in case.made(endian).facts {
                let printed = printed(
                    &fact,
                    &through(&path, false, &["script", "--ns", "-F", fact.perf_field().unwrap()]),
                );
                assert_eq!(printed, as_perf_prints(&fact), "{}", path.display());
            }
        }
    }
    let recorded = recorded::THREADS;
    let path = dir.path().join(recorded.name);
    recorded.directory().write(&path).unwrap();
    assert_eq!(perf::stats(&path).records, by_name(&mut recorded.counts.iter().copied()));
    let rows = perf::tables(&path, "comm").remove(0).rows;
    let comms: BTreeMap<_, _> =
        rows.iter().map(|(key, counts)| (key[0].as_str(), counts.samples)).collect();
    assert_eq!(comms, recorded.comms.iter().copied().collect());
}

/// perf on a file, or on what comes through a pipe: where it could seek it would.
fn through(file: &Path, is_pipe: bool, args: &[&str]) -> Outcome {
    let mut perf = perf();
    if !is_pipe {
        return run(perf.args(args).arg("-i").arg(file));
    }
    let mut shell = Command::new("sh");
    shell
        .args(["-c", r#"file=$1; shift; cat "$file" | "$@" -i -"#, "sh"])
        .arg(file)
        .arg(perf.get_program());
    shell.envs(perf.get_envs().filter_map(|(name, value)| Some((name, value?))));
    run(shell.args(args))
}

/// The status of what a segmentation fault has ended.
const SEGV: i32 = 128 + 11;

/// One stream, and what is wrong with it.
struct Checked<'a> {
    case: &'a Case,
    form: Form,
    file: &'a Path,
    /// `true` if this is the perf of which the manifest tells: with another one a difference may
    /// have gone.
    exact: bool,
    wrong: Vec<String>,
    compared: usize,
}

impl Checked<'_> {
    fn check(&mut self) {
        let differences: Vec<&Difference> = self.case.differences(self.form).collect();
        let outcome = through(self.file, self.form.container.is_pipe(), &["report", "--stats"]);
        let refusals: Vec<&str> =
            differences.iter().filter_map(|difference| refusal(&difference.perf)).collect();
        if !refusals.is_empty() {
            let records = perf::parse_stats(&outcome).records;
            let refused = records.is_empty() || records != self.counted();
            if refused && refusals.iter().any(|said| outcome.stderr.contains(said)) {
                return;
            }
            if differences.iter().any(|difference| matches!(difference.perf, Perf::Crashes))
                && outcome.code() == SEGV
            {
                return;
            }
            if self.exact {
                return self
                    .tell(&format!("perf was to refuse it saying one of {refusals:?}"), &outcome);
            }
        }
        if perf::parse_stats(&outcome).records.is_empty() {
            return self.tell("perf gives no answer", &outcome);
        }
        self.counts(&differences, &outcome);
        for fact in (self.case.make)(self.form.endian).facts {
            if let Some(field) = fact.perf_field() {
                self.values(&differences, &fact, field);
            }
        }
    }

    /// The records by the manifest.
    fn counted(&self) -> BTreeMap<String, u64> {
        self.case
            .counts(self.form)
            .into_iter()
            .map(|(kind, count)| (kind.to_string(), count))
            .collect()
    }

    fn counts(&mut self, differences: &[&Difference], outcome: &Outcome) {
        let mut stats = perf::parse_stats(outcome).records;
        // perf counts the containers, too.
        stats.remove("COMPRESSED");
        let ours = self.counted();
        let miscounted: Vec<String> =
            differences.iter().flat_map(|difference| miscounted(&difference.perf)).collect();
        for name in ours.keys().chain(stats.keys()) {
            let (our, their) = (ours.get(name), stats.get(name));
            let told = miscounted.contains(name);
            if (our == their) == told && (self.exact || !told) {
                self.tell(&format!("{name}: {our:?} by the manifest, {their:?} by perf"), outcome);
            }
        }
        self.compared += ours.len();
    }

    fn values(&mut self, differences: &[&Difference], fact: &Fact, field: &str) {
        let outcome =
            through(self.file, self.form.container.is_pipe(), &["script", "--ns", "-F", field]);
        let printed = printed(fact, &outcome);
        let about: Vec<&Perf> =
            differences.iter().map(|d| &d.perf).filter(|perf| perf.is_about(fact)).collect();
        let misread = about
            .iter()
            .any(|perf| matches!(perf, Perf::MisreadsNumber(_) | Perf::MisreadsList(_)));
        let expected =
            about.iter().fold(as_perf_prints(fact), |expected, perf| respelt(expected, perf));
        if !about.is_empty() && printed == as_perf_prints(fact) {
            if self.exact {
                self.tell(&format!("{field}: perf reads all as we do"), &outcome);
            }
        } else if printed != expected && !misread {
            self.tell(
                &format!("{field}: {expected:?} by the manifest, {printed:?} by perf"),
                &outcome,
            );
        }
        self.compared += expected.len();
    }

    fn tell(&mut self, what: &str, outcome: &Outcome) {
        let (case, form) = (self.case.name, self.form);
        let said: String = outcome.stderr.chars().take(300).collect();
        self.wrong.push(format!("{case} as {form}: {what}\n    {}", said.replace('\n', "\n    ")));
    }
}

fn refusal(perf: &Perf) -> Option<&'static str> {
    match perf {
        Perf::Refuses(said) => Some(said),
        _ => None,
    }
}

fn miscounted(perf: &Perf) -> Vec<String> {
    match perf {
        Perf::Miscounts(kinds) => kinds.iter().map(ToString::to_string).collect(),
        _ => Vec::new(),
    }
}

/// The values of a fact in the form in which they are compared.
fn as_perf_prints(fact: &Fact) -> Vec<String> {
    match fact {
        Fact::Numbers(_, values) => values.iter().map(ToString::to_string).collect(),
        Fact::Lists(List::Branches, lists) => lists.iter().map(|list| branches(list)).collect(),
        Fact::Lists(_, lists) => {
            // perf prints nothing at all for an empty one.
            lists
                .iter()
                .filter(|list| !list.is_empty())
                .map(|list| chain(list.iter().copied()))
                .collect()
        }
        Fact::Texts(_, texts) => texts.clone(),
    }
}

fn respelt(mut texts: Vec<String>, perf: &Perf) -> Vec<String> {
    let Perf::Spells(_, theirs) = perf else { return texts };
    for (place, spelt) in *theirs {
        (*spelt).clone_into(&mut texts[*place]);
    }
    texts
}

/// Returns what `perf script` printed of a fact, in the same form.
fn printed(fact: &Fact, outcome: &Outcome) -> Vec<String> {
    let text = String::from_utf8_lossy(&outcome.stdout);
    let lines = text.lines().map(str::trim);
    match fact {
        Fact::Lists(List::Callchain, _) => {
            let blocks = text.split("\n\n").filter(|block| !block.trim().is_empty());
            blocks.map(|block| chain(block.lines().filter_map(hex))).collect()
        }
        Fact::Lists(..) => lines.map(printed_branches).collect(),
        Fact::Texts(..) => lines
            .map(|line| line.find('|').map_or(line, |at| &line[at..]).trim().to_owned())
            .collect(),
        Fact::Numbers(what, _) => {
            lines.filter(|line| !line.is_empty()).map(|line| number(*what, line)).collect()
        }
    }
}

/// A number as perf prints it, in decimal; as it stands where it is none.
fn number(what: Number, line: &str) -> String {
    // In pipes perf prints ip and symbol behind any field of an event with branch stacks.
    let text = line.split_whitespace().next().unwrap_or(line);
    let value = match what {
        Number::Ip | Number::Addr | Number::PhysAddr => hex(text),
        Number::Time => {
            text.trim_end_matches(':').split_once('.').and_then(|(seconds, nanoseconds)| {
                Some(
                    seconds.parse::<u64>().ok()? * 1_000_000_000
                        + nanoseconds.parse::<u64>().ok()?,
                )
            })
        }
        Number::Cpu => text.trim_matches(['[', ']']).parse().ok(),
        Number::DataPageSize | Number::CodePageSize => page_size(text),
        _ => text.parse().ok(),
    };
    value.map_or_else(|| text.to_owned(), |value| value.to_string())
}

fn hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text.split_whitespace().next()?.trim_start_matches("0x"), 16).ok()
}

/// `4K`, `2M`, `1G`, and `N/A` for 0.
fn page_size(text: &str) -> Option<u64> {
    if text == "N/A" {
        return Some(0);
    }
    let shift = match text.chars().last()? {
        'K' => 10,
        'M' => 20,
        'G' => 30,
        _ => return text.parse().ok(),
    };
    text[..text.len() - 1].parse::<u64>().ok().map(|number| number << shift)
}

/// A callchain without its context marks.
fn chain(ips: impl Iterator<Item = u64>) -> String {
    const MARKS: u64 = 4095u64.wrapping_neg();
    ips.filter(|ip| *ip < MARKS).map(|ip| format!("{ip:#x}")).collect::<Vec<_>>().join(" ")
}

/// From, to, mispredicted or predicted, in a transaction, aborted, cycles: of each branch.
fn branches(words: &[u64]) -> String {
    let branch = |words: &[u64]| {
        let [from, to, flags] = words else { panic!("three words for each branch") };
        let flag = |bit: u64, letter| if flags & bit != 0 { letter } else { "-" };
        let prediction = if flags & 1 != 0 { "M" } else { flag(2, "P") };
        format!(
            "{from:#x}/{to:#x}/{prediction}/{}/{}/{}",
            flag(4, "X"),
            flag(8, "A"),
            flags >> 4 & 0xffff
        )
    };
    words.chunks(3).map(branch).collect::<Vec<_>>().join(" ")
}

fn printed_branches(line: &str) -> String {
    let cut = |branch: &str| branch.split('/').take(6).collect::<Vec<_>>().join("/");
    line.split_whitespace().filter(|word| word.contains('/')).map(cut).collect::<Vec<_>>().join(" ")
}

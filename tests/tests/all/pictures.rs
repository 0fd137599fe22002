//! Pages and flame graphs of real recordings, opened in a browser: what they show is what `rep
//! --json` says.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use recrep_tests::campaign::originals;
use recrep_tests::lock;
use recrep_tests::needs;
use recrep_tests::programs::{programs, rep, workload, workspace};
use recrep_tests::record::record;
use recrep_tests::report::without_hash;
use recrep_tests::run::run;
use serde_json::Value;

/// Samples and period of a function itself, and of all stacks that it is in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sums {
    own: [u64; 2],
    all: [u64; 2],
    /// Number of functions: stacks with several of one name count for each of them.
    functions: u64,
}

/// Functions by module and name.
type Functions = BTreeMap<(String, String), Sums>;

fn tests_of_page() -> PathBuf {
    workspace().join("tests/page")
}

fn number(value: &Value) -> u64 {
    value.as_u64().or_else(|| format!("{:.0}", value.as_f64()?).parse().ok()).unwrap_or(0)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Makes a page with these words of `rep html`.
#[track_caller]
fn page(file: &Path, words: &[&str]) {
    run(rep().arg("html").arg("-o").arg(file).args(words)).expect(0);
}

/// Runs a script of the page's tests, while nothing is recorded: a browser keeps all CPUs busy.
#[track_caller]
fn node(words: &[&OsStr]) -> Output {
    let _cpus = lock::cpus();
    Command::new("node").args(words).current_dir(tests_of_page()).output().unwrap()
}

/// Runs a script on files; it must succeed. Returns what it printed.
#[track_caller]
fn checked(script: &str, files: &[PathBuf], words: &[&str]) -> String {
    let mut line = vec![OsStr::new(script)];
    line.extend(files.iter().map(|file| file.as_os_str()));
    line.extend(words.iter().map(OsStr::new));
    let outcome = node(&line);
    let printed = String::from_utf8_lossy(&outcome.stdout).into_owned();
    let said = String::from_utf8_lossy(&outcome.stderr);
    assert!(outcome.status.success(), "{words:?}: {printed}{said}");
    printed
}

/// Opens a page in the browser, which must not write to its console or ask for anything.
#[track_caller]
fn opened(file: &Path, words: &[&str]) -> Value {
    let printed = checked("check.mjs", &[file.to_owned()], &[&["--numbers"], words].concat());
    serde_json::from_str(&printed).unwrap()
}

/// Functions with names that a page shows.
fn of_page(opened: &Value) -> Functions {
    let mut functions = Functions::new();
    for function in opened["functions"].as_array().unwrap() {
        // 2: without a name; 4: it stands for others.
        if matches!(number(&function["kind"]), 2 | 4) {
            continue;
        }
        let sums = functions
            .entry((text(&function["module"]), without_hash(&text(&function["name"]))))
            .or_default();
        for (sums, of) in [(&mut sums.own, "self"), (&mut sums.all, "total")] {
            sums[0] += number(&function[format!("{of}_samples")]);
            sums[1] += number(&function[format!("{of}_period")]);
        }
    }
    functions
}

/// Functions with names of `rep --json`, of the first event.
#[track_caller]
fn of_json(words: &[&str]) -> Functions {
    let outcome = run(rep().args(["-s", "dso,symbol", "--json", "--children"]).args(words));
    let report: Value = serde_json::from_str(outcome.expect(0).text()).unwrap();
    let mut functions = Functions::new();
    for row in report["events"][0]["rows"].as_array().unwrap().iter().filter(|row| is_named(row)) {
        let name = (text(&row["key"]["dso"]), without_hash(&text(&row["key"]["symbol"])));
        let sums = functions.entry(name).or_default();
        sums.functions += 1;
        for (sums, of) in [(&mut sums.own, row), (&mut sums.all, &row["children"])] {
            sums[0] += number(&of["samples"]);
            sums[1] += number(&of["period"]);
        }
    }
    functions
}

/// Returns whether a row has a function, not the address of an instruction: `0x…`, `module+0x…`.
fn is_named(row: &Value) -> bool {
    let name = text(&row["key"]["symbol"]);
    let is_offset = |(_, offset): (&str, &str)| u64::from_str_radix(offset, 16).is_ok();
    let is_address = name.starts_with("0x") || name.rsplit_once("+0x").is_some_and(is_offset);
    row["inferred"] == true || !is_address && !name.starts_with('[')
}

/// Compares two lists of functions; periods within some percent, as a page rounds weights of parts.
#[track_caller]
fn assert_same(page: &Functions, json: &Functions, percent: u64) {
    let of = |functions: &Functions| functions.keys().cloned().collect::<Vec<_>>();
    assert_eq!(of(page), of(json));
    for (name, json) in json {
        let page = page[name];
        let is_near = |page: u64, json: u64| page.abs_diff(json) <= (json * percent).div_ceil(100);
        assert_eq!(page.own[0], json.own[0], "samples of {name:?}");
        assert!(is_near(page.own[1], json.own[1]), "period of {name:?}: {page:?}, not {json:?}");
        if json.functions > 1 {
            assert!(page.all[0] <= json.all[0], "samples of {name:?}: {page:?}, not {json:?}");
            continue;
        }
        assert_eq!(page.all[0], json.all[0], "samples of {name:?} and what it calls");
        assert!(is_near(page.all[1], json.all[1]), "period of {name:?}: {page:?}, not {json:?}");
    }
}

/// A recording of two threads and two children with callchains.
#[track_caller]
fn recorded(dir: &Path) -> String {
    let file = dir.join("x.data");
    record(&file, "-g -F 2999", &workload("hot --threads 2 --children 2 --ms 300"));
    file.to_str().unwrap().to_owned()
}

#[test]
fn the_pages_scripts_pass_their_own_tests() {
    if !needs::browser() {
        return;
    }
    for words in [&["node_modules/typescript/bin/tsc", "-p", "."][..], &["--test"]] {
        let outcome = node(&words.iter().map(OsStr::new).collect::<Vec<_>>());
        let printed = String::from_utf8_lossy(&outcome.stdout);
        assert!(outcome.status.success(), "{words:?}: {printed}");
    }
}

#[test]
fn pages_and_flame_graphs_of_real_recordings_open() {
    let Some(corpus) = needs::corpus() else { return };
    if !needs::browser() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (mut files, mut pages, mut graphs) = (Vec::new(), Vec::new(), Vec::new());
    for (name, _) in originals(&corpus).unwrap() {
        let file = corpus.join(name);
        let html = dir.path().join(format!("{}.html", files.len()));
        let made = run(rep().arg("html").arg("-o").arg(&html).arg(&file));
        if made.code() == 1 && made.stderr.contains("no samples") {
            continue;
        }
        made.expect(0);
        let svg = html.with_extension("svg");
        run(rep().arg("flame").arg("--interactive").arg("-o").arg(&svg).arg(&file)).expect(0);
        files.push(file);
        pages.push(html);
        graphs.push(svg);
    }
    checked("picture.mjs", &graphs, &[]);
    let opened: Vec<Value> =
        serde_json::from_str(&checked("check.mjs", &pages, &["--numbers"])).unwrap();
    assert_eq!(opened.len(), files.len());
    for (file, opened) in files.iter().zip(&opened) {
        let sort = ["-s", "dso,symbol", "--json", "--no-children"];
        let report = run(rep().args(sort).arg(file)).expect(0);
        let report: Value = serde_json::from_str(report.text()).unwrap();
        let events = report["events"].as_array().unwrap();
        let first = events.iter().find(|event| number(&event["samples"]) > 0).unwrap();
        let samples = first["rows"].as_array().unwrap().iter().filter(|row| is_named(row));
        let samples: u64 = samples.map(|row| number(&row["samples"])).sum();
        let of_page: u64 = of_page(opened).values().map(|sums| sums.own[0]).sum();
        assert_eq!(of_page, samples, "{}", file.display());
    }
}

/// Tests that record.
mod live {
    use super::*;

    #[test]
    fn functions_of_a_page_have_the_numbers_of_json() {
        if !needs::perf_events() || !needs::browser() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let (data, html) = (recorded(dir.path()), dir.path().join("x.html"));
        page(&html, &[&data]);
        let opened_page = opened(&html, &[]);
        assert_same(&of_page(&opened_page), &of_json(&[&data]), 0);

        // A thread is a lane, a range of time is --time.
        let threads = run(rep().args(["-s", "tid", "--json", "--no-children", &data])).expect(0);
        let threads: Value = serde_json::from_str(threads.text()).unwrap();
        let thread = text(&threads["events"][0]["rows"][0]["key"]["tid"]);
        let tid = thread.split(':').next().unwrap();
        let lane = opened(&html, &["--lane", &format!("thread:{tid}")]);
        assert_same(&of_page(&lane), &of_json(&["--tid", tid, &data]), 1);
        let step = number(&opened_page["step_ns"]);
        let begin = text(&opened_page["begin"]);
        let begin = nanoseconds(&begin);
        let steps = number(&opened_page["steps"]);
        let [from, to] = [steps / 4, steps / 2].map(|number| number * step);
        let at = |time: u64| format!("{}.{:09}", time / 1_000_000_000, time % 1_000_000_000);
        let range = opened(&html, &["--time", &format!("{}-{}", at(from), at(to))]);
        let asked = format!("{},{}", at(begin + from), at(begin + to - 1));
        assert_same(&of_page(&range), &of_json(&["--time", &asked, &data]), 1);
    }

    #[test]
    fn a_page_of_standard_input_has_the_instructions_of_its_file() {
        if !needs::perf_events() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let data = recorded(dir.path());
        let of_file = run(rep().args(["html", "-o", "-", &data])).expect(0);
        let mut piped = rep();
        piped.args(["html", "-o", "-", "-"]).stdin(std::fs::File::open(&data).unwrap());
        let of_pipe = String::from_utf8(piped.output().unwrap().stdout).unwrap();
        let code = |page: &str| {
            let (_, block) = page.split_once("id=\"d-code\">")?;
            block.split_once('<').map(|(code, _)| code.to_owned())
        };
        assert!(code(of_file.text()).is_some_and(|code| !code.is_empty()));
        assert_eq!(code(&of_pipe), code(of_file.text()));
    }

    #[test]
    fn a_page_of_two_sides_has_the_numbers_of_both() {
        if !needs::perf_events() || !needs::browser() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let (new, base) = (recorded(dir.path()), dir.path().join("base.data"));
        record(&base, "-g -F 2999", &workload("hot --ms 300"));
        let (base, html) = (base.to_str().unwrap(), dir.path().join("x.html"));
        page(&html, &["--diff", base, &new]);
        let of_new = opened(&html, &[]);
        assert_same(&of_page(&of_new), &of_json(&[&new]), 0);
        // What changed is what `rep diff` says: one run a side cannot be judged.
        let verdict = &of_new["verdicts"][0];
        assert_eq!(verdict["word"], "TOO FEW SAMPLES", "{verdict}");
        assert_eq!(verdict["changes"].as_array().unwrap().len(), 0, "{verdict}");
        let compared = run(rep().args(["diff", "--children", base, &new])).expect(0);
        let total = verdict["lines"][0].as_str().unwrap();
        assert!(compared.text().contains(total), "{total}: {}", compared.text());
        assert_same(&of_page(&opened(&html, &["--side", "1"])), &of_json(&[base]), 0);
    }

    /// Waits of a thread as `rep --wall` lists them: activity, begin and length.
    fn waits_of(data: &str, tid: &str) -> Vec<(String, u64, u64)> {
        let words = ["--wall", "--ns", "--time-quantum", "1ns", "-s", "switch,time", "--json"];
        let report = run(rep().args(words).args(["--no-children", "--tid", tid, data])).expect(0);
        let report: Value = serde_json::from_str(report.text()).unwrap();
        let rows = report["events"][0]["rows"].as_array().unwrap().iter();
        rows.map(|row| {
            let begin = nanoseconds(&text(&row["key"]["time"]));
            (text(&row["key"]["switch"]), begin, number(&row["period"]))
        })
        .collect()
    }

    /// Returns nanoseconds of seconds with nine decimals.
    fn nanoseconds(seconds: &str) -> u64 {
        let (seconds, below) = seconds.split_once('.').unwrap();
        seconds.parse::<u64>().unwrap() * 1_000_000_000 + below.parse::<u64>().unwrap()
    }

    #[test]
    fn lanes_show_the_true_lengths_of_what_threads_did() {
        if !needs::perf_events() || !needs::browser() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let (data, html) = (dir.path().join("x.data"), dir.path().join("x.html"));
        record(&data, "--off-cpu -g -e cpu-clock", &workload("waits --ms 200"));
        let data = data.to_str().unwrap();
        page(&html, &[data]);
        // On a CPU, waiting, both.
        let opened = opened(&html, &["--event", "2", "--courses", "thread"]);
        let (begin, step) = (nanoseconds(&text(&opened["begin"])), number(&opened["step_ns"]));
        let begins: Vec<u64> =
            opened["courses"]["begins"].as_array().unwrap().iter().map(number).collect();
        let lanes = opened["courses"]["lanes"].as_array().unwrap();
        assert!(lanes.len() > 1, "{opened}");
        for lane in lanes {
            let tid = number(&lane["key"]).to_string();
            let waits = waits_of(data, &tid);
            let shown = |activity: usize, part: usize| number(&lane["activities"][activity][part]);
            for (part, range) in begins.windows(2).enumerate() {
                let (from, to) = (begin + range[0], begin + range[1]);
                let mut off = 0;
                for (activity, name) in [(1, "waiting"), (2, "preempted")] {
                    let waits = waits.iter().filter(|(of, ..)| of == name);
                    let inside = waits.map(|(_, since, length)| {
                        (since + length).min(to).saturating_sub(from.max(*since))
                    });
                    let (truth, shown) = (inside.sum::<u64>(), shown(activity, part));
                    // Ends are rounded to parts of a step.
                    assert!(truth.abs_diff(shown) <= step, "{tid}: {name} {shown}, not {truth}");
                    off += truth;
                }
                // A thread is one thread.
                let all = shown(0, part) + off;
                assert!(all <= to - from + 2 * step, "{tid}: {all} of {}", to - from);
            }
        }
    }

    /// Builds in other directories are the same program, and so is one that was renamed.
    #[test]
    fn a_program_is_one_at_another_place_and_with_another_name() {
        if !needs::perf_events() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let made = |place: &str| {
            let program = dir.path().join(place);
            std::fs::create_dir_all(program.parent().unwrap()).unwrap();
            std::fs::copy(&programs().workload, &program).unwrap();
            let data = program.with_extension("data");
            let words = [program.to_str().unwrap(), "hot", "--ms", "200"].map(str::to_owned);
            record(&data, "-g -e cpu-clock:u -F 1999", &words);
            data
        };
        let new = made("new/program");
        for (place, is_renamed) in [("old/program", false), ("old/first", true)] {
            let mut flame = rep();
            let outcome =
                run(flame.args(["flame", "-o", "-", "--diff"]).arg(made(place)).arg(&new));
            let outcome = outcome.expect(0);
            assert_eq!(outcome.stderr.contains("is shown as program"), is_renamed, "{place}");
            let titles =
                outcome.text().split("<title>").filter_map(|text| text.split_once("</title>"));
            let hot: Vec<&str> = titles
                .map(|(title, _)| title)
                .filter(|title| title.contains("hot_three_quarters (program)"))
                .collect();
            assert!(hot.len() == 1, "{place}: {hot:?}");
            let base = hot[0].split("; ").nth(1).unwrap();
            assert!(
                base.ends_with(" in the base") && !base.starts_with("0.00%"),
                "{place}: {hot:?}"
            );
        }
    }
}

//! Callchains and the branches before samples, of a program whose functions are known.

pub(crate) mod critical_path;
mod history;
mod latency;
mod off_cpu;
mod recorded;
mod signs;
mod stacks;

use super::*;

/// Address of the code of a JIT, with a function every 0x10 bytes.
const CODE: u64 = 0x10_0000;
const MAIN: u64 = CODE;
const WORK: u64 = CODE + 0x10;
const PARSE: u64 = CODE + 0x20;
const TEXT: u64 = 0xffff_ffff_8100_0000;
const KERNEL: u64 = TEXT + 0x10;

impl Place {
    /// Creates a directory with a recording, a perf map and a kallsyms file that name its
    /// functions.
    fn of(stream: &Stream) -> Self {
        let place = Self::new();
        let functions = [(MAIN, "main"), (WORK, "work"), (PARSE, "parse")];
        let map: String =
            functions.iter().map(|(at, name)| format!("{at:x} 10 {name}\n")).collect();
        place.put("root/tmp/perf-7.map", map);
        place.put("kallsyms", format!("{TEXT:x} T _text\n{KERNEL:x} T entry\n"));
        place.put("x.data", stream.file());
        place
    }

    fn command(&self, words: &str) -> Command {
        let [root, kallsyms, file] = ["root", "kallsyms", "x.data"].map(|name| self.at(name));
        let mut command = rep();
        command
            .args(words.split_whitespace())
            .arg("--symfs")
            .arg(root)
            .arg("--kallsyms")
            .arg(kallsyms)
            .arg(file);
        command
    }

    fn rep(&self, words: &str) -> String {
        let mut command = self.command(words);
        if words.contains("--json") { run_json(&mut command) } else { run(&mut command) }
    }

    /// Returns the lines of the call tree below the first row of a function in user code, each
    /// after a line feed.
    fn tree(&self, words: &str, function: &str) -> String {
        let text = self.rep(words);
        let (_, tree) = text.split_once(&format!("[.] {function}")).unwrap();
        let lines = tree.lines().skip(1).take_while(|line| !line.is_empty());
        lines.map(|line| format!("\n{}", line.trim_end())).collect()
    }

    /// Returns the functions of each sample that `rep script` prints, outermost first.
    fn listed(&self, words: &str) -> Vec<String> {
        let text = self.rep(&format!("script -F ip,sym {words}"));
        let functions = |sample: &str| {
            let names = sample.lines().rev().filter_map(|line| line.split_whitespace().nth(1));
            names.map(|name| format!("{name}|")).collect::<String>()
        };
        text.split("\n\n").map(functions).filter(|names| !names.is_empty()).collect()
    }

    /// Returns each row's name, its samples with callees, and its own. The name starts with the
    /// letter of the CPU mode, as in text.
    fn children(&self, words: &str, key: &str) -> Vec<(String, u64, u64)> {
        let report = parsed(self.rep(&format!("--json --children -s {key} {words}")));
        let count = |row: &Value| row["samples"].as_u64().unwrap();
        let name = |key_of: &Value| {
            let mode = if key_of["cpumode"] == "kernel" { 'k' } else { '.' };
            format!("[{mode}] {}", key_of[key].as_str().unwrap())
        };
        let row = |row: &Value| (name(&row["key"]), count(&row["children"]), count(row));
        let mut rows: Vec<_> = list(&report["events"][0]["rows"]).iter().map(row).collect();
        rows.sort_unstable();
        rows
    }
}

/// Runs `rep` on a stream, which must fail, and returns its message.
fn refusal(stream: &Stream, words: &[&str]) -> String {
    let place = Place::of(stream);
    super::refusal(rep().args(words).arg(place.at("x.data")).output().unwrap())
}

fn stream(event: Event) -> Stream {
    let stream = Stream::new(Endian::Little)
        .event(event.sampling(SampleType::CALLCHAIN))
        .kernel_map(TEXT, 0x10_0000);
    stream.task(7, 7).comm("app").map("//anon", CODE, 0x1000, 0).at(10)
}

fn rows(list: &[(&str, u64, u64)]) -> Vec<(String, u64, u64)> {
    list.iter().map(|(name, all, own)| ((*name).to_owned(), *all, *own)).collect()
}

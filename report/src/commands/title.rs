//! The title of a picture: what was profiled.
//!
//! | recorded | title |
//! |---|---|
//! | `rec -g -- ./app 1`, `rec -g ./app 1` | `./app 1` |
//! | `rec -p 702 -- sleep 4`, `rec -p 702` | `redis-server, PID 702` |
//! | `rec -a -- sleep 4`, `rec -a` | `all CPUs` |
//! | others | the whole command line |

use crate::picture::Picture;
use crate::profile::recording::quoted;

/// Greatest number of processes that a title names.
const PROCESSES: usize = 3;
/// Number of bytes of a command's name that the kernel keeps.
const COMM: usize = 15;

/// Returns what a recorder's command line recorded; `None` if it is empty.
pub(super) fn of_command(words: &[String], picture: &Picture) -> Option<String> {
    let (options, command) = split(words, picture);
    if let Some(tasks) = AttachedTasks::of(options) {
        return Some(tasks.title(heaviest(picture)));
    }
    if is_of_all_cpus(options) && command.first().is_none_or(|first| file_name(first) == "sleep") {
        return Some("all CPUs".into());
    }
    let shown = if command.is_empty() { words } else { command };
    let shown: Vec<String> = shown.iter().map(|word| quoted(word)).collect();
    Some(shown.join(" ")).filter(|line| !line.is_empty())
}

/// Splits a recorder's command line into its options and the command: at `--`, else at the first
/// word that is the name of a sampled program and no value of `-p`.
fn split<'w>(words: &'w [String], picture: &Picture) -> (&'w [String], &'w [String]) {
    if let Some(place) = words.iter().position(|word| word == "--") {
        let (options, command) = words.split_at(place);
        return (options, command.get(1..).unwrap_or_default());
    }
    let is_program = |word: &str| {
        let name = file_name(word);
        let kept = name.get(..COMM).unwrap_or(name);
        picture.commands.iter().any(|command| command == kept)
    };
    let mut before = "";
    for (place, word) in words.iter().enumerate().skip(1) {
        let is_value =
            before == "-o" || list_option(before).is_some_and(|(_, list)| list.is_empty());
        if !word.starts_with('-') && !is_value && is_program(word) {
            return words.split_at(place);
        }
        before = word;
    }
    (words, &[])
}

fn file_name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// Processes or threads that a recorder attached to.
struct AttachedTasks<'w> {
    what: &'static str,
    /// As the option lists them: numbers or names.
    list: Vec<&'w str>,
}

impl<'w> AttachedTasks<'w> {
    /// Returns those that options of a recorder name.
    fn of(options: &'w [String]) -> Option<Self> {
        let is_list = |word: &String| list_option(word).is_some();
        let place = options.iter().rposition(is_list)?;
        let (what, list) = list_option(options.get(place)?)?;
        let list = if list.is_empty() { options.get(place + 1)? } else { list };
        let list = list.split(',').filter(|task| !task.is_empty()).collect();
        Some(Self { what, list })
    }

    /// Returns the title, with the program that has most of the samples.
    fn title(&self, program: Option<&str>) -> String {
        let Self { what, list } = self;
        let is_name = |task: &&str| !task.bytes().all(|byte| byte.is_ascii_digit());
        if list.iter().any(is_name) {
            return list.join(", ");
        }
        let shown = list.get(..PROCESSES).unwrap_or(list).join(", ");
        let others = match list.len().saturating_sub(PROCESSES) {
            0 => String::new(),
            others => format!(" and {others} more"),
        };
        let what = if list.len() > 1 { format!("{what}s") } else { (*what).to_owned() };
        let program = program.map(|program| format!("{program}, ")).unwrap_or_default();
        format!("{program}{what} {shown}{others}")
    }
}

/// Short options without a value that may stand before another one in a word.
const FLAGS: &str = "abdgnqsvzRTW";

/// Returns what the option that lists processes or threads lists, and the list if it stands in the
/// same word; `None` for other words.
fn list_option(word: &str) -> Option<(&'static str, &str)> {
    if let Some(long) = word.strip_prefix("--") {
        let (name, list) = long.split_once('=').unwrap_or((long, ""));
        return match name {
            "pid" => Some(("PID", list)),
            "tid" => Some(("TID", list)),
            _ => None,
        };
    }
    let letters = word.strip_prefix('-')?.trim_start_matches(|flag| FLAGS.contains(flag));
    match letters.split_at_checked(1)? {
        ("p", list) => Some(("PID", list)),
        ("t", list) => Some(("TID", list)),
        _ => None,
    }
}

/// Returns whether options of a recorder say that it recorded all CPUs.
fn is_of_all_cpus(options: &[String]) -> bool {
    options.iter().skip(1).any(|word| {
        let flags = word.strip_prefix('-').unwrap_or_default();
        word == "--all-cpus"
            || flags.chars().take_while(|flag| FLAGS.contains(*flag)).any(|flag| flag == 'a')
    })
}

/// Returns the name of the program with most samples of the first event.
fn heaviest(picture: &Picture) -> Option<&str> {
    let event = picture.events.first()?;
    let mut samples = vec![0_u64; picture.commands.len()];
    for entry in &event.entries {
        let cell = event.cells.get(entry.cell as usize)?;
        let thread = picture.threads.get(cell.thread as usize)?;
        if let Some(sum) = samples.get_mut(thread.command as usize).filter(|_| thread.side == 0) {
            *sum = sum.saturating_add(entry.count.samples);
        }
    }
    let most = samples.iter().max()?;
    let place = samples.iter().position(|samples| samples == most)?;
    picture.commands.get(place).map(String::as_str).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::count::Count;
    use crate::picture::{Cell, PictureEntry, PictureEvent, PictureThread};

    fn picture(programs: &[(&str, u64)]) -> Picture {
        let mut event = PictureEvent::default();
        let mut threads = Vec::new();
        for (number, (_, samples)) in (0..).zip(programs) {
            threads.push(PictureThread { command: number, ..PictureThread::default() });
            event.cells.push(Cell { thread: number, ..Cell::default() });
            let count = Count { samples: *samples, period: *samples };
            event.entries.push(PictureEntry { node: 0, cell: number, count });
        }
        let commands = programs.iter().map(|(name, _)| (*name).to_owned()).collect();
        Picture { commands, threads, events: vec![event], ..Picture::default() }
    }

    fn title(line: &str, programs: &[(&str, u64)]) -> String {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        of_command(&words, &picture(programs)).unwrap()
    }

    #[test]
    fn the_title_is_the_command_where_one_was_recorded() {
        let app = &[("app", 9), ("sh", 1)][..];
        for (line, want) in [
            ("rec -g -o x.data -- ./app -p 1", "./app -p 1"),
            ("rec -g -o x.data ./app -p 1", "./app -p 1"),
            ("perf record -g /tmp/app 1", "/tmp/app 1"),
            ("rec -o app ./app", "./app"),
            ("rec -a -- ./app", "./app"),
            ("rec -F 99 env A=1 x", "rec -F 99 env A=1 x"),
            ("rec -t8 -- ./app", "app, TID 8"),
        ] {
            assert_eq!(title(line, app), want, "{line}");
        }
        let long = &[("a-long-command-", 1)];
        assert_eq!(title("rec ./a-long-command-name x", long), "./a-long-command-name x");
        assert_eq!(of_command(&[], &picture(app)), None);
    }

    #[test]
    fn the_title_of_an_attached_process_is_its_program() {
        let redis = &[("bio_close", 1), ("redis-server", 9)][..];
        for (line, want) in [
            ("rec -g -p 702 -- sleep 4", "redis-server, PID 702"),
            ("rec -gp 702", "redis-server, PID 702"),
            ("rec -p702 sleep 4", "redis-server, PID 702"),
            ("rec --pid=702,703", "redis-server, PIDs 702, 703"),
            ("perf record --pid 1,2,3,4,5 sleep 4", "redis-server, PIDs 1, 2, 3 and 2 more"),
            ("rec -p redis-server -- sleep 4", "redis-server"),
            ("rec --tid 7 -- sleep 4", "redis-server, TID 7"),
            ("rec -a -g -- sleep 4", "all CPUs"),
            ("rec -ag sleep 4", "all CPUs"),
            ("rec --all-cpus", "all CPUs"),
        ] {
            assert_eq!(title(line, redis), want, "{line}");
        }
    }
}

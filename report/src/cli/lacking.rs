//! What perf has and `rep` lacks: options, refused with the reason, and words that name commands
//! elsewhere.

use std::path::Path;

use recrep_console::nearest::near;

use super::line::{CommandEntry, named as command};

/// Options of perf that a command lacks: how they are written, and why or what to do instead.
type Lacking = &'static [(&'static [&'static str], &'static str)];

/// Options that no command has.
const EVERYWHERE: Lacking = &[
    (&["-v", "--verbose"], "rep prints every problem as a warning anyway; leave it out"),
    (
        &["-f", "--force"],
        "rep does not ask who owns a file, so there is nothing to force; leave it out",
    ),
    (
        &["--tui", "--gtk"],
        "rep has no interactive interface; on a terminal its text is shown in a pager",
    ),
    (
        &["--itrace", "--no-itrace"],
        "this command does not decode traces; rep, rep script, rep mem and others do",
    ),
    (&["--stitch-lbr"], "rep does not join the call stacks of several samples; leave it out"),
    (&["--addr2line", "--objdump"], "rep starts no other program to find lines; leave it out"),
    (&["--show-ref-call-graph"], "each event shows its own callchains only; leave it out"),
];

/// Options of other programs, with what there is instead.
const OF_OTHERS: Lacking = &[
    (&["--html", "--page"], "rep html writes a page: rep html FILE"),
    (&["--svg", "--flame", "--flamegraph", "--flame-graph"], "rep flame draws one: rep flame FILE"),
    (&["--pprof", "--proto"], "rep export writes one: rep export -o profile.pb.gz FILE"),
    (&["--top", "--head", "--lines", "--count"], "--limit N shows the first N rows"),
    (&["-e", "--events"], "--event NAME shows one event"),
    (&["-o", "--output"], "it prints on standard output: rep FILE >OUTPUT"),
    (&["--callgraph", "--tree", "--call-tree"], "-g shows call trees"),
    (&["--self", "--flat"], "--no-children counts each sample only where it was taken"),
];

/// Options of `perf report` alone.
const OF_REPORT: Lacking = &[
    (&["-m", "--modules"], "rep always looks for kernel modules; leave it out"),
    (
        &["--pretty"],
        "rep has one form of the table of threads; rep dump --type READ lists single values",
    ),
    (
        &[
            "--source",
            "--asm-raw",
            "-M",
            "--disassembler-style",
            "--prefix",
            "--prefix-strip",
            "--percent-type",
        ],
        "rep annotate shows instructions and their source lines",
    ),
    (&["--samples"], "rep script lists single samples"),
    (&["--total-cycles"], "rep branches has the cycles of each edge"),
    (&["--disable-order"], "rep needs no order of records here; leave it out"),
];

/// Options of `perf script` alone.
const OF_SCRIPT: Lacking = &[
    (
        &[
            "-l",
            "--list",
            "-s",
            "--script",
            "-g",
            "--gen-script",
            "--list-dlfilters",
            "--dlfilter",
            "--dlarg",
        ],
        "rep runs no scripts or filters of others; let them read its output, or use perf script",
    ),
    (
        &["-d", "--debug-mode"],
        "it checks how perf orders records, and rep sorts them all; leave it out",
    ),
    (&["-a", "--all-cpus"], "it is for recording; leave it out"),
    (
        &["--merge-callchains", "--no-merge-callchains"],
        "rep joins deferred callchains to their samples; rep dump has them apart",
    ),
    (
        &[
            "--insn-trace",
            "--call-trace",
            "--call-ret-trace",
            "--xed",
            "--graph-function",
            "--max-blocks",
        ],
        "rep neither decodes traces nor disassembles; use perf script",
    ),
    (
        &["--guestmount", "--guest-code", "--guestvmlinux", "--guestkallsyms", "--guestmodules"],
        "rep does not list samples of guests; record inside the guest",
    ),
];

/// Options of `perf mem report` and `perf c2c report` alone.
const OF_MEM: Lacking =
    &[(&["-T", "--type-profile"], "rep does not disassemble; use perf mem report")];
const OF_C2C: Lacking =
    &[(&["-g", "--call-graph"], "rep --mem-mode -g shows the callchains of accesses")];

/// Returns why a command (`rep`, `rep script`, …) lacks an option that perf has; `None` if perf
/// lacks it too.
pub(super) fn option(command: &str, flag: &str) -> Option<String> {
    let own = match command {
        "rep script" => OF_SCRIPT,
        "rep mem" => OF_MEM,
        "rep c2c" => OF_C2C,
        _ => OF_REPORT,
    };
    let has = |names: &&'static [&'static str]| names.contains(&flag);
    if let Some((_, instead)) = OF_OTHERS.iter().find(|(names, _)| has(names)) {
        return (command == "rep").then(|| format!("there is no option {flag}; {instead}"));
    }
    let (_, why) = own.iter().chain(EVERYWHERE).find(|(names, _)| has(names))?;
    Some(format!("{flag} is an option of perf that {command} does not have: {why}"))
}

/// Words that name commands elsewhere, or may do so here one day, with what there is now.
const WORDS: [(&str, &str); 10] = [
    ("flamegraph", FOLDED),
    ("archive", "rep bundle packs a recording with its names; perf archive packs the binaries"),
    ("syscalls", "rep -s trace_fields shows the fields of recorded system calls"),
    ("trace", "rep script lists tracepoint samples in time order"),
    ("tui", "rep has no interactive interface; on a terminal its text is shown in a pager"),
    ("sched", "rep --off-cpu and --wall show where threads waited; rep timeline when they ran"),
    ("lock", "rep --off-cpu shows where threads waited"),
    ("record", "rep reads recordings; rec makes them: rec -- COMMAND"),
    ("top", "rep reads recordings; rec makes them: rec -a -- sleep 5"),
    ("list", "rec list shows what can be recorded; rep evlist the events of a file"),
];
const FOLDED: &str =
    "rep flame draws a flame graph; rep --format folded prints stacks for inferno and speedscope";

/// Returns an error about a file on the command line that does not exist and looks like a command.
pub(super) fn check_word(path: &Path, commands: &'static [CommandEntry]) -> Result<(), String> {
    let Some(word) =
        path.to_str().filter(|word| !word.contains(['/', '.']) && *word != "-" && !path.exists())
    else {
        return Ok(());
    };
    unknown_command(word, commands).map_or(Ok(()), Err)
}

/// Returns a message about a word that is no command but looks like one; `None` if it does not.
fn unknown_command(word: &str, commands: &'static [CommandEntry]) -> Option<String> {
    let is_command = |name: &str| command(commands, name).is_some();
    if is_command(word) {
        return Some(format!("no file '{word}'; the command is the first word: 'rep {word}'"));
    }
    let names = commands.iter().map(|command| command.name);
    let what = match near(word, names.chain(WORDS.iter().map(|(name, _)| *name)), 1).first() {
        Some(name) if is_command(name) => format!("; did you mean 'rep {name}'?"),
        Some(name) => {
            let (_, there_is) = WORDS.iter().find(|(word, _)| word == name)?;
            format!(": {there_is}")
        }
        None => return None,
    };
    Some(format!("no command or file '{word}'{what}"))
}

/// Returns the command that the words after `rep help` name; `None` for the help of `rep` itself.
///
/// # Errors
/// Returns a message if the words are not the name of one command.
pub(crate) fn named<'w>(
    words: &[&'w str],
    commands: &'static [CommandEntry],
) -> Result<Option<&'w str>, String> {
    match words {
        [] | ["help" | "-h" | "--help"] => Ok(None),
        [name] if command(commands, name).is_some() => Ok(Some(name)),
        [name] => Err(unknown_command(name, commands).unwrap_or_else(|| {
            let known: Vec<&str> = commands.iter().map(|command| command.name).collect();
            format!(
                "unknown command '{name}'; commands: {}; topics: keys, fields",
                known.join(", ")
            )
        })),
        _ => Err("rep help takes one command".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::COMMANDS;

    #[test]
    fn words_that_look_like_commands_are_explained() {
        let said = |word: &str| check_word(Path::new(word), COMMANDS).unwrap_err();
        assert_eq!(said("scirpt"), "no command or file 'scirpt'; did you mean 'rep script'?");
        assert!(said("flamegraph").starts_with("no command or file 'flamegraph': "));
        assert!(said("anotate").contains("rep annotate"));
        assert!(said("script").contains("first word"));
        for file in ["nosuch", "old.data", "./scirpt", "scirpt.data", "-"] {
            assert_eq!(check_word(Path::new(file), COMMANDS), Ok(()), "{file}");
        }
    }

    #[test]
    fn options_of_perf_are_explained() {
        assert!(option("rep", "-f").unwrap().contains("nothing to force"));
        assert!(option("rep script", "-s").unwrap().contains("perf script"));
        assert_eq!(option("rep", "--no-such"), None);
    }
}

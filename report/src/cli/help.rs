//! `rep help`, and the parts of the help that list commands and sort keys.

use std::ffi::OsString;

use crate::query::{Availability, SortKey};

/// The commands, with what each shows.
const COMMANDS: [(&str, &str); 10] = [
    ("report", "histograms of samples (default)"),
    ("script", "samples, in time order"),
    ("mem", "cost of memory accesses"),
    ("c2c", "contended cache lines"),
    ("branches", "counts from branch stacks: jumps (edges), loops, and the code run between two branches"),
    ("timeline", "samples per thread and time slice"),
    ("modules", "where the symbols of each module were found, or not"),
    ("info", "layout, events and header of a file"),
    ("evlist", "events of a file"),
    ("dump", "all records, raw and decoded"),
];

/// Returns the text below the options of `rep report`.
pub(super) fn commands_and_keys() -> String {
    let commands: Vec<String> = COMMANDS.iter().map(|(name, shows)| format!("  {name:<8}  {shows}")).collect();
    format!(
        "Commands (see `rep help COMMAND`):\n{}\n\nSort keys: {}, and fields of tracepoints: [EVENT.]FIELD[/raw], \
         trace_fields (all of them); only with --off-cpu or --wall: {}; only with -b: {}",
        commands.join("\n"),
        SortKey::list_of(Availability::Always),
        SortKey::list_of(Availability::OfTime),
        SortKey::list_of(Availability::OfBranches)
    )
}

/// Returns the command line that `rep help` (`words`, the program first) means: `rep --help`, or with the name of a
/// command `rep COMMAND --help`.
///
/// # Errors
/// Returns a message if the words after `help` are not the name of one command.
pub fn help(words: &[OsString]) -> Result<Vec<OsString>, String> {
    let named = words.get(2..).unwrap_or_default();
    let is_known = |name: &OsString| COMMANDS.iter().any(|(known, _)| name == known);
    if let Some(unknown) = named.iter().find(|name| !is_known(name)) {
        let known = COMMANDS.map(|(name, _)| name).join(", ");
        return Err(format!("unknown command `{}`; commands: {known}", unknown.to_string_lossy()));
    }
    if named.len() > 1 {
        return Err("`rep help` takes one command".into());
    }
    Ok(words.iter().take(1).chain(named).cloned().chain(["--help".into()]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_branches_come_last() {
        let text = commands_and_keys();
        let at = |word: &str| text.find(word).unwrap();
        assert!(at(" reach") < at("only with -b:") && at("only with -b:") < at(" symbol_from"));
    }
}

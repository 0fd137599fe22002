//! Names of the C library's functions and variables, of which each has several: perf and rep choose by other rules
//! (`report/src/symbols/names/aliases.rs`), so that texts of both are compared with one name for each.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::process::Command;
use std::sync::LazyLock;

use crate::run::run;

/// The shortest name of each function and variable of the C library and the loader that has several, by all of
/// its names.
static SHORTEST: LazyLock<HashMap<String, String>> = LazyLock::new(|| {
    let mut groups: Vec<Vec<String>> = Vec::new();
    for file in files() {
        groups.extend(groups_of(&file));
    }
    shortest(&groups)
});

/// Returns a text of perf or rep with the shortest name in place of each alias.
#[must_use]
pub fn with_shortest_names(text: &str) -> String {
    let mut named = String::with_capacity(text.len());
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_@.".contains(c);
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        let bare = word.strip_prefix("__vdso_").unwrap_or(word);
        named.push_str(SHORTEST.get(bare).map_or(bare, String::as_str));
        let next = behind.find(is_part).unwrap_or(behind.len());
        let (between, after) = behind.split_at(next);
        named.push_str(between);
        rest = after;
    }
    named
}

/// Returns the names of a function of the C library or the loader, one of which is given.
#[must_use]
pub fn aliases(name: &str) -> Vec<&'static str> {
    let Some(shortest) = SHORTEST.get(name) else { return Vec::new() };
    let same = SHORTEST.iter().filter(|(_, other)| *other == shortest);
    same.map(|(alias, _)| alias.as_str()).collect()
}

/// Returns the C library, the loader, and their debug files.
fn files() -> Vec<String> {
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let mut files: Vec<String> = maps
        .lines()
        .filter_map(|line| line.get(line.find('/')?..))
        .filter(|path| path.contains("/libc.so") || path.contains("/ld-linux"))
        .map(str::to_owned)
        .collect();
    files.sort();
    files.dedup();
    let notes = |file: &String| run(Command::new("readelf").args(["-nW", "--"]).arg(file));
    let debug_file = |file: &String| {
        let notes = notes(file);
        let id = notes.text().split_once("Build ID: ")?.1.lines().next()?.trim().to_owned();
        let (first, rest) = id.split_at_checked(2)?;
        Some(format!("/usr/lib/debug/.build-id/{first}/{rest}.debug"))
    };
    let debug: Vec<String> = files.iter().filter_map(debug_file).collect();
    files.into_iter().chain(debug).filter(|file| fs::metadata(file).is_ok()).collect()
}

/// Returns the names of each function and variable of a file that has several.
fn groups_of(file: &str) -> Vec<Vec<String>> {
    let read = run(Command::new("readelf").args(["-sW", "--"]).arg(file));
    let mut groups = BTreeMap::<String, Vec<String>>::new();
    for line in String::from_utf8_lossy(&read.stdout).lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let [_, start, _, "FUNC" | "IFUNC" | "OBJECT", _, _, section, name, ..] = words[..]
            && section != "UND"
        {
            groups.entry(start.to_owned()).or_default().push(name.to_owned());
        }
    }
    groups.into_values().filter(|names| names.len() > 1).collect()
}

/// Returns the shortest name by each name, of groups that may have names in common.
fn shortest(groups: &[Vec<String>]) -> HashMap<String, String> {
    let mut shortest = HashMap::<String, String>::new();
    // Each turn carries names over to groups that share one of theirs.
    for _ in 0..3 {
        for names in groups {
            let known = names.iter().filter_map(|name| shortest.get(name)).chain(names);
            let rank = |name: &&String| {
                let bare = name.trim_start_matches('_');
                (name.len() - bare.len(), bare.len(), (*name).clone())
            };
            let Some(best) = known.min_by_key(rank).cloned() else { continue };
            shortest.extend(names.iter().map(|name| (name.clone(), best.clone())));
        }
    }
    shortest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_that_share_a_name_are_one() {
        let groups = [&["__write", "write"][..], &["__GI___libc_write", "__write"], &["_x", "_xy"]];
        let owned = |names: &&[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let names = shortest(&groups.iter().map(owned).collect::<Vec<_>>());
        for name in ["__write", "write", "__GI___libc_write"] {
            assert_eq!(names[name], "write");
        }
        assert_eq!(names["_xy"], "_x");
    }

    #[test]
    fn names_are_replaced_as_wholes() {
        let text = "a 7f1 not_a_name_of_libc+0x2d (/lib/x.so)\n\t[.] __vdso_time|f<(a, b)>::g; é";
        let named = with_shortest_names(text);
        assert_eq!(named, text.replace("__vdso_", ""));
    }
}

//! The workspace's own sources, read for what they may not do.
//!
//! A module's imports are found in its text: every path that starts with `crate::` or `super::`, in
//! a `use` or anywhere else, and every `child::` of a module declared in the same file. Comments
//! and the unit tests at the end of a file (from `#[cfg(test)]` on) are left out. A path leads to
//! the deepest module that it names, and from there to where a re-export (`pub use`) points; the
//! re-export itself is no import, unless the module uses the name too.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::programs::workspace;

/// One source file.
#[derive(Clone, Debug)]
pub struct Source {
    /// From the workspace's root.
    pub path: String,
    /// The whole text.
    pub text: String,
    /// Its path in its crate: `["read", "frames"]`; empty for the root.
    pub module: Vec<String>,
}

/// All Rust files below a folder of the workspace, in order of their paths.
pub fn sources(folder: &str) -> Vec<Source> {
    let root = workspace().join(folder);
    let mut files = Vec::new();
    walk(&root, &mut files);
    files.sort();
    files.iter().map(|file| source(&root, file)).collect()
}

fn walk(dir: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(dir) else {
        return;
    };
    for path in entries.map(|entry| entry.expect("a folder can be read").path()) {
        // Hidden folders, and those that cargo builds in.
        let skipped =
            path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
                || path.join("CACHEDIR.TAG").exists();
        if path.is_dir() && !skipped {
            walk(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

fn source(root: &Path, file: &Path) -> Source {
    let text = |path: &Path| path.to_str().expect("paths here are UTF-8").to_owned();
    let relative = file.strip_prefix(root).expect("below the folder").with_extension("");
    let mut module: Vec<String> = relative.iter().map(|part| text(Path::new(part))).collect();
    if module.last().is_some_and(|last| matches!(last.as_str(), "mod" | "lib" | "main")) {
        module.pop();
    }
    Source {
        path: text(file.strip_prefix(workspace()).expect("in the workspace")),
        text: fs::read_to_string(file).expect("a source can be read"),
        module,
    }
}

impl Source {
    /// The code alone: no comments, no unit tests.
    pub fn code(&self) -> String {
        let lines =
            self.text.lines().take_while(|line| !line.trim_start().starts_with("#[cfg(test)]"));
        lines.map(|line| line.split("//").next().unwrap_or("")).collect::<Vec<_>>().join("\n")
    }

    /// The paths of this crate that the code names, each as its segments from the root of the
    /// crate, but for those that it only re-exports.
    fn paths(&self) -> BTreeSet<Vec<String>> {
        let (code, reexports) = self.code_and_reexports();
        let mut paths = BTreeSet::new();
        for start in ["crate::", "super::"] {
            for (at, _) in code.match_indices(start) {
                // `pub(in crate::a)` says who may see, and imports nothing.
                let is_visibility = code[..at].ends_with("pub(in ");
                if starts_a_word(&code, at) && !code[..at].ends_with("super::") && !is_visibility {
                    paths.extend(self.tree(&code[at..]));
                }
            }
        }
        for child in self.children(&code) {
            let start = format!("{child}::");
            let named = code.match_indices(&start);
            for (at, _) in
                named.filter(|&(at, _)| starts_a_word(&code, at) && !code[..at].ends_with(':'))
            {
                paths.extend(self.tree(&code[at..]));
            }
        }
        let used = reexports.into_iter().filter(|(name, _)| words(&code).any(|word| word == name));
        paths.extend(used.map(|(_, path)| path));
        paths
    }

    /// The modules declared in this file.
    fn children<'a>(&self, code: &'a str) -> impl Iterator<Item = &'a str> {
        code.lines().filter_map(|line| {
            let (before, child) = line.split_once("mod ")?;
            let declared = before.trim().is_empty() || before.trim().starts_with("pub");
            child.trim().strip_suffix(';').filter(|_| declared)
        })
    }

    /// The code without its `pub use` statements, and what these name, by name.
    fn code_and_reexports(&self) -> (String, BTreeMap<String, Vec<String>>) {
        let (mut code, mut reexports) = (String::new(), BTreeMap::new());
        let whole = self.code();
        for statement in whole.split_inclusive(';') {
            let start = statement.find(|c: char| !c.is_whitespace()).unwrap_or(0);
            // Attributes and items without a semicolon may stand before it.
            let start = statement[start..].rfind("\npub").map_or(start, |at| start + at + 1);
            let tree = statement[start..].split_once(" use ").filter(|(before, _)| {
                *before == "pub" || (before.starts_with("pub(") && before.ends_with(')'))
            });
            match tree {
                Some((_, tree)) => {
                    code.push_str(&statement[..start]);
                    let named = self
                        .tree(tree)
                        .into_iter()
                        .filter_map(|path| Some((path.last()?.clone(), path)));
                    reexports.extend(named);
                }
                None => code.push_str(statement),
            }
        }
        (code, reexports)
    }

    /// The paths that a `use` tree stands for.
    fn tree(&self, tree: &str) -> BTreeSet<Vec<String>> {
        let mut prefix = self.module.clone();
        let mut rest = tree;
        if let Some(tail) = rest.strip_prefix("crate::") {
            prefix.clear();
            rest = tail;
        }
        while let Some(tail) = rest.strip_prefix("super::") {
            prefix.pop();
            rest = tail;
        }
        let mut paths = BTreeSet::new();
        use_tree(rest, &prefix, &mut paths);
        paths
    }
}

/// The identifiers in some code.
fn words(code: &str) -> impl Iterator<Item = &str> {
    code.split(|c: char| !c.is_alphanumeric() && c != '_')
}

fn starts_a_word(code: &str, at: usize) -> bool {
    !code[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_' || before == '$')
}

/// Reads `a::{b, c::d}` into the paths that it stands for; returns what is behind it.
fn use_tree<'a>(code: &'a str, prefix: &[String], paths: &mut BTreeSet<Vec<String>>) -> &'a str {
    let code = code.trim_start();
    if let Some(mut rest) = code.strip_prefix('{') {
        loop {
            rest = rest.trim_start();
            if let Some(behind) = rest.strip_prefix('}') {
                return behind;
            }
            let behind = use_tree(rest, prefix, paths).trim_start();
            let next = behind.find([',', '}']).unwrap_or(behind.len());
            rest = behind[next..].strip_prefix(',').unwrap_or(&behind[next..]);
            if rest.is_empty() {
                return rest;
            }
        }
    }
    let end = code.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(code.len());
    let (name, rest) = code.split_at(end);
    let mut path = prefix.to_vec();
    if !name.is_empty() && name != "self" {
        path.push(name.to_owned());
    }
    if let Some(rest) = rest.strip_prefix("::") {
        return use_tree(rest, &path, paths);
    }
    paths.insert(path);
    rest
}

/// Returns the modules that each module imports, by their names joined with `::`; the root is
/// `crate`.
pub fn imports(sources: &[Source]) -> BTreeMap<String, BTreeSet<String>> {
    let modules: BTreeMap<&[String], BTreeMap<String, Vec<String>>> =
        sources.iter().map(|source| (&source.module[..], source.code_and_reexports().1)).collect();
    let name = |module: &[String]| {
        if module.is_empty() { "crate".to_owned() } else { module.join("::") }
    };
    let mut edges: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for source in sources {
        let targets = source.paths().into_iter().map(|path| name(&defining(&modules, path)));
        let own = name(&source.module);
        edges.entry(own.clone()).or_default().extend(targets.filter(|target| *target != own));
    }
    edges
}

/// The module that a path leads to, re-exports followed.
fn defining(
    modules: &BTreeMap<&[String], BTreeMap<String, Vec<String>>>,
    mut path: Vec<String>,
) -> Vec<String> {
    // Re-exports of re-exports are few: a bound keeps two that name each other from being followed
    // for ever.
    for _ in 0..8 {
        let deepest = (0..=path.len())
            .rev()
            .find(|&length| modules.contains_key(&path[..length]))
            .unwrap_or(0);
        let next = path.get(deepest).and_then(|name| modules.get(&path[..deepest])?.get(name));
        match next {
            Some(next) if *next != path => path.clone_from(next),
            _ => {
                path.truncate(deepest);
                break;
            }
        }
    }
    path
}

/// Returns the imports among the rooms of a folder: of its files and of the folders in it, each as
/// one room. The folder's own file is the room `mod`.
pub fn rooms(
    edges: &BTreeMap<String, BTreeSet<String>>,
    folder: &str,
) -> BTreeMap<String, BTreeSet<String>> {
    let room = |module: &str| {
        let below = module.strip_prefix(folder)?;
        let inside = below.strip_prefix("::").or_else(|| below.is_empty().then_some("mod"))?;
        inside.split("::").next().map(str::to_owned)
    };
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (module, targets) in edges {
        let Some(own) = room(module) else { continue };
        let targets = targets.iter().filter_map(|target| room(target));
        all.entry(own.clone()).or_default().extend(targets.filter(|target| *target != own));
    }
    all
}

/// Returns the number of floors on which rooms stand above all that they import, and the rooms that
/// have no floor, as an import leads from each of them to itself or to such a room.
pub fn floors(rooms: &BTreeMap<String, BTreeSet<String>>) -> (usize, BTreeSet<String>) {
    let mut left = rooms.clone();
    let mut floors = 0;
    loop {
        let waiting: BTreeSet<String> = left.keys().cloned().collect();
        left.retain(|_, targets| targets.iter().any(|target| waiting.contains(target)));
        if left.len() == waiting.len() {
            return (floors, waiting);
        }
        floors += 1;
    }
}

/// One cycle of imports, if there is any, as the modules on it.
pub fn cycle(edges: &BTreeMap<String, BTreeSet<String>>) -> Option<Vec<String>> {
    let mut left = edges.clone();
    // A module that imports nothing of what is left is on no cycle.
    loop {
        let before = left.len();
        let names: BTreeSet<String> = left.keys().cloned().collect();
        left.retain(|_, targets| targets.iter().any(|target| names.contains(target)));
        if left.len() == before {
            break;
        }
    }
    let mut trail = vec![left.keys().next()?.clone()];
    loop {
        let next = left[trail.last()?].iter().find(|target| left.contains_key(*target))?.clone();
        if let Some(start) = trail.iter().position(|name| *name == next) {
            trail.drain(..start);
            return Some(trail);
        }
        trail.push(next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(module: &str, text: &str) -> Source {
        let module =
            module.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect();
        Source { path: String::new(), text: text.to_owned(), module }
    }

    #[test]
    fn imports_are_found_in_every_form() {
        let sources = [
            at("", "pub mod a;\npub mod b;\nuse a::X;"),
            at("a", "use crate::b::{c::{D, E}, self};\nfn f() { crate::b::g() }"),
            at("b", "mod c;\n// crate::a::X\nfn g() {}\n#[cfg(test)]\nmod tests { use crate::a; }"),
            at("b::c", "use super::g;\nuse super::super::a;\npub(in crate::b) fn h() {}"),
        ];
        let edges = imports(&sources);
        let of = |name: &str| edges[name].iter().map(String::as_str).collect::<Vec<_>>();
        assert_eq!(of("crate"), ["a"]);
        assert_eq!(of("a"), ["b", "b::c"]);
        assert_eq!(of("b"), [""; 0]);
        assert_eq!(of("b::c"), ["a", "b"]);
        assert_eq!(cycle(&edges).as_deref(), Some(&["a".to_owned(), "b::c".to_owned()][..]));
    }

    #[test]
    fn a_re_export_leads_to_what_it_names() {
        let facade = "mod c;\nmod d;\npub use c::{D, E};\npub(crate) use d::F;\n";
        let sources = |own: &str| {
            [
                at("", "mod b;"),
                at("b", &format!("{facade}{own}")),
                at("b::c", "use super::{F, d};"),
                at("b::d", "use super::G;"),
            ]
        };
        let edges = imports(&sources("struct G;"));
        assert_eq!(edges["b"].len(), 0, "re-exports alone are no imports: {edges:?}");
        assert_eq!(edges["b::c"].iter().collect::<Vec<_>>(), ["b::d"]);
        assert_eq!(cycle(&edges), None);
        let edges = imports(&sources("struct G(F);"));
        assert_eq!(cycle(&edges).as_deref(), Some(&["b".to_owned(), "b::d".to_owned()][..]));
    }

    #[test]
    fn a_folder_is_one_room() {
        let sources = [
            at("a", "mod b;\nmod c;\nmod d;"),
            at("a::b", "use crate::a::c::X;"),
            at("a::c", "mod x;"),
            at("a::c::x", "use crate::e;"),
            at("a::d", "use super::b::B;"),
            at("e", ""),
        ];
        let (height, circling) = floors(&rooms(&imports(&sources), "a"));
        assert_eq!((height, circling.len()), (3, 0), "c, b above it, d on top");
        let back = [&sources[..], &[at("a::c::y", "use crate::a::b::B;")]].concat();
        let (_, circling) = floors(&rooms(&imports(&back), "a"));
        assert_eq!(circling.into_iter().collect::<Vec<_>>(), ["b", "c", "d"]);
    }

    #[test]
    fn a_tree_has_no_cycle() {
        let sources =
            [at("", "mod a;\nmod b;\nuse b::X;"), at("a", ""), at("b", "use crate::a::{Y, Z};")];
        assert_eq!(cycle(&imports(&sources)), None);
    }
}

//! Texts of a shared recording: names stay, directories go.

use std::borrow::Cow;

/// Returns the path of a module without its directories. Names of memory stay as they are, but for
/// what programs put into them.
pub(super) fn shared_path(path: &[u8]) -> Vec<u8> {
    if path.starts_with(b"[anon:") {
        return b"[anon:]".to_vec();
    }
    let is_kept = [&b"//"[..], b"[", b"/dev/zero", b"/anon_hugepage", b"/SYSV", b"/tmp/perf-"];
    if path.is_empty() || is_kept.iter().any(|prefix| path.starts_with(prefix)) {
        return path.to_vec();
    }
    let base = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    [b"/", base].concat()
}

/// Returns a source file without its directories.
pub(super) fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or_default()
}

/// Returns the name of a file without that of a host, or the first part of it.
pub(super) fn without_host(name: &str, host: &str) -> String {
    let first = host.split('.').next().unwrap_or_default();
    let mut name = name.to_owned();
    for host in [host, first].into_iter().filter(|host| !host.is_empty()) {
        let mut kept = String::new();
        let mut rest = name.as_str();
        while let Some((before, after)) = rest.split_once(host) {
            let is_word = !before.ends_with(char::is_alphanumeric)
                && !after.starts_with(char::is_alphanumeric);
            kept.extend([before, if is_word { "host" } else { host }]);
            rest = after;
        }
        name = kept + rest;
    }
    name
}

/// Returns the name of a function without the directories in it: JITs name functions after files.
pub(super) fn function_name(name: &[u8], is_of_jit: bool) -> Cow<'_, [u8]> {
    let Ok(text) = str::from_utf8(name) else { return name.into() };
    match absolute(text).or_else(|| relative(text).filter(|_| is_of_jit)) {
        Some([start, end]) => {
            let (before, after) = (name.get(..start), name.get(end..));
            [before.unwrap_or_default(), after.unwrap_or_default()].concat().into()
        }
        None => name.into(),
    }
}

/// Returns the name of an event without directories and addresses: probes and breakpoints are named
/// after what they watch.
pub(super) fn event_name(name: &str) -> String {
    let name = String::from_utf8_lossy(&function_name(name.as_bytes(), false)).into_owned();
    let mut parts = name.split("0x");
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.len() - part.trim_start_matches(|c: char| c.is_ascii_hexdigit()).len();
        match digits {
            0..5 => shown.extend(["0x", part]),
            _ => shown.extend(["ADDRESS", part.get(digits..).unwrap_or_default()]),
        }
    }
    shown
}

/// Returns where the directories of an absolute path begin and end: from a slash that no name stands
/// before, to the last one, as directories may have spaces.
fn absolute(text: &str) -> Option<[usize; 2]> {
    let is_start = |at: &usize| {
        let before = text.get(..*at).and_then(|before| before.chars().next_back());
        before.is_none_or(|before| !before.is_alphanumeric() && !"/_.$)]>-~".contains(before))
    };
    let start = text.match_indices('/').map(|(at, _)| at).find(is_start)?;
    // Neither `operator/` nor the end of a probe is a directory.
    let has_name = |at: &usize| text.get(at + 1..).is_some_and(|rest| rest.starts_with(is_of_name));
    let last = text.rmatch_indices('/').map(|(at, _)| at).find(has_name)?;
    (start <= last).then_some([start, last + 1])
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || "_.@<-".contains(c)
}

/// Returns the same of a relative path: before a name with an ending, at the end of the text.
fn relative(text: &str) -> Option<[usize; 2]> {
    let first = text.find('/')?;
    let last = text.rfind('/')?;
    let file = text.get(last + 1..)?;
    let file = file.split(':').next().unwrap_or_default();
    let (_, ending) = file.rsplit_once('.')?;
    let is_ending = (1..5).contains(&ending.len()) && ending.chars().all(char::is_alphanumeric);
    let start = text.get(..first)?.rfind([' ', ':', '(']).map_or(0, |before| before + 1);
    (is_ending && !file.contains([' ', ';'])).then_some([start, last + 1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_of_modules_go() {
        for (path, shared) in [
            ("/home/ann/app", "/app"),
            ("/usr/lib/libc.so.6", "/libc.so.6"),
            ("/memfd:jit (deleted)", "/memfd:jit (deleted)"),
            ("[vdso]", "[vdso]"),
            ("//anon", "//anon"),
            ("[anon:ann's heap]", "[anon:]"),
            ("[kernel.kallsyms]_text", "[kernel.kallsyms]_text"),
        ] {
            assert_eq!(shared_path(path.as_bytes()), shared.as_bytes());
        }
    }

    #[test]
    fn hosts_are_taken_out_of_names_of_files() {
        for (name, shared) in [
            ("web-1-20261128.data", "host-20261128.data"),
            ("web-1.example.com.data", "host.data"),
            ("web-1_web-12_myweb-1.data", "host_web-12_myweb-1.data"),
            ("app.data", "app.data"),
        ] {
            assert_eq!(without_host(name, "web-1.example.com"), shared);
        }
        assert_eq!(without_host("app.data", ""), "app.data");
    }

    #[test]
    fn functions_keep_their_names() {
        for (name, is_of_jit, shared) in [
            ("LazyCompile:*run /home/ann/my app/a.js:10:2", true, "LazyCompile:*run a.js:10:2"),
            ("JS:*run file:///home/ann/a.mjs:1:1", true, "JS:*run file:a.mjs:1:1"),
            ("py::run:/home/ann/a.py", true, "py::run:a.py"),
            ("py::run:src/a.py", true, "py::run:a.py"),
            ("py::<module>:<frozen x>", true, "py::<module>:<frozen x>"),
            ("Lcom/ann/Shop;::pay", true, "Lcom/ann/Shop;::pay"),
            ("Lcom/ann/Shop$$Lambda/0x7f;::pay", true, "Lcom/ann/Shop$$Lambda/0x7f;::pay"),
            ("github.com/ann/shop.Pay", false, "github.com/ann/shop.Pay"),
            ("operator/", false, "operator/"),
            ("_ZN3std2rt10lang_startE", false, "_ZN3std2rt10lang_startE"),
        ] {
            let found = function_name(name.as_bytes(), is_of_jit);
            assert_eq!(String::from_utf8_lossy(&found), shared);
        }
    }

    #[test]
    fn events_keep_what_they_are() {
        for (name, shared) in [
            ("cycles:u", "cycles:u"),
            ("uprobe/func=/home/ann/app::main/", "uprobe/func=app::main/"),
            ("mem:0x7ffe01234560/8:w", "mem:ADDRESS/8:w"),
            ("cpu/event=0x3c,umask=0x1/", "cpu/event=0x3c,umask=0x1/"),
            ("r0x1a8", "r0x1a8"),
            ("intel_pt//u", "intel_pt//u"),
        ] {
            assert_eq!(event_name(name), shared);
        }
    }
}

//! Keys of modules and functions: what their names have in common between builds.

use std::borrow::Cow;

use recrep_console::demangle::demangled_fully;

/// Returns what the names of a module have in common between builds and processes.
pub(crate) fn module_key(module: &str) -> Cow<'_, str> {
    let path = module.strip_suffix(" (deleted)").unwrap_or(module);
    let name = path.rsplit('/').next().unwrap_or(path);
    // Code of a JIT, whose names hold process IDs.
    let map = name.strip_prefix("perf-").and_then(|rest| rest.strip_suffix(".map"));
    let dump = name.strip_prefix("jitted-").and_then(|rest| rest.strip_suffix(".so"));
    let numbers = dump.and_then(|numbers| numbers.split_once('-'));
    if map.is_some_and(is_number)
        || numbers.is_some_and(|(pid, number)| is_number(pid) && is_number(number))
        || name == JIT
        || name.starts_with("[JIT] tid ")
    {
        return JIT.into();
    }
    let kernel = ["vmlinux", "[kernel.kallsyms]", "[kernel.vmlinux]", "kallsyms", "[kernel]"];
    if kernel.contains(&name) || name.starts_with("vmlinux-") || name.starts_with("vmlinux.") {
        return "[kernel.kallsyms]".into();
    }
    // The version of a shared library.
    if let Some((library, version)) = name.rsplit_once(".so.")
        && version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
    {
        return format!("{library}.so").into();
    }
    // The hash of cargo.
    match name.rsplit_once('-') {
        Some((program, hash)) if hash.len() == 16 && is_hex(hash) => program.into(),
        _ => name.into(),
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_hex(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Key of a function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FunctionKey {
    /// What its names have in common between builds, without numbers of closures.
    pub text: String,
    /// The numbers of closures, from the left.
    pub numbers: Vec<u64>,
    /// The name as people know it, without the hashes of builds.
    pub shown: String,
    /// The folders of the script that it is of, if a JIT made it, the last one first.
    pub folders: Vec<String>,
}

/// Suffixes of the parts and copies that compilers and linkers make of a function.
const CLONES: [&str; 18] = [
    "constprop",
    "isra",
    "part",
    "cold",
    "warm",
    "hot",
    "unlikely",
    "lto_priv",
    "llvm",
    "__uniq",
    "localalias",
    "_omp_fn",
    "omp_outlined",
    "clone",
    "simdclone",
    "extracted",
    "specialized",
    "__part",
];

/// Removes suffixes of compilers and numbers, repeatedly.
fn without_clones(mut name: &str) -> &str {
    // What follows an @ is the version of a symbol.
    while let Some((rest, suffix)) = name.rsplit_once('.')
        && !rest.is_empty()
        && !rest.contains('@')
        && (CLONES.contains(&suffix) || suffix.bytes().all(|byte| byte.is_ascii_digit()))
    {
        name = rest;
    }
    name
}

/// Returns what the names of a module have in common, as callchains show it in place of a function.
pub(crate) fn module_text(module: &str) -> String {
    let key = module_key(module);
    if key.starts_with('[') { key.into_owned() } else { format!("[{key}]") }
}

/// Module of all code that JITs made.
pub(crate) const JIT: &str = "[JIT]";

/// Returns the key of a function of a file.
pub(super) fn file_key(name: &str) -> FunctionKey {
    let plain = without_clones(name);
    let suffix = name.get(plain.len()..).unwrap_or_default();
    let whole = demangled_fully(plain.as_bytes());
    let whole = without_hash(&whole);
    let is_rust = plain.starts_with("_R");
    let without_tags = without_brackets(whole, is_rust);
    let shown = format!("{without_tags}{suffix}");
    let (text, numbers) = without_numbers(&without_tags);
    FunctionKey { text, numbers, shown, folders: Vec::new() }
}

/// Removes the hash at the end of a Rust name.
fn without_hash(name: &str) -> &str {
    match name.rsplit_once("::h") {
        Some((rest, hash)) if hash.len() == 16 && is_hex(hash) => rest,
        _ => name,
    }
}

/// Removes tags of C++'s ABI, `f[abi:cxx11]`, and of Rust's crates, `core[3f2a]::f`.
fn without_brackets(name: &str, is_rust: bool) -> String {
    let mut text = String::with_capacity(name.len());
    let mut rest = name;
    while let Some((before, after)) = rest.split_once('[') {
        text.push_str(before);
        let is_after_name =
            before.ends_with(|last: char| last.is_alphanumeric() || last == '_' || last == ']');
        match after.split_once(']') {
            Some((tag, after))
                if tag.starts_with("abi:") || is_rust && is_after_name && is_hex(tag) =>
            {
                rest = after;
            }
            _ => {
                text.push('[');
                rest = after;
            }
        }
    }
    text.push_str(rest);
    text
}

/// Removes the numbers of closures and lambdas, `{closure#1}`, `{lambda(int)#2}` and `$_0`, and the
/// hash of an anonymous namespace.
fn without_numbers(name: &str) -> (String, Vec<u64>) {
    let name = name.replace("{{closure}}", "{closure}");
    let (mut text, mut numbers) = (String::with_capacity(name.len()), Vec::new());
    let mut rest = name.as_str();
    while let Some(at) = rest.find(['#', '$', '_']) {
        let (before, from) = rest.split_at(at);
        text.push_str(before);
        let sign = ["#", "$_", "_GLOBAL__N_"].into_iter().find(|sign| from.starts_with(sign));
        let Some(sign) = sign else {
            let (sign, after) = from.split_at(1);
            text.push_str(sign);
            rest = after;
            continue;
        };
        let after = from.get(sign.len()..).unwrap_or_default();
        let is_hash = sign == "_GLOBAL__N_";
        let end = after.find(|next: char| !match is_hash {
            true => next.is_ascii_alphanumeric() || next == '_',
            false => next.is_ascii_digit(),
        });
        let (digits, behind) = after.split_at(end.unwrap_or(after.len()));
        let number = digits.parse::<u64>().ok().filter(|_| sign != "#" || behind.starts_with('}'));
        rest = match (is_hash, number) {
            (true, _) => {
                text.push_str("(anonymous namespace)");
                behind
            }
            (false, Some(number)) => {
                numbers.push(number);
                text.push_str(if sign == "#" { "" } else { sign });
                behind
            }
            (false, None) => {
                text.push_str(sign);
                after
            }
        };
    }
    text.push_str(rest);
    (text, numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_have_one_key_in_all_builds_and_processes() {
        for (module, key) in [
            ("/usr/bin/app", "app"),
            ("/usr/bin/app (deleted)", "app"),
            ("/usr/lib/libc.so.6", "libc.so"),
            ("libz.so.1.2.13", "libz.so"),
            ("libz.so", "libz.so"),
            ("ld-linux-x86-64.so.2", "ld-linux-x86-64.so"),
            ("libc-2.31.so", "libc-2.31.so"),
            ("target/debug/deps/rep-0123456789abcdef", "rep"),
            ("rep-0123456789abcde", "rep-0123456789abcde"),
            ("/tmp/perf-4711.map", "[JIT]"),
            ("[JIT] tid 4711", "[JIT]"),
            ("jitted-4711-12.so", "[JIT]"),
            ("jitted-x-12.so", "jitted-x-12.so"),
            ("perf-tool.map", "perf-tool.map"),
            ("[kernel.kallsyms]", "[kernel.kallsyms]"),
            ("/usr/lib/debug/boot/vmlinux-6.1.0-13-amd64", "[kernel.kallsyms]"),
            ("vmlinux", "[kernel.kallsyms]"),
            ("[vdso]", "[vdso]"),
            ("", ""),
        ] {
            assert_eq!(module_key(module), key, "{module}");
        }
    }

    #[test]
    fn functions_have_one_key_in_all_builds() {
        for (name, key) in [
            ("parse", "parse"),
            ("parse.constprop.0.isra.0", "parse"),
            ("parse.part.3.cold", "parse"),
            ("parse.llvm.1234567890", "parse"),
            ("parse.lto_priv.12", "parse"),
            ("main._omp_fn.0", "main"),
            ("state.__uniq.99887766.llvm.5", "state"),
            ("counter.0", "counter"),
            // Dots that are no compiler's.
            ("main.run", "main.run"),
            ("runtime.mallocgc", "runtime.mallocgc"),
            (".cold", ".cold"),
            // Overloads are two functions, their copies are not.
            ("_ZN3app3eatEi", "app::eat(int)"),
            ("_ZN3app3eatEd", "app::eat(double)"),
            ("_ZN3appL3subEii.constprop.0.cold", "app::sub(int, int)"),
            ("_ZN3app1SB5cxx111fEv.isra.0", "app::S::f()"),
            ("_ZN12_GLOBAL__N_16hiddenEi", "(anonymous namespace)::hidden(int)"),
            ("_GLOBAL__N__4f3a2b_init", "(anonymous namespace)"),
            // Rust: the hash of the old mangling, the crates' of the new one.
            ("_ZN1r5inner1S2go17ha8eebf9305fa264eE", "r::inner::S::go"),
            ("_ZN1r5inner1S2go17ha8eebf9305fa264eE.llvm.77", "r::inner::S::go"),
            ("_RNvMNtCs3j7OyaTVhNh_1r5innerNtB2_1S2go", "<r::inner::S>::go"),
            ("r::inner::parse::ha8eebf9305fa264e", "r::inner::parse"),
            (
                "_RNvXs_NtCs3j7OyaTVhNh_1r5innerNtB4_1SNtNtCs1p5UDGgVI4d_4core3fmt7Display3fmt",
                "<r::inner::S as core::fmt::Display>::fmt",
            ),
            ("[kernel]", "[kernel]"),
        ] {
            assert_eq!(file_key(name).text, key, "{name}");
            assert!(file_key(name).numbers.is_empty(), "{name}");
        }
    }

    #[test]
    fn numbers_of_closures_are_apart() {
        for (name, key, number) in [
            ("_RNCNvNtCs3j7OyaTVhNh_1r5inner5parses_0B5_", "r::inner::parse::{closure}", Some(1)),
            ("_RNCNvNtCs3j7OyaTVhNh_1r5inner5parse0B5_", "r::inner::parse::{closure}", Some(0)),
            (
                "_ZN1r5inner5parse28_$u7b$$u7b$closure$u7d$$u7d$17h267da1258a42ad79E",
                "r::inner::parse::{closure}",
                None,
            ),
            (
                "_ZZN3app5parseEiENKUliE0_clEi.constprop.0",
                "app::parse(int)::{lambda(int)}::operator()(int) const",
                Some(2),
            ),
            ("_ZZN3app5parseEiENK3$_1clEi", "app::parse(int)::$_::operator()(int) const", Some(1)),
        ] {
            let found = file_key(name);
            assert_eq!(found.text, key, "{name}");
            assert_eq!(found.numbers, Vec::from_iter(number), "{name}");
        }
        assert_eq!(file_key("a#1").text, "a#1");
        assert_eq!(file_key("a$_x").text, "a$_x");
    }
}

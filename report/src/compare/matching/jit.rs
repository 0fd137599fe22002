//! Names of code that a JIT made: what of them is a function's own, and what is of one run.
//!
//! ```text
//!   JS:*parse file:///ci/1/app.js:10:5    tier, folder, line and column
//!   py::parse:/ci/1/app.py                folder
//!   App$$Lambda$20/0x800c0500.compare     number and address of a generated class
//!   void Main(string[])[Tier0]            tier
//! ```

use super::keys::{FunctionKey, JIT, file_key};

/// Kinds of V8's names that are followed by the mark of a tier and a function. Which one a function has
/// depends on when it was compiled.
const V8_FUNCTIONS: [&str; 3] = ["JS:", "LazyCompile:", "Function:"];

/// Kinds of V8's names that are followed by the mark of a tier and a script.
const V8_SCRIPTS: [&str; 2] = ["Script:", "Eval:"];

/// Marks of V8's tiers.
const TIERS: [char; 5] = ['*', '~', '^', '+', '\''];

/// Words that numbers follow, those of a run: classes, proxies and accessors that the JVM generates,
/// traces of PHP.
const NUMBERED: [&str; 8] = [
    "LambdaForm$MH/",
    "LambdaForm$DMH/",
    "GeneratedMethodAccessor",
    "ConstructorAccessor",
    "$Proxy",
    "jdk.proxy",
    "$MockitoMock$",
    "TRACE-",
];

/// The class that the JVM generates for a lambda.
const LAMBDA: &str = "$$Lambda";

/// Words that letters and digits by chance follow: classes that libraries of Java generate.
const HASHED: [&str; 4] = ["CGLIB$$", "$ByteBuddy$", "$HibernateProxy$", "$auxiliary$"];

/// Marks of .NET's tiers, in brackets behind a function.
const DOTNET: [&str; 8] = [
    "Tier",
    "Optimized",
    "PreJIT",
    "ReadyToRun",
    "QuickJitted",
    "MinOpt",
    "Unoptimized",
    "Instrumented",
];

/// Beginnings of the names that Julia numbers.
const JULIA: [&str; 4] = ["julia_", "japi1_", "jfptr_", "jlsys_"];

/// Returns the key of a function of a module with this key, given its name as its file spells it.
pub(super) fn function_key(module: &str, name: &str) -> FunctionKey {
    if module == JIT { jit_key(name) } else { file_key(name) }
}

/// Returns what the names of a function have in common between builds, as text.
pub(crate) fn function_text(module: &str, name: &str) -> String {
    function_key(module, name).text
}

/// Returns the key of a function that a JIT made, given its name in the JIT's map or dump.
fn jit_key(name: &str) -> FunctionKey {
    if name.starts_with("_Z") || name.starts_with("_R") {
        return file_key(name);
    }
    let (name, is_v8) = without_tier(name);
    let mut text = without_generated(&name);
    let path = path_at(&text, is_v8).map(|at| text.split_off(at));
    let mut key = FunctionKey::default();
    if let Some(path) = path {
        let (path, numbers) = without_position(&path);
        let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
        text.push_str(file);
        key.numbers = numbers;
        let folder = folder.strip_prefix("file://").unwrap_or(folder);
        key.folders = folder.rsplit('/').map(str::to_owned).collect();
    }
    key.shown.clone_from(&text);
    FunctionKey { text, ..key }
}

/// Returns a name without the mark of its tier, and whether it is one of V8's.
fn without_tier(name: &str) -> (String, bool) {
    for (kinds, kind) in [(&V8_FUNCTIONS[..], Some("JS:")), (&V8_SCRIPTS[..], None)] {
        for prefix in kinds {
            if let Some(rest) = name.strip_prefix(prefix) {
                let kind = kind.unwrap_or(prefix);
                return (format!("{kind}{}", rest.trim_start_matches(TIERS)), true);
            }
        }
    }
    if let Some((function, tier)) = name.strip_suffix(']').and_then(|name| name.rsplit_once('['))
        && DOTNET.iter().any(|mark| tier.starts_with(mark))
    {
        return (function.to_owned(), false);
    }
    if JULIA.iter().any(|prefix| name.starts_with(prefix))
        && let Some((function, number)) = name.rsplit_once('_')
        && number.bytes().all(|byte| byte.is_ascii_digit())
    {
        return (function.to_owned(), false);
    }
    (name.to_owned(), false)
}

/// Removes the numbers and addresses of generated classes.
fn without_generated(name: &str) -> String {
    let mut text = name.to_owned();
    for sign in ["/0x", "+0x", ".0x"] {
        text = without_behind(&text, sign, 0, |next| next.is_ascii_hexdigit());
    }
    for word in NUMBERED {
        text = without_behind(&text, word, word.len(), |next| next.is_ascii_digit());
    }
    for word in HASHED {
        text = without_behind(&text, word, word.len(), |next| next.is_ascii_alphanumeric());
    }
    // The number of a lambda, and that of its class.
    let is_part = |next: char| next.is_ascii_digit() || next == '$' || next == '/';
    without_behind(&text, LAMBDA, LAMBDA.len(), is_part)
}

/// Removes what follows each occurrence of a word, as far as it is of these characters; of the word
/// itself, `kept` bytes stay.
fn without_behind(text: &str, word: &str, kept: usize, is_part: impl Fn(char) -> bool) -> String {
    let mut parts = text.split(word);
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        shown.push_str(word.get(..kept).unwrap_or(word));
        shown.push_str(part.trim_start_matches(&is_part));
    }
    shown
}

/// Returns where the path of the script begins in a name.
fn path_at(name: &str, is_v8: bool) -> Option<usize> {
    if let Some(function) = name.strip_prefix("py::") {
        return Some("py::".len() + function.find(':')? + 1);
    }
    let signs = [" /", ":/", "@/", "(/", " file:", " node:", " ./", " ../"];
    let first = signs.iter().filter_map(|sign| name.find(sign)).min().map(|at| at + 1);
    first.or_else(|| name.rfind(' ').map(|at| at + 1).filter(|_| is_v8))
}

/// Splits the line and the column off a path.
fn without_position(path: &str) -> (&str, Vec<u64>) {
    let (mut path, mut numbers) = (path.trim_end_matches(')'), Vec::new());
    while let Some((before, number)) = path.rsplit_once(':')
        && let Ok(number) = number.parse()
        && numbers.len() < 2
    {
        numbers.insert(0, number);
        path = before;
    }
    (path, numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_of_a_run_is_no_part_of_a_function() {
        for (name, text, folder, numbers) in [
            ("JS:*parse file:///ci/1/app.js:10:5", "JS:parse app.js", "/ci/1", &[10, 5][..]),
            ("JS:~parse /ci/1/app.js:10:5", "JS:parse app.js", "/ci/1", &[10, 5]),
            ("LazyCompile:^parse app.js:10:5", "JS:parse app.js", "", &[10, 5]),
            ("JS:+'get size node:internal/url:7:1", "JS:get size url", "node:internal", &[7, 1]),
            ("JS:* /ci/1/app.js:3:9", "JS: app.js", "/ci/1", &[3, 9]),
            ("Script:~ /ci/app.js:1:1", "Script: app.js", "/ci", &[1, 1]),
            ("RegExp:^a/b*", "RegExp:^a/b*", "", &[]),
            ("py::parse:/ci/base/src/app.py", "py::parse:app.py", "/ci/base/src", &[]),
            ("py::<module>:base/app.py", "py::<module>:app.py", "base", &[]),
            ("py::f:<frozen importlib._bootstrap>", "py::f:<frozen importlib._bootstrap>", "", &[]),
            ("App$$Lambda$20/0x00007f800c0500.compare", "App$$Lambda.compare", "", &[]),
            ("LApp$$Lambda$14.0x0000000800c03000;::apply", "LApp$$Lambda;::apply", "", &[]),
            ("App$$Lambda/0x00007f800c0500.compare", "App$$Lambda.compare", "", &[]),
            ("App$$Lambda$1/1234567.apply", "App$$Lambda.apply", "", &[]),
            (
                "jdk.internal.reflect.GeneratedMethodAccessor120.invoke",
                "jdk.internal.reflect.GeneratedMethodAccessor.invoke",
                "",
                &[],
            ),
            ("jdk.proxy2.$Proxy12.get", "jdk.proxy.$Proxy.get", "", &[]),
            (
                "java.lang.invoke.LambdaForm$MH/0x0000000800c03000.invoke",
                "java.lang.invoke.LambdaForm$MH.invoke",
                "",
                &[],
            ),
            ("A$$EnhancerBySpringCGLIB$$1a2b3c.get", "A$$EnhancerBySpringCGLIB$$.get", "", &[]),
            ("void [app] App.Main(string[])[Tier0]", "void [app] App.Main(string[])", "", &[]),
            ("julia_work_1234", "julia_work", "", &[]),
            ("com.app.Main.run", "com.app.Main.run", "", &[]),
            ("_ZN3app3eatEi", "app::eat(int)", "", &[]),
        ] {
            let mut key = jit_key(name);
            key.folders.reverse();
            let found = (&key.text[..], key.folders.join("/"), &key.numbers[..]);
            assert_eq!(found, (text, folder.to_owned(), numbers));
        }
    }
}

//! Demangling of C++ and Rust symbol names.
//!
//! The spelling is the default of `perf report`: Rust without the hash of the crate, C++ without
//! parameters and return types. Suffixes of compilers and linkers (`.constprop.0`, `.cold`,
//! `.llvm.123`, `@@GLIBCXX_3.4`) are removed from mangled names; a plain name keeps them.
//!
//! Mangled names are untrusted. A short one can expand to a long text (each substitution may double
//! it), so the length is limited: a name that would exceed the limit stays mangled.

mod cpp;

use std::borrow::Cow;
use std::fmt::Write;

use cpp::Bounded;
use cpp_demangle::DemangleOptions;

/// Suffix that perf appends to the names of PLT entries.
pub const PLT_SUFFIX: &[u8] = b"@plt";

/// Returns `name` demangled. A name that is not mangled stays as it is, with invalid UTF-8
/// replaced.
pub fn demangled(name: &[u8]) -> Cow<'_, str> {
    let mut text = String::new();
    let (mangled, suffix) = match name.strip_suffix(PLT_SUFFIX) {
        Some(mangled) => (mangled, "@plt"),
        None => (name, ""),
    };
    if is_mangled(name)
        && (rust(mangled, &mut text, false).is_some()
            || cpp::demangle_into(mangled, &mut text).is_some())
    {
        text.push_str(suffix);
        return text.into();
    }
    String::from_utf8_lossy(name)
}

/// Returns `name` demangled with all that tells functions apart: the parameters, return types and
/// clones of C++, the hashes of Rust.
pub fn demangled_fully(name: &[u8]) -> Cow<'_, str> {
    let (mangled, plt) = match name.strip_suffix(PLT_SUFFIX) {
        Some(mangled) => (mangled, "@plt"),
        None => (name, ""),
    };
    if !is_mangled(name) {
        return String::from_utf8_lossy(name);
    }
    let mut text = String::new();
    let end = match rust(mangled, &mut text, true) {
        Some(end) => end,
        None => match cpp::demangle_fully_into(mangled, &mut text) {
            Some(end) => end,
            None => return String::from_utf8_lossy(name),
        },
    };
    push_clones(mangled.get(end..).unwrap_or_default(), &mut text);
    text.push_str(plt);
    text.into()
}

/// Appends the suffixes of compilers to a demangled name as binutils do: `.constprop.0.cold` as
/// ` [clone .constprop.0] [clone .cold]`. The version of a symbol, which follows a `@`, is not one.
fn push_clones(suffixes: &[u8], text: &mut String) {
    let end = memchr::memchr(b'@', suffixes).unwrap_or(suffixes.len());
    let suffixes = String::from_utf8_lossy(suffixes.get(..end).unwrap_or_default());
    let mut clone = String::new();
    for part in suffixes.split('.').skip(1) {
        // A number belongs to the word before it.
        let is_number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if !clone.is_empty() && !is_number {
            text.push_str(&format!(" [clone {clone}]"));
            clone.clear();
        }
        clone.push('.');
        clone.push_str(part);
    }
    if !clone.is_empty() {
        text.push_str(&format!(" [clone {clone}]"));
    }
}

/// Returns whether `name` has the prefix of a mangled name.
pub fn is_mangled(name: &[u8]) -> bool {
    name.starts_with(b"_Z") || name.starts_with(b"_R")
}

/// Returns `true` if two different names certainly demangle to the same text: they differ only in
/// the symbol version, or they are variants of one constructor or destructor.
pub fn same_when_demangled(a: &[u8], b: &[u8]) -> bool {
    if !a.starts_with(b"_Z") {
        return false;
    }
    let shown = |name: &[u8]| memchr::memchr(b'@', name).unwrap_or(name.len());
    let (a, b) = (a.get(..shown(a)).unwrap_or(a), b.get(..shown(b)).unwrap_or(b));
    if a.len() != b.len() {
        return false;
    }
    let mut differing = a.iter().zip(b).enumerate().filter(|(_, (x, y))| x != y);
    let (at, (x, y)) = match (differing.next(), differing.next()) {
        (None, _) => return true,
        (Some(one), None) => one,
        _ => return false,
    };
    let before = at.checked_sub(1).and_then(|before| a.get(before));
    matches!(before, Some(b'C' | b'D')) && x.is_ascii_digit() && y.is_ascii_digit()
}

/// Returns the path that a name of Rust stands for, without its hash; `None` if it is not one.
pub fn rust_path(name: &str) -> Option<String> {
    let is_mangled = name.starts_with("_ZN") || name.starts_with("_R");
    let path = if is_mangled { rustc_demangle::try_demangle(name).ok()? } else { return None };
    Some(format!("{path:#}"))
}

/// Parts of a C++ name that are shown.
#[derive(Clone, Copy, Debug)]
pub enum CppParts {
    /// The qualified name.
    Name,
    /// The name and the types of the parameters.
    NameAndParameters,
    /// Also the return type.
    Full,
}

/// Returns parts of what a C++ name stands for, as the demangler spells it; `None` if it is not
/// one.
pub fn cpp_name(name: &str, parts: CppParts) -> Option<String> {
    if !name.starts_with("_Z") || rust_path(name).is_some() {
        return None;
    }
    let options = match parts {
        CppParts::Name => DemangleOptions::new().no_params().no_return_type(),
        CppParts::NameAndParameters => DemangleOptions::new().no_return_type(),
        CppParts::Full => DemangleOptions::new(),
    };
    let mut text = String::new();
    cpp::write_name(name.as_bytes(), options, &mut text)?;
    Some(text)
}

/// Writes a name of Rust into the empty `text`, perhaps with its hash. Returns the end of the name,
/// which suffixes may follow; `None` if it is not one.
fn rust(name: &[u8], text: &mut String, with_hash: bool) -> Option<usize> {
    // A v0 name ends at a `.` or `@`, a legacy one after its hash.
    let end = if name.starts_with(b"_R") {
        memchr::memchr2(b'.', b'@', name).or(Some(name.len()))
    } else {
        rust_hash_end(name)
    };
    let end = end?;
    let name = std::str::from_utf8(name.get(..end)?).ok()?;
    let symbol = rustc_demangle::try_demangle(name).ok()?;
    // The alternate format omits hashes and the types of constants.
    let written = if with_hash {
        write!(Bounded(text), "{symbol}")
    } else {
        write!(Bounded(text), "{symbol:#}")
    };
    written.ok()?;
    Some(end)
}

/// Returns the end of a legacy Rust name: the end of the path element that is a 64-bit hash.
fn rust_hash_end(name: &[u8]) -> Option<usize> {
    const HASH: usize = b"17h0123456789abcdefE".len();
    memchr::memmem::rfind_iter(name, b"17h").map(|at| at + HASH).find(|&end| {
        let hash = name.get(end - HASH..end).unwrap_or_default();
        let digits = hash.get(3..HASH - 1).unwrap_or_default();
        let hex = digits.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        hex && hash.ends_with(b"E") && matches!(name.get(end), None | Some(b'.' | b'@'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_spelt_as_by_perf() {
        for (name, spelt) in [
            // Plain names stay.
            ("main", "main"),
            ("cfree@GLIBC_2.2.5", "cfree@GLIBC_2.2.5"),
            ("_Zrk", "_Zrk"),
            // PLT entries keep their suffix.
            ("_Znwm@plt", "operator new@plt"),
            ("free@plt", "free@plt"),
            // Rust without hash.
            ("_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write"),
            ("_ZN4core3fmt5write17h0123456789abcdefE.llvm.123", "core::fmt::write"),
            ("_ZN4core3fmt5write17h0123456789abcdefE.cold", "core::fmt::write"),
            (
                "_ZN48_$LT$std..fs..File$u20$as$u20$std..io..Write$GT$5write17h0123456789abcdefE",
                "<std::fs::File as std::io::Write>::write",
            ),
            ("_RNvC6_123foo3bar", "123foo::bar"),
            ("_RNvC6_123foo3bar.cold.1", "123foo::bar"),
            ("_RNvC6_123foo3bar.0.llvm.12", "123foo::bar"),
        ] {
            assert_eq!(demangled(name.as_bytes()), spelt, "{name}");
        }
        assert_eq!(demangled(b"a\xffb"), "a\u{fffd}b");
    }

    #[test]
    fn whole_names_tell_functions_apart() {
        for (name, spelt) in [
            ("main", "main"),
            ("parse.cold", "parse.cold"),
            ("_Z3eati", "eat(int)"),
            ("_Z3eatd.cold", "eat(double) [clone .cold]"),
            ("_ZNK3Box2atEi", "Box::at(int) const"),
            ("_ZN3Box2atEi", "Box::at(int)"),
            ("_ZN1a1bEv.isra.0.cold", "a::b() [clone .isra.0] [clone .cold]"),
            ("_ZNSo5flushEv@@GLIBCXX_3.4", "std::ostream::flush()"),
            ("_Znwm@plt", "operator new(unsigned long)@plt"),
            ("_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write::h0123456789abcdef"),
            (
                "_ZN4core3fmt5write17h0123456789abcdefE.cold",
                "core::fmt::write::h0123456789abcdef [clone .cold]",
            ),
        ] {
            assert_eq!(demangled_fully(name.as_bytes()), spelt, "{name}");
        }
    }

    #[test]
    fn a_name_that_expands_too_much_stays_mangled() {
        // Each substitution is a pair of the previous one, so the text doubles.
        let mut bomb = String::from("_Z1fI1pIiiE");
        for at in 0..40 {
            let before = if at == 0 { "S0_".into() } else { format!("S{}_", radix36(at)) };
            bomb.push_str(&format!("1pI{before}{before}E"));
        }
        bomb.push_str("Evv");
        assert!(demangled(bomb.as_bytes()).len() <= cpp::LIMIT + bomb.len());
    }

    fn radix36(number: u32) -> char {
        char::from_digit(number, 36).map_or('Z', |digit| digit.to_ascii_uppercase())
    }

    #[test]
    fn variants_of_a_constructor_and_versions_demangle_to_the_same_text() {
        assert!(same_when_demangled(b"_ZN3FooC1Ev", b"_ZN3FooC2Ev"));
        assert!(same_when_demangled(b"_ZN3FooC1Ev@@V_2", b"_ZN3FooC1Ev"));
        assert!(!same_when_demangled(b"_ZN3FooC1Ev", b"_ZN3BooC2Ev"));
        assert!(!same_when_demangled(b"_ZN3FooEv", b"_ZN3GooEv"));
    }
}

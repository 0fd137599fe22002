//! C++ names (Itanium C++ ABI), spelt as by binutils without parameters, which is what perf shows.
//!
//! The `cpp_demangle` crate spells most names that way. Its other spellings are rewritten here:
//! template constants, empty parameter packs, qualifiers that belong to the parameters, tables and
//! thunks. Thunks and clones keep the parameters of their target function.

use std::fmt::{self, Write};

use cpp_demangle::{BorrowedSymbol, DemangleOptions};

/// Maximum length of texts that are rewritten, beyond any real name. Rewriting takes quadratic
/// time, so longer ones are left as the demangler wrote them.
const LONGEST_REWRITTEN: usize = 1 << 14;

/// Maximum length of a demangled name in bytes.
pub(super) const LIMIT: usize = 1 << 16;

/// Writer into a string that fails if the string would exceed [`LIMIT`].
pub(super) struct Bounded<'a>(pub(super) &'a mut String);

impl Write for Bounded<'_> {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        if self.0.len() + part.len() > LIMIT {
            return Err(fmt::Error);
        }
        self.0.push_str(part);
        Ok(())
    }
}

/// Replaces `text` by the demangled `name`, without parameters; returns `None` if it is not a C++
/// name.
pub(super) fn demangle_into(name: &[u8], text: &mut String) -> Option<()> {
    let end = memchr::memchr2(b'.', b'@', name).unwrap_or(name.len());
    let name = name.get(..end).unwrap_or(name);
    match thunk(name) {
        Some((kind, target)) => {
            write_name(&[b"_Z", target].concat(), DemangleOptions::new(), text)?;
            text.insert_str(0, kind);
        }
        None if name.starts_with(b"_ZGTt") => write_name(name, DemangleOptions::new(), text)?,
        None => {
            write_name(name, DemangleOptions::new().no_params().no_return_type(), text)?;
            drop_qualifiers(name, text);
            spell_abbreviations(name, text);
        }
    }
    if text.len() <= LONGEST_REWRITTEN {
        spell_tables(text);
        spell_literals(text);
        spell_empty_packs(text);
        spell_functions(text);
    }
    Some(())
}

/// Writes a C++ name with parameters and return type into the empty `text`. Returns the end of the
/// name, which suffixes may follow; `None` if it is not one.
pub(super) fn demangle_fully_into(name: &[u8], text: &mut String) -> Option<usize> {
    let end = memchr::memchr2(b'.', b'@', name).unwrap_or(name.len());
    let name = name.get(..end).unwrap_or(name);
    match thunk(name) {
        Some((kind, target)) => {
            write_name(&[b"_Z", target].concat(), DemangleOptions::new(), text)?;
            text.insert_str(0, kind);
        }
        None => write_name(name, DemangleOptions::new(), text)?,
    }
    if text.len() <= LONGEST_REWRITTEN {
        spell_tables(text);
        spell_literals(text);
        spell_empty_packs(text);
    }
    Some(end)
}

/// Replaces `text` by what the demangler makes of `name`; returns `None` if it is not a C++ name.
pub(super) fn write_name(name: &[u8], options: DemangleOptions, text: &mut String) -> Option<()> {
    text.clear();
    // An unparsed rest is ignored: parameters are not shown, and nothing else follows the name.
    let (symbol, _) = BorrowedSymbol::with_tail(name).ok()?;
    symbol.structured_demangle(&mut Bounded(text), &options).ok()
}

/// Returns the kind of a thunk and its target function, mangled but without the prefix `_Z`.
fn thunk(name: &[u8]) -> Option<(&'static str, &[u8])> {
    let (&kind, rest) = name.strip_prefix(b"_ZT")?.split_first()?;
    match kind {
        b'h' => Some(("non-virtual thunk to ", offset(rest)?)),
        b'v' => Some(("virtual thunk to ", offset(offset(rest)?)?)),
        b'c' => Some(("covariant return thunk to ", call_offset(call_offset(rest)?)?)),
        _ => None,
    }
}

/// Returns the text after `h offset` or `v offset offset`.
fn call_offset(text: &[u8]) -> Option<&[u8]> {
    match text.split_first()? {
        (b'h', rest) => offset(rest),
        (b'v', rest) => offset(offset(rest)?),
        _ => None,
    }
}

/// Returns the text after `[n] digits _`.
fn offset(text: &[u8]) -> Option<&[u8]> {
    let text = text.strip_prefix(b"n").unwrap_or(text);
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    text.get(digits..)?.strip_prefix(b"_").filter(|_| digits > 0)
}

/// Removes a method's `&` or `&&`, and the `const` of a method of a local class: they go with the
/// parameters, which are not shown. Operator names are kept, since they have no space before `&`.
fn drop_qualifiers(name: &[u8], text: &mut String) {
    let mut kept = text.as_str();
    kept = kept.strip_suffix(" &&").or_else(|| kept.strip_suffix(" &")).unwrap_or(kept);
    if name.starts_with(b"_ZZ") {
        kept = kept.strip_suffix(" const").unwrap_or(kept);
    }
    text.truncate(kept.len());
}

/// Keeps the standard library's abbreviations (`Ss` is `std::string`) short, but spells them in
/// full in the names of constructors and destructors. The demangler does the opposite for some.
fn spell_abbreviations(name: &[u8], text: &mut String) {
    let nested = name.strip_prefix(b"_ZNS").or_else(|| name.strip_prefix(b"_ZNKS"));
    let Some([abbreviation, member, ..]) = nested else { return };
    let (short, class, arguments) = match abbreviation {
        b's' => ("string", "basic_string", "<char, std::char_traits<char>, std::allocator<char> >"),
        b'i' => ("istream", "basic_istream", "<char, std::char_traits<char> >"),
        b'o' => ("ostream", "basic_ostream", "<char, std::char_traits<char> >"),
        b'd' => ("iostream", "basic_iostream", "<char, std::char_traits<char> >"),
        _ => return,
    };
    let rest = text.strip_prefix("std::").unwrap_or_default();
    let rest =
        rest.strip_prefix(short).or_else(|| rest.strip_prefix(class)?.strip_prefix(arguments));
    let Some(rest) = rest.and_then(|rest| rest.strip_prefix("::")) else { return };
    *text = match member {
        b'C' => {
            let parameters = rest.strip_prefix(short).or_else(|| rest.strip_prefix(class));
            format!("std::{class}{arguments}::{class}{}", parameters.unwrap_or_default())
        }
        b'D' => format!("std::{class}{arguments}::~{class}"),
        _ => format!("std::{short}::{rest}"),
    };
}

/// Spells virtual tables as `vtable for A` and `VTT for A`.
fn spell_tables(text: &mut String) {
    for (opening, spelt) in [("{vtable(", "vtable for "), ("{vtt(", "VTT for ")] {
        if let Some(inner) = text.strip_prefix(opening).and_then(|rest| rest.strip_suffix(")}")) {
            *text = format!("{spelt}{inner}");
            return;
        }
    }
}

/// Spells `(unsigned int)1` as `1u`.
fn spell_literals(text: &mut String) {
    const SUFFIXES: [(&str, &str); 5] = [
        ("(unsigned int)", "u"),
        ("(long)", "l"),
        ("(unsigned long)", "ul"),
        ("(long long)", "ll"),
        ("(unsigned long long)", "ull"),
    ];
    for (cast, suffix) in SUFFIXES {
        let mut from = 0;
        while let Some(at) = text.get(from..).and_then(|rest| rest.find(cast)) {
            let start = from + at;
            let number = start + cast.len();
            let rest = text.get(number..).unwrap_or_default();
            let sign = usize::from(rest.starts_with('-'));
            let digits = rest.bytes().skip(sign).take_while(u8::is_ascii_digit).count();
            from = number;
            if digits > 0 {
                text.insert_str(number + sign + digits, suffix);
                text.replace_range(start..number, "");
                from = start;
            }
        }
    }
}

/// Removes the commas of empty parameter packs.
fn spell_empty_packs(text: &mut String) {
    for (empty, spelt) in [(", , ", ", "), ("<, ", "<"), (", >", ">")] {
        while text.contains(empty) {
            *text = text.replace(empty, spelt);
        }
    }
}

/// Spells functions as template arguments: a type with a space before its parameters
/// (`function<A<int> (int)>`), an address with parentheses around the function
/// (`traverse<&(visit(int))>`). Their closing parenthesis ends a template argument (`>` or `,`
/// follows), unlike other parentheses.
fn spell_functions(text: &mut String) {
    let mut from = 0;
    while let Some(at) = text.get(from..).and_then(|rest| rest.find('(')) {
        let opening = from + at;
        from = opening + 1;
        let (before, rest) = text.split_at(opening);
        let Some(after) = past_closing(rest).filter(|after| after.starts_with(['>', ','])) else {
            continue;
        };
        let closing = text.len() - after.len();
        let name = name_at_end(before);
        let is_word =
            name.ends_with(|last: char| last == '_' || last == '>' || last.is_ascii_alphanumeric());
        if !is_word
            || ["decltype", "sizeof", "alignof", "noexcept"].contains(&name)
            || name.contains("operator")
        {
            continue;
        }
        let start = opening - name.len();
        if before.get(..start).is_some_and(|before| before.ends_with('&')) {
            text.insert(closing, ')');
            text.insert(start, '(');
            from += 1;
        } else {
            text.insert(opening, ' ');
        }
    }
}

/// Returns the qualified name at the end of `text`, including template arguments.
fn name_at_end(text: &str) -> &str {
    let mut depth = 0_usize;
    let mut start = text.len();
    for (at, byte) in text.bytes().enumerate().rev() {
        match byte {
            b'>' => depth += 1,
            b'<' if depth == 0 => break,
            b'<' => depth -= 1,
            _ if depth > 0
                || byte == b'_'
                || byte == b':'
                || byte == b'~'
                || byte.is_ascii_alphanumeric() => {}
            _ => break,
        }
        start = at;
    }
    text.get(start..).unwrap_or_default()
}

/// Returns the text after the parenthesis that closes the one at the start of `text`.
fn past_closing(text: &str) -> Option<&str> {
    let mut depth = 0;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' if depth == 1 => return text.get(at + 1..),
            b')' => depth -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_spelt_as_by_binutils() {
        for (name, spelt) in [
            // Without parameters and return types.
            ("_ZN2ns3FooIdEC1Ei", "ns::Foo<double>::Foo"),
            ("_ZN2ns3FooIdED2Ev", "ns::Foo<double>::~Foo"),
            ("_ZN12_GLOBAL__N_14anonEi", "(anonymous namespace)::anon"),
            ("_Z4variILi3EJiPcEEiDpT0_", "vari<3, int, char*>"),
            ("_ZltRKN2ns3FooIiEES3_", "operator<"),
            ("_ZNKR1a1bEv", "a::b"),
            ("_ZN1a1bEv.constprop.0", "a::b"),
            ("_ZNSo5flushEv@@GLIBCXX_3.4", "std::ostream::flush"),
            // Constants of templates.
            ("_Z2ppILj1ElLm2EEvPT_", "pp<1u, long, 2ul>"),
            ("_Z2ppILln1EEvv", "pp<-1l>"),
            ("_Z2ppILb1EEvv", "pp<true>"),
            // Empty packs.
            ("_ZN1AI1BJEE3runEv", "A<B>::run"),
            ("_ZN1AI1BS_IS0_JEEJEE3runEv", "A<B, A<B>>::run"),
            // Functions as arguments.
            ("_ZN1FIFN1a1bIiEEiEE4swapEv", "F<a::b<int> (int)>::swap"),
            ("_ZN1FIFN1a1bEmEE4swapEv", "F<a::b (unsigned long)>::swap"),
            ("_ZN1FIFviEE4swapEv", "F<void (int)>::swap"),
            ("_Z1tIXadL_Z1fiEEEvv", "t<&(f(int))>"),
            ("_ZZ1gIiEvT_ENKUliE_clEi", "g<int>(int)::{lambda(int)#1}::operator()"),
            // Tables and thunks.
            ("_ZTV1A", "vtable for A"),
            ("_ZTT1A", "VTT for A"),
            ("_ZTI1A", "typeinfo for A"),
            ("_ZThn8_N1AD0Ev", "non-virtual thunk to A::~A()"),
            ("_ZTv0_n24_N1A1bEi", "virtual thunk to A::b(int)"),
            ("_ZGTtNKSt9exception4whatEv", "transaction clone for std::exception::what() const"),
            // Abbreviated classes name their constructors in full.
            (
                "_ZNSsC1ERKSs",
                "std::basic_string<char, std::char_traits<char>, std::allocator<char> \
                 >::basic_string",
            ),
            ("_ZNSoD1Ev", "std::basic_ostream<char, std::char_traits<char> >::~basic_ostream"),
            ("_ZNSs6appendEm", "std::string::append"),
            ("_ZNSi4readEPcl", "std::istream::read"),
        ] {
            let mut text = String::new();
            assert!(demangle_into(name.as_bytes(), &mut text).is_some(), "{name}");
            assert_eq!(text, spelt, "{name}");
        }
    }
}

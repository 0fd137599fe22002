//! Names as pictures show them.

/// Returns a text fit to show: controls as pictures (`␛`), and characters that would hide or turn
/// the text around them as their numbers (`⟨202E⟩`); cut with `…` after `most` characters.
pub(crate) fn clean(text: &str, most: usize) -> String {
    let mut shown = String::with_capacity(text.len().min(4 * most));
    for (place, c) in text.chars().enumerate() {
        if place >= most {
            shown.push('…');
            break;
        }
        match u32::from(c) {
            code @ ..0x20 => shown.extend(char::from_u32(0x2400 + code)),
            0x7f => shown.push('␡'),
            code if is_invisible(code) => shown.push_str(&format!("⟨{code:04X}⟩")),
            _ => shown.push(c),
        }
    }
    shown
}

/// Returns whether a character changes or hides the text around it: direction marks, zero-width
/// characters, line separators, tags; and what XML cannot contain.
fn is_invisible(code: u32) -> bool {
    matches!(
        code,
        0x80..=0x9f
            | 0xad
            | 0x34f
            | 0x61c
            | 0x115f
            | 0x1160
            | 0x17b4
            | 0x17b5
            | 0x180b..=0x180f
            | 0x200b..=0x200f
            | 0x2028..=0x202e
            | 0x2060..=0x206f
            | 0x3164
            | 0xfe00..=0xfe0f
            | 0xfeff
            | 0xffa0
            | 0xfff9..=0xffff
            | 0xe0000..=0xe0fff
    )
}

/// Returns a name that takes at most `most` characters: whole, or without what is in brackets, or
/// its last part, or cut.
pub(crate) fn fitting(name: &str, most: usize) -> String {
    /// Longest name that is taken apart.
    const LONGEST: usize = 2000;
    let whole = clean(name, LONGEST);
    if whole.chars().count() <= most {
        return whole;
    }
    let bare = if name.len() > LONGEST { whole } else { without_arguments(without_hash(&whole)) };
    if bare.chars().count() <= most {
        return bare;
    }
    let last = bare.rsplit("::").next().filter(|last| !last.is_empty()).unwrap_or(&bare);
    match last.chars().count() <= most {
        true => last.to_owned(),
        false => last.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
    }
}

/// Returns a name without the hash that tells copies of a Rust function apart.
fn without_hash(name: &str) -> &str {
    let is_hash = |hash: &str| hash.len() == 16 && hash.bytes().all(|b| b.is_ascii_hexdigit());
    match name.rsplit_once("::h") {
        Some((before, hash)) if is_hash(hash) => before,
        _ => name,
    }
}

/// Returns a name without its template and call arguments: what is in brackets, unless these begin
/// a part of it, as in `(anonymous namespace)::f` and `<A as B>::f`.
fn without_arguments(name: &str) -> String {
    let (mut bare, mut depth, mut before) = (String::new(), 0_u32, ' ');
    // Number of brackets that are kept.
    let mut kept = 0_u32;
    for c in name.chars() {
        let begins_part = bare.is_empty() || bare.ends_with("::");
        match c {
            '<' | '(' | '[' | '{' if depth == 0 && begins_part => {
                kept += 1;
                bare.push(c);
            }
            '<' | '(' | '[' | '{' => depth += 1,
            '>' if before == '-' && depth == 0 => bare.push(c),
            '>' if before == '-' => {}
            '>' | ')' | ']' | '}' if depth > 0 => depth -= 1,
            '>' | ')' | ']' | '}' => {
                kept = kept.saturating_sub(1);
                bare.push(c);
            }
            _ if depth == 0 => bare.push(c),
            _ => {}
        }
        before = c;
    }
    if bare.is_empty() { name.to_owned() } else { bare }
}

/// Returns a text as XML and HTML have it; controls must have been replaced.
pub(crate) fn xml(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_deceive_is_shown() {
        assert_eq!(clean("a\x1b[0m\u{202e}b\u{0}\u{ffff}", 400), "a␛[0m⟨202E⟩b␀⟨FFFF⟩");
        assert_eq!(clean("abcdef", 3), "abc…");
        assert_eq!(xml("<a b='\"'>&"), "&lt;a b=&#39;&quot;&#39;&gt;&amp;");
    }

    #[test]
    fn names_get_shorter_in_steps() {
        let name = "ns::Map<std::string, int>::insert(int, int)";
        assert_eq!(fitting(name, 50), name);
        assert_eq!(fitting(name, 20), "ns::Map::insert");
        assert_eq!(fitting(name, 8), "insert");
        assert_eq!(fitting(name, 4), "ins…");
        assert_eq!(fitting("(anonymous namespace)::f(int)", 25), "(anonymous namespace)::f");
        assert_eq!(fitting("<a::B as c::D<(e, f)>>::go", 24), "<a::B as c::D>::go");
        assert_eq!(fitting(&"<".repeat(4000), 5), "<<<<…");
        assert_eq!(fitting("operator->", 10), "operator->");
        assert_eq!(fitting("a::call_once::h0123456789abcdef", 14), "a::call_once");
    }
}

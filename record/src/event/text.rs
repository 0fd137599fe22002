//! Splitting of a list of event specs into its parts, before they are interpreted.
//!
//! ```text
//!  faults,{cycles:u,cpu/event=0x3c/k}:S,mem:0x10/4:w
//!  head    head              mods    group's
//!                   head terms    mods  head: the slash before a digit is part of a breakpoint
//! ```
//!
//! The terms of probes contain paths, so they may not end at the next slash (see [`close`]).

use super::error::Problem;

/// A problem, with its byte position in the list.
pub(super) type Wrong = (usize, Problem);

/// Text with its position in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span<'a> {
    pub(super) text: &'a str,
    /// The byte of the list that it begins at.
    pub(super) at: usize,
}

impl<'a> Span<'a> {
    /// Returns the part from byte `from` to byte `to`; empty if out of range.
    fn part(self, from: usize, to: usize) -> Self {
        Self { text: self.text.get(from..to).unwrap_or(""), at: self.at + from }
    }

    pub(super) fn from(self, from: usize) -> Self {
        self.part(from, self.text.len())
    }

    fn trim(self) -> Self {
        let start = self.text.len() - self.text.trim_start().len();
        Self { text: self.text.trim(), at: self.at + start }
    }

    /// Splits at the first separator, if there is one.
    pub(super) fn split_once(self, separator: char) -> Option<(Self, Self)> {
        let at = self.text.find(separator)?;
        Some((self.part(0, at), self.from(at + separator.len_utf8())))
    }

    /// Splits at all separators outside quotes and parentheses.
    pub(super) fn split(self, separator: u8) -> Vec<Self> {
        let (mut parts, mut start, mut quote, mut depth) = (Vec::new(), 0, None, 0_usize);
        for (at, byte) in self.text.bytes().enumerate() {
            if quote.is_none() {
                match byte {
                    b'(' => depth += 1,
                    b')' => depth = depth.saturating_sub(1),
                    _ => {}
                }
            }
            if quote == Some(byte) {
                quote = None;
            } else if quote.is_none() && (byte == b'\'' || byte == b'"') {
                quote = Some(byte);
            } else if quote.is_none() && depth == 0 && byte == separator {
                parts.push(self.part(start, at));
                start = at + 1;
            }
        }
        parts.push(self.from(start));
        parts
    }
}

/// An event, as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WrittenTerm<'a> {
    pub(super) whole: Span<'a>,
    /// The part before the terms; without terms, the whole event with its modifiers.
    pub(super) head: Span<'a>,
    /// The terms between the slashes.
    pub(super) terms: Option<Span<'a>>,
    /// The modifiers after the last slash.
    pub(super) tail: Span<'a>,
    /// `true` if it is not in a group.
    pub(super) alone: bool,
}

/// A part of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Item<'a> {
    Event(WrittenTerm<'a>),
    /// A group of events. The first is the leader.
    Group {
        members: Vec<WrittenTerm<'a>>,
        modifiers: Option<Span<'a>>,
    },
}

/// Splits a list into its parts.
pub(super) fn split(list: &str) -> Result<Vec<Item<'_>>, Wrong> {
    let all = Span { text: list, at: 0 };
    let (mut items, mut at) = (Vec::new(), 0);
    loop {
        let (item, end) = match list.get(at..).map(str::trim_start) {
            Some(rest) if rest.starts_with('{') => group(all, list.len() - rest.len())?,
            _ => event(all, at).map(|(event, end)| (Item::Event(event), end))?,
        };
        items.push(item);
        match list.as_bytes().get(end) {
            None => return Ok(items),
            Some(b',') => at = end + 1,
            Some(_) => return Err(stray(all, end)),
        }
    }
}

/// Parses the group whose brace is at this byte. Also returns its end.
fn group(all: Span<'_>, open: usize) -> Result<(Item<'_>, usize), Wrong> {
    let (mut members, mut at) = (Vec::new(), open + 1);
    let close = loop {
        let (member, end) = event(all, at)?;
        members.push(WrittenTerm { alone: false, ..member });
        match all.text.as_bytes().get(end) {
            Some(b',') => at = end + 1,
            Some(b'}') => break end,
            Some(_) => return Err(stray(all, end)),
            None => return Err((open, Problem::Unclosed('}'))),
        }
    };
    let after = all.from(close + 1);
    let end = close + 1 + after.text.find(',').unwrap_or(after.text.len());
    let rest = all.part(close + 1, end).trim();
    let modifiers = match rest.text.strip_prefix(':') {
        Some(_) => Some(rest.from(1)),
        None if rest.text.is_empty() => None,
        None => return Err(stray(all, rest.at)),
    };
    Ok((Item::Group { members, modifiers }, end))
}

fn stray(all: Span<'_>, at: usize) -> Wrong {
    (at, Problem::Stray(all.from(at).text.chars().next().unwrap_or(' ')))
}

/// Parses the event that begins at this byte. Also returns its end.
fn event(all: Span<'_>, start: usize) -> Result<(WrittenTerm<'_>, usize), Wrong> {
    const ENDS: [char; 3] = [',', '{', '}'];
    let rest = all.from(start);
    let is_breakpoint = rest.text.trim_start().starts_with("mem:");
    let is_length = |at: usize| {
        is_breakpoint && rest.from(at + 1).text.starts_with(|c: char| c.is_ascii_digit())
    };
    let found =
        rest.text.char_indices().find(|(at, c)| ENDS.contains(c) || *c == '/' && !is_length(*at));
    let (head, terms, tail, end) = match found {
        Some((open, '/')) => {
            let head = rest.part(0, open).trim();
            let inside = rest.from(open + 1);
            let close =
                close(head.text, inside.text).ok_or((rest.at + open, Problem::Unclosed('/')))?;
            let after = inside.from(close + 1);
            let length = after.text.find(ENDS).unwrap_or(after.text.len());
            let tail = after.part(0, length).trim();
            (head, Some(inside.part(0, close)), tail, after.at + length)
        }
        _ => {
            let length = found.map_or(rest.text.len(), |(at, _)| at);
            (rest.part(0, length).trim(), None, rest.part(length, length), rest.at + length)
        }
    };
    if head.text.is_empty() {
        return Err((head.at, Problem::Empty));
    }
    let whole = all.part(head.at, end).trim();
    Ok((WrittenTerm { whole, head, terms, tail, alone: true }, end))
}

/// Returns the byte of the slash that ends the terms of an event.
///
/// That is the first slash outside quotes. For probes, whose terms contain paths, it is a slash
/// that is followed only by modifiers up to the event's end, and not by another term:
/// `uprobe/path=/bin/k,offset=0x10/` does not end at `/k,`, as no event is named `offset=…`.
fn close(head: &str, inside: &str) -> Option<usize> {
    let mut quote = None;
    let slashes = inside.char_indices().filter_map(|(at, c)| match (quote, c) {
        (Some(open), c) => {
            quote = if c == open { None } else { Some(open) };
            None
        }
        (None, '\'' | '"') => {
            quote = Some(c);
            None
        }
        (None, c) => (c == '/').then_some(at),
    });
    if !is_probe(pmu_of(head).0) {
        return { slashes }.next();
    }
    { slashes }.find(|at| {
        let after = inside.get(at + 1..).unwrap_or("");
        let length =
            after.find(|c: char| !c.is_ascii_alphabetic() && c != ':').unwrap_or(after.len());
        let (letters, next) = after.split_at(length);
        let letters = letters.trim_start_matches(':');
        let ends = match next.chars().next() {
            None | Some('}') => true,
            Some(',') => !begins_with_term(next.get(1..).unwrap_or("")),
            Some(_) => false,
        };
        ends && (letters.is_empty() || super::modifiers::Modifiers::are(letters))
    })
}

fn begins_with_term(text: &str) -> bool {
    let word = text.split([',', '/', '}']).next().unwrap_or("").trim();
    word.contains('=')
        || matches!(
            word,
            "ret" | "retprobe" | "inherit" | "no-inherit" | "overwrite" | "no-overwrite"
        )
}

/// Returns whether the PMU is one for probes.
pub(super) fn is_probe(pmu: &str) -> bool {
    pmu == "uprobe" || pmu == "kprobe"
}

/// Returns the PMU that is meant by a name before the slash, and whether it means a probe at the
/// return, which other tools call by a name of its own.
pub(super) fn pmu_of(head: &str) -> (&str, bool) {
    match head {
        "uretprobe" => ("uprobe", true),
        "kretprobe" => ("kprobe", true),
        pmu => (pmu, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Formats each event as `head|terms|tail`, and groups in braces.
    fn shown(list: &str) -> String {
        let event = |e: &WrittenTerm<'_>| match e.terms {
            Some(terms) => format!("{}|{}|{}", e.head.text, terms.text, e.tail.text),
            None => e.head.text.to_owned(),
        };
        let item = |item: &Item<'_>| match item {
            Item::Event(e) => event(e),
            Item::Group { members, modifiers } => {
                let members: Vec<_> = members.iter().map(event).collect();
                format!("{{{}}}{}", members.join(" "), modifiers.map_or("", |m| m.text))
            }
        };
        split(list).unwrap().iter().map(item).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn lists_groups_and_terms() {
        assert_eq!(shown("a,b:u"), "a b:u");
        assert_eq!(shown(" a , b "), "a b");
        assert_eq!(shown("{a,b:u}:S,c"), "{a b:u}S c");
        assert_eq!(shown("x,{a}"), "x {a}");
        assert_eq!(shown("cpu/event=0x3c,umask=1/u,b"), "cpu|event=0x3c,umask=1|u b");
        assert_eq!(shown("{cpu/a,b=1/,cpu/c/p}:u"), "{cpu|a,b=1| cpu|c|p}u");
        assert_eq!(shown("intel_pt//u"), "intel_pt||u");
        assert_eq!(shown("cpu/name='a,b/c'/"), "cpu|name='a,b/c'|");
        assert_eq!(shown("mem:0x10/4:rw:u,b"), "mem:0x10/4:rw:u b");
        assert_eq!(shown("mem:0x10/4:rw/name=x/u"), "mem:0x10/4:rw|name=x|u");
        assert_eq!(shown("mem:0x10:w,mem:0x20/8:x:u,b"), "mem:0x10:w mem:0x20/8:x:u b");
        assert_eq!(shown("{a,mem:0x10:w}:u,{mem:0x20}"), "{a mem:0x10:w}u {mem:0x20}");
        assert_eq!(shown("a:b/inherit/u"), "a:b|inherit|u");
    }

    #[test]
    fn probes_have_paths() {
        assert_eq!(shown("uprobe/path=/bin/x,offset=0x1/"), "uprobe|path=/bin/x,offset=0x1|");
        assert_eq!(shown("uprobe/path=/bin/k,offset=0x1/,a"), "uprobe|path=/bin/k,offset=0x1| a");
        assert_eq!(shown("uprobe/offset=0x1,path=/bin/k/u,a"), "uprobe|offset=0x1,path=/bin/k|u a");
        assert_eq!(
            shown("uprobe/path=/bin/u,retprobe,func=m/"),
            "uprobe|path=/bin/u,retprobe,func=m|"
        );
        assert_eq!(shown("{uprobe/path=/b/x,func=m/,b}"), "{uprobe|path=/b/x,func=m| b}");
        assert_eq!(shown("uprobe/path='/b/u,v/',func=m/"), "uprobe|path='/b/u,v/',func=m|");
        assert_eq!(shown("uretprobe/path=/b/x,func=m/,b"), "uretprobe|path=/b/x,func=m| b");
        assert_eq!(
            shown("uprobe/path=/b/x,func=f(int, char)/,b"),
            "uprobe|path=/b/x,func=f(int, char)| b"
        );
        let parts = Span { text: "path=x,func=a::f(int, b(c, d)),ret", at: 0 }.split(b',');
        assert_eq!(
            parts.iter().map(|part| part.text).collect::<Vec<_>>(),
            ["path=x", "func=a::f(int, b(c, d))", "ret"]
        );
    }

    #[test]
    fn what_is_wrong_and_where() {
        let wrong = |list| split(list).unwrap_err();
        assert_eq!(wrong(""), (0, Problem::Empty));
        assert_eq!(wrong("a,"), (2, Problem::Empty));
        assert_eq!(wrong("{}"), (1, Problem::Empty));
        assert_eq!(wrong("a,{b,c"), (2, Problem::Unclosed('}')));
        assert_eq!(wrong("{b}u"), (3, Problem::Stray('u')));
        assert_eq!(wrong("a}"), (1, Problem::Stray('}')));
        assert_eq!(wrong("cpu/a"), (3, Problem::Unclosed('/')));
    }
}

//! A `print fmt`, parsed once per event and printed for each sample.
//!
//! ```text
//!  "comm=%s pid=%d", REC->comm, REC->pid
//!  Literal "comm="  String Field(comm)  Literal " pid="  Number Field(pid)
//! ```

use std::sync::LazyLock;

use recrep_format::feature::tracing::EventField;
use regex_lite::{Captures, Regex};

use super::eval::{FieldValues, LONGEST};
use super::expr::lex::tokens;
use super::expr::{Expr, Reader};
use super::printf::Spec;

#[derive(Clone, Debug)]
pub(super) enum FormatPiece {
    Literal(String),
    Argument(Box<Argument>),
}

/// An argument and its conversion.
#[derive(Clone, Debug)]
pub(super) struct Argument {
    pub(super) expr: Expr,
    spec: Spec,
    /// The argument that gives the width (`*`).
    width: Option<Expr>,
    /// The argument that gives the precision (`.*`).
    precision: Option<Expr>,
    /// The letters after a `p`.
    letters: String,
}

/// Parses a print fmt. Returns `None` if it uses something unsupported.
pub(super) fn parse(
    text: &str,
    fields: &[EventField],
    long_size: usize,
) -> Option<Vec<FormatPiece>> {
    let tokens = tokens(text)?;
    let mut reader = Reader::new(&tokens, fields, long_size);
    let Expr::Text(format) = reader.argument()? else { return None };
    let mut args = Vec::new();
    while reader.takes(",") {
        args.push(reader.argument()?);
    }
    reader.left.is_empty().then_some(())?;
    pieces(&format, args, long_size)
}

/// Writes the text of a sample.
pub(super) fn write(pieces: &[FormatPiece], values: &FieldValues<'_>, out: &mut Vec<u8>) {
    for piece in pieces {
        if out.len() > LONGEST {
            return;
        }
        match piece {
            FormatPiece::Literal(text) => out.extend_from_slice(text.as_bytes()),
            FormatPiece::Argument(argument) => argument.write(values, out),
        }
    }
}

impl Argument {
    /// Writes the argument's text for a sample.
    pub(super) fn write(&self, values: &FieldValues<'_>, out: &mut Vec<u8>) {
        let mut spec = self.spec.clone();
        let amount = |expr: &Expr| usize::try_from(values.number(expr) & 0xffff_ffff).unwrap_or(0);
        spec.width = self.width.as_ref().map_or(spec.width, amount);
        spec.precision = self.precision.as_ref().map(amount).or(spec.precision);
        match spec.letter {
            's' => values.text(&self.expr, &spec, out),
            'p' => {
                let len = self.width.as_ref().map(|width| values.number(width));
                values.pointer(&self.expr, &self.letters, &spec, len, out);
            }
            _ => spec.number(values.number(&self.expr), out),
        }
    }
}

fn pieces(mut format: &str, args: Vec<Expr>, long_size: usize) -> Option<Vec<FormatPiece>> {
    let mut args = args.into_iter();
    let mut pieces = Vec::new();
    while !format.is_empty() {
        let found = PIECE.as_ref()?.captures(format)?;
        pieces.push(match found.name("text").or_else(|| found.name("percent")) {
            Some(text) => FormatPiece::Literal(text.as_str().to_owned()),
            None => FormatPiece::Argument(Box::new(argument(&found, &mut args, long_size)?)),
        });
        format = format.get(found.get(0)?.end()..)?;
    }
    Some(pieces)
}

/// A literal text or a conversion, as [`pieces`] parses it.
static PIECE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?x)^(?: (?<text>[^%]+) | %(?<percent>%) |
        % (?<flags>[-+\x20\#0]*) (?<width>\*|[0-9]*)
        (?:\.(?<precision>\*|[0-9]*))? (?<size>hh|h|ll|[lLzZtj])?
        (?<letter>[diuxXocs]
        | p(?<more>[Ii](?:4[hnbl]?|6c?|S[pfschnbl]*)?|[SsFf]|[Mm][FR]?|U[bBlL]?|bl?|h[CDN]?)?))",
    )
    .ok()
});

/// Returns the argument of a conversion: takes those of `args` that it needs.
fn argument(
    found: &Captures<'_>,
    args: &mut impl Iterator<Item = Expr>,
    long_size: usize,
) -> Option<Argument> {
    let part = |name| found.name(name).map(|part| part.as_str());
    let mut starred =
        |name| if part(name) == Some("*") { args.next().map(Some) } else { Some(None) };
    let (width, precision) = (starred("width")?, starred("precision")?);
    let number = |digits: &str| digits.parse().unwrap_or(0);
    let spec = Spec {
        flags: part("flags")?.to_owned(),
        width: part("width").map_or(0, number),
        precision: part("precision").map(number),
        size: match part("size") {
            Some("hh") => 1,
            Some("h") => 2,
            None => 4,
            Some("ll" | "L" | "j") => 8,
            Some(_) => long_size,
        },
        letter: part("letter")?.chars().next()?,
    };
    let letters = part("more").unwrap_or_default().to_owned();
    Some(Argument { expr: args.next()?, spec, width, precision, letters })
}

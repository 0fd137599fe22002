//! A `print fmt`, parsed once per event and printed for each sample.
//!
//! ```text
//!  "comm=%s pid=%d", REC->comm, REC->pid
//!  Literal "comm="  String Field(comm)  Literal " pid="  Number Field(pid)
//! ```

use recrep_format::feature::tracing::EventField;

use super::eval::{LONGEST, Values};
use super::expr::{Expr, Reader};
use super::lex::{split_while, tokens};
use super::printf::Spec;

/// A piece of a parsed print fmt.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Piece {
    /// Literal text.
    Literal(String),
    /// A conversion with its argument.
    Argument(Box<Argument>),
}

/// An argument and its conversion.
#[derive(Clone, Debug, PartialEq)]
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
pub(super) fn parse(text: &str, fields: &[EventField], long_size: usize) -> Option<Vec<Piece>> {
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
pub(super) fn write(pieces: &[Piece], values: &Values<'_>, out: &mut Vec<u8>) {
    for piece in pieces {
        if out.len() > LONGEST {
            return;
        }
        match piece {
            Piece::Literal(text) => out.extend_from_slice(text.as_bytes()),
            Piece::Argument(argument) => argument.write(values, out),
        }
    }
}

impl Argument {
    /// Writes the argument's text for a sample.
    pub(super) fn write(&self, values: &Values<'_>, out: &mut Vec<u8>) {
        let mut spec = self.spec.clone();
        let amount = |expr: &Expr| usize::try_from(values.number(expr) & 0xffff_ffff).unwrap_or(0);
        if let Some(width) = &self.width {
            spec.width = amount(width);
        }
        if let Some(precision) = &self.precision {
            spec.precision = Some(amount(precision));
        }
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

fn pieces(format: &str, args: Vec<Expr>, long_size: usize) -> Option<Vec<Piece>> {
    let mut args = args.into_iter();
    let mut pieces = Vec::new();
    let mut left = format;
    while let Some((before, rest)) = left.split_once('%') {
        if !before.is_empty() {
            pieces.push(Piece::Literal(before.to_owned()));
        }
        let piece;
        (piece, left) = match rest.strip_prefix('%') {
            Some(rest) => (Piece::Literal("%".to_owned()), rest),
            None => argument(rest, &mut args, long_size)?,
        };
        pieces.push(piece);
    }
    if !left.is_empty() {
        pieces.push(Piece::Literal(left.to_owned()));
    }
    Some(pieces)
}

/// Parses a conversion after its percent sign, and takes its arguments. Returns the rest of the text too.
fn argument<'t>(text: &'t str, args: &mut impl Iterator<Item = Expr>, long_size: usize) -> Option<(Piece, &'t str)> {
    let (flags, mut left) = split_while(text, |c| "-+ #0".contains(c));
    let has = |flag| flags.contains(flag);
    let (plus, space, alternate, zeroes) = (has('+'), has(' '), has('#'), has('0'));
    let mut spec = Spec { left: has('-'), plus, space, alternate, zeroes, ..Spec::default() };
    let width;
    (spec.width, width, left) = amount(left, args)?;
    let mut precision = None;
    if let Some(rest) = left.strip_prefix('.') {
        let digits;
        (digits, precision, left) = amount(rest, args)?;
        spec.precision = Some(digits);
    }
    let (size, rest) = split_while(left, |c| "hlLzZtj".contains(c));
    spec.size = match size {
        "hh" => 1,
        "h" => 2,
        "" => 4,
        "ll" | "L" | "j" => 8,
        "l" | "z" | "Z" | "t" => long_size,
        _ => return None,
    };
    let mut chars = rest.chars();
    spec.letter = chars.next().filter(|letter| "diuxXocsp".contains(*letter))?;
    left = chars.as_str();
    let len = if spec.letter == 'p' { letters_len(left) } else { 0 };
    let (letters, left) = left.split_at_checked(len)?;
    let expr = args.next()?;
    let argument = Argument { expr, spec, width, precision, letters: letters.to_owned() };
    Some((Piece::Argument(Box::new(argument)), left))
}

/// Returns the number of letters that belong to a `%p`.
fn letters_len(text: &str) -> usize {
    let rest = |skip: usize, of: &str| text.get(skip..).map_or(0, |rest| split_while(rest, |c| of.contains(c)).0.len());
    match text.get(..1) {
        Some("I" | "i") => {
            1 + match text.get(1..2) {
                Some("4") => 1 + rest(2, "hnbl").min(1),
                Some("6") => 1 + rest(2, "c").min(1),
                Some("S") => 1 + rest(2, "pfschnbl"),
                _ => 0,
            }
        }
        Some("S" | "s" | "F" | "f") => 1,
        Some("M" | "m") => 1 + rest(1, "FR").min(1),
        Some("U") => 1 + rest(1, "bBlL").min(1),
        Some("b") => 1 + rest(1, "l").min(1),
        Some("h") => 1 + rest(1, "CDN").min(1),
        _ => 0,
    }
}

/// Parses a width or a precision: digits, or a star, whose argument is taken. Returns the rest of the text too.
fn amount<'t>(text: &'t str, args: &mut impl Iterator<Item = Expr>) -> Option<(usize, Option<Expr>, &'t str)> {
    if let Some(rest) = text.strip_prefix('*') {
        return Some((0, Some(args.next()?), rest));
    }
    let (digits, rest) = split_while(text, |c| c.is_ascii_digit());
    Some((digits.parse().unwrap_or(0), None, rest))
}

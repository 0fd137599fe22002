//! Expressions in a `print fmt`, and their parser.
//!
//! ```text
//!  REC->prev_state & 0xff ? __print_flags(REC->prev_state & 0xff, "|", { 1, "S" }, { 2, "D" }) : "R"
//!  └─────────────── Choice ( And (Field, Number), Flags (And …, "|", table), Text ) ───────────────┘
//! ```
//!
//! Anything unsupported (a kernel function, an assignment) makes the whole print fmt unsupported;
//! so does nesting deeper than [`MAX_DEPTH`].

pub(super) mod lex;

use recrep_format::feature::tracing::EventField;

use lex::Token;

const MAX_DEPTH: usize = 200;

/// Maximum number of operators in one argument or in one table number. It bounds the depth of the
/// tree.
const MAX_OPERATORS: usize = 1000;

#[derive(Clone, Debug)]
pub(super) enum Expr {
    /// A number or an enumerator; unknown enumerators are 0.
    Number(u64),
    Text(String),
    /// A field, by index.
    Field(usize),
    /// `(type)x`.
    Cast(CType, Box<Expr>),
    /// `!x`, `~x`, `-x`.
    Unary(char, Box<Expr>),
    /// `x op y`.
    Binary(Apply, Box<[Expr; 2]>),
    /// `x ? y : z`.
    Choice(Box<[Expr; 3]>),
    /// `x[y]`.
    Element(Box<Expr>, Box<Expr>),
    /// `__print_flags(value, separator, { bit, name }, …)`.
    Flags(Box<Expr>, String, Vec<(i64, String)>),
    /// `__print_symbolic(value, { number, name }, …)`.
    Symbol(Box<Expr>, Vec<(i64, String)>),
    /// `__print_hex(array, length)`, with spaces between the bytes (`true`), or `__print_hex_str`,
    /// without.
    Hex(Box<Expr>, Box<Expr>, bool),
    /// `__print_array(array, count, element_size)`.
    Array(Box<[Expr; 3]>),
    /// `__get_bitmask(field)`.
    Bitmask(usize),
    /// `__get_cpumask(field)`.
    Cpumask(usize),
    /// `__get_dynamic_array(field)`, `__get_str(field)`.
    Dynamic(usize),
    /// `__get_dynamic_array_len(field)`.
    DynamicLen(usize),
}

/// The target type of a cast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CType {
    /// Size in bytes; for a pointer, of its target. 0 if unknown.
    pub(super) size: usize,
    /// `true` if this is a pointer to such numbers.
    pub(super) is_pointer: bool,
}

/// Parser of expressions.
pub(super) struct Reader<'t> {
    pub(super) left: &'t [Token<'t>],
    fields: &'t [EventField],
    long_size: usize,
    depth: usize,
    operators: usize,
}

/// Function of an operator on two numbers of 64 bits, with or without sign. Only the lower 64 bits
/// of its result count. `None` if it is a division without a result.
type Apply = fn(i128, i128) -> Option<i128>;

/// Operators with their precedence (higher binds tighter). Shift counts are taken modulo 64, as
/// processors do.
const OPERATORS: [(&str, usize, Apply); 18] = [
    ("||", 0, |x, y| Some((x != 0 || y != 0).into())),
    ("&&", 1, |x, y| Some((x != 0 && y != 0).into())),
    ("|", 2, |x, y| Some(x | y)),
    ("^", 3, |x, y| Some(x ^ y)),
    ("&", 4, |x, y| Some(x & y)),
    ("==", 5, |x, y| Some((x == y).into())),
    ("!=", 5, |x, y| Some((x != y).into())),
    ("<=", 6, |x, y| Some((x <= y).into())),
    (">=", 6, |x, y| Some((x >= y).into())),
    ("<", 6, |x, y| Some((x < y).into())),
    (">", 6, |x, y| Some((x > y).into())),
    ("<<", 7, |x, y| Some(x << (y & 63))),
    (">>", 7, |x, y| Some(x >> (y & 63))),
    ("+", 8, |x, y| Some(x + y)),
    ("-", 8, |x, y| Some(x - y)),
    ("*", 9, |x, y| Some(x.wrapping_mul(y))),
    ("/", 9, i128::checked_div),
    ("%", 9, i128::checked_rem),
];

impl<'t> Reader<'t> {
    pub(super) fn new(left: &'t [Token<'t>], fields: &'t [EventField], long_size: usize) -> Self {
        Self { left, fields, long_size, depth: 0, operators: 0 }
    }

    pub(super) fn argument(&mut self) -> Option<Expr> {
        self.operators = 0;
        self.expr()
    }

    /// Parses a whole expression.
    fn expr(&mut self) -> Option<Expr> {
        self.depth = self.depth.checked_add(1).filter(|depth| *depth < MAX_DEPTH)?;
        let condition = self.binary(0)?;
        let expr = if self.takes("?") {
            let yes = self.expr()?;
            self.takes(":").then_some(())?;
            Expr::Choice(Box::new([condition, yes, self.expr()?]))
        } else {
            condition
        };
        self.depth -= 1;
        Some(expr)
    }

    /// Parses binary operators of at least this precedence.
    fn binary(&mut self, loosest: usize) -> Option<Expr> {
        let mut left = self.unary()?;
        while let Some(sign) = self.sign()
            && let Some((_, level, apply)) =
                OPERATORS.into_iter().find(|(have, level, _)| *have == sign && *level >= loosest)
        {
            self.left = self.left.get(1..)?;
            self.operators =
                self.operators.checked_add(1).filter(|count| *count < MAX_OPERATORS)?;
            left = Expr::Binary(apply, Box::new([left, self.binary(level + 1)?]));
        }
        Some(left)
    }

    fn unary(&mut self) -> Option<Expr> {
        self.depth = self.depth.checked_add(1).filter(|depth| *depth < MAX_DEPTH)?;
        let expr = match self.sign() {
            Some(sign @ ("!" | "~" | "-")) => {
                self.left = self.left.get(1..)?;
                Expr::Unary(sign.chars().next()?, Box::new(self.unary()?))
            }
            Some("+" | "&") => {
                self.left = self.left.get(1..)?;
                self.unary()?
            }
            Some("(") => self.cast_or_group()?,
            _ => self.operand()?,
        };
        self.depth -= 1;
        Some(expr)
    }

    /// Parses `(type)x` or an expression in parentheses.
    fn cast_or_group(&mut self) -> Option<Expr> {
        if let Some((ctype, rest)) = self.cast() {
            self.left = rest;
            return Some(Expr::Cast(ctype, Box::new(self.unary()?)));
        }
        self.left = self.left.get(1..)?;
        let inner = self.expr()?;
        self.takes(")").then_some(())?;
        self.elements(inner)
    }

    /// Returns the type of a cast and the tokens after it. A cast has names and stars only, and an
    /// operand follows.
    fn cast(&self) -> Option<(CType, &'t [Token<'t>])> {
        let inside = self.left.get(1..)?;
        let len = inside.iter().position(|token| *token == Token::Sign(")"))?;
        let (words, rest) = inside.split_at_checked(len)?;
        let rest = rest.get(1..)?;
        let ctype = ctype(words, self.long_size)?;
        let is_operand = match rest.first()? {
            Token::Sign(sign) => {
                *sign == "(" || (ctype.size > 0 && ["-", "~", "!", "&"].contains(sign))
            }
            _ => true,
        };
        is_operand.then_some((ctype, rest))
    }

    fn operand(&mut self) -> Option<Expr> {
        let (first, rest) = self.left.split_first()?;
        self.left = rest;
        match first {
            Token::Number(number) => Some(Expr::Number(*number)),
            Token::Text(text) => Some(Expr::Text(text.clone())),
            Token::Sign(_) => None,
            Token::Name("REC") => {
                self.takes("->").then_some(())?;
                let field = self.field()?;
                self.elements(Expr::Field(field))
            }
            Token::Name(name) if self.takes("(") => {
                let call = self.call(name)?;
                self.takes(")").then_some(())?;
                self.elements(call)
            }
            // An enumerator that the kernel did not replace.
            Token::Name(name) => {
                Some(Expr::Number(u64::try_from(enumerator(name).unwrap_or(0)).unwrap_or(0)))
            }
        }
    }

    /// Parses the subscripts (`[…]`) that follow `of`.
    fn elements(&mut self, mut of: Expr) -> Option<Expr> {
        while self.takes("[") {
            self.operators =
                self.operators.checked_add(1).filter(|count| *count < MAX_OPERATORS)?;
            let index = self.expr()?;
            self.takes("]").then_some(())?;
            of = Expr::Element(Box::new(of), Box::new(index));
        }
        Some(of)
    }

    fn call(&mut self, name: &str) -> Option<Expr> {
        // `rel` says where the location of a field counts from, which the field knows too.
        Some(match name.replacen("__get_rel_", "__get_", 1).as_str() {
            "__print_flags" | "__print_flags_u64" => {
                let value = self.expr()?;
                let Expr::Text(separator) = self.next_expr()? else { return None };
                Expr::Flags(Box::new(value), separator, self.table()?)
            }
            "__print_symbolic" | "__print_symbolic_u64" => {
                Expr::Symbol(Box::new(self.expr()?), self.table()?)
            }
            "__print_hex" | "__print_hex_str" => Expr::Hex(
                Box::new(self.expr()?),
                Box::new(self.next_expr()?),
                name == "__print_hex",
            ),
            "__print_array" => {
                Expr::Array(Box::new([self.expr()?, self.next_expr()?, self.next_expr()?]))
            }
            "__get_bitmask" => Expr::Bitmask(self.field()?),
            "__get_cpumask" => Expr::Cpumask(self.field()?),
            "__get_str" | "__get_dynamic_array" | "__get_sockaddr" => Expr::Dynamic(self.field()?),
            "__get_dynamic_array_len" => Expr::DynamicLen(self.field()?),
            "__builtin_expect" => {
                let value = self.expr()?;
                self.next_expr()?;
                value
            }
            "sizeof" => Expr::Number(self.size_of()?),
            _ => return None,
        })
    }

    /// Parses a comma and the expression after it.
    fn next_expr(&mut self) -> Option<Expr> {
        self.takes(",").then_some(())?;
        self.expr()
    }

    fn size_of(&mut self) -> Option<u64> {
        let len = self.left.iter().position(|token| *token == Token::Sign(")"))?;
        let (words, rest) = self.left.split_at_checked(len)?;
        let size = match words {
            [Token::Name("REC"), Token::Sign("->"), Token::Name(name)] => {
                self.fields.iter().find(|field| field.name == *name)?.size
            }
            words => {
                let ctype = ctype(words, self.long_size)
                    .filter(|ctype| ctype.size > 0 || ctype.is_pointer)?;
                if ctype.is_pointer { self.long_size } else { ctype.size }
            }
        };
        self.left = rest;
        u64::try_from(size).ok()
    }

    /// Parses `, { number, "name" }, …`, with or without braces around the whole list.
    fn table(&mut self) -> Option<Vec<(i64, String)>> {
        let mut table = Vec::new();
        while self.takes(",") {
            self.takes("{").then_some(())?;
            let nested = self.takes("{");
            loop {
                let number = self.constant()?;
                // The kernel's own tables end with a null pointer instead of a name.
                let name = self.next_expr()?;
                self.takes("}").then_some(())?;
                match name {
                    Expr::Text(name) => table.push((number, name)),
                    name => name.constant().map(drop)?,
                }
                let has_comma = nested && self.takes(",");
                if !nested || self.takes("}") {
                    break;
                }
                (has_comma && self.takes("{")).then_some(())?;
            }
        }
        Some(table)
    }

    /// Parses the number of a table entry: a constant expression, or an enumerator (-1 if unknown).
    fn constant(&mut self) -> Option<i64> {
        if let [Token::Name(name), Token::Sign(","), ..] = self.left {
            self.left = self.left.get(1..)?;
            return Some(enumerator(name).unwrap_or(-1));
        }
        let before = std::mem::take(&mut self.operators);
        let number = self.expr()?.constant();
        self.operators = before;
        number.map(u64::cast_signed)
    }

    fn field(&mut self) -> Option<usize> {
        let (Token::Name(name), rest) = self.left.split_first()? else { return None };
        self.left = rest;
        self.fields.iter().position(|field| field.name == *name)
    }

    fn sign(&self) -> Option<&'t str> {
        match self.left.first()? {
            Token::Sign(sign) => Some(sign),
            _ => None,
        }
    }

    /// Consumes `sign` if it is the next token. Returns whether it was.
    pub(super) fn takes(&mut self, sign: &str) -> bool {
        let is_next = self.sign() == Some(sign);
        if is_next {
            self.left = self.left.get(1..).unwrap_or_default();
        }
        is_next
    }
}

impl Expr {
    /// Returns the value, as a signed number, if it does not depend on a sample.
    fn constant(&self) -> Option<u64> {
        match self {
            Self::Cast(_, inner) => inner.constant(),
            _ => self.computed(true, Self::constant),
        }
    }

    /// Returns the value of a number, an operator or a choice, given the values of the operands.
    #[allow(
        clippy::cast_possible_truncation,
        reason = "only the lower bits of an operator's result count"
    )]
    pub(super) fn computed(
        &self,
        is_signed: bool,
        value: impl Fn(&Self) -> Option<u64>,
    ) -> Option<u64> {
        let wide =
            |number: u64| if is_signed { i128::from(number.cast_signed()) } else { number.into() };
        Some(match self {
            Self::Number(number) => *number,
            Self::Unary('!', inner) => u64::from(value(inner)? == 0),
            Self::Unary('~', inner) => !value(inner)?,
            Self::Unary(_, inner) => value(inner)?.wrapping_neg(),
            Self::Binary(apply, operands) => {
                let [left, right] = &**operands;
                apply(wide(value(left)?), wide(value(right)?))? as u64
            }
            Self::Choice(parts) => {
                let [condition, yes, no] = &**parts;
                if value(condition)? != 0 { value(yes)? } else { value(no)? }
            }
            _ => return None,
        })
    }
}

/// Returns the type that `words` name, or `None` if they cannot be a type.
pub(super) fn ctype(words: &[Token<'_>], long_size: usize) -> Option<CType> {
    let mut names = Vec::new();
    let mut is_pointer = false;
    for word in words {
        match word {
            Token::Name(name) => names.push(*name),
            Token::Sign("*") => is_pointer = true,
            _ => return None,
        }
    }
    if names.is_empty() || names.contains(&"REC") {
        return None;
    }
    let size = match names.last().map(|name| name.trim_start_matches('_')) {
        Some("u8" | "s8" | "char" | "bool" | "uint8_t" | "int8_t") => 1,
        Some("u16" | "s16" | "short" | "le16" | "be16" | "uint16_t" | "int16_t") => 2,
        Some("u32" | "s32" | "uint32_t" | "int32_t" | "le32" | "be32" | "gfp_t") => 4,
        Some("u64" | "s64" | "uint64_t" | "int64_t" | "le64" | "be64") => 8,
        Some("int") if names.contains(&"short") => 2,
        Some("long" | "int") if names.contains(&"long") => {
            let longs = names.iter().filter(|name| **name == "long").count();
            if longs > 1 { 8 } else { long_size }
        }
        Some("int" | "unsigned" | "signed") => 4,
        Some("size_t" | "ssize_t" | "uintptr_t") => long_size,
        _ => 0,
    };
    Some(CType { size, is_pointer })
}

/// Returns the value of an enumerator that old kernels left in their print fmts.
fn enumerator(name: &str) -> Option<i64> {
    const SOFTIRQS: [&str; 10] = [
        "HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER",
        "RCU",
    ];
    match name {
        "HRTIMER_NORESTART" => Some(0),
        "HRTIMER_RESTART" => Some(1),
        _ => {
            let softirq = name.strip_suffix("_SOFTIRQ")?;
            SOFTIRQS
                .iter()
                .position(|have| *have == softirq)
                .and_then(|place| i64::try_from(place).ok())
        }
    }
}

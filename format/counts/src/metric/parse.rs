//! Parser of expressions, in perf's grammar.
//!
//! ```text
//! choice  = binary [ "if" binary "else" choice ]
//! binary  = operand { operator operand }        by increasing priority:  |   ^   &   < >   + -   * / %
//! operand = number | name | "#" literal | "-" operand | "(" choice ")"
//!         | ( "min" | "max" | "d_ratio" ) "(" choice "," choice ")"
//!         | ( "source_count" | "has_event" | "strcmp_cpuid_str" ) "(" name ")"
//! ```

use super::expr::{Expr, Operator};
use super::token::{self, PlacedToken, Token, Wrong};

/// Maximum number of tokens, which bounds the depth of what is computed.
const MOST_TOKENS: usize = 4000;
/// Maximum depth of parentheses.
const MOST_NESTED: usize = 100;

/// Parses an expression.
pub(super) fn parse(text: &str) -> Result<Expr, Wrong> {
    let tokens = token::split(text)?;
    if let Some(token) = tokens.get(MOST_TOKENS) {
        return Err(Wrong { at: token.at, why: "the expression is too long".to_owned() });
    }
    let mut parser = Parser { tokens: &tokens, next: 0, end: text.len(), nested: 0 };
    let expr = parser.choice()?;
    match parser.peek() {
        None => Ok(expr),
        Some(_) => Err(parser.wrong("an operator or the end")),
    }
}

struct Parser<'a> {
    tokens: &'a [PlacedToken],
    next: usize,
    /// Length of the text.
    end: usize,
    nested: usize,
}

/// Operators, and their priorities.
fn operator(sign: char) -> Option<(Operator, u8)> {
    Some(match sign {
        '|' => (Operator::Or, 0),
        '^' => (Operator::Xor, 1),
        '&' => (Operator::And, 2),
        '<' => (Operator::Less, 3),
        '>' => (Operator::Greater, 3),
        '+' => (Operator::Add, 4),
        '-' => (Operator::Subtract, 4),
        '*' => (Operator::Multiply, 5),
        '/' => (Operator::Divide, 5),
        '%' => (Operator::Remainder, 5),
        _ => return None,
    })
}

impl Parser<'_> {
    fn choice(&mut self) -> Result<Expr, Wrong> {
        let then = self.binary(0)?;
        if !self.takes(&Token::Name("if".to_owned())) {
            return Ok(then);
        }
        let condition = self.binary(0)?;
        self.expect(&Token::Name("else".to_owned()), "'else', as there is an 'if'")?;
        self.deeper()?;
        let otherwise = self.choice()?;
        self.nested -= 1;
        Ok(Expr::If {
            condition: Box::new(condition),
            then: Box::new(then),
            otherwise: Box::new(otherwise),
        })
    }

    /// Parses operands and the operators between them that have at least this priority.
    fn binary(&mut self, least: u8) -> Result<Expr, Wrong> {
        let mut left = self.operand()?;
        while let Some(Token::Sign(sign)) = self.peek() {
            let Some((operator, priority)) = operator(*sign).filter(|(_, own)| *own >= least)
            else {
                break;
            };
            self.next += 1;
            let right = self.binary(priority + 1)?;
            left = Expr::Binary(operator, Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    fn operand(&mut self) -> Result<Expr, Wrong> {
        let token = self.peek().cloned();
        let expr = match token {
            Some(Token::Number(number)) => Expr::Number(number),
            Some(Token::Literal(name)) => Expr::Literal(name),
            Some(Token::Name(name)) => return self.named(name),
            Some(Token::Sign('-')) => {
                self.next += 1;
                self.deeper()?;
                let inner = self.operand()?;
                self.nested -= 1;
                return Ok(Expr::Negative(Box::new(inner)));
            }
            Some(Token::Sign('(')) => {
                self.next += 1;
                self.deeper()?;
                let inner = self.choice()?;
                self.nested -= 1;
                self.expect(&Token::Sign(')'), "')', as there is a '('")?;
                return Ok(inner);
            }
            _ => return Err(self.wrong("a number, a name or '('")),
        };
        self.next += 1;
        Ok(expr)
    }

    /// Parses a function, or the name of an event or a metric.
    fn named(&mut self, name: String) -> Result<Expr, Wrong> {
        let two = match &name[..] {
            "min" => Operator::Min,
            "max" => Operator::Max,
            "d_ratio" => Operator::Ratio,
            "source_count" => return self.of_name(Expr::Sources),
            "has_event" => return self.of_name(Expr::HasEvent),
            "strcmp_cpuid_str" => return self.of_name(Expr::IsCpu),
            "if" | "else" => return Err(self.wrong("a number, a name or '('")),
            _ => {
                self.next += 1;
                return Ok(Expr::Named(name));
            }
        };
        self.next += 1;
        self.expect(&Token::Sign('('), "'(' after the function")?;
        self.deeper()?;
        let left = self.choice()?;
        self.expect(&Token::Sign(','), "',' between the values of a function")?;
        let right = self.choice()?;
        self.nested -= 1;
        self.expect(&Token::Sign(')'), "')' after the values of a function")?;
        Ok(Expr::Binary(two, Box::new(left), Box::new(right)))
    }

    /// Parses the name in parentheses after a function.
    fn of_name(&mut self, function: fn(String) -> Expr) -> Result<Expr, Wrong> {
        self.next += 1;
        self.expect(&Token::Sign('('), "'(' after the function")?;
        let Some(Token::Name(name)) = self.peek().cloned() else {
            return Err(self.wrong("a name"));
        };
        self.next += 1;
        self.expect(&Token::Sign(')'), "')' after the name")?;
        Ok(function(name))
    }

    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.next).map(|placed| &placed.token)
    }

    /// Returns whether this token is next, and moves behind it.
    fn takes(&mut self, token: &Token) -> bool {
        let is_next = self.peek() == Some(token);
        self.next += usize::from(is_next);
        is_next
    }

    fn expect(&mut self, token: &Token, wanted: &str) -> Result<(), Wrong> {
        if self.takes(token) { Ok(()) } else { Err(self.wrong(wanted)) }
    }

    fn deeper(&mut self) -> Result<(), Wrong> {
        self.nested += 1;
        if self.nested > MOST_NESTED {
            return Err(Wrong { at: self.at(), why: "it is nested too deeply".to_owned() });
        }
        Ok(())
    }

    /// Returns the place of the next token.
    fn at(&self) -> usize {
        self.tokens.get(self.next).map_or(self.end, |placed| placed.at)
    }

    fn wrong(&self, wanted: &str) -> Wrong {
        let found = match self.peek() {
            None => "the expression ends".to_owned(),
            Some(Token::Number(number)) => format!("there is {number}"),
            Some(Token::Name(name)) => format!("there is '{name}'"),
            Some(Token::Literal(name)) => format!("there is '#{name}'"),
            Some(Token::Sign(sign)) => format!("there is '{sign}'"),
        };
        Wrong { at: self.at(), why: format!("{found} where {wanted} is expected") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes an expression with all parentheses.
    fn written(expr: &Expr) -> String {
        match expr {
            Expr::Number(number) => number.to_string(),
            Expr::Named(name) => name.clone(),
            Expr::Negative(inner) => format!("-{}", written(inner)),
            Expr::Binary(operator, left, right) => {
                format!("({operator:?} {} {})", written(left), written(right))
            }
            Expr::If { condition, then, otherwise } => {
                format!("(If {} {} {})", written(condition), written(then), written(otherwise))
            }
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn priorities_are_perfs() {
        for (text, expected) in [
            ("a + b * c", "(Add a (Multiply b c))"),
            ("a - b - c", "(Subtract (Subtract a b) c)"),
            ("a / b % c", "(Remainder (Divide a b) c)"),
            ("-a * b", "(Multiply -a b)"),
            ("a > 1 & b < 2 | c", "(Or (And (Greater a 1) (Less b 2)) c)"),
            ("a ^ b & c", "(Xor a (And b c))"),
            ("a < b + 1", "(Less a (Add b 1))"),
            ("a + 1 if b > 1 else c if d else e", "(If (Greater b 1) (Add a 1) (If d c e))"),
            ("(a if b else c) * 2", "(Multiply (If b a c) 2)"),
            ("max(a, min(1, b) - 1)", "(Max a (Subtract (Min 1 b) 1))"),
            ("d_ratio(a, b)", "(Ratio a b)"),
            ("source_count(a) + has_event(b)", "(Add Sources(\"a\") HasEvent(\"b\"))"),
            ("strcmp_cpuid_str(0x41)", "IsCpu(\"0x41\")"),
            ("maximum + #num_cpus", "(Add maximum Literal(\"num_cpus\"))"),
        ] {
            assert_eq!(written(&parse(text).unwrap()), expected, "{text}");
        }
    }

    #[test]
    fn errors_say_what_is_expected_and_where() {
        for (text, at, why) in [
            ("", 0, "the expression ends where a number, a name or '(' is expected"),
            ("a b", 2, "there is 'b' where an operator or the end is expected"),
            ("a + * b", 4, "there is '*' where"),
            ("(a + b", 6, "where ')', as there is a '(' is expected"),
            ("a if b", 6, "where 'else', as there is an 'if' is expected"),
            ("a if b or c", 7, "there is 'or' where 'else'"),
            ("if", 0, "there is 'if' where"),
            ("max(a)", 5, "where ',' between the values of a function is expected"),
            ("has_event(1)", 10, "there is 1 where a name is expected"),
            ("a == b", 2, "'=' is no part of an expression"),
        ] {
            let wrong = parse(text).unwrap_err();
            assert_eq!(wrong.at, at, "{text}: {wrong:?}");
            assert!(wrong.why.contains(why), "{text}: {wrong:?}");
        }
    }

    #[test]
    fn deep_and_long_texts_are_refused() {
        let deep = [&"(".repeat(10_000)[..], "a", &")".repeat(10_000)].concat();
        assert!(parse(&deep).is_err());
        let nested = [&"(".repeat(1900)[..], "a", &")".repeat(1900)].concat();
        assert!(parse(&nested).unwrap_err().why.contains("nested too deeply"));
        assert!(parse(&["-".repeat(3000), "a".to_owned()].concat()).is_err());
        assert!(parse(&"a if b else ".repeat(900)).unwrap_err().why.contains("too deeply"));
        assert!(parse(&"a+".repeat(3000)).unwrap_err().why.contains("too long"));
        assert!(parse(&format!("{}a", "a+".repeat(1900))).is_ok());
    }
}

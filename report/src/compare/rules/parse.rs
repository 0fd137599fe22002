//! Parser of one rule.

use recrep_console::glob::Glob;

use super::rule::{Certainty, GateRule, Relation, RowKind, RuleSubject};

/// A rule that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: expected {expected}, found {found}\n  {rule}\n  {}^", " ".repeat(column - 1))]
pub(crate) struct RuleError {
    /// The rule, on one line.
    pub rule: String,
    /// Place of the error in the rule, in characters from 1 on.
    pub column: usize,
    pub expected: String,
    pub found: String,
}

impl GateRule {
    /// Parses a rule.
    ///
    /// # Errors
    ///
    /// Returns where the rule is wrong, and what was expected there.
    pub(crate) fn parse(text: &str) -> Result<Self, RuleError> {
        let mut parser = Parser { text, at: 0 };
        let subject = parser.subject()?;
        let relation = parser.relation()?;
        let limit = parser.limit(&subject)?;
        let certainty = parser.certainty(&subject)?;
        Ok(Self {
            text: text.trim().to_owned(),
            subject,
            relation,
            limit,
            certainty,
            why: None,
            warn: false,
        })
    }
}

struct Parser<'t> {
    text: &'t str,
    /// Bytes that were read.
    at: usize,
}

/// Words of subjects, as errors list them.
const SUBJECTS: &str = "`self`, `children`, `dso`, `comm`, `delta`, `impact`, `new`, `gone`, \
                        `lost`, `unresolved`, `broken`, `samples`, `runs`, `slower` or `faster`";

const KINDS: &str = "`self`, `children`, `dso` or `comm`";

impl<'t> Parser<'t> {
    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn skip_space(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    /// Returns the error that something else was expected at a byte.
    fn error_at(&self, at: usize, expected: &str) -> RuleError {
        let before = self.text.get(..at).unwrap_or(self.text);
        let rest = self.text.get(at..).unwrap_or_default();
        let word_end = rest.find(|next: char| !next.is_alphanumeric()).unwrap_or(rest.len());
        let found = match rest.chars().next() {
            None => "the end".to_owned(),
            Some(first) if word_end == 0 => format!("`{}`", first.escape_debug()),
            Some(_) => format!("`{}`", rest.get(..word_end).unwrap_or_default()),
        };
        RuleError {
            // A line break would move the mark.
            rule: self.text.replace(char::is_control, " "),
            column: before.chars().count() + 1,
            expected: expected.to_owned(),
            found,
        }
    }

    fn error(&self, expected: &str) -> RuleError {
        self.error_at(self.at, expected)
    }

    /// Reads a word of letters; empty if there is none.
    fn word(&mut self) -> &'t str {
        self.skip_space();
        let rest = self.rest();
        let end = rest.find(|next: char| !next.is_ascii_alphabetic()).unwrap_or(rest.len());
        self.at += end;
        rest.get(..end).unwrap_or_default()
    }

    fn expect(&mut self, sign: char) -> Result<(), RuleError> {
        self.skip_space();
        if !self.rest().starts_with(sign) {
            return Err(self.error(&format!("`{sign}`")));
        }
        self.at += sign.len_utf8();
        Ok(())
    }

    fn subject(&mut self) -> Result<RuleSubject, RuleError> {
        self.skip_space();
        let start = self.at;
        let word = self.word();
        Ok(match word {
            "delta" => return self.delta(),
            "impact" => {
                self.expect('(')?;
                let kind = self.kind(KINDS)?;
                self.expect(',')?;
                RuleSubject::Impact(kind, self.name()?)
            }
            "new" => RuleSubject::New,
            "gone" => RuleSubject::Gone,
            "lost" => RuleSubject::Lost,
            "unresolved" => RuleSubject::Unresolved,
            "broken" => RuleSubject::Broken,
            "samples" => RuleSubject::Samples,
            "runs" => RuleSubject::Runs,
            "slower" => RuleSubject::Slower,
            "faster" => RuleSubject::Faster,
            _ => {
                self.at = start;
                let kind = self.kind(SUBJECTS)?;
                self.expect('(')?;
                RuleSubject::Share(kind, self.name()?)
            }
        })
    }

    fn delta(&mut self) -> Result<RuleSubject, RuleError> {
        self.expect('(')?;
        self.skip_space();
        let start = self.at;
        if self.word() == "total" {
            self.expect(')')?;
            return Ok(RuleSubject::DeltaTotal);
        }
        self.at = start;
        let kind = self.kind(&format!("`total`, {KINDS}"))?;
        self.expect(',')?;
        Ok(RuleSubject::Delta(kind, self.name()?))
    }

    fn kind(&mut self, expected: &str) -> Result<RowKind, RuleError> {
        self.skip_space();
        let start = self.at;
        let word = self.word();
        let kind = RowKind::ALL.into_iter().find(|kind| kind.word() == word);
        kind.ok_or_else(|| self.error_at(start, expected))
    }

    /// Reads a name and the parenthesis behind it.
    fn name(&mut self) -> Result<Glob, RuleError> {
        self.skip_space();
        let start = self.at;
        let name = match self.rest().strip_prefix('"') {
            Some(quoted) => self.quoted(quoted)?,
            None => self.plain(),
        };
        if name.is_empty() {
            return Err(self.error_at(start, "a name"));
        }
        self.expect(')')?;
        Ok(Glob::escaped(&name))
    }

    fn quoted(&mut self, quoted: &str) -> Result<String, RuleError> {
        let mut name = String::new();
        let mut chars = quoted.char_indices();
        while let Some((at, next)) = chars.next() {
            match next {
                '"' => {
                    self.at += at + 2;
                    return Ok(name);
                }
                '\\' if chars.as_str().starts_with('"') => {
                    name.push('"');
                    chars.next();
                }
                // What it says of stars is the pattern's.
                other => name.push(other),
            }
        }
        Err(self.error_at(self.text.len(), "`\"` at the end of the name"))
    }

    /// Reads up to the `,`, `)` or `"` that is not within parentheses of the name.
    fn plain(&mut self) -> String {
        let (rest, mut depth) = (self.rest(), 0_usize);
        let end = rest.find(|next| {
            match next {
                '(' => depth += 1,
                ')' if depth > 0 => depth -= 1,
                ')' | '"' => return true,
                ',' => return depth == 0,
                _ => {}
            }
            false
        });
        let name = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
        self.at += name.len();
        name.trim_end().to_owned()
    }

    fn relation(&mut self) -> Result<Relation, RuleError> {
        self.skip_space();
        // The longer sign first.
        let all = [Relation::AtLeast, Relation::AtMost, Relation::More, Relation::Less];
        let found = all.into_iter().find(|relation| self.rest().starts_with(relation.sign()));
        let relation = found.ok_or_else(|| self.error("`>`, `>=`, `<` or `<=`"))?;
        self.at += relation.sign().len();
        Ok(relation)
    }

    fn limit(&mut self, subject: &RuleSubject) -> Result<f64, RuleError> {
        self.skip_space();
        let (start, rest) = (self.at, self.rest());
        let end = rest.find(|next: char| !next.is_ascii_digit() && !"+-.".contains(next));
        let end = end.unwrap_or(rest.len());
        let number = rest.get(..end).and_then(|digits| digits.parse::<f64>().ok());
        let number = number.filter(|number| number.is_finite());
        let number = number.ok_or_else(|| self.error_at(start, "a number"))?;
        self.at += end;
        self.skip_space();
        let is_percent = self.rest().starts_with('%');
        match (subject.is_share(), is_percent) {
            // 5 would be read as 5 % by some and as 500 % by others; 0 is 0.
            (true, false) if number != 0.0 => Err(self.error("`%`")),
            (false, true) => Err(self.error("a number without `%`")),
            _ => {
                self.at += usize::from(is_percent);
                Ok(if is_percent { number / 100.0 } else { number })
            }
        }
    }

    fn certainty(&mut self, subject: &RuleSubject) -> Result<Certainty, RuleError> {
        self.skip_space();
        let start = self.at;
        let is_change = matches!(
            subject,
            RuleSubject::Delta(..) | RuleSubject::Impact(..) | RuleSubject::DeltaTotal
        );
        let certainty = match self.word() {
            "any" if is_change => Certainty::Any,
            "surely" if is_change => Certainty::Surely,
            "" => Certainty::Significant,
            _ => {
                let expected = if is_change { "`any`, `surely` or the end" } else { "the end" };
                return Err(self.error_at(start, expected));
            }
        };
        self.skip_space();
        match self.rest() {
            "" => Ok(certainty),
            _ if is_change && certainty == Certainty::Significant => {
                Err(self.error("`any`, `surely` or the end"))
            }
            _ => Err(self.error("the end")),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn rules_are_read() {
        let delta = |kind, name: &str| RuleSubject::Delta(kind, Glob::escaped(name));
        let share = |kind, name: &str| RuleSubject::Share(kind, Glob::escaped(name));
        use Certainty::*;
        use Relation::*;
        for (text, subject, relation, limit, certainty) in [
            ("self(malloc) > 5%", share(RowKind::Own, "malloc"), More, 0.05, Significant),
            (
                "  comm( my tool )<=.5 %  ",
                share(RowKind::Comm, "my tool"),
                AtMost,
                0.005,
                Significant,
            ),
            (
                "delta(children, \"Foo::bar(int, long)\") > 3% surely",
                delta(RowKind::Children, "Foo::bar(int, long)"),
                More,
                0.03,
                Surely,
            ),
            (
                "delta(self, f(int, g(x))) >= 3%any",
                delta(RowKind::Own, "f(int, g(x))"),
                AtLeast,
                0.03,
                Any,
            ),
            ("delta(self,parse) < -10%", delta(RowKind::Own, "parse"), Less, -0.1, Significant),
            ("delta(total) > 2%", RuleSubject::DeltaTotal, More, 0.02, Significant),
            (
                "impact(self, *) > 1%",
                RuleSubject::Impact(RowKind::Own, Glob::escaped("*")),
                More,
                0.01,
                Significant,
            ),
            (
                "dso(libcrypto.so.3) > 20%",
                share(RowKind::Dso, "libcrypto.so.3"),
                More,
                0.2,
                Significant,
            ),
            (
                "self(\"say \\\"a\\\" \\*\") > 0",
                share(RowKind::Own, "say \"a\" \\*"),
                More,
                0.0,
                Significant,
            ),
            ("new > 1%", RuleSubject::New, More, 0.01, Significant),
            ("gone>0", RuleSubject::Gone, More, 0.0, Significant),
            ("lost > 0.1%", RuleSubject::Lost, More, 0.001, Significant),
            ("unresolved > 10%", RuleSubject::Unresolved, More, 0.1, Significant),
            ("broken > 10%", RuleSubject::Broken, More, 0.1, Significant),
            ("samples < 1000", RuleSubject::Samples, Less, 1000.0, Significant),
            ("runs < 3", RuleSubject::Runs, Less, 3.0, Significant),
            ("slower > 0", RuleSubject::Slower, More, 0.0, Significant),
            ("faster > 2", RuleSubject::Faster, More, 2.0, Significant),
        ] {
            let rule = GateRule::parse(text).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!((rule.subject, rule.relation), (subject, relation), "{text}");
            assert!((rule.limit - limit).abs() < 1e-12, "{text}: {}", rule.limit);
            assert_eq!(rule.certainty, certainty, "{text}");
            assert_eq!(rule.text, text.trim());
        }
    }

    #[test]
    fn errors_point_at_the_column() {
        for (text, column, expected) in [
            ("", 1, "`self`, "),
            ("sel(malloc) > 5%", 1, "`self`, "),
            ("self malloc > 5%", 6, "`(`"),
            ("self() > 5%", 6, "a name"),
            ("self(malloc > 5%", 17, "`)`"),
            ("self(a, b) > 5%", 7, "`)`"),
            ("self(\"malloc) > 5%", 19, "`\"`"),
            ("self(malloc) = 5%", 14, "`>`, "),
            ("self(malloc) >", 15, "a number"),
            ("self(malloc) > five", 16, "a number"),
            ("self(malloc) > 1.2.3%", 16, "a number"),
            ("self(malloc) > 5", 17, "`%`"),
            ("self(malloc) > 5% any", 19, "the end"),
            ("samples < 10%", 13, "a number without"),
            ("delta(malloc) > 5%", 7, "`total`, "),
            ("delta(self) > 5%", 11, "`,`"),
            ("delta(total, x) > 5%", 12, "`)`"),
            ("delta(self, f) > 5% maybe", 21, "`any`, `surely`"),
            ("delta(self, f) > 5% any more", 25, "the end"),
            ("delta(self, f) > 5% !", 21, "`any`, `surely`"),
            ("impact(total) > 5%", 8, "`self`, "),
            ("self(größe) ~ 5%", 13, "`>`, "),
        ] {
            let error = GateRule::parse(text).unwrap_err();
            assert_eq!(error.column, column, "{error}");
            assert!(error.expected.starts_with(expected), "{error}");
        }
        let error = GateRule::parse("self(f) > x").unwrap_err().to_string();
        assert_eq!(error, "column 11: expected a number, found `x`\n  self(f) > x\n            ^");
    }

    proptest! {
        #[test]
        fn no_text_panics(text in any::<String>()) {
            _ = GateRule::parse(&text).map_err(|error| error.to_string());
        }

        #[test]
        fn nearly_right_texts_do_not_panic(
            text in "(self|delta|impact|new|samples) ?[(]?(self|total|ä)?,? ?[\"(]?[a-z*(),\"\\\\ü]{0,8}[\"]?[)]? ?[<>]=? ?-?[0-9.]{0,4}%? ?(any|surely|x)?"
        ) {
            if let Ok(rule) = GateRule::parse(&text) {
                prop_assert!(rule.limit.is_finite());
            }
        }
    }
}

//! `-F`: fields that are printed for the samples of an event.
//!
//! ```text
//!   comm,ip,sym        exactly these fields, for all events
//!   +srcline,-period   the default fields, with srcline added and period removed
//!   sw:ip              only for software events; other prefixes are hw, trace, raw and break
//!   trace:             no fields: the samples of tracepoints are not printed
//! ```
//!
//! Several `-F` apply in order. Default fields that samples do not have are left out; fields that were asked for are
//! printed as unknown.

use recrep_format::abi::EventType;
use recrep_format::attr::Attr;

use super::fields::{Field, Fields};

/// Kind of events whose fields are chosen together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Hardware,
    Software,
    Tracepoint,
    HardwareCache,
    Raw,
    Breakpoint,
    Other,
}

impl Kind {
    fn of(kind: EventType) -> Self {
        match kind {
            EventType::HARDWARE => Self::Hardware,
            EventType::SOFTWARE => Self::Software,
            EventType::TRACEPOINT => Self::Tracepoint,
            EventType::HW_CACHE => Self::HardwareCache,
            EventType::RAW => Self::Raw,
            EventType::BREAKPOINT => Self::Breakpoint,
            _ => Self::Other,
        }
    }

    fn named(name: &str) -> Option<Self> {
        match name {
            "hw" => Some(Self::Hardware),
            "sw" => Some(Self::Software),
            "trace" => Some(Self::Tracepoint),
            "raw" => Some(Self::Raw),
            "break" => Some(Self::Breakpoint),
            _ => None,
        }
    }

    /// Returns whether events of this kind can have a field.
    fn can_have(self, field: Field) -> bool {
        field != Field::BpfOutput || matches!(self, Self::Software | Self::Tracepoint)
    }
}

/// One `-F`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    /// Kind of events that it applies to; `None` for all.
    kind: Option<Kind>,
    change: Change,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Change {
    /// Fields that replace the previous ones.
    Set(Vec<Field>),
    /// Fields that are added (`true`) or removed (`false`).
    Change(Vec<(bool, Field)>),
}

/// All `-F` options, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldChoice {
    rules: Vec<Rule>,
}

impl FieldChoice {
    /// Parses the lists, in order.
    ///
    /// # Errors
    /// Returns a message if a list is malformed or names an unknown field or prefix.
    pub fn parse<'a>(lists: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        lists.into_iter().map(Rule::parse).collect::<Result<_, _>>().map(|rules| Self { rules })
    }

    /// Returns the fields of an event's samples.
    pub fn of(&self, attr: &Attr) -> Fields {
        let kind = Kind::of(attr.kind);
        let rules = || self.rules.iter().filter(|rule| rule.kind.is_none_or(|of| of == kind));
        let mut fields = Fields::usual(attr, rules().next().is_none());
        for rule in rules() {
            match &rule.change {
                Change::Set(set) => fields.set(set.iter().copied().filter(|field| kind.can_have(*field))),
                Change::Change(changes) => {
                    for (is_added, field) in changes.iter().filter(|(_, field)| kind.can_have(*field)) {
                        if *is_added { fields.add(*field) } else { fields.remove(*field) }
                    }
                }
            }
        }
        fields.completed(attr)
    }
}

impl Rule {
    fn parse(text: &str) -> Result<Self, String> {
        let (kind, list) = match text.split_once(':') {
            Some(("synth", _)) => return Err("`synth` events come from decoding traces, which rep does not do".into()),
            Some((kind, list)) => {
                let known = Kind::named(kind);
                (Some(known.ok_or_else(|| format!("`{kind}` is not hw, sw, trace, raw or break"))?), list)
            }
            None if text.is_empty() => return Err("no field is given".into()),
            None => (None, text),
        };
        let field = |name: &str| {
            let field = Field::named(name)?;
            match kind.filter(|kind| !kind.can_have(field)) {
                Some(_) => Err(format!("`{name}` is not a field of these events")),
                None => Ok(field),
            }
        };
        let names = || list.split(',').map(str::trim).filter(|name| !name.is_empty());
        let sign = |name: &'_ str| name.strip_prefix('+').map(|_| true).or(name.strip_prefix('-').map(|_| false));
        let signed = names().filter(|name| sign(name).is_some()).count();
        let change = match signed {
            0 => Change::Set(names().map(field).collect::<Result<_, _>>()?),
            _ => {
                let mut is_added = None;
                let change = |name: &str| {
                    is_added = sign(name).or(is_added);
                    let is_added = is_added.ok_or("+ and - cannot be mixed with fields that have neither")?;
                    Ok::<_, String>((is_added, field(name.trim_start_matches(['+', '-']))?))
                };
                if signed != names().count() {
                    return Err("+ and - cannot be mixed with fields that have neither".into());
                }
                Change::Change(names().map(change).collect::<Result<_, _>>()?)
            }
        };
        Ok(Self { kind, change })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use recrep_format::abi::SampleType;

    fn of(kind: EventType, lists: &[&str]) -> Vec<&'static str> {
        let sample_type = SampleType::IP | SampleType::TID | SampleType::TIME;
        let attr = Attr { kind, sample_type, ..Attr::default() };
        FieldChoice::parse(lists.iter().copied()).unwrap().of(&attr).iter().map(|field| field.name()).collect()
    }

    #[test]
    fn rules_follow_each_other_by_kind() {
        let sw = |lists: &[&str]| of(EventType::SOFTWARE, lists);
        assert_eq!(sw(&["comm,ip"]), ["comm", "ip"]);
        assert_eq!(sw(&["ip", "sw:comm"]), ["comm"]);
        assert_eq!(sw(&["ip", "trace:comm"]), ["ip"]);
        assert_eq!(sw(&["sw:"]), [""; 0]);
        assert_eq!(sw(&["ip", "+time,-ip"]), ["time"]);
        let default = sw(&[]);
        assert!(default.contains(&"symoff") && !default.contains(&"cpu"), "{default:?}");
        assert!(!sw(&["-sym,-symoff"]).contains(&"sym"));
        assert!(!of(EventType::HARDWARE, &["ip,bpf-output"]).contains(&"bpf-output"));
        assert_eq!(sw(&["ip,dsoff"]), ["ip", "dsoff", "dso"]);
    }

    #[test]
    fn messages_name_the_mistake() {
        for (list, word) in [
            ("comm,+ip", "mixed"),
            ("synth:ip", "synth"),
            ("nope:ip", "nope"),
            ("ip,nope", "nope"),
            ("+ip,insn", "mixed"),
            ("hw:bpf-output", "bpf-output"),
            ("", "no field"),
        ] {
            let message = FieldChoice::parse([list]).unwrap_err();
            assert!(message.contains(word), "{list}: {message}");
        }
    }
}

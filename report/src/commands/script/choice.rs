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

/// Types of events whose fields are chosen together, by prefix.
const KINDS: [(&str, EventType); 5] = [
    ("hw", EventType::HARDWARE),
    ("sw", EventType::SOFTWARE),
    ("trace", EventType::TRACEPOINT),
    ("raw", EventType::RAW),
    ("break", EventType::BREAKPOINT),
];

fn can_have(kind: EventType, field: Field) -> bool {
    field != Field::BpfOutput || matches!(kind, EventType::SOFTWARE | EventType::TRACEPOINT)
}

/// One `-F`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    /// Type of events that it applies to; `None` for all.
    kind: Option<EventType>,
    change: Change,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Change {
    /// Fields that replace the previous ones.
    Set(Vec<Field>),
    /// Fields that are added (`true`) or removed (`false`).
    Change(Vec<(bool, Field)>),
}

/// Returns the fields of an event's samples. `all` has all `-F` options, in order.
pub(super) fn fields_of(all: &[Rule], attr: &Attr) -> Fields {
    let kind = attr.kind;
    let rules = || all.iter().filter(|rule| rule.kind.is_none_or(|of| of == kind));
    let mut fields = Fields::usual(attr, rules().next().is_none());
    for rule in rules() {
        match &rule.change {
            Change::Set(set) => fields.set(set.iter().copied().filter(|field| can_have(kind, *field))),
            Change::Change(changes) => {
                for (is_added, field) in changes.iter().filter(|(_, field)| can_have(kind, *field)) {
                    if *is_added { fields.add(*field) } else { fields.remove(*field) }
                }
            }
        }
    }
    fields.completed(attr)
}

impl Rule {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (kind, list) = match text.split_once(':') {
            Some(("synth", _)) => return Err("`synth` events come from decoding traces, which rep does not do".into()),
            Some((prefix, list)) => {
                let known = KINDS.iter().find(|(name, _)| *name == prefix).map(|(_, kind)| *kind);
                (Some(known.ok_or_else(|| format!("`{prefix}` is not hw, sw, trace, raw or break"))?), list)
            }
            None if text.is_empty() => return Err("no field is given".into()),
            None => (None, text),
        };
        let field = |name: &str| {
            let field = Field::named(name)?;
            match kind.filter(|kind| !can_have(*kind, field)) {
                Some(_) => Err(format!("`{name}` is not a field of these events")),
                None => Ok(field),
            }
        };
        let names: Vec<&str> = list.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
        let signs = ['+', '-'];
        let change = match names.iter().filter(|name| name.starts_with(signs)).count() {
            0 => Change::Set(names.into_iter().map(field).collect::<Result<_, _>>()?),
            signed if signed == names.len() => {
                let change = |name: &str| Ok((name.starts_with('+'), field(name.trim_start_matches(signs))?));
                Change::Change(names.into_iter().map(change).collect::<Result<_, String>>()?)
            }
            _ => return Err("+ and - cannot be mixed with fields that have neither".into()),
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
        let rules: Vec<_> = lists.iter().map(|list| Rule::parse(list).unwrap()).collect();
        fields_of(&rules, &attr).set.iter().map(|field| field.name()).collect()
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
            let message = Rule::parse(list).unwrap_err();
            assert!(message.contains(word), "{list}: {message}");
        }
    }
}

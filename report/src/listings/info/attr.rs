//! Fields of an attr under their ABI names, in the order of `perf evlist -v`.
//!
//! One list serves text and JSON. Text leaves out fields that are 0 and gives unions perf's double
//! names; JSON has every field, unions under the name that applies. Names of flags and bits come
//! from `recrep-format`: names added there are printed here.

use std::borrow::Cow;

use recrep_format::abi::{AttrFlags, SampleType};
use recrep_format::attr::Attr;
use recrep_format::fields::{Fields as _, Value as Field};

use super::value::{InfoValue, hex, number, shown};
use crate::tracepoints;

/// Returns all fields, those of unions under the name that applies.
fn fields(attr: &Attr) -> Vec<(Cow<'static, str>, InfoValue)> {
    let mut fields = Vec::with_capacity(70);
    attr.each(&mut |name, value| match name {
        "flags" => fields.extend(flags(attr.flags)),
        "unknown_bytes" if attr.extra.is_empty() => {}
        "unknown_bytes" => {
            fields.push((name.into(), InfoValue::Text(tracepoints::hex(&attr.extra, " "))));
        }
        _ => {
            let name = match name {
                "sample_period" if attr.flags.contains(AttrFlags::FREQ) => "sample_freq",
                "wakeup" if attr.flags.contains(AttrFlags::WATERMARK) => "wakeup_watermark",
                "wakeup" => "wakeup_events",
                own => own,
            };
            let value = match value {
                Field::Bits(known, unknown) => bits(known, unknown),
                value => shown(&value),
            };
            fields.push((name.into(), value));
        }
    });
    // perf prints two fields behind one that follows them in the struct.
    fields.sort_by_key(|(name, _)| match &**name {
        "__reserved_2" | "aux_action" => 1,
        "config3" | "config4" | "unknown_bytes" => 2,
        _ => 0,
    });
    fields
}

/// Returns a field per flag, `precise_ip` as one number, and bits without a name as a number.
fn flags(flags: AttrFlags) -> Vec<(Cow<'static, str>, InfoValue)> {
    let mut unknown = flags;
    let mut fields = Vec::with_capacity(40);
    for (name, flag) in AttrFlags::all().iter_names() {
        unknown.remove(flag);
        if flag == AttrFlags::PRECISE_IP_1 {
            fields.push(("precise_ip".into(), number(flags.precise_ip())));
        } else if flag != AttrFlags::PRECISE_IP_2 {
            fields.push((name.to_ascii_lowercase().into(), number(u8::from(flags.contains(flag)))));
        }
    }
    if !unknown.is_empty() {
        fields.push(("unknown_flags".into(), hex(unknown.bits())));
    }
    fields
}

/// Returns the names of set bits; those without a name are one number at the end.
fn bits(mut known: Vec<(&str, u64)>, unknown: u64) -> InfoValue {
    known.sort_by_key(|(name, bit)| place(name, *bit));
    let mut names: Vec<String> = known.into_iter().map(|(name, _)| name.to_owned()).collect();
    if unknown != 0 {
        names.push(format!("{unknown:#x}"));
    }
    let text = names.join("|");
    InfoValue::Shown(
        Box::new(InfoValue::List(names.into_iter().map(InfoValue::Text).collect())),
        text,
    )
}

/// Returns the place of a bit in perf's order: three of `sample_type` are not in the order of the
/// bits.
fn place(name: &str, bit: u64) -> (u64, u64) {
    match name {
        "DATA_SRC" => (SampleType::REGS_INTR.bits(), 1),
        "WEIGHT" => (SampleType::REGS_INTR.bits(), 2),
        "TRANSACTION" => (u64::MAX, 0),
        _ => (bit, 0),
    }
}

/// Returns the non-zero fields, as `perf evlist -v` prints them after the event's name.
pub(crate) fn text(attr: &Attr) -> String {
    let texts = fields(attr).into_iter().map(|(name, value)| (name, value.to_string()));
    // A number, in whatever form, bits or bytes: `0`, `0x0`, nothing, `00 00`.
    let shown = texts.filter(|(_, text)| !text.bytes().all(|byte| b"0x ".contains(&byte)));
    shown.map(|(name, text)| format!("{}: {text}", union_of(&name))).collect::<Vec<_>>().join(", ")
}

/// Returns perf's name of the union that contains a field, or the field's own name.
fn union_of(name: &str) -> &str {
    match name {
        "sample_period" | "sample_freq" => "{ sample_period, sample_freq }",
        "wakeup_events" | "wakeup_watermark" => "{ wakeup_events, wakeup_watermark }",
        "config1" => "{ bp_addr, config1 }",
        "config2" => "{ bp_len, config2 }",
        own => own,
    }
}

/// Returns every field of an attr, and its [`text`].
pub(super) fn value(attr: &Attr) -> InfoValue {
    InfoValue::Shown(Box::new(InfoValue::Map(fields(attr))), text(attr))
}

#[cfg(test)]
mod tests {
    use recrep_format::abi::{EventType, ReadFormat};

    use super::*;

    #[test]
    fn text_equals_perfs_and_omits_zeros() {
        let attr = Attr {
            kind: EventType::SOFTWARE,
            size: 136,
            sample_period: 4000,
            sample_type: SampleType::IP
                | SampleType::IDENTIFIER
                | SampleType::REGS_INTR
                | SampleType::WEIGHT,
            read_format: ReadFormat::ID | ReadFormat::LOST,
            flags: (AttrFlags::FREQ | AttrFlags::DISABLED).with_precise_ip(2),
            config1: 0x40,
            clockid: -3,
            ..Attr::default()
        };
        assert_eq!(
            text(&attr),
            "type: 1, size: 136, { sample_period, sample_freq }: 4000, sample_type: \
             IP|IDENTIFIER|REGS_INTR|WEIGHT, read_format: ID|LOST, disabled: 1, freq: 1, \
             precise_ip: 2, { bp_addr, config1 }: 0x40, clockid: -3"
        );
    }

    #[test]
    fn bits_without_a_name_are_numbers() {
        let attr = Attr {
            sample_type: SampleType::from_bits_retain(1 | 1 << 60),
            flags: AttrFlags::from_bits_retain(1 << 63),
            extra: [0, 7].into_iter().collect(),
            ..Attr::default()
        };
        assert_eq!(
            text(&attr),
            "sample_type: IP|0x1000000000000000, unknown_flags: 0x8000000000000000, \
             unknown_bytes: 00 07"
        );
        let json = serde_json::to_value(value(&attr)).unwrap();
        assert_eq!(json["sample_type"], serde_json::json!(["IP", "0x1000000000000000"]));
        assert_eq!(json["sample_period"], 0);
        assert_eq!(json["precise_ip"], 0);
        assert_eq!(json["config"], "0x0");
    }
}

//! Fields of an attr under their ABI names, in the order of `perf evlist -v`.
//!
//! One list serves text and JSON. Text leaves out fields that are 0 and gives unions perf's double names; JSON has
//! every field, unions under the name that applies. Names of flags and bits come from `recrep-format`: names added
//! there are printed here.

use std::borrow::Cow;
use std::fmt::Write;

use recrep_format::abi::{AttrFlags, BranchSampleType, ReadFormat, SampleType};
use recrep_format::attr::Attr;

use super::value::Value;

/// Field of an attr.
struct Field {
    /// ABI name.
    name: Cow<'static, str>,
    /// perf's name of the union that contains the field.
    union: Option<&'static str>,
    value: Value,
    zero: bool,
}

struct Fields(Vec<Field>);

impl Fields {
    fn add(&mut self, name: impl Into<Cow<'static, str>>, value: Value, zero: bool) {
        self.0.push(Field { name: name.into(), union: None, value, zero });
    }

    fn number(&mut self, name: impl Into<Cow<'static, str>>, value: impl Into<u64>) {
        let value = value.into();
        self.add(name, Value::Number(value), value == 0);
    }

    fn hex(&mut self, name: &'static str, value: u64) {
        self.add(name, Value::Hex(value), value == 0);
    }

    fn union(&mut self, union: &'static str, name: &'static str, value: Value, zero: bool) {
        self.0.push(Field { name: name.into(), union: Some(union), value, zero });
    }

    fn bits(&mut self, name: &'static str, names: Vec<String>) {
        let zero = names.is_empty();
        self.add(name, Value::Bits(names), zero);
    }
}

fn fields(attr: &Attr) -> Vec<Field> {
    let mut f = Fields(Vec::with_capacity(72));
    f.number("type", attr.kind.0);
    f.number("size", attr.size);
    f.hex("config", attr.config);
    let rate = if attr.flags.contains(AttrFlags::FREQ) { "sample_freq" } else { "sample_period" };
    let period = Value::Number(attr.sample_period);
    f.union("{ sample_period, sample_freq }", rate, period, attr.sample_period == 0);
    f.bits("sample_type", sample_type(attr.sample_type));
    f.bits("read_format", named(attr.read_format.iter_names(), attr.read_format.bits(), ReadFormat::bits));
    flags(&mut f, attr.flags);
    let wakeup = if attr.flags.contains(AttrFlags::WATERMARK) { "wakeup_watermark" } else { "wakeup_events" };
    let events = Value::Number(attr.wakeup.into());
    f.union("{ wakeup_events, wakeup_watermark }", wakeup, events, attr.wakeup == 0);
    f.number("bp_type", attr.bp_type);
    f.union("{ bp_addr, config1 }", "config1", Value::Hex(attr.config1), attr.config1 == 0);
    f.union("{ bp_len, config2 }", "config2", Value::Hex(attr.config2), attr.config2 == 0);
    let branches = attr.branch_sample_type;
    f.bits("branch_sample_type", named(branches.iter_names(), branches.bits(), BranchSampleType::bits));
    f.hex("sample_regs_user", attr.sample_regs_user);
    f.number("sample_stack_user", attr.sample_stack_user);
    f.add("clockid", Value::Signed(attr.clockid.into()), attr.clockid == 0);
    f.hex("sample_regs_intr", attr.sample_regs_intr);
    f.number("aux_watermark", attr.aux_watermark);
    f.number("sample_max_stack", attr.sample_max_stack);
    f.number("aux_sample_size", attr.aux_sample_size);
    f.number("sig_data", attr.sig_data);
    f.number("__reserved_2", attr.reserved_2);
    f.hex("aux_action", attr.aux_action.into());
    f.hex("config3", attr.config3);
    f.hex("config4", attr.config4);
    if !attr.extra.is_empty() {
        f.add("unknown_bytes", Value::Bytes(attr.extra.to_vec()), attr.extra.iter().all(|byte| *byte == 0));
    }
    f.0
}

/// Adds a field per flag, `precise_ip` as one number, and bits without a name as a number.
fn flags(f: &mut Fields, flags: AttrFlags) {
    let mut named = AttrFlags::empty();
    for (name, flag) in AttrFlags::all().iter_names() {
        named |= flag;
        if flag == AttrFlags::PRECISE_IP_1 {
            f.number("precise_ip", flags.precise_ip());
        } else if flag != AttrFlags::PRECISE_IP_2 {
            f.number(name.to_ascii_lowercase(), flags.contains(flag));
        }
    }
    let unknown = flags.bits() & !named.bits();
    if unknown != 0 {
        f.hex("unknown_flags", unknown);
    }
}

/// Returns the names of the set bits; bits without a name are one number at the end.
fn named<B>(names: impl Iterator<Item = (&'static str, B)>, all: u64, bits: fn(&B) -> u64) -> Vec<String> {
    let mut unknown = all;
    let mut found: Vec<String> = names
        .map(|(name, bit)| {
            unknown &= !bits(&bit);
            name.to_owned()
        })
        .collect();
    if unknown != 0 {
        found.push(format!("{unknown:#x}"));
    }
    found
}

/// Returns the names of the bits of a `sample_type`, in perf's order: three of them are not in the order of the bits.
fn sample_type(all: SampleType) -> Vec<String> {
    let mut ordered: Vec<(&'static str, SampleType)> = all.iter_names().collect();
    ordered.sort_by_key(|(_, bit)| match *bit {
        SampleType::DATA_SRC => (SampleType::REGS_INTR.bits(), 1),
        SampleType::WEIGHT => (SampleType::REGS_INTR.bits(), 2),
        SampleType::TRANSACTION => (u64::MAX, 0),
        bit => (bit.bits(), 0),
    });
    named(ordered.into_iter(), all.bits(), SampleType::bits)
}

/// Returns the non-zero fields, as `perf evlist -v` prints them after the event's name.
pub(crate) fn text(attr: &Attr) -> String {
    let mut text = String::new();
    for field in fields(attr).iter().filter(|field| !field.zero) {
        let comma = if text.is_empty() { "" } else { ", " };
        let outcome = write!(text, "{comma}{}: {}", field.union.unwrap_or(&field.name), field.value);
        debug_assert!(outcome.is_ok(), "a String takes everything");
    }
    text
}

/// Returns every field of an attr, and its [`text`].
pub(super) fn value(attr: &Attr) -> Value {
    Value::Fields(fields(attr).into_iter().map(|field| (field.name, field.value)).collect(), text(attr))
}

#[cfg(test)]
mod tests {
    use recrep_format::abi::EventType;

    use super::*;

    #[test]
    fn text_equals_perfs_and_omits_zeros() {
        let attr = Attr {
            kind: EventType::SOFTWARE,
            size: 136,
            sample_period: 4000,
            sample_type: SampleType::IP | SampleType::IDENTIFIER | SampleType::REGS_INTR | SampleType::WEIGHT,
            read_format: ReadFormat::ID | ReadFormat::LOST,
            flags: (AttrFlags::FREQ | AttrFlags::DISABLED).with_precise_ip(2),
            config1: 0x40,
            clockid: -3,
            ..Attr::default()
        };
        assert_eq!(
            text(&attr),
            "type: 1, size: 136, { sample_period, sample_freq }: 4000, sample_type: IP|IDENTIFIER|REGS_INTR|WEIGHT, \
             read_format: ID|LOST, disabled: 1, freq: 1, precise_ip: 2, { bp_addr, config1 }: 0x40, clockid: -3"
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
            "sample_type: IP|0x1000000000000000, unknown_flags: 0x8000000000000000, unknown_bytes: 00 07"
        );
        let json = serde_json::to_value(value(&attr)).unwrap();
        assert_eq!(json["sample_type"], serde_json::json!(["IP", "0x1000000000000000"]));
        assert_eq!(json["sample_period"], 0);
        assert_eq!(json["precise_ip"], 0);
        assert_eq!(json["config"], "0x0");
    }
}

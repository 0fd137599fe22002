//! Events that are made of traces (`synth`): what their raw data says, in perf's words.

use std::borrow::Cow;
use std::io::{self, Write};

use recrep_format::abi::SynthEvent;
use recrep_format::record::SynthData;

/// Width of the field.
const WIDTH: usize = 34;

/// A value with its name.
type NamedText = (&'static str, Cow<'static, str>);

/// Prints the raw data of an event; nothing if there is too little of it.
pub(super) fn print(event: SynthEvent, raw: &[u8], out: &mut impl Write) -> io::Result<()> {
    let Some(parts) = parts(event, raw) else { return Ok(()) };
    let mut text = String::new();
    for (name, value) in &parts {
        match *name {
            TEXT | PERCENT => text.push_str(&format!(" {value}")),
            _ => text.push_str(&format!(" {name}: {value}")),
        }
    }
    let is_spaced = !matches!(
        event,
        SynthEvent::INTEL_PSB | SynthEvent::INTEL_EVT | SynthEvent::INTEL_IFLAG_CHG
    );
    if is_spaced {
        text.push(' ');
    }
    if event == SynthEvent::INTEL_PTWRITE && parts.len() == 2 {
        text.push(' ');
    }
    write!(out, "{text:<WIDTH$}")
}

/// Returns the values of an event; `None` if there is too little raw data.
pub(super) fn values(event: SynthEvent, raw: &[u8]) -> Option<Vec<(String, String)>> {
    let named = |(name, value): NamedText| (name.to_owned(), value.trim().to_owned());
    Some(parts(event, raw)?.into_iter().map(named).collect())
}

/// Names that are not printed in front of their values.
const TEXT: &str = "text";
const PERCENT: &str = "percent";

/// Events of the flow of control, and their data, by number.
const CONTROL_FLOW: [&str; 14] = [
    "",
    "INTR",
    "IRET",
    "SMI",
    "RSM",
    "SIPI",
    "INIT",
    "VMENTRY",
    "VMEXIT",
    "VMEXIT_INTR",
    "SHUTDOWN",
    "",
    "UINTR",
    "UIRET",
];
const EVENT_DATA: [&str; 3] = ["PFA", "VMXQ", "VMXR"];

fn parts(event: SynthEvent, raw: &[u8]) -> Option<Vec<NamedText>> {
    let bits = |value: u64, at: u32, count: u32| value >> at & ((1 << count) - 1);
    let decimal = |number: u64| Cow::from(number.to_string());
    let ip = |has_ip: bool| ("IP", decimal(has_ip.into()));
    Some(match SynthData::read(event, raw)? {
        SynthData::PtWrite { has_ip, value } => {
            let mut parts = vec![ip(has_ip), ("payload", hex(value))];
            parts.extend(printable(value).map(|text| (TEXT, text.into())));
            parts
        }
        SynthData::MWait(operands) => {
            vec![("hints", hex(bits(operands, 0, 8))), ("extensions", hex(bits(operands, 32, 2)))]
        }
        SynthData::Pwre(state) => vec![
            ("hw", decimal(bits(state, 7, 1))),
            ("cstate", decimal(bits(state, 12, 4))),
            ("sub-cstate", decimal(bits(state, 8, 4))),
        ],
        SynthData::ExStop { has_ip } => vec![ip(has_ip)],
        SynthData::Pwrx(states) => vec![
            ("deepest cstate", decimal(bits(states, 0, 4))),
            ("last cstate", decimal(bits(states, 4, 4))),
            ("wake reason", hex(bits(states, 8, 4))),
        ],
        SynthData::Cbr { ratio, base, kilohertz } => {
            let megahertz = (u64::from(kilohertz) + 500) / 1000;
            let mut parts = vec![
                ("cbr", format!("{ratio:2}").into()),
                ("freq", format!("{megahertz:4} MHz").into()),
            ];
            let tenths = (1000 * u32::from(ratio)).checked_div(base.into());
            let percent = tenths.map(|tenths| (tenths + 5) / 10);
            parts.extend(percent.map(|percent| (PERCENT, format!("({percent:3}%)").into())));
            parts
        }
        SynthData::Psb { offset } => vec![("psb offs", hex(offset))],
        SynthData::ControlFlow { kind, has_ip, vector, data } => {
            let kind = known(&CONTROL_FLOW, kind);
            let mut parts = vec![
                ("cfe", kind.map_or_else(|number| decimal(number.into()), Cow::from)),
                ip(has_ip),
                ("vector", decimal(vector.into())),
            ];
            for (kind, value) in data {
                parts.push(match known(&EVENT_DATA, kind & 0x3f) {
                    Ok(name) => (name, hex(value)),
                    Err(number) => (TEXT, format!("EVD_{number}: {}", hex(value)).into()),
                });
            }
            parts
        }
        SynthData::InterruptFlag { is_set, branch_to } => {
            let way = if branch_to.is_some() { "via" } else { "non" };
            let (before, after) = (u8::from(!is_set), u8::from(is_set));
            vec![("IFLAG", format!("{before}->{after} {way} branch").into())]
        }
    })
}

/// Returns the name with a number; the number itself if it has none.
fn known(names: &[&'static str], number: u8) -> Result<&'static str, u8> {
    let name = names.get(usize::from(number)).copied();
    name.filter(|name| !name.is_empty()).ok_or(number)
}

/// Returns a number as C prints it with `%#x`.
fn hex(number: u64) -> Cow<'static, str> {
    if number == 0 { "0".into() } else { format!("{number:#x}").into() }
}

/// Returns the text that a number is in memory, if it is one: printable ASCII, up to zeros at its end.
fn printable(number: u64) -> Option<String> {
    let bytes = number.to_le_bytes();
    let len = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    let (text, rest) = bytes.split_at_checked(len)?;
    let is_text = text.iter().all(|byte| matches!(byte, b' '..=b'~'));
    let is_padded = rest.iter().all(|byte| *byte == 0);
    let text = (is_text && is_padded).then(|| String::from_utf8_lossy(text).into_owned());
    text.filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(event: SynthEvent, raw: &[u8]) -> String {
        let mut out = Vec::new();
        print(event, raw, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn long(head: u32, number: u64) -> Vec<u8> {
        [&head.to_le_bytes()[..], &number.to_le_bytes()].concat()
    }

    /// As perf 6.1 prints them.
    #[test]
    fn values_are_printed_as_by_perf() {
        for (event, raw, expected) in [
            (SynthEvent::INTEL_PTWRITE, long(1, 0x1234_5678), " IP: 1 payload: 0x12345678  "),
            (
                SynthEvent::INTEL_PTWRITE,
                long(0, 0x6f_6c6c_6568),
                " IP: 0 payload: 0x6f6c6c6568 hello ",
            ),
            (SynthEvent::INTEL_PTWRITE, long(0, 0), " IP: 0 payload: 0  "),
            (SynthEvent::INTEL_MWAIT, long(0, 0x1_0000_0020), " hints: 0x20 extensions: 0x1 "),
            (SynthEvent::INTEL_PWRE, long(0, 0x3280), " hw: 1 cstate: 3 sub-cstate: 2 "),
            (SynthEvent::INTEL_EXSTOP, vec![1, 0, 0, 0], " IP: 1 "),
            (
                SynthEvent::INTEL_PWRX,
                long(0, 0x123),
                " deepest cstate: 3 last cstate: 2 wake reason: 0x1 ",
            ),
            (
                SynthEvent::INTEL_CBR,
                [30 | 20 << 16, 3_000_000, 0].map(u32::to_le_bytes).concat(),
                " cbr: 30 freq: 3000 MHz (150%) ",
            ),
            (SynthEvent::INTEL_PSB, long(0, 0x4000), " psb offs: 0x4000"),
            (
                SynthEvent::INTEL_EVT,
                [
                    &(1_u32 | 1 << 7 | 32 << 8 | 1 << 16).to_le_bytes()[..],
                    &long(0, 0)[4..],
                    &[1; 8],
                ]
                .concat(),
                " cfe: INTR IP: 1 vector: 32 PFA: 0x101010101010101",
            ),
            (SynthEvent::INTEL_IFLAG_CHG, long(3, 0x1000), " IFLAG: 0->1 via branch"),
        ] {
            assert_eq!(printed(event, &raw), format!("{expected:<34}"));
            assert_eq!(printed(event, &raw[..3]), "");
        }
    }

    #[test]
    fn values_have_names() {
        let values = values(SynthEvent::INTEL_PTWRITE, &long(1, 0x6968)).unwrap();
        let expected = [("IP", "1"), ("payload", "0x6968"), ("text", "hi")];
        assert_eq!(values, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }
}

//! What is private in a recording.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};
use std::ops::Range;
use std::path::Path;

use recrep_format::attr::AttrEntry;
use recrep_format::feature::{Cmdline, HeaderString, Hostname};
use recrep_format::fields::{Fields, Value};
use recrep_format::read::File;

/// Texts and numbers that must be nowhere in what is shared.
#[derive(Default)]
pub(crate) struct Secrets {
    texts: BTreeSet<String>,
    addresses: HashSet<u64>,
}

/// Smaller numbers are offsets, counts and the like.
const FIRST_ADDRESS: u64 = 1 << 32;
/// The kernel may be shown at this address, where it is without an offset of this boot.
const KERNEL: u64 = 0xffff_ffff_8000_0000;
/// Fields with numbers that are no addresses.
const PUBLIC: [&str; 10] = [
    "time",
    "id",
    "stream_id",
    "data_src",
    "period",
    "weight",
    "ino",
    "ino_generation",
    "cgroup",
    "build_id",
];

impl Secrets {
    /// Returns those of a recording, and these.
    pub(crate) fn of(recording: &Path, texts: &[&str]) -> Self {
        let bytes = std::fs::read(recording).unwrap();
        let file = File::parse(&bytes).unwrap();
        let mut secrets = Self::default();
        secrets.texts.extend(texts.iter().map(|text| (*text).to_owned()));
        let host = file.feature::<Hostname<'_>>().unwrap().unwrap();
        secrets.texts.insert(host.0.to_text().into_owned());
        if let Some(Ok(Cmdline { args })) = file.feature::<Cmdline<'_>>() {
            let events: Vec<Cow<'_, str>> =
                file.attrs.entries().iter().map(AttrEntry::event_name).collect();
            let is_secret = |text: &str| !events.iter().any(|event| event.contains(text));
            let arguments = args.0.iter().map(HeaderString::to_text);
            arguments.filter(|text| is_secret(text)).for_each(|text| secrets.add_argument(&text));
        }
        for raw in file.records().map_while(Result::ok) {
            let record = file.attrs.decode(&raw).unwrap();
            record.body.each(&mut |name, value| secrets.add(name, &value));
        }
        secrets
    }

    /// Returns their number.
    pub(crate) fn len(&self) -> usize {
        self.texts.len() + self.addresses.len()
    }

    /// Adds an argument, if it says more than short options and names of programs do.
    fn add_argument(&mut self, argument: &str) {
        self.add_directories(argument);
        if argument.len() > 8 && !argument.contains('/') {
            self.texts.insert(argument.to_owned());
        }
    }

    /// Adds the directories of a path; those at the top alone say nothing.
    fn add_directories(&mut self, path: &str) {
        let parts: Vec<&str> = path.split('/').collect();
        if let ["", first, second, _, ..] = parts.as_slice() {
            self.texts.insert(format!("/{first}/{second}"));
        }
        if let [.., directory, _] = parts.as_slice()
            && directory.len() > 8
        {
            self.texts.insert(format!("{directory}/"));
        }
    }

    fn add(&mut self, name: &str, value: &Value<'_>) {
        match value {
            Value::Text(text) => self.add_directories(&String::from_utf8_lossy(text)),
            Value::Hex(number) if !PUBLIC.contains(&name) => self.add_address(*number),
            Value::Words(words) => words.iter().for_each(|word| self.add_address(word)),
            Value::Bytes(bytes) if !PUBLIC.contains(&name) => {
                for word in bytes.chunks_exact(8) {
                    self.add_address(u64::from_le_bytes(word.try_into().unwrap()));
                }
            }
            Value::Fields(fields) => fields.each(&mut |name, value| self.add(name, &value)),
            Value::List(all) => all.iter().for_each(|value| self.add(name, value)),
            _ => {}
        }
    }

    fn add_address(&mut self, number: u64) {
        if is_address(number) {
            self.addresses.insert(number);
        }
    }

    /// Returns what is found in an output, as text or as a number of any encoding.
    pub(crate) fn found_in(&self, bytes: &[u8]) -> Option<String> {
        let text = String::from_utf8_lossy(bytes);
        let found = self.texts.iter().find(|secret| text.contains(secret.as_str()));
        found.cloned().or_else(|| {
            let found = numbers_in(bytes, &text).find(|number| self.addresses.contains(number));
            found.map(|number| format!("{number:#x}"))
        })
    }
}

fn is_address(number: u64) -> bool {
    // Numbers with fewer digits than any address are met by chance, as counts, or as -1 beside 0.
    let bytes = number.to_le_bytes();
    let is_any_of = |range: Range<u64>, padding: u8| {
        range.contains(&number)
            && bytes.iter().filter(|byte| ![0, padding].contains(*byte)).count() > 2
    };
    is_any_of(FIRST_ADDRESS..1 << 47, 0) || is_any_of(1 << 63..KERNEL, 0xff)
}

/// Returns the number in LEB128 at the start of these bytes.
fn leb128(bytes: &[u8]) -> u64 {
    let mut number = 0;
    for (place, byte) in (0..).zip(&bytes[..bytes.len().min(10)]) {
        number |= u64::from(byte & 0x7f).checked_shl(7 * place).unwrap_or(0);
        if byte & 0x80 == 0 {
            break;
        }
    }
    number
}

/// Returns all numbers that may be addresses: as words of both byte orders, as LEB128, and in
/// decimal and hexadecimal digits.
fn numbers_in<'b>(bytes: &'b [u8], text: &'b str) -> impl Iterator<Item = u64> + 'b {
    let words = bytes.windows(8).flat_map(|word| {
        let word = word.try_into().unwrap();
        [u64::from_le_bytes(word), u64::from_be_bytes(word)]
    });
    // Of an address at least the first four digits of seven bits have another one behind them.
    let starts = bytes.windows(5).enumerate();
    let starts = starts.filter(|(_, digits)| digits[..4].iter().all(|byte| byte & 0x80 != 0));
    let packed = starts.map(|(at, _)| leb128(&bytes[at..]));
    let tokens = text.split(|c: char| !c.is_ascii_hexdigit()).filter(|token| token.len() > 8);
    let written = tokens.flat_map(|token| [10, 16].map(|radix| u64::from_str_radix(token, radix)));
    words.chain(packed).chain(written.flatten()).filter(|number| is_address(*number))
}

//! Damaged variants of a perf.data file: the same ones for the same number, so that a failure can
//! be had again.
//!
//! | kind | what is done |
//! |---|---|
//! | [`Kind::Cut`] | the file ends early: anywhere, or at a record's boundary or a byte beside it |
//! | [`Kind::Header`] | a word of the file's header |
//! | [`Kind::Attrs`] | a byte, half word or word of the attrs, their ids, or the ATTR records of a pipe |
//! | [`Kind::Size`] | the size or type in a record's header |
//! | [`Kind::Payload`] | a word of a record, flipped bits, or another record's bytes |
//! | [`Kind::Tail`] | the table of features and the features, or bytes behind the end |
//! | [`Kind::Many`] | two to five of these |
//!
//! Where things are is read here by hand, from perf's description of the file, so that a test of
//! the parser does not rest on the parser. What cannot be made out (the file itself is damaged) is
//! damaged at any place.

use std::ops::Range;

/// Damage that is done to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Ends early.
    Cut,
    /// The file's header.
    Header,
    /// The attrs.
    Attrs,
    /// A record's header.
    Size,
    /// A record's fields.
    Payload,
    /// Features and what is behind them.
    Tail,
    /// Several.
    Many,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Kind; 7] =
        [Kind::Cut, Kind::Header, Kind::Attrs, Kind::Size, Kind::Payload, Kind::Tail, Kind::Many];
}

/// Numbers that are the same in every run (splitmix64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end.max(1) as u64).expect("less than a usize")
    }

    fn one_of<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    fn within(&mut self, range: &Range<usize>) -> usize {
        range.start + self.below(range.len())
    }
}

/// A file that damaged variants are made of.
#[derive(Debug)]
pub struct Original {
    /// The file's bytes.
    pub bytes: Vec<u8>,
    big_endian: bool,
    header: Range<usize>,
    /// The attrs and their ids.
    attrs: Vec<Range<usize>>,
    records: Vec<Range<usize>>,
    tail: Range<usize>,
}

/// The type of the ATTR records of a pipe.
const ATTR: u32 = 64;

impl Original {
    /// Finds the parts of a file.
    pub fn new(bytes: Vec<u8>) -> Original {
        let big_endian = match bytes.get(..8) {
            Some(b"2ELIFREP") => true,
            // The old magic is the same in both orders; the header's size tells.
            Some(b"PERFFILE") => bytes.get(8..12) == Some(&[0; 4]),
            _ => false,
        };
        let end = bytes.len();
        let whole = 0..end;
        let mut found = Original {
            bytes,
            big_endian,
            header: 0..end.min(104),
            attrs: Vec::new(),
            records: Vec::new(),
            tail: whole,
        };
        let word = |found: &Original, at: usize| {
            found.word(at).and_then(|word| usize::try_from(word).ok()).unwrap_or(0)
        };
        let section = |found: &Original, at: usize| {
            let start = word(found, at).min(end);
            start..start.saturating_add(word(found, at + 8)).min(end)
        };
        if word(&found, 8) == 16 {
            found.header = 0..16;
            found.records = found.records_in(16..end);
            found.attrs = found
                .records
                .iter()
                .filter(|at| found.half(at.start) == Some(ATTR))
                .cloned()
                .collect();
            found.tail = found.records.last().map_or(0, |last| last.start)..end;
            return found;
        }
        let (attrs, data) = (section(&found, 24), section(&found, 40));
        let entry = word(&found, 16);
        if (80..=4096).contains(&entry) {
            let entries =
                (attrs.start..attrs.end).step_by(entry).map(|at| at..(at + entry).min(end));
            found.attrs = entries.collect();
            let ids = found.attrs.iter().map(|at| section(&found, at.end.saturating_sub(16)));
            found.attrs = ids.filter(|ids| !ids.is_empty()).chain(found.attrs.clone()).collect();
        }
        found.records = found.records_in(data.clone());
        found.tail = data.end..end;
        found
    }

    /// The variant of this number, and in a word what was done.
    pub fn variant(&self, number: u64) -> (Kind, Vec<u8>) {
        let mut numbers = Numbers(number.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ 42);
        let kind = Kind::ALL[usize::try_from(number % 7).expect("less than seven")];
        let mut bytes = self.bytes.clone();
        let times = if kind == Kind::Many { 2 + numbers.below(4) } else { 1 };
        for _ in 0..times {
            let kind = if kind == Kind::Many { numbers.one_of(&Kind::ALL[1..6]) } else { kind };
            self.damage(&mut bytes, kind, &mut numbers);
        }
        (kind, bytes)
    }

    fn damage(&self, bytes: &mut Vec<u8>, kind: Kind, numbers: &mut Numbers) {
        let any = 0..self.bytes.len();
        let record = |numbers: &mut Numbers| match &self.records[..] {
            [] => any.clone(),
            records => records[numbers.below(records.len())].clone(),
        };
        match kind {
            Kind::Cut => {
                let beside = numbers.below(3);
                let at = if beside > 0 {
                    (record(numbers).end + beside).saturating_sub(2)
                } else {
                    numbers.within(&any)
                };
                bytes.truncate(at);
            }
            Kind::Header => self.word_within(bytes, &self.header, 8, numbers),
            Kind::Attrs => {
                let of = if self.attrs.is_empty() {
                    &self.header
                } else {
                    &self.attrs[numbers.below(self.attrs.len())]
                };
                let size = numbers.one_of(&[1, 4, 4, 8, 8]);
                self.word_within(bytes, of, size, numbers);
            }
            Kind::Size => {
                let at = record(numbers).start;
                let size = u64::from(bytes.get(at + 6).copied().unwrap_or(0));
                match numbers.below(4) {
                    0 => self.put(
                        bytes,
                        at,
                        4,
                        numbers.one_of(&[0, 1, 2, 9, 10, 64, 66, 71, 80, 81, 83, 4242]),
                    ),
                    1 => self.put(
                        bytes,
                        at + 6,
                        2,
                        numbers.one_of(&[0, 1, 7, 8, 9, 16, 0x8000, 0xffff]),
                    ),
                    2 => self.put(bytes, at + 6, 2, size ^ (8 << numbers.below(5))),
                    _ => self.put(bytes, at + 6, 2, numbers.next()),
                }
            }
            Kind::Payload => {
                let of = record(numbers);
                match numbers.below(4) {
                    0 => (0..=numbers.below(4))
                        .for_each(|_| flip(bytes, numbers.within(&of), numbers.below(8))),
                    1 => {
                        let other = record(numbers);
                        let body = self.bytes[other].iter().skip(8).copied();
                        bytes
                            .iter_mut()
                            .take(of.end)
                            .skip(of.start + 8)
                            .zip(body)
                            .for_each(|(to, from)| *to = from);
                    }
                    _ => {
                        let size = numbers.one_of(&[1, 2, 4, 8, 8, 8]);
                        self.word_within(bytes, &(of.start + 8..of.end), size, numbers);
                    }
                }
            }
            Kind::Tail => match numbers.below(6) {
                0 => (0..=numbers.below(200))
                    .for_each(|_| bytes.push(numbers.next().to_le_bytes()[0])),
                1 => bytes.truncate(
                    numbers.within(&(self.tail.start..self.bytes.len().max(self.tail.start + 1))),
                ),
                // The table of the features is the first part of it.
                2 | 3 => {
                    let table = self.tail.start..self.tail.end.min(self.tail.start + 400);
                    self.word_within(bytes, &table, 8, numbers);
                }
                _ => self.word_within(bytes, &self.tail, numbers.one_of(&[1, 4, 8]), numbers),
            },
            Kind::Many => {}
        }
    }

    /// Another value for a word of `size` bytes that is somewhere in `range`.
    fn word_within(
        &self,
        bytes: &mut [u8],
        range: &Range<usize>,
        size: usize,
        numbers: &mut Numbers,
    ) {
        const EXTREMES: [u64; 14] = [
            0,
            1,
            7,
            8,
            0x7f,
            0xff,
            0xffff,
            0x7fff_ffff,
            0xffff_ffff,
            1 << 32,
            1 << 40,
            1 << 63,
            !7,
            !0,
        ];
        // Words lie at multiples of their size from the beginning of a part.
        let at = range.start + numbers.below(range.len()) / size * size;
        let old = self.word(at & !7).unwrap_or(0);
        let value = match numbers.below(4) {
            0 | 1 => numbers.one_of(&EXTREMES),
            2 => old.wrapping_add(numbers.one_of(&[1, 8, 64, 4096, !0, !7, !63])),
            _ => numbers.next() >> numbers.below(64),
        };
        self.put(bytes, at, size, value);
    }

    fn put(&self, bytes: &mut [u8], at: usize, size: usize, value: u64) {
        let words = if self.big_endian { value.to_be_bytes() } else { value.to_le_bytes() };
        let words = if self.big_endian { &words[8 - size..] } else { &words[..size] };
        bytes.iter_mut().skip(at).zip(words).for_each(|(to, from)| *to = *from);
    }

    fn word(&self, at: usize) -> Option<u64> {
        let bytes = self.bytes.get(at..at.checked_add(8)?)?.try_into().ok()?;
        Some(if self.big_endian { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) })
    }

    fn half(&self, at: usize) -> Option<u32> {
        let bytes = self.bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
        Some(if self.big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }

    /// The records, by the size in each one's header.
    fn records_in(&self, data: Range<usize>) -> Vec<Range<usize>> {
        let (mut at, mut records) = (data.start, Vec::new());
        while let Some(bytes) = self.bytes.get(at + 6..at + 8) {
            let size = [bytes[0], bytes[1]];
            let size = usize::from(if self.big_endian {
                u16::from_be_bytes(size)
            } else {
                u16::from_le_bytes(size)
            });
            if size < 8 || at + size > data.end {
                break;
            }
            records.push(at..at + size);
            at += size;
        }
        records
    }
}

fn flip(bytes: &mut [u8], at: usize, bit: usize) {
    if let Some(byte) = bytes.get_mut(at) {
        *byte ^= 1 << bit;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use recrep_fixtures::manifest::cases;

    use super::*;

    #[test]
    fn parts_are_found_in_every_form() {
        for form in cases()[0].forms() {
            let original = Original::new(cases()[0].bytes(form));
            assert!(!original.attrs.is_empty() && !original.records.is_empty(), "{form}");
            assert!(original.tail.len() > 8, "{form}");
            assert_eq!(
                original.header.len(),
                if form.container.is_pipe() { 16 } else { 104 },
                "{form}"
            );
        }
    }

    #[test]
    fn variants_are_the_same_each_time_and_differ_from_one_another() {
        let original = Original::new(recrep_fixtures::recorded::ALL[0].bytes.to_vec());
        let make = || (0..700).map(|number| original.variant(number).1).collect::<Vec<_>>();
        let all = make();
        assert!(all == make());
        let different: BTreeSet<_> = all.iter().collect();
        assert!(different.len() > 600, "{}", different.len());
        let kinds: BTreeSet<_> = (0..7).map(|number| original.variant(number).0).collect();
        assert_eq!(kinds.len(), 7);
    }

    #[test]
    fn anything_can_be_damaged() {
        for bytes in [&b""[..], b"PERF", b"PERFILE2", &[0xff; 300]] {
            let original = Original::new(bytes.to_vec());
            (0..70).for_each(|number| drop(original.variant(number)));
        }
    }
}

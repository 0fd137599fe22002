//! Formats of terms: the files in a PMU's `format` directory
//! (`sysfs-bus-event_source-devices-format`).
//!
//! ```text
//!  config:0-7,32-35    the value's low 8 bits are bits 0 to 7 of config, its next 4 are bits 32 to 35
//!  config2:21          a flag: one bit of config2
//! ```

use recrep_format::attr::Attr;

/// Bits of the attr that a term sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Format {
    /// Word of the attr: 0 is `config`, 1 is `config1`, …
    pub word: u8,
    /// Mask of the bits in that word.
    pub bits: u64,
}

impl Format {
    /// Parses the contents of a file.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (word, ranges) = text.trim().split_once(':')?;
        let word = match word {
            "config" => 0,
            "config1" => 1,
            "config2" => 2,
            "config3" => 3,
            "config4" => 4,
            _ => return None,
        };
        let mut bits = 0;
        for range in ranges.split(',') {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
            if first > last || last > 63 {
                return None;
            }
            bits |= u64::MAX >> (63 - (last - first)) << first;
        }
        Some(Self { word, bits })
    }

    /// Returns the largest value that fits.
    pub(crate) fn most(self) -> u64 {
        match self.bits.count_ones() {
            0 => 0,
            width => u64::MAX >> (64 - width),
        }
    }

    /// Returns whether the term is a single bit, which its name sets without a value.
    pub(crate) fn is_flag(self) -> bool {
        self.bits.is_power_of_two()
    }

    /// Distributes a value's bits to their positions.
    pub(crate) fn spread(self, value: u64) -> u64 {
        let (mut left, mut at, mut spread) = (self.bits, 0, 0);
        while left != 0 {
            let bit = left & left.wrapping_neg();
            if value >> at & 1 == 1 {
                spread |= bit;
            }
            left &= left - 1;
            at += 1;
        }
        spread
    }

    /// Sets the term's bits in the attr's word to a value.
    pub(crate) fn put(self, value: u64, attr: &mut Attr) {
        let word = match self.word {
            0 => &mut attr.config,
            1 => &mut attr.config1,
            2 => &mut attr.config2,
            3 => &mut attr.config3,
            _ => &mut attr.config4,
        };
        *word = *word & !self.bits | self.spread(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_range_several_and_a_bit() {
        assert_eq!(Format::parse("config:0-7\n"), Some(Format { word: 0, bits: 0xff }));
        assert_eq!(
            Format::parse("config:0-7,32-35"),
            Some(Format { word: 0, bits: 0xf_0000_00ff })
        );
        assert_eq!(Format::parse("config2:21"), Some(Format { word: 2, bits: 1 << 21 }));
        assert_eq!(Format::parse("config3:0-63"), Some(Format { word: 3, bits: u64::MAX }));
        assert_eq!(Format::parse("config4:1"), Some(Format { word: 4, bits: 2 }));
        for wrong in ["", "config", "config9:0", "config:64", "config:7-0", "config:x"] {
            assert_eq!(Format::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn values_are_spread_over_their_bits() {
        let split = Format::parse("config:0-7,32-35").unwrap();
        assert_eq!(split.most(), 0xfff);
        assert_eq!(split.spread(0xabc), 0xa_0000_00bc);
        assert_eq!(Format::parse("config:0-63").unwrap().spread(u64::MAX), u64::MAX);
        let mut attr = Attr { config1: 0xff, ..Attr::default() };
        Format::parse("config1:4-7").unwrap().put(0x3, &mut attr);
        assert_eq!(attr.config1, 0x3f);
    }
}

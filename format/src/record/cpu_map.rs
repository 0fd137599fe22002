//! The CPUs that were recorded: CPU_MAP, also inside EVENT_UPDATE.

use crate::abi::{Cpu, CpuMapKind};
use crate::bytes::{Cursor, Encoder};
use crate::error::{Error, Result};
use crate::fields::{Fields, Value};
use crate::wire::{Wire, items, wire};

const WHAT: &str = "CPU_MAP";

/// A set of CPUs (`PERF_RECORD_CPU_MAP`, `struct perf_record_cpu_map_data`).
///
/// ```text
///   CPUS        kind  nr        cpu × nr, 2 bytes each
///   MASK        kind  nr  size  mask × nr, `size` bytes each (4, or after 4 bytes of padding 8)
///   RANGE_CPUS  kind  any_cpu  padding  start  end
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuMap<'a> {
    /// The CPUs.
    pub set: CpuSet<'a>,
    /// The padding up to a multiple of 8 bytes, kept as found.
    pub padding: &'a [u8],
}

/// The CPUs of a [`CpuMap`], as they are encoded.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CpuSet<'a> {
    /// A list; all ones for any CPU.
    Cpus(Vec<u16>),
    /// A mask.
    Mask(CpuMask),
    /// The first and the last CPU.
    Range(CpuRange),
    /// An encoding that is not known here, and its bytes as found.
    Other(CpuMapKind, &'a [u8]),
}

/// The words of a mask of CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CpuMask {
    /// 32 bits each.
    Words32(Vec<u32>),
    /// 64 bits each; before them 4 bytes of padding, kept as found.
    Words64([u8; 4], Vec<u64>),
}

wire! {
    /// A range of CPUs.
    pub struct CpuRange {
        /// 1 if the set contains any CPU (-1) too.
        pub any_cpu: u8,
        /// Kept as found.
        pub padding: u8,
        /// The first CPU.
        pub start: u16,
        /// The last CPU.
        pub end: u16,
    }
}

impl Fields for CpuMap<'_> {
    fn each<'v>(&'v self, visit: &mut dyn FnMut(&'static str, Value<'v>)) {
        let kind = self.kind();
        visit("type", Value::Named(kind.0.into(), kind.name()));
        // A few bytes can stand for very many: see `cpus`.
        visit("cpus", Value::Absent);
    }
}

impl<'a> CpuMap<'a> {
    /// Returns a map to write, padded as perf does.
    pub fn new(set: CpuSet<'a>) -> Self {
        const ZEROES: &[u8] = &[0; 8];
        // With the kind and the lengths before them.
        let len = match &set {
            CpuSet::Cpus(cpus) => 4 + 2 * cpus.len(),
            CpuSet::Mask(CpuMask::Words32(words)) => 6 + 4 * words.len(),
            CpuSet::Mask(CpuMask::Words64(_, words)) => 10 + 8 * words.len(),
            CpuSet::Range(_) => 8,
            CpuSet::Other(_, bytes) => 2 + bytes.len(),
        };
        Self { set, padding: ZEROES.get(..len.next_multiple_of(8) - len).unwrap_or_default() }
    }

    /// Returns how the set is encoded.
    pub fn kind(&self) -> CpuMapKind {
        match &self.set {
            CpuSet::Cpus(_) => CpuMapKind::CPUS,
            CpuSet::Mask(_) => CpuMapKind::MASK,
            CpuSet::Range(_) => CpuMapKind::RANGE_CPUS,
            CpuSet::Other(kind, _) => *kind,
        }
    }

    /// Returns the CPUs in the order of the record, [`Cpu::ANY`] among them; `None` for an encoding
    /// that is not known here.
    pub fn cpus(&self) -> Option<Box<dyn Iterator<Item = Cpu> + '_>> {
        Some(match &self.set {
            CpuSet::Cpus(cpus) => Box::new(
                cpus.iter()
                    .map(|cpu| if *cpu == u16::MAX { Cpu::ANY } else { Cpu(u32::from(*cpu)) }),
            ),
            CpuSet::Mask(CpuMask::Words32(words)) => Box::new(
                (0..).zip(words).flat_map(|(place, word)| set_bits(place * 32, u64::from(*word))),
            ),
            CpuSet::Mask(CpuMask::Words64(_, words)) => {
                Box::new((0..).zip(words).flat_map(|(place, word)| set_bits(place * 64, *word)))
            }
            CpuSet::Range(range) => {
                let any = (range.any_cpu != 0).then_some(Cpu::ANY);
                Box::new(
                    any.into_iter().chain((range.start..=range.end).map(|cpu| Cpu(u32::from(cpu)))),
                )
            }
            CpuSet::Other(..) => return None,
        })
    }
}

/// Returns the CPUs of a word whose first bit stands for `first`.
fn set_bits(first: u32, word: u64) -> impl Iterator<Item = Cpu> {
    (0..u64::BITS).filter(move |bit| word >> bit & 1 == 1).map(move |bit| Cpu(first + bit))
}

/// Writes the length of a list of CPUs or words.
fn put_count(count: usize, e: &mut Encoder) -> Result<()> {
    let short = u16::try_from(count);
    e.u16(short.map_err(|_| {
        Error::invalid(e.len() as u64, WHAT, format!("{count} items are more than 65535"))
    })?);
    Ok(())
}

impl<'a> Wire<'a> for CpuMap<'a> {
    fn decode(c: &mut Cursor<'a>, what: &'static str) -> Result<Self> {
        let kind = CpuMapKind::decode(c, what)?;
        let set = match kind {
            CpuMapKind::CPUS => {
                let nr = c.u16(what)?;
                CpuSet::Cpus(items(c, nr.into(), what)?)
            }
            CpuMapKind::MASK => {
                let (nr, size) = (c.u16(what)?, c.u16(what)?);
                CpuSet::Mask(match size {
                    4 => CpuMask::Words32(items(c, nr.into(), what)?),
                    8 => CpuMask::Words64(c.array(what)?, items(c, nr.into(), what)?),
                    size => {
                        let detail = format!("words of {size} bytes");
                        return Err(Error::invalid(c.offset(), WHAT, detail));
                    }
                })
            }
            CpuMapKind::RANGE_CPUS => CpuSet::Range(Wire::decode(c, what)?),
            kind => CpuSet::Other(kind, c.rest()),
        };
        Ok(Self { set, padding: c.rest() })
    }

    fn encode(&self, e: &mut Encoder) -> Result<()> {
        self.kind().encode(e)?;
        match &self.set {
            CpuSet::Cpus(cpus) => {
                put_count(cpus.len(), e)?;
                cpus.iter().for_each(|cpu| e.u16(*cpu));
            }
            CpuSet::Mask(CpuMask::Words32(words)) => {
                put_count(words.len(), e)?;
                e.u16(4);
                words.iter().for_each(|word| e.u32(*word));
            }
            CpuSet::Mask(CpuMask::Words64(padding, words)) => {
                put_count(words.len(), e)?;
                e.u16(8);
                e.bytes(padding);
                words.iter().for_each(|word| e.u64(*word));
            }
            CpuSet::Range(range) => range.encode(e)?,
            CpuSet::Other(_, bytes) => e.bytes(bytes),
        }
        e.bytes(self.padding);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endian::Endian;

    #[track_caller]
    fn check(endian: Endian, bytes: &[u8], set: &CpuSet<'_>, cpus: &[Cpu]) {
        let mut c = Cursor::new(bytes, 0, endian);
        let found = CpuMap::decode(&mut c, WHAT).unwrap();
        assert_eq!((&found.set, found.padding, c.left()), (set, &[][..], 0));
        assert_eq!(found.cpus().unwrap().collect::<Vec<_>>(), cpus);
        assert_eq!(found.to_bytes(endian).unwrap(), bytes);
        let padded = [bytes, &[0; 8][..bytes.len().next_multiple_of(8) - bytes.len()]].concat();
        assert_eq!(CpuMap::new(set.clone()).to_bytes(endian).unwrap(), padded);
        for cut in 0..bytes.len() {
            assert!(CpuMap::from_bytes(&bytes[..cut], endian).is_err());
        }
    }

    #[test]
    fn every_encoding_in_both_byte_orders() {
        let (little, big) = (Endian::Little, Endian::Big);
        let list = CpuSet::Cpus(vec![1, 0x105, u16::MAX]);
        let cpus = [Cpu(1), Cpu(0x105), Cpu::ANY];
        check(little, &[0, 0, 3, 0, 1, 0, 5, 1, 255, 255], &list, &cpus);
        check(big, &[0, 0, 0, 3, 0, 1, 1, 5, 255, 255], &list, &cpus);
        let mask = CpuSet::Mask(CpuMask::Words32(vec![0b1010, 1]));
        check(
            little,
            &[1, 0, 2, 0, 4, 0, 10, 0, 0, 0, 1, 0, 0, 0],
            &mask,
            &[Cpu(1), Cpu(3), Cpu(32)],
        );
        check(big, &[0, 1, 0, 2, 0, 4, 0, 0, 0, 10, 0, 0, 0, 1], &mask, &[Cpu(1), Cpu(3), Cpu(32)]);
        let wide = CpuSet::Mask(CpuMask::Words64([7; 4], vec![1 << 63 | 1]));
        check(
            little,
            &[1, 0, 1, 0, 8, 0, 7, 7, 7, 7, 1, 0, 0, 0, 0, 0, 0, 128],
            &wide,
            &[Cpu(0), Cpu(63)],
        );
        check(
            big,
            &[0, 1, 0, 1, 0, 8, 7, 7, 7, 7, 128, 0, 0, 0, 0, 0, 0, 1],
            &wide,
            &[Cpu(0), Cpu(63)],
        );
        let range = CpuSet::Range(CpuRange { any_cpu: 1, padding: 9, start: 2, end: 0x104 });
        let cpus: Vec<_> = [Cpu::ANY].into_iter().chain((2..=0x104).map(Cpu)).collect();
        check(little, &[2, 0, 1, 9, 2, 0, 4, 1], &range, &cpus);
        check(big, &[0, 2, 1, 9, 0, 2, 1, 4], &range, &cpus);
    }

    #[test]
    fn what_is_not_known_is_kept_or_refused() {
        let decode = |bytes: &'static [u8]| CpuMap::from_bytes(bytes, Endian::Little);
        let other = decode(&[7, 0, 1, 2, 3]).unwrap();
        assert_eq!(&other.set, &CpuSet::Other(CpuMapKind(7), &[1, 2, 3]));
        assert!(other.padding.is_empty());
        assert!(other.cpus().is_none());
        assert!(decode(&[1, 0, 1, 0, 2, 0, 1, 0]).is_err(), "words of 2 bytes");
        assert!(
            CpuMap::new(CpuSet::Cpus(vec![0; 70_000]))
                .encode(&mut Encoder::new(Endian::Little))
                .is_err()
        );
    }
}

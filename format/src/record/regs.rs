//! The registers of a sample: the fields REGS_USER and REGS_INTR.

use crate::abi::RegsAbi;
use crate::bytes::{Cursor, Encoder, U64s};
use crate::error::{Error, Result};
use crate::fields::named;
use crate::wire::Wire;

named! {
    /// Registers of a sample. [`crate::abi::RegsArch`] has their names.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Regs<'a> {
        /// The width of the task's registers; [`RegsAbi::NONE`] if there are none, as for a kernel
        /// thread.
        pub abi: RegsAbi,
        /// The registers that the event samples: its `sample_regs_user` or `sample_regs_intr`.
        pub mask: u64 => hex,
        /// Their values, in the order of the bits of `mask`; empty if `abi` is [`RegsAbi::NONE`].
        pub values: U64s<'a>,
    }
}

impl<'a> Regs<'a> {
    /// Returns the number of values with this ABI and mask.
    fn len(abi: RegsAbi, mask: u64) -> u32 {
        if abi == RegsAbi::NONE { 0 } else { mask.count_ones() }
    }

    pub(super) fn decode(c: &mut Cursor<'a>, mask: u64) -> Result<Self> {
        let abi = RegsAbi(c.u64("sample.regs.abi")?);
        Ok(Self { abi, mask, values: c.take_u64s(Self::len(abi, mask).into(), "sample.regs")? })
    }

    pub(super) fn encode(&self, e: &mut Encoder) -> Result<()> {
        if self.values.len() != Self::len(self.abi, self.mask) as usize {
            let detail = format!(
                "{} values with the ABI {} and the mask {:#x}",
                self.values.len(),
                self.abi,
                self.mask
            );
            return Err(Error::invalid(e.len() as u64, "sample.regs", detail));
        }
        self.abi.encode(e)?;
        self.values.encode(e)
    }

    /// Returns the value of the register with this number; `None` if it was not sampled.
    #[inline]
    pub fn get(&self, number: u32) -> Option<u64> {
        let bit = 1u64.checked_shl(number).filter(|bit| self.mask & bit != 0)?;
        self.values.get((self.mask & (bit - 1)).count_ones() as usize)
    }

    /// Returns number and value of each register.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u64)> + use<'a> {
        let mask = self.mask;
        (0..u64::BITS).filter(move |number| mask >> number & 1 == 1).zip(self.values.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endian::Endian;

    #[test]
    fn values_belong_to_the_bits_of_the_mask() {
        // ABI_64, then BX and SP, in both byte orders.
        let little = [2, 0, 0, 0, 0, 0, 0, 0, 11, 0, 0, 0, 0, 0, 0, 0, 0, 0x70, 0, 0, 0, 0, 0, 0];
        let big = [0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 11, 0, 0, 0, 0, 0, 0, 0x70, 0];
        for (bytes, endian) in [(little, Endian::Little), (big, Endian::Big)] {
            let regs = Regs::decode(&mut Cursor::new(&bytes, 0, endian), 1 << 1 | 1 << 7).unwrap();
            assert_eq!(regs.abi, RegsAbi::ABI_64);
            assert_eq!(regs.get(1), Some(11));
            assert_eq!(regs.get(7), Some(0x7000));
            assert_eq!([0, 2, 8, 63, 64, u32::MAX].map(|number| regs.get(number)), [None; 6]);
            assert_eq!(regs.iter().collect::<Vec<_>>(), [(1, 11), (7, 0x7000)]);
            let mut e = Encoder::new(endian);
            regs.encode(&mut e).unwrap();
            assert_eq!(e.as_bytes(), bytes);
            assert!(Regs { mask: 1, ..regs }.encode(&mut Encoder::new(endian)).is_err());
        }
        let none = Regs::decode(&mut Cursor::new(&[0; 8], 0, Endian::Little), u64::MAX).unwrap();
        assert_eq!((none.get(0), none.iter().count()), (None, 0));
    }
}

//! Attrs: `struct perf_event_attr`, without loss, at every size it has had; the attrs of a
//! recording, and their names.
//!
//! The struct has grown from 64 bytes ([`Attr::SIZES`]); its own `size` field says how long the
//! writer's was. [`Attr::decode`] takes whatever length there is: fields that are not there are
//! zero, and bytes beyond the fields known here are kept in [`Attr::extra`]. [`Attr::encode`]
//! writes any length back. ([`Wire`] has the struct at the length known here, and what follows.)

mod name;
mod table;

use smallvec::SmallVec;

use crate::abi::{AttrFlags, BranchSampleType, EventType, ReadFormat, SampleType};
use crate::bytes::{Cursor, Encoder};
use crate::endian::Endian;
use crate::error::{Error, Result};
use crate::fields::{bits, shown};
use crate::wire::{Wire, wire};

pub use table::{AttrEntry, AttrIndex, AttrTable};

wire! {
    /// An event to count and the fields of its samples (`struct perf_event_attr`,
    /// perf_event_open(2)).
    ///
    /// ```
    /// use recrep_format::abi::{AttrFlags, SampleType};
    /// use recrep_format::attr::Attr;
    /// use recrep_format::bytes::{Cursor, Encoder};
    /// use recrep_format::endian::Endian;
    ///
    /// # fn main() -> recrep_format::error::Result<()> {
    /// let attr = Attr {
    ///     size: 128,
    ///     sample_period: 4000,
    ///     sample_type: SampleType::IP | SampleType::TID,
    ///     flags: AttrFlags::FREQ,
    ///     ..Attr::default()
    /// };
    /// assert_eq!(attr.frequency(), Some(4000));
    ///
    /// // At whatever length a file has it, in either byte order.
    /// let mut e = Encoder::new(Endian::Big);
    /// attr.encode(&mut e, 128)?;
    /// assert_eq!(Attr::decode(&mut Cursor::new(e.as_bytes(), 0, Endian::Big), 128)?, attr);
    /// # Ok(())
    /// # }
    /// ```
    #[derive(Default, Hash)]
    pub owned struct Attr {
        /// `type`: the PMU.
        pub kind: EventType => "type",
        /// `size`: how long the writer's struct was, in bytes (0: 64).
        pub size: u32,
        /// `config`: the event, in the encoding of its PMU.
        pub config: u64 => hex,
        /// `sample_period`, or `sample_freq` in Hz where [`AttrFlags::FREQ`] is set.
        pub sample_period: u64,
        /// The fields of each sample.
        pub sample_type: SampleType,
        /// `read_format`: the values that reading the counter returns.
        pub read_format: ReadFormat,
        /// The bit-fields: one bit each, but for `precise_ip`.
        pub flags: AttrFlags,
        /// `wakeup_events`, or `wakeup_watermark` in bytes where [`AttrFlags::WATERMARK`] is set.
        pub wakeup: u32,
        /// The kind of breakpoint.
        pub bp_type: u32,
        /// `config1`, `bp_addr`, `kprobe_func`, `uprobe_path`.
        pub config1: u64 => hex,
        /// `config2`, `bp_len`, `kprobe_addr`, `probe_offset`.
        pub config2: u64 => hex,
        /// `branch_sample_type`: the branches of a branch stack.
        pub branch_sample_type: BranchSampleType,
        /// `sample_regs_user`: user registers to sample, a bit each (the architecture's numbers).
        pub sample_regs_user: u64 => hex,
        /// `sample_stack_user`: number of bytes of the user stack to copy.
        pub sample_stack_user: u32,
        /// The clock, where [`AttrFlags::USE_CLOCKID`] is set.
        pub clockid: i32,
        /// `sample_regs_intr`: registers at the interrupt to sample, a bit each.
        pub sample_regs_intr: u64 => hex,
        /// Wake up after so many bytes of AUX data.
        pub aux_watermark: u32,
        /// `sample_max_stack`: maximum number of frames of a callchain.
        pub sample_max_stack: u16,
        /// `__reserved_2`, kept as found.
        pub reserved_2: u16 => "__reserved_2",
        /// `aux_sample_size`: number of bytes of the AUX area in a sample.
        pub aux_sample_size: u32,
        /// `aux_action`: bit 0 start paused, bit 1 pause, bit 2 resume (`__reserved_3` before Linux
        /// 6.13), in either byte order.
        pub aux_action: u32 => hex,
        /// `sig_data`: the value that a SIGTRAP carries.
        pub sig_data: u64,
        /// `config3`.
        pub config3: u64 => hex,
        /// `config4` (144-byte attrs).
        pub config4: u64 => hex,
        /// Bytes after the fields known here, as found.
        pub extra: SmallVec<[u8; 0]> => "unknown_bytes",
    }
}

impl Attr {
    /// The sizes that the kernel has published (`PERF_ATTR_SIZE_VER0` … `VER9`).
    pub const SIZES: &[u32] = &[64, 72, 80, 96, 104, 112, 120, 128, 136, 144];
    /// The smallest size there is.
    pub const MIN_SIZE: usize = 64;
    /// Size of the fields that are known here, in bytes.
    pub const KNOWN_SIZE: usize = 144;

    /// Reads an attr that takes the next `len` bytes of `c`, whatever its own `size` says.
    ///
    /// # Errors
    /// Returns an error if `len` is less than 64, or more than `c` has left.
    pub fn decode(c: &mut Cursor<'_>, len: usize) -> Result<Self> {
        let (start, endian) = (c.offset(), c.endian());
        let bytes = c.take(len, "perf_event_attr")?;
        if len < Self::MIN_SIZE {
            return Err(Error::truncated(
                start,
                "perf_event_attr",
                Self::MIN_SIZE as u64,
                len as u64,
            ));
        }
        // Fields that this writer did not know are 0.
        let mut whole = Encoder::new(endian);
        whole.padded(bytes, Self::KNOWN_SIZE);
        let attr: Self = Wire::decode(&mut Cursor::new(whole.as_bytes(), start, endian), "")?;
        Ok(Self { aux_action: action_word(attr.aux_action, endian), ..attr })
    }

    /// Writes the attr in `len` bytes, zeroes behind what it has.
    ///
    /// # Errors
    /// Returns an error if a field beyond `len` bytes is set; nothing is written then.
    pub fn encode(&self, e: &mut Encoder, len: usize) -> Result<()> {
        let whole = self.to_bytes(e.endian());
        let (stored, beyond) = whole.split_at_checked(len).unwrap_or((&whole, &[]));
        if beyond.iter().any(|byte| *byte != 0) {
            let detail = format!("{len} bytes are too few for what is set in it");
            return Err(Error::invalid(e.len() as u64, "perf_event_attr", detail));
        }
        e.padded(stored, len);
        Ok(())
    }

    /// Returns all known fields, and what follows them.
    fn to_bytes(&self, endian: Endian) -> Vec<u8> {
        let mut e = Encoder::new(endian);
        let copy = Self { aux_action: action_word(self.aux_action, endian), ..self.clone() };
        // Numbers and bytes always have a place.
        let _ = Wire::encode(&copy, &mut e);
        e.into_bytes()
    }

    /// Returns the size of the attr in bytes as the attr says it: `size`, or 64 where that is 0.
    pub fn own_size(&self) -> usize {
        if self.size == 0 { Self::MIN_SIZE } else { self.size as usize }
    }

    /// Returns how many bytes a file of this byte order must give the attr so that nothing is lost:
    /// its own size, as far as that can be believed and all that is set fits in it. A size that
    /// ends inside a field fits in one order only.
    #[must_use]
    pub fn stored_size(&self, endian: Endian) -> usize {
        let whole = self.to_bytes(endian);
        let own = self.own_size().clamp(Self::MIN_SIZE, whole.len());
        let set = whole.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        if set <= own {
            return own;
        }
        let published = Self::SIZES.iter().map(|size| *size as usize).find(|size| *size >= set);
        published.unwrap_or(whole.len())
    }

    /// Returns the same attr with the `size` that it is stored with.
    ///
    /// # Errors
    /// Returns an error if the size takes more than 32 bits.
    pub fn stored(&self, endian: Endian) -> Result<Self> {
        let len = self.stored_size(endian);
        let size = u32::try_from(len).map_err(|_| {
            Error::invalid(0, "perf_event_attr", format!("{len} bytes, more than its size can say"))
        })?;
        Ok(Self { size, ..self.clone() })
    }

    /// Returns the sampling frequency in Hz, where the kernel adapts the period.
    pub fn frequency(&self) -> Option<u64> {
        self.flags.contains(AttrFlags::FREQ).then_some(self.sample_period)
    }

    /// Returns whether records that are not samples end in a trailer.
    pub fn sample_id_all(&self) -> bool {
        self.flags.contains(AttrFlags::SAMPLE_ID_ALL)
    }
}

/// Reverses `aux_action` on big-endian machines, which lay out its one-bit fields from the other
/// end.
fn action_word(word: u32, endian: Endian) -> u32 {
    if endian == Endian::Big { word.reverse_bits() } else { word }
}

shown! {
    AttrFlags: |flags| bits(flags);
}

impl Wire<'_> for AttrFlags {
    fn decode(c: &mut Cursor<'_>, what: &'static str) -> Result<Self> {
        let endian = c.endian();
        c.u64(what).map(|word| Self::from_word(word, endian))
    }

    fn encode(&self, e: &mut Encoder) -> Result<()> {
        e.u64(self.to_word(e.endian()));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn every_byte_differs(len: usize) -> Vec<u8> {
        (0..=u8::MAX).cycle().step_by(7).take(len).collect()
    }

    #[test]
    fn every_size_in_both_orders_survives() {
        for endian in [Endian::Little, Endian::Big] {
            for len in [64, 72, 80, 96, 104, 112, 120, 128, 136, 144, 152, 67, 200] {
                let bytes = every_byte_differs(len);
                let attr = Attr::decode(&mut Cursor::new(&bytes, 0, endian), len).unwrap();
                let mut e = Encoder::new(endian);
                attr.encode(&mut e, len).unwrap();
                assert_eq!(e.as_bytes(), bytes, "{endian:?} {len}");
            }
        }
    }

    #[test]
    fn the_known_fields_take_what_the_newest_size_says() {
        assert_eq!(Attr::default().to_bytes(Endian::Little).len(), Attr::KNOWN_SIZE);
        assert_eq!(Attr::SIZES.last().copied(), u32::try_from(Attr::KNOWN_SIZE).ok());
    }

    #[test]
    fn bit_fields_mean_the_same_in_both_orders() {
        for level in 0..=3 {
            let flags = (AttrFlags::DISABLED | AttrFlags::SAMPLE_ID_ALL).with_precise_ip(level);
            let attr = Attr { flags, aux_action: 0b101, ..Attr::default() };
            // `disabled` is the first of 64 bits, `precise_ip` the 16th and 17th, `sample_id_all`
            // the 19th.
            let big = 1 << 63 | u64::from(level) << 47 | 1 << 45;
            for (endian, flags, action) in
                [(Endian::Little, flags.bits(), 5), (Endian::Big, big, 0b101 << 29)]
            {
                let mut e = Encoder::new(endian);
                attr.encode(&mut e, 144).unwrap();
                assert_eq!(endian.u64_at(e.as_bytes(), 40), Some(flags), "{endian:?} {level}");
                assert_eq!(endian.u32_at(e.as_bytes(), 116), Some(action));
                assert_eq!(
                    Attr::decode(&mut Cursor::new(e.as_bytes(), 0, endian), 144).unwrap(),
                    attr
                );
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let attr = Attr { sample_regs_user: 1, ..Attr::default() };
        let mut e = Encoder::new(Endian::Little);
        assert!(attr.encode(&mut e, 80).is_err());
        assert!(e.is_empty());
        attr.encode(&mut e, 88).unwrap();
        assert_eq!(e.len(), 88);
    }

    #[test]
    fn what_is_stored_is_all_that_is_set_and_no_more_than_there_is() {
        let stored = |attr: Attr| attr.stored_size(Endian::Little);
        assert_eq!(stored(Attr { size: 128, ..Attr::default() }), 128);
        assert_eq!(stored(Attr { size: 0, sample_regs_user: 1, ..Attr::default() }), 96);
        assert_eq!(stored(Attr { size: u32::MAX, ..Attr::default() }), Attr::KNOWN_SIZE);
        assert_eq!(stored(Attr { size: 3, ..Attr::default() }), 64);
        assert_eq!(stored(Attr { size: 90, sample_regs_user: 1, ..Attr::default() }), 90);
        assert_eq!(
            stored(Attr { size: 64, extra: SmallVec::from_slice(&[0, 1, 2]), ..Attr::default() }),
            147
        );
    }

    /// Found by the fuzz target `file`: two bytes of a 32-bit field are its low half in one order,
    /// its high half in the other.
    #[test]
    fn a_size_that_ends_inside_a_field_is_kept_in_either_order() {
        for endian in [Endian::Little, Endian::Big] {
            let mut bytes = [0; 114];
            bytes[112..].copy_from_slice(&[1, 2]);
            let mut attr = Attr::decode(&mut Cursor::new(&bytes, 0, endian), bytes.len()).unwrap();
            attr.size = 114;
            assert_eq!(attr.stored_size(endian), 114, "{endian:?}");
        }
    }

    #[test]
    fn too_short_is_an_error_with_its_place() {
        let e = Attr::decode(&mut Cursor::new(&[0; 60], 104, Endian::Little), 60).unwrap_err();
        assert_eq!(e.offset, 104);
    }
}

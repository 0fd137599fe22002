//! All fields of a sample, in the kernel's order, for reading and for writing.
//!
//! The order is declared once, in [`ORDER`](crate::layout::ORDER), for decoding and encoding. A bit
//! of `sample_type` that is not in it fails a test (`every_named_bit_has_its_place`), so no field
//! can be forgotten.

use super::{BranchStack, ReadValues, Regs, SampleId};
use crate::abi::{SampleType, Weight, WeightParts};
use crate::bytes::{Cursor, Encoder, U64s};
use crate::endian::Endian;
use crate::error::{Error, Result};
use crate::fields::named;
use crate::layout::{ORDER, SampleLayout, UpTo};
use crate::wire::Wire;

named! {
    /// The fields of a sample (`PERF_RECORD_SAMPLE`); `None` without the bit in the attr's
    /// `sample_type`.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct SampleFields<'a> {
        /// The event's id, at a fixed place.
        pub identifier: Option<u64>,
        /// The address of the sampled instruction.
        pub ip: Option<u64> => hex,
        /// Process and thread.
        pub tid: Option<[u32; 2]>,
        /// The time, in nanoseconds of the perf clock.
        pub time: Option<u64>,
        /// The data address, or a number that the event defines.
        pub addr: Option<u64> => hex,
        /// The event's id; for inherited events that of their parent.
        pub id: Option<u64>,
        /// The id of the event that took the sample.
        pub stream_id: Option<u64>,
        /// The CPU, and a reserved word.
        pub cpu: Option<[u32; 2]>,
        /// Number of events that the sample stands for.
        pub period: Option<u64>,
        /// The values of the counter, or of its group.
        pub read: Option<ReadValues<'a>>,
        /// The words of the callchain, context markers included
        /// ([`CallchainItems`](super::CallchainItems)).
        pub callchain: Option<U64s<'a>>,
        /// Bytes that the event defines, such as the fields of a tracepoint, with the kernel's
        /// padding.
        pub raw: Option<&'a [u8]> => "raw_size",
        /// The last branches, newest first.
        pub branch_stack: Option<BranchStack<'a>>,
        /// The user registers.
        pub regs_user: Option<Regs<'a>>,
        /// A copy of the top of the user stack.
        pub stack_user: Option<StackUser<'a>>,
        /// The cost: one number (WEIGHT), or three (WEIGHT_STRUCT).
        pub weight: Option<Weight>,
        /// The source of the data (`union perf_mem_data_src`, [`DataSrc`](crate::abi::DataSrc)).
        pub data_src: Option<u64> => hex,
        /// The reason why a transaction aborted (`PERF_TXN_*`).
        pub transaction: Option<u64> => hex,
        /// The registers at the interrupt.
        pub regs_intr: Option<Regs<'a>>,
        /// The physical data address.
        pub phys_addr: Option<u64> => hex,
        /// The cgroup's id.
        pub cgroup: Option<u64>,
        /// The size of the page of the data address, in bytes.
        pub data_page_size: Option<u64>,
        /// The size of the page of `ip`, in bytes.
        pub code_page_size: Option<u64>,
        /// A piece of the AUX area.
        pub aux: Option<&'a [u8]> => "aux_size",
    }
}

/// Reads a callchain: the number of its words, then the words.
#[inline]
pub(super) fn callchain<'a>(c: &mut Cursor<'a>) -> Result<U64s<'a>> {
    let nr = c.u64("sample.callchain.nr")?;
    c.take_u64s(nr, "sample.callchain")
}

/// Reads the raw bytes, which their size precedes.
#[inline]
pub(super) fn raw<'a>(c: &mut Cursor<'a>) -> Result<&'a [u8]> {
    let size = c.u32("sample.raw.size")?;
    c.take(size as usize, "sample.raw")
}

/// Writes a field that is there.
fn put<T>(field: &Option<T>, encode: impl FnOnce(&T) -> Result<()>) -> Result<()> {
    field.as_ref().map_or(Ok(()), encode)
}

impl<'a> SampleFields<'a> {
    /// Reads every field.
    pub(super) fn decode(c: &mut Cursor<'a>, layout: &SampleLayout) -> Result<Self> {
        let mut fields = Self::default();
        for bit in ORDER.iter().copied().filter(|bit| layout.sample_type.contains(*bit)) {
            fields.decode_one(bit, c, layout)?;
        }
        Ok(fields)
    }

    /// Reads the fields of variable size and those behind them, up to a last one; `c` stands at the
    /// first of them.
    #[inline]
    pub(super) fn walk(
        &mut self,
        c: &mut Cursor<'a>,
        layout: &SampleLayout,
        last: UpTo,
    ) -> Result<()> {
        layout.walked(last).try_for_each(|bit| self.decode_one(bit, c, layout))
    }

    fn decode_one(
        &mut self,
        bit: SampleType,
        c: &mut Cursor<'a>,
        layout: &SampleLayout,
    ) -> Result<()> {
        match bit {
            SampleType::IDENTIFIER => self.identifier = Some(c.u64("sample.identifier")?),
            SampleType::IP => self.ip = Some(c.u64("sample.ip")?),
            SampleType::TID => self.tid = Some(Wire::decode(c, "sample.tid")?),
            SampleType::TIME => self.time = Some(c.u64("sample.time")?),
            SampleType::ADDR => self.addr = Some(c.u64("sample.addr")?),
            SampleType::ID => self.id = Some(c.u64("sample.id")?),
            SampleType::STREAM_ID => self.stream_id = Some(c.u64("sample.stream_id")?),
            SampleType::CPU => self.cpu = Some(Wire::decode(c, "sample.cpu")?),
            SampleType::PERIOD => self.period = Some(c.u64("sample.period")?),
            SampleType::READ => self.read = Some(ReadValues::decode(c, layout.read_format)?),
            SampleType::CALLCHAIN => self.callchain = Some(callchain(c)?),
            SampleType::RAW => self.raw = Some(raw(c)?),
            SampleType::BRANCH_STACK => {
                self.branch_stack = Some(BranchStack::decode(c, layout.branch_sample_type)?);
            }
            SampleType::REGS_USER => self.regs_user = Some(Regs::decode(c, layout.regs_user)?),
            SampleType::STACK_USER => self.stack_user = Some(StackUser::decode(c)?),
            // One word, whichever of the two asked for it.
            SampleType::WEIGHT_STRUCT if self.weight.is_some() => {}
            SampleType::WEIGHT | SampleType::WEIGHT_STRUCT => {
                let word = c.u64("sample.weight")?;
                let has_parts = layout.sample_type.contains(SampleType::WEIGHT_STRUCT);
                let parts = has_parts.then(|| Weight::Parts(WeightParts::from_word(word)));
                self.weight = Some(parts.unwrap_or(Weight::Whole(word)));
            }
            SampleType::DATA_SRC => self.data_src = Some(c.u64("sample.data_src")?),
            SampleType::TRANSACTION => self.transaction = Some(c.u64("sample.transaction")?),
            SampleType::REGS_INTR => self.regs_intr = Some(Regs::decode(c, layout.regs_intr)?),
            SampleType::PHYS_ADDR => self.phys_addr = Some(c.u64("sample.phys_addr")?),
            SampleType::CGROUP => self.cgroup = Some(c.u64("sample.cgroup")?),
            SampleType::DATA_PAGE_SIZE => {
                self.data_page_size = Some(c.u64("sample.data_page_size")?);
            }
            SampleType::CODE_PAGE_SIZE => {
                self.code_page_size = Some(c.u64("sample.code_page_size")?);
            }
            SampleType::AUX => {
                let size = c.u64("sample.aux.size")?;
                let len = usize::try_from(size).unwrap_or(usize::MAX);
                self.aux = Some(c.take(len, "sample.aux")?);
            }
            bit => {
                let detail = format!("no decoder for the bit {bit:?}");
                return Err(Error::invalid(c.offset(), "sample_type", detail));
            }
        }
        Ok(())
    }

    /// Writes every field that is there, in the same order.
    pub(super) fn encode(&self, e: &mut Encoder) -> Result<()> {
        for bit in ORDER.iter().copied() {
            match bit {
                SampleType::IDENTIFIER => self.identifier.encode(e)?,
                SampleType::IP => self.ip.encode(e)?,
                SampleType::TID => self.tid.encode(e)?,
                SampleType::TIME => self.time.encode(e)?,
                SampleType::ADDR => self.addr.encode(e)?,
                SampleType::ID => self.id.encode(e)?,
                SampleType::STREAM_ID => self.stream_id.encode(e)?,
                SampleType::CPU => self.cpu.encode(e)?,
                SampleType::PERIOD => self.period.encode(e)?,
                SampleType::READ => put(&self.read, |read| read.encode(e))?,
                SampleType::CALLCHAIN => {
                    if let Some(ips) = &self.callchain {
                        e.u64(ips.len() as u64);
                        e.u64s(ips);
                    }
                }
                SampleType::RAW => {
                    if let Some(raw) = self.raw {
                        e.length(raw.len(), "sample.raw.size")?;
                        e.bytes(raw);
                    }
                }
                SampleType::BRANCH_STACK => put(&self.branch_stack, |stack| stack.encode(e))?,
                SampleType::REGS_USER => put(&self.regs_user, |regs| regs.encode(e))?,
                SampleType::STACK_USER => put(&self.stack_user, |stack| stack.encode(e))?,
                SampleType::WEIGHT => self.weight.map(Weight::to_word).encode(e)?,
                // Shares its place with WEIGHT: the kernel lets only one of the two be set.
                SampleType::WEIGHT_STRUCT => {}
                SampleType::DATA_SRC => self.data_src.encode(e)?,
                SampleType::TRANSACTION => self.transaction.encode(e)?,
                SampleType::REGS_INTR => put(&self.regs_intr, |regs| regs.encode(e))?,
                SampleType::PHYS_ADDR => self.phys_addr.encode(e)?,
                SampleType::CGROUP => self.cgroup.encode(e)?,
                SampleType::DATA_PAGE_SIZE => self.data_page_size.encode(e)?,
                SampleType::CODE_PAGE_SIZE => self.code_page_size.encode(e)?,
                SampleType::AUX => {
                    if let Some(aux) = self.aux {
                        e.u64(aux.len() as u64);
                        e.bytes(aux);
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns a sample with exactly the fields of `layout`, 0 or empty, as synthesized records need
    /// them.
    ///
    /// # Errors
    /// Returns an error for a bit of `sample_type` that this library does not know.
    pub fn shaped(layout: &SampleLayout) -> Result<Self> {
        /// More than the fields have if all that is of variable size is empty.
        const ZEROES: [u8; 512] = [0; 512];
        let fields = Self::decode(&mut Cursor::new(&ZEROES, 0, Endian::NATIVE), layout)?;
        // Raw bytes end where a word ends, like those of the kernel.
        Ok(Self { raw: fields.raw.map(|_| &ZEROES[..4]), ..fields })
    }

    /// Returns the fields that the trailers of other records also have.
    pub fn as_sample_id(&self) -> SampleId {
        SampleId {
            tid: self.tid,
            time: self.time,
            id: self.id,
            stream_id: self.stream_id,
            cpu: self.cpu,
            identifier: self.identifier,
        }
    }
}

named! {
    /// A copy of the top of the user stack.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct StackUser<'a> {
        /// The bytes that were reserved for the copy.
        pub bytes: &'a [u8] => "stack_user_size",
        /// Number of bytes that were copied; `None` if `bytes` is empty.
        pub dyn_size: Option<u64>,
    }
}

impl<'a> StackUser<'a> {
    /// Returns the bytes that were copied.
    pub fn copied(&self) -> &'a [u8] {
        let copied = usize::try_from(self.dyn_size.unwrap_or(0)).unwrap_or(usize::MAX);
        self.bytes.get(..copied).unwrap_or(self.bytes)
    }

    /// Returns the copy without the room that was reserved for more, but for the end of a word.
    pub fn trimmed(&self) -> Self {
        let copied = self.copied().len().next_multiple_of(8);
        let bytes = self.bytes.get(..copied).unwrap_or(self.bytes);
        Self { bytes, dyn_size: self.dyn_size.filter(|_| !bytes.is_empty()) }
    }

    fn decode(c: &mut Cursor<'a>) -> Result<Self> {
        let size = c.u64("sample.stack_user.size")?;
        let bytes = c.take(usize::try_from(size).unwrap_or(usize::MAX), "sample.stack_user")?;
        let dyn_size = (size > 0).then(|| c.u64("sample.stack_user.dyn_size")).transpose()?;
        Ok(Self { bytes, dyn_size })
    }

    fn encode(&self, e: &mut Encoder) -> Result<()> {
        if self.dyn_size.is_some() == self.bytes.is_empty() {
            let detail =
                format!("{} bytes with the copied size {:?}", self.bytes.len(), self.dyn_size);
            return Err(Error::invalid(e.len() as u64, "sample.stack_user", detail));
        }
        e.u64(self.bytes.len() as u64);
        e.bytes(self.bytes);
        self.dyn_size.encode(e)
    }
}

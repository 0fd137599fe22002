//! All fields of a sample, in the kernel's order, for reading and for writing.
//!
//! The order stands once, in [`ORDER`](crate::layout::ORDER); decoding and encoding both walk it. A bit of `sample_type` that is not in it
//! fails a test (`every_named_bit_has_its_place`), so no field can be forgotten.

use super::Trailer;
use crate::abi::{BranchEntry, BranchFlags, BranchSampleType, ReadFormat, SampleType, regs_abi};
use crate::bytes::{Cursor, Encoder, U64s};
use crate::error::{Error, Result};
use crate::layout::{ORDER, SampleLayout, UpTo};
use crate::wire::Wire;

/// The fields of a sample; each is there when its bit is set in the attr's `sample_type`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SampleFields<'a> {
    /// The event, at the fixed place.
    pub identifier: Option<u64>,
    /// The sampled instruction.
    pub ip: Option<u64>,
    /// Process and thread.
    pub tid: Option<[u32; 2]>,
    /// When, in nanoseconds of the perf clock.
    pub time: Option<u64>,
    /// The data address, or what the event defines.
    pub addr: Option<u64>,
    /// The event.
    pub id: Option<u64>,
    /// The event that took the sample.
    pub stream_id: Option<u64>,
    /// The CPU, and a reserved word.
    pub cpu: Option<[u32; 2]>,
    /// How many events the sample stands for.
    pub period: Option<u64>,
    /// The counter's value, or its group's.
    pub read: Option<ReadValues<'a>>,
    /// The callchain as recorded, context marks included.
    pub callchain: Option<U64s<'a>>,
    /// Bytes that the event defines, with the kernel's padding.
    pub raw: Option<&'a [u8]>,
    /// The last branches, newest first.
    pub branch_stack: Option<BranchStack<'a>>,
    /// The user registers.
    pub regs_user: Option<Regs<'a>>,
    /// The top of the user stack.
    pub stack_user: Option<StackUser<'a>>,
    /// The cost: one number (WEIGHT), or three packed in it (WEIGHT_STRUCT).
    pub weight: Option<u64>,
    /// Where the data came from (`union perf_mem_data_src`).
    pub data_src: Option<u64>,
    /// Why a transaction aborted.
    pub transaction: Option<u64>,
    /// The registers at the interrupt.
    pub regs_intr: Option<Regs<'a>>,
    /// The physical data address.
    pub phys_addr: Option<u64>,
    /// The cgroup's id.
    pub cgroup: Option<u64>,
    /// The page size behind the data address, in bytes.
    pub data_page_size: Option<u64>,
    /// The page size behind the ip, in bytes.
    pub code_page_size: Option<u64>,
    /// A piece of the AUX area.
    pub aux: Option<&'a [u8]>,
}

impl<'a> SampleFields<'a> {
    /// Reads every field.
    pub(super) fn decode(c: &mut Cursor<'a>, layout: &SampleLayout) -> Result<Self> {
        let mut fields = Self::default();
        for bit in ORDER.into_iter().filter(|bit| layout.sample_type.contains(*bit)) {
            fields.decode_one(bit, c, layout)?;
        }
        Ok(fields)
    }

    /// Reads the fields of variable size and those behind them, up to a last one; `c` stands at the first of them.
    #[inline]
    pub(super) fn walk(&mut self, c: &mut Cursor<'a>, layout: &SampleLayout, last: UpTo) -> Result<()> {
        layout.walked(last).try_for_each(|bit| self.decode_one(bit, c, layout))
    }

    fn decode_one(&mut self, bit: SampleType, c: &mut Cursor<'a>, layout: &SampleLayout) -> Result<()> {
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
            SampleType::CALLCHAIN => {
                let nr = c.u64("sample.callchain.nr")?;
                self.callchain = Some(c.take_u64s(nr, "sample.callchain")?);
            }
            SampleType::RAW => {
                let size = c.u32("sample.raw.size")?;
                self.raw = Some(c.take(size as usize, "sample.raw")?);
            }
            SampleType::BRANCH_STACK => self.branch_stack = Some(BranchStack::decode(c, layout.branch_sample_type)?),
            SampleType::REGS_USER => self.regs_user = Some(Regs::decode(c, layout.regs_user)?),
            SampleType::STACK_USER => self.stack_user = Some(StackUser::decode(c)?),
            // One word, whichever of the two asked for it.
            SampleType::WEIGHT_STRUCT if self.weight.is_some() => {}
            SampleType::WEIGHT | SampleType::WEIGHT_STRUCT => self.weight = Some(c.u64("sample.weight")?),
            SampleType::DATA_SRC => self.data_src = Some(c.u64("sample.data_src")?),
            SampleType::TRANSACTION => self.transaction = Some(c.u64("sample.transaction")?),
            SampleType::REGS_INTR => self.regs_intr = Some(Regs::decode(c, layout.regs_intr)?),
            SampleType::PHYS_ADDR => self.phys_addr = Some(c.u64("sample.phys_addr")?),
            SampleType::CGROUP => self.cgroup = Some(c.u64("sample.cgroup")?),
            SampleType::DATA_PAGE_SIZE => self.data_page_size = Some(c.u64("sample.data_page_size")?),
            SampleType::CODE_PAGE_SIZE => self.code_page_size = Some(c.u64("sample.code_page_size")?),
            SampleType::AUX => {
                let size = c.u64("sample.aux.size")?;
                let len = usize::try_from(size).unwrap_or(usize::MAX);
                self.aux = Some(c.take(len, "sample.aux")?);
            }
            bit => return Err(Error::invalid(c.offset(), "sample_type", format!("no decoder for the bit {bit:?}"))),
        }
        Ok(())
    }

    /// Writes every field that is there, in the same order.
    pub(super) fn encode(&self, e: &mut Encoder) -> Result<()> {
        for bit in ORDER {
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
                SampleType::READ => self.read.iter().try_for_each(|read| read.encode(e))?,
                SampleType::CALLCHAIN => self.callchain.iter().for_each(|ips| {
                    e.u64(ips.len() as u64);
                    e.u64s(ips);
                }),
                SampleType::RAW => self.raw.iter().try_for_each(|raw| {
                    e.length(raw.len(), "sample.raw.size")?;
                    raw.encode(e)
                })?,
                SampleType::BRANCH_STACK => self.branch_stack.iter().try_for_each(|stack| stack.encode(e))?,
                SampleType::REGS_USER => self.regs_user.iter().try_for_each(|regs| regs.encode(e))?,
                SampleType::STACK_USER => self.stack_user.iter().try_for_each(|stack| stack.encode(e))?,
                SampleType::WEIGHT => self.weight.encode(e)?,
                // Shares its place with WEIGHT: the kernel lets only one of the two be set.
                SampleType::WEIGHT_STRUCT => {}
                SampleType::DATA_SRC => self.data_src.encode(e)?,
                SampleType::TRANSACTION => self.transaction.encode(e)?,
                SampleType::REGS_INTR => self.regs_intr.iter().try_for_each(|regs| regs.encode(e))?,
                SampleType::PHYS_ADDR => self.phys_addr.encode(e)?,
                SampleType::CGROUP => self.cgroup.encode(e)?,
                SampleType::DATA_PAGE_SIZE => self.data_page_size.encode(e)?,
                SampleType::CODE_PAGE_SIZE => self.code_page_size.encode(e)?,
                SampleType::AUX => self.aux.iter().for_each(|aux| {
                    e.u64(aux.len() as u64);
                    e.bytes(aux);
                }),
                _ => {}
            }
        }
        Ok(())
    }

    /// The same who, when and which, as a trailer has them.
    #[must_use]
    pub fn as_trailer(&self) -> Trailer {
        Trailer {
            tid: self.tid,
            time: self.time,
            id: self.id,
            stream_id: self.stream_id,
            cpu: self.cpu,
            identifier: self.identifier,
        }
    }
}

/// What reading a counter gave, laid out by `read_format`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadValues<'a> {
    /// How it is laid out.
    pub format: ReadFormat,
    /// The words as they lie: `nr` (groups), times, then for each counter value, id, lost as the format has them.
    pub words: U64s<'a>,
}

impl<'a> ReadValues<'a> {
    /// The number of words that a read of so many counters has.
    fn len(format: ReadFormat, counters: u64) -> u64 {
        let has = |bit| u64::from(format.contains(bit));
        let times = has(ReadFormat::TOTAL_TIME_ENABLED) + has(ReadFormat::TOTAL_TIME_RUNNING);
        let each = 1 + has(ReadFormat::ID) + has(ReadFormat::LOST);
        counters.saturating_mul(each).saturating_add(has(ReadFormat::GROUP) + times)
    }

    pub(super) fn decode(c: &mut Cursor<'a>, format: ReadFormat) -> Result<Self> {
        let mut ahead = *c;
        let counters = if format.contains(ReadFormat::GROUP) { ahead.u64("sample.read.nr")? } else { 1 };
        Ok(Self { format, words: c.take_u64s(Self::len(format, counters), "sample.read")? })
    }

    pub(super) fn encode(&self, e: &mut Encoder) -> Result<()> {
        let counters = if self.format.contains(ReadFormat::GROUP) { self.words.get(0).unwrap_or(0) } else { 1 };
        if Self::len(self.format, counters) != self.words.len() as u64 {
            let detail = format!("{} words for {counters} counters with {:?}", self.words.len(), self.format);
            return Err(Error::invalid(e.len() as u64, "sample.read", detail));
        }
        self.words.encode(e)
    }

    /// The counters: value, id and lost count of each. The times lie before the counters of a group, and behind the value of
    /// a counter alone.
    pub fn counters(&self) -> impl Iterator<Item = Counter> + use<'a> {
        let has = |bit| usize::from(self.format.contains(bit));
        let times = has(ReadFormat::TOTAL_TIME_ENABLED) + has(ReadFormat::TOTAL_TIME_RUNNING);
        let (before, behind) = if has(ReadFormat::GROUP) == 1 { (1 + times, 0) } else { (0, times) };
        let (id, lost) = (has(ReadFormat::ID), has(ReadFormat::LOST));
        let (words, each) = (self.words, 1 + behind + id + lost);
        (0..words.len().saturating_sub(before) / each).filter_map(move |i| {
            let at = before + i * each;
            let rest = at + 1 + behind;
            Some(Counter {
                value: words.get(at)?,
                id: (id == 1).then(|| words.get(rest)).flatten(),
                lost: (lost == 1).then(|| words.get(rest + id)).flatten(),
            })
        })
    }
}

/// One counter of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    /// What it counted.
    pub value: u64,
    /// Its id.
    pub id: Option<u64>,
    /// How many samples it lost.
    pub lost: Option<u64>,
}

/// The last branches.
#[derive(Clone, Copy, Debug)]
pub struct BranchStack<'a> {
    /// The hardware's index of the newest branch, where `branch_sample_type` has HW_INDEX.
    pub hw_idx: Option<u64>,
    /// Three words for each branch: from, to, flags.
    pub words: U64s<'a>,
    /// A word of counters for each branch, where `branch_sample_type` has COUNTERS.
    pub counters: Option<U64s<'a>>,
}

impl<'a> BranchStack<'a> {
    fn decode(c: &mut Cursor<'a>, kind: BranchSampleType) -> Result<Self> {
        let nr = c.u64("sample.branch_stack.nr")?;
        let hw_idx = kind.contains(BranchSampleType::HW_INDEX);
        let hw_idx = hw_idx.then(|| c.u64("sample.branch_stack.hw_idx")).transpose()?;
        let words = c.take_u64s(nr.saturating_mul(3), "sample.branch_stack")?;
        let counters = kind.contains(BranchSampleType::COUNTERS);
        let counters = counters.then(|| c.take_u64s(nr, "sample.branch_stack.counters")).transpose()?;
        Ok(Self { hw_idx, words, counters })
    }

    /// The branches, newest first.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = BranchEntry> + use<'a> {
        let words = self.words;
        let word = move |at| words.get(at).unwrap_or(0);
        (0..words.len() / 3).map(move |i| BranchEntry {
            from: word(3 * i),
            to: word(3 * i + 1),
            flags: BranchFlags::from_word(word(3 * i + 2), words.endian()),
        })
    }

    fn encode(&self, e: &mut Encoder) -> Result<()> {
        let (branches, words) = (self.entries().len(), self.words.len());
        if words != 3 * branches || self.counters.is_some_and(|counters| counters.len() != branches) {
            let detail = format!("{words} words and {:?} counters", self.counters.map(|counters| counters.len()));
            return Err(Error::invalid(e.len() as u64, "sample.branch_stack", detail));
        }
        e.u64(branches as u64);
        self.hw_idx.encode(e)?;
        for branch in self.entries() {
            e.u64(branch.from);
            e.u64(branch.to);
            e.u64(branch.flags.to_word(e.endian()));
        }
        self.counters.encode(e)
    }
}

/// By the values, whatever the byte orders: that of the flags is not only one of bytes.
impl PartialEq for BranchStack<'_> {
    fn eq(&self, other: &Self) -> bool {
        (self.hw_idx, self.counters) == (other.hw_idx, other.counters) && self.entries().eq(other.entries())
    }
}

impl Eq for BranchStack<'_> {}

/// Registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Regs<'a> {
    /// How they are to be read ([`regs_abi`]).
    pub abi: u64,
    /// Their values, in the order of the bits in the attr's mask; none where `abi` is NONE.
    pub values: U64s<'a>,
}

impl<'a> Regs<'a> {
    fn decode(c: &mut Cursor<'a>, mask: u64) -> Result<Self> {
        let abi = c.u64("sample.regs.abi")?;
        let nr = if abi == regs_abi::NONE { 0 } else { mask.count_ones() };
        Ok(Self { abi, values: c.take_u64s(u64::from(nr), "sample.regs")? })
    }

    fn encode(&self, e: &mut Encoder) -> Result<()> {
        e.u64(self.abi);
        self.values.encode(e)
    }
}

/// A copy of the top of the user stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackUser<'a> {
    /// The bytes that were reserved for it.
    pub bytes: &'a [u8],
    /// How many of them were copied; there where `bytes` is not empty.
    pub dyn_size: Option<u64>,
}

impl<'a> StackUser<'a> {
    fn decode(c: &mut Cursor<'a>) -> Result<Self> {
        let size = c.u64("sample.stack_user.size")?;
        let bytes = c.take(usize::try_from(size).unwrap_or(usize::MAX), "sample.stack_user")?;
        let dyn_size = (size > 0).then(|| c.u64("sample.stack_user.dyn_size")).transpose()?;
        Ok(Self { bytes, dyn_size })
    }

    fn encode(&self, e: &mut Encoder) -> Result<()> {
        if self.dyn_size.is_some() == self.bytes.is_empty() {
            let detail = format!("{} bytes with the copied size {:?}", self.bytes.len(), self.dyn_size);
            return Err(Error::invalid(e.len() as u64, "sample.stack_user", detail));
        }
        e.u64(self.bytes.len() as u64);
        e.bytes(self.bytes);
        self.dyn_size.encode(e)
    }
}

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
    pub(super) fn encode(&self, e: &mut Encoder) {
        fn put<'a>(value: &Option<impl Wire<'a>>, e: &mut Encoder) {
            if let Some(value) = value {
                value.encode(e);
            }
        }
        for bit in ORDER {
            match bit {
                SampleType::IDENTIFIER => put(&self.identifier, e),
                SampleType::IP => put(&self.ip, e),
                SampleType::TID => put(&self.tid, e),
                SampleType::TIME => put(&self.time, e),
                SampleType::ADDR => put(&self.addr, e),
                SampleType::ID => put(&self.id, e),
                SampleType::STREAM_ID => put(&self.stream_id, e),
                SampleType::CPU => put(&self.cpu, e),
                SampleType::PERIOD => put(&self.period, e),
                SampleType::READ => self.read.iter().for_each(|read| read.encode(e)),
                SampleType::CALLCHAIN => self.callchain.iter().for_each(|ips| {
                    e.u64(ips.len() as u64);
                    e.u64s(ips);
                }),
                SampleType::RAW => self.raw.iter().for_each(|raw| {
                    // A record holds less than 64 KiB, so its length fits.
                    e.u32(u32::try_from(raw.len()).unwrap_or(u32::MAX));
                    e.bytes(raw);
                }),
                SampleType::BRANCH_STACK => self.branch_stack.iter().for_each(|stack| stack.encode(e)),
                SampleType::REGS_USER => self.regs_user.iter().for_each(|regs| regs.encode(e)),
                SampleType::STACK_USER => self.stack_user.iter().for_each(|stack| stack.encode(e)),
                SampleType::WEIGHT => put(&self.weight, e),
                // Shares its place with WEIGHT: the kernel lets only one of the two be set.
                SampleType::WEIGHT_STRUCT => {}
                SampleType::DATA_SRC => put(&self.data_src, e),
                SampleType::TRANSACTION => put(&self.transaction, e),
                SampleType::REGS_INTR => self.regs_intr.iter().for_each(|regs| regs.encode(e)),
                SampleType::PHYS_ADDR => put(&self.phys_addr, e),
                SampleType::CGROUP => put(&self.cgroup, e),
                SampleType::DATA_PAGE_SIZE => put(&self.data_page_size, e),
                SampleType::CODE_PAGE_SIZE => put(&self.code_page_size, e),
                SampleType::AUX => self.aux.iter().for_each(|aux| {
                    e.u64(aux.len() as u64);
                    e.bytes(aux);
                }),
                _ => {}
            }
        }
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
    pub(super) fn decode(c: &mut Cursor<'a>, format: ReadFormat) -> Result<Self> {
        let each = 1 + u64::from(format.contains(ReadFormat::ID)) + u64::from(format.contains(ReadFormat::LOST));
        let times = (format & (ReadFormat::TOTAL_TIME_ENABLED | ReadFormat::TOTAL_TIME_RUNNING)).bits().count_ones();
        let mut ahead = *c;
        let (nr, counters) =
            if format.contains(ReadFormat::GROUP) { (1, ahead.u64("sample.read.nr")?) } else { (0, 1) };
        let words = counters.saturating_mul(each).saturating_add(nr + u64::from(times));
        Ok(Self { format, words: c.take_u64s(words, "sample.read")? })
    }

    pub(super) fn encode(&self, e: &mut Encoder) {
        e.u64s(&self.words);
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

    fn encode(&self, e: &mut Encoder) {
        e.u64((self.words.len() / 3) as u64);
        self.hw_idx.iter().for_each(|idx| e.u64(*idx));
        e.u64s(&self.words);
        self.counters.iter().for_each(|counters| e.u64s(counters));
    }
}

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

    fn encode(&self, e: &mut Encoder) {
        e.u64(self.abi);
        e.u64s(&self.values);
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

    fn encode(&self, e: &mut Encoder) {
        e.u64(self.bytes.len() as u64);
        e.bytes(self.bytes);
        self.dyn_size.iter().for_each(|size| e.u64(*size));
    }
}

// A sample decoded the naive way, field by field as perf_event_open(2) lists them: the oracle of
// the real decoder.

use recrep_format::abi::{BranchSampleType, ReadFormat, SampleType, Weight};
use recrep_format::attr::Attr;
use recrep_format::endian::Endian;
use recrep_format::record::SampleFields;

/// Fields that were found, each with its words (bytes, where the field is bytes).
pub(super) type Found = Vec<(&'static str, Vec<u64>)>;

struct Walk<'a> {
    left: &'a [u8],
    endian: Endian,
    found: Found,
}

impl Walk<'_> {
    fn bytes(&mut self, len: u64) -> Option<Vec<u8>> {
        let len = usize::try_from(len).ok().filter(|len| *len <= self.left.len())?;
        let (head, tail) = self.left.split_at(len);
        self.left = tail;
        Some(head.to_vec())
    }

    fn u32(&mut self) -> Option<u64> {
        let bytes: [u8; 4] = self.bytes(4)?.try_into().ok()?;
        let value = if self.endian == Endian::Big {
            u32::from_be_bytes(bytes)
        } else {
            u32::from_le_bytes(bytes)
        };
        Some(u64::from(value))
    }

    fn u64(&mut self) -> Option<u64> {
        let bytes: [u8; 8] = self.bytes(8)?.try_into().ok()?;
        Some(if self.endian == Endian::Big {
            u64::from_be_bytes(bytes)
        } else {
            u64::from_le_bytes(bytes)
        })
    }

    fn words(&mut self, count: u64) -> Option<Vec<u64>> {
        // More words than there are bytes cannot be, and must not be counted out.
        (count <= self.left.len() as u64).then_some(())?;
        (0..count).map(|_| self.u64()).collect()
    }

    fn put(&mut self, name: &'static str, words: Vec<u64>) {
        self.found.push((name, words));
    }

    fn word(&mut self, name: &'static str) -> Option<()> {
        let word = self.u64()?;
        self.put(name, vec![word]);
        Some(())
    }

    fn halves(&mut self, name: &'static str) -> Option<()> {
        let words = vec![self.u32()?, self.u32()?];
        self.put(name, words);
        Some(())
    }

    fn regs(&mut self, name: &'static str, mask: u64) -> Option<()> {
        let abi = self.u64()?;
        let mut words = vec![abi];
        if abi != 0 {
            words.extend(self.words(u64::from(mask.count_ones()))?);
        }
        self.put(name, words);
        Some(())
    }

    fn read(&mut self, format: ReadFormat) -> Option<()> {
        let mut words = Vec::new();
        let nr = if format.contains(ReadFormat::GROUP) { self.u64()? } else { 1 };
        words.extend(format.contains(ReadFormat::GROUP).then_some(nr));
        let times = u64::from((format.bits() & 3).count_ones());
        if format.contains(ReadFormat::GROUP) {
            words.extend(self.words(times)?);
        }
        let more = (format.bits() >> 2 & 1) + (format.bits() >> 4 & 1);
        for _ in 0..nr {
            words.push(self.u64()?);
            if !format.contains(ReadFormat::GROUP) {
                words.extend(self.words(times)?);
            }
            words.extend(self.words(more)?);
        }
        self.put("read", words);
        Some(())
    }

    fn branches(&mut self, kind: BranchSampleType) -> Option<()> {
        let nr = self.u64()?;
        if kind.contains(BranchSampleType::HW_INDEX) {
            self.word("hw_idx")?;
        }
        let words = self.words(nr.checked_mul(3)?)?;
        self.put("branches", words);
        if kind.contains(BranchSampleType::COUNTERS) {
            let words = self.words(nr)?;
            self.put("branch_counters", words);
        }
        Some(())
    }

    fn sample(&mut self, attr: &Attr) -> Option<()> {
        let has = |bit| attr.sample_type.contains(bit);
        for (bit, name) in [(SampleType::IDENTIFIER, "identifier"), (SampleType::IP, "ip")] {
            if has(bit) {
                self.word(name)?;
            }
        }
        if has(SampleType::TID) {
            self.halves("tid")?;
        }
        let words = [
            (SampleType::TIME, "time"),
            (SampleType::ADDR, "addr"),
            (SampleType::ID, "id"),
            (SampleType::STREAM_ID, "stream_id"),
        ];
        for (bit, name) in words {
            if has(bit) {
                self.word(name)?;
            }
        }
        if has(SampleType::CPU) {
            self.halves("cpu")?;
        }
        if has(SampleType::PERIOD) {
            self.word("period")?;
        }
        if has(SampleType::READ) {
            self.read(attr.read_format)?;
        }
        if has(SampleType::CALLCHAIN) {
            let nr = self.u64()?;
            let words = self.words(nr)?;
            self.put("callchain", words);
        }
        if has(SampleType::RAW) {
            let size = self.u32()?;
            let bytes = self.bytes(size)?;
            self.put("raw", wide(&bytes));
        }
        if has(SampleType::BRANCH_STACK) {
            self.branches(attr.branch_sample_type)?;
        }
        if has(SampleType::REGS_USER) {
            self.regs("regs_user", attr.sample_regs_user)?;
        }
        if has(SampleType::STACK_USER) {
            let size = self.u64()?;
            let mut words = wide(&self.bytes(size)?);
            if size != 0 {
                words.push(self.u64()?);
            }
            self.put("stack_user", words);
        }
        if has(SampleType::WEIGHT) || has(SampleType::WEIGHT_STRUCT) {
            self.word("weight")?;
        }
        for (bit, name) in
            [(SampleType::DATA_SRC, "data_src"), (SampleType::TRANSACTION, "transaction")]
        {
            if has(bit) {
                self.word(name)?;
            }
        }
        if has(SampleType::REGS_INTR) {
            self.regs("regs_intr", attr.sample_regs_intr)?;
        }
        let words = [
            (SampleType::PHYS_ADDR, "phys_addr"),
            (SampleType::CGROUP, "cgroup"),
            (SampleType::DATA_PAGE_SIZE, "data_page_size"),
            (SampleType::CODE_PAGE_SIZE, "code_page_size"),
        ];
        for (bit, name) in words {
            if has(bit) {
                self.word(name)?;
            }
        }
        if has(SampleType::AUX) {
            let size = self.u64()?;
            let bytes = self.bytes(size)?;
            self.put("aux", wide(&bytes));
        }
        Some(())
    }
}

fn wide(bytes: &[u8]) -> Vec<u64> {
    bytes.iter().map(|byte| u64::from(*byte)).collect()
}

/// The fields of a sample's body, and how many bytes they take; `None` where it is too short.
pub(super) fn naive(attr: &Attr, body: &[u8], endian: Endian) -> Option<(Found, usize)> {
    let mut walk = Walk { left: body, endian, found: Vec::new() };
    walk.sample(attr)?;
    Some((walk.found, body.len() - walk.left.len()))
}

/// The same of what the real decoder found.
pub(super) fn real(f: &SampleFields<'_>) -> Found {
    let mut found = Found::new();
    let mut put = |name, words: Option<Vec<u64>>| found.extend(words.map(|words| (name, words)));
    let one = |word: Option<u64>| word.map(|word| vec![word]);
    let two = |halves: Option<[u32; 2]>| halves.map(|halves| halves.map(u64::from).to_vec());
    put("identifier", one(f.identifier));
    put("ip", one(f.ip));
    put("tid", two(f.tid));
    put("time", one(f.time));
    put("addr", one(f.addr));
    put("id", one(f.id));
    put("stream_id", one(f.stream_id));
    put("cpu", two(f.cpu));
    put("period", one(f.period));
    put("read", f.read.as_ref().map(|read| read.words.iter().collect()));
    put("callchain", f.callchain.map(|ips| ips.iter().collect()));
    put("raw", f.raw.map(wide));
    put("hw_idx", f.branch_stack.and_then(|stack| one(stack.hw_idx)));
    put("branches", f.branch_stack.map(|stack| stack.words.iter().collect()));
    put("branch_counters", f.branch_stack.and_then(|stack| Some(stack.counters?.iter().collect())));
    put(
        "regs_user",
        f.regs_user.map(|regs| std::iter::once(regs.abi.0).chain(regs.values.iter()).collect()),
    );
    put(
        "stack_user",
        f.stack_user.map(|stack| wide(stack.bytes).into_iter().chain(stack.dyn_size).collect()),
    );
    put("weight", one(f.weight.map(Weight::to_word)));
    put("data_src", one(f.data_src));
    put("transaction", one(f.transaction));
    put(
        "regs_intr",
        f.regs_intr.map(|regs| std::iter::once(regs.abi.0).chain(regs.values.iter()).collect()),
    );
    put("phys_addr", one(f.phys_addr));
    put("cgroup", one(f.cgroup));
    put("data_page_size", one(f.data_page_size));
    put("code_page_size", one(f.code_page_size));
    put("aux", f.aux.map(wide));
    found
}

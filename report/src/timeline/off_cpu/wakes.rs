//! Wakes of threads, from the samples of tracepoints.

use rayon::prelude::*;
use recrep_format::abi::context;
use recrep_format::bytes::U64s;
use recrep_format::endian::Endian;
use recrep_format::feature::tracing::RawFields;
use recrep_format::record::Sample;
use rustc_hash::{FxHashMap, FxHashSet};

use super::by_thread::ByThread;

/// Who made a thread able to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waker {
    /// A recorded thread, by its index.
    Thread(u32),
    /// A thread that is not recorded, by its number.
    Stranger(u32),
}

/// A thread becomes able to run. There may be many millions of them, so they are small.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Wake {
    pub(crate) time: u64,
    /// Offset of its sample in the file, and bits.
    word: u64,
    /// Number of the waking thread; once lives are known, its index, or [`Wake::STRANGER`].
    waker: u32,
}

const _: () = assert!(size_of::<Wake>() == 24);

impl Wake {
    /// Number of bits of the word.
    const BITS: u32 = 8;
    /// It is a new thread's first one.
    pub(crate) const NEW: u64 = 1;
    /// An interrupt woke it, which borrowed the thread.
    pub(crate) const INTERRUPT: u64 = 2;
    /// Its sample has a callchain.
    pub(crate) const CALLCHAIN: u64 = 4;
    /// No record says so: a thread of the process, or a child, exited just before.
    pub(crate) const INFERRED: u64 = 8;
    /// Mark of wakers that are not recorded.
    const STRANGER: u32 = 1 << 31;

    /// Creates a wake by the thread with this number.
    pub(crate) const fn new(time: u64, offset: u64, waker: u32, bits: u64) -> Self {
        Self { time, word: offset << Self::BITS | bits, waker }
    }

    /// Returns the offset of its sample in the file; of inferred wakes there is none.
    pub(crate) fn sample(&self) -> Option<u64> {
        (!self.is(Self::INFERRED)).then_some(self.word >> Self::BITS)
    }

    /// Returns whether it has one of these bits.
    pub(crate) const fn is(&self, bits: u64) -> bool {
        self.word & bits != 0
    }

    /// Returns the number of the waking thread, before [`Wake::name_waker`].
    pub(crate) const fn waking_tid(&self) -> u32 {
        self.waker
    }

    /// Replaces the number of the waking thread by its index; without one it is not recorded.
    pub(crate) fn name_waker(&mut self, index: Option<u32>) {
        self.waker = index.unwrap_or(self.waker | Self::STRANGER);
    }

    /// Says that no interrupt woke the thread.
    pub(crate) fn clear_interrupt(&mut self) {
        self.word &= !Self::INTERRUPT;
    }

    /// Returns who woke the thread, after [`Wake::name_waker`].
    pub(crate) const fn waker(&self) -> Waker {
        match self.waker & Self::STRANGER {
            0 => Waker::Thread(self.waker),
            _ => Waker::Stranger(self.waker & !Self::STRANGER),
        }
    }
}

/// Place of a number in the raw bytes of a tracepoint: offset and size in bytes.
pub(crate) type RawPlace = (usize, usize);

/// Fields of a tracepoint that tells of wakes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WakeFields {
    /// `true` if it tells of new threads.
    pub(crate) is_new: bool,
    /// `true` if the event is that of a CPU, so that it has the wakes of exiting threads, too.
    pub(crate) is_of_cpu: bool,
    pub(crate) flags: RawPlace,
    pub(crate) waker: RawPlace,
    pub(crate) target: RawPlace,
    pub(crate) endian: Endian,
}

/// Wakes in some pieces of a file.
#[derive(Debug, Default)]
pub(crate) struct WakeReader {
    /// Wakes, by the number of the thread that is woken.
    wakes: ByThread<Wake>,
    /// Chains of kernel addresses of wakes in an interrupt, and their numbers.
    chains: FxHashMap<Box<[u64]>, u32>,
    /// Wakes in an interrupt with a callchain: offset of the sample and number of the chain.
    in_interrupts: Vec<(u64, u32)>,
    /// Numbers of wakers in the first namespace, and in that of the recorder, where they differ.
    namespace: FxHashMap<u32, u32>,
    /// New threads by their numbers in the first namespace: time, parent.
    born: Vec<(u64, u32, u32)>,
    /// Forks: time, parent and child, in the namespace of the recorder.
    pub(crate) forks: Vec<(u64, u32, u32)>,
}

impl WakeReader {
    /// Reads a sample of an event with these fields.
    pub(crate) fn sample(&mut self, fields: &WakeFields, sample: &Sample<'_, '_>, time: u64) {
        /// In the handler of an interrupt, or of a soft one.
        const IN_INTERRUPT: u64 = 0x18;
        let (Some(waker), Ok(Some(bytes))) = (sample.tid(), sample.raw()) else { return };
        let raw = RawFields { bytes, endian: fields.endian };
        let number = |(offset, size): RawPlace| raw.number(offset, size);
        let Some(target) = number(fields.target).and_then(|pid| u32::try_from(pid).ok()) else {
            return;
        };
        let own = number(fields.waker).and_then(|pid| u32::try_from(pid).ok());
        // A thread that exits has no number any more.
        let waker = match (waker, own) {
            (u32::MAX, Some(own)) => own,
            _ => waker,
        };
        if let Some(own) = own
            && own != waker
            && waker > 0
        {
            self.namespace.insert(own, waker);
        }
        let mut bits = if fields.is_new { Wake::NEW } else { 0 };
        let chain = sample.callchain().ok().flatten();
        if chain.is_some() {
            bits |= Wake::CALLCHAIN;
        }
        if number(fields.flags).is_some_and(|flags| flags & IN_INTERRUPT != 0) && !fields.is_new {
            bits |= Wake::INTERRUPT;
            if let Some(chain) = chain {
                self.in_interrupt(sample.offset(), &chain);
            }
        }
        if fields.is_new {
            self.born.push((time, waker, target));
        }
        let wake = Wake::new(time, sample.offset(), waker, bits);
        self.wakes.push([0, target], wake);
    }

    /// Takes note of the end of a piece.
    pub(super) fn end_piece(&mut self) {
        self.wakes.end_piece();
    }

    /// Takes the wakes, by the number of the thread that is woken, in the order of the file.
    pub(super) fn by_target(&mut self) -> FxHashMap<u32, Vec<Wake>> {
        let all = std::mem::take(&mut self.wakes);
        let threads = all.threads().into_par_iter();
        threads.map(|thread| (thread.tid, thread.slices.concat())).collect()
    }

    /// Keeps the kernel's part of the callchain of a wake in an interrupt.
    fn in_interrupt(&mut self, offset: u64, chain: &U64s<'_>) {
        let kernel = chain.iter().take_while(|word| *word != context::USER);
        let kernel: Box<[u64]> = kernel.filter(|word| *word < context::MAX).collect();
        let next = u32::try_from(self.chains.len()).unwrap_or(u32::MAX);
        let number = *self.chains.entry(kernel).or_insert(next);
        self.in_interrupts.push((offset, number));
    }

    /// Appends the wakes of the pieces that follow.
    pub(crate) fn append(&mut self, next: Self) {
        self.wakes.append(next.wakes);
        let mut numbers = vec![0; next.chains.len()];
        for (chain, number) in next.chains {
            let new = u32::try_from(self.chains.len()).unwrap_or(u32::MAX);
            if let Some(of) = numbers.get_mut(number as usize) {
                *of = *self.chains.entry(chain).or_insert(new);
            }
        }
        self.in_interrupts.extend(next.in_interrupts.into_iter().map(|(offset, number)| {
            (offset, numbers.get(number as usize).copied().unwrap_or(u32::MAX))
        }));
        self.namespace.extend(next.namespace);
        self.born.extend(next.born);
        self.forks.extend(next.forks);
    }

    /// Replaces the numbers of targets by those in the namespace of the recorder, if it was in
    /// another than the first one. Returns the number of wakes whose targets are unknown.
    pub(crate) fn translate_targets(&mut self) -> u64 {
        if self.namespace.is_empty() {
            return 0;
        }
        self.forks.sort_unstable();
        for (time, parent, child) in &self.born {
            // The FORK record comes just before, of the same thread.
            let until = self.forks.partition_point(|(forked, ..)| forked <= time);
            let before = self.forks.get(..until).unwrap_or_default().iter().rev();
            let own = before.take(64).find(|(_, forking, _)| forking == parent);
            if let Some((.., own)) = own {
                self.namespace.entry(*child).or_insert(*own);
            }
        }
        let namespace = &self.namespace;
        self.wakes.renumber(|target| namespace.get(&target).copied())
    }

    /// Returns the wakes in interrupts.
    pub(crate) fn in_interrupts(self) -> InterruptWakes {
        let mut chains = vec![Box::default(); self.chains.len()];
        for (chain, number) in self.chains {
            if let Some(slot) = chains.get_mut(number as usize) {
                *slot = chain;
            }
        }
        InterruptWakes { chains, wakes: self.in_interrupts }
    }
}

/// Wakes in interrupts with the kernel's part of their callchains.
#[derive(Debug, Default)]
pub(crate) struct InterruptWakes {
    chains: Vec<Box<[u64]>>,
    /// Offset of the sample and index of the chain.
    wakes: Vec<(u64, u32)>,
}

/// Starts of the names of functions through which interrupts come.
const ENTRIES: [&str; 8] = [
    "irq_exit",
    "__irq_exit",
    "sysvec_",
    "asm_sysvec_",
    "asm_common_interrupt",
    "el1_irq",
    "el0_irq",
    "run_ksoftirqd",
];

/// Returns whether a function of the kernel is entered by interrupts only.
fn is_interrupt_entry(name: &str) -> bool {
    let name = name.strip_prefix("el1h_64_irq").map_or(name, |_| "el1_irq");
    ENTRIES.iter().any(|entry| name.starts_with(entry)) || name.starts_with("el0t_64_irq")
}

impl InterruptWakes {
    pub(crate) fn is_empty(&self) -> bool {
        self.wakes.is_empty()
    }

    /// Returns the offsets of the samples of wakes by soft interrupts that a thread ran itself, as it
    /// does when it sends to another thread of the machine; others borrowed it. `name` returns the
    /// name of the kernel's function at an address.
    pub(crate) fn own(&self, name: impl Fn(u64) -> Option<String>) -> FxHashSet<u64> {
        let addresses: FxHashSet<u64> = self.chains.iter().flatten().copied().collect();
        let entries: FxHashSet<u64> = addresses
            .into_iter()
            .filter(|address| name(*address).is_some_and(|name| is_interrupt_entry(&name)))
            .collect();
        // Without any entry, the kernel's functions are unknown.
        if entries.is_empty() {
            return FxHashSet::default();
        }
        let is_own = |chain: &[u64]| !chain.iter().any(|address| entries.contains(address));
        let own: Vec<bool> = self.chains.iter().map(|chain| is_own(chain)).collect();
        let of_own = |(_, chain): &&(u64, u32)| own.get(*chain as usize) == Some(&true);
        self.wakes.iter().filter(of_own).map(|(offset, _)| *offset).collect()
    }
}

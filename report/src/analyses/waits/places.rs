//! The pass over the samples: workers collect what switches wait for, and where wakers were.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use recrep_format::abi::{RegsAbi, RegsArch, SampleType};
use recrep_format::feature::tracing::RawFields;
use recrep_format::layout::UpTo;
use recrep_format::record::{RawRecord, Regs, Sample, SampleFields};
use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::analyses::callers::{Caller, Callers, has_two_futexes, is_c_library, is_lock_code};
use crate::callchain::{ChainOrigin, registers};
use crate::input::split::Piece;
use crate::input::unpack::UnpackBuffer;
use crate::samples::{
    ChainSetup, PieceWorker, Session, TaskFinder, by_piece, for_each_sample, tells_of_wakes,
};
use crate::timeline::{
    InterruptSource, KernelFunction, KernelPart, Role, SampleContext, WaitKind, Waits,
};
use crate::tracepoints::Formats;

/// What a thread waits for, and where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct WaitPlace {
    pub(super) kind: WaitKind,
    /// With a page fault, what it waits for.
    pub(super) behind_fault: Option<WaitKind>,
    pub(super) object: WaitObject,
    /// Number of the function that waits.
    pub(super) site: u32,
}

/// What a thread waits for, by the arguments of its system call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum WaitObject {
    /// Not known, or nothing that has a number.
    #[default]
    None,
    /// Address of a futex.
    Futex(u64),
    Descriptor(i32),
    /// Number of a child.
    Child(i32),
}

/// Where a waker was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct WakerPlace {
    /// Number of the function that woke, outside of the C library.
    pub(super) site: u32,
    /// Device of the interrupt, if the kernel's functions show it.
    pub(super) interrupt: Option<InterruptSource>,
    /// `true` if the waker exits.
    pub(super) is_exit: bool,
    /// `true` if a soft interrupt woke, and no hard one.
    pub(super) is_soft: bool,
}

/// WaitPlaces of a file's switches and wakes.
#[derive(Debug, Default)]
pub(super) struct WaitPlaces {
    /// Times of each thread's switches, by its index, with what it waits for.
    switches: BTreeMap<u32, Vec<(u64, WaitPlace)>>,
    /// Offsets of the samples of wakes, with where the wakers were.
    wakes: Vec<(u64, WakerPlace)>,
    /// Functions; the first stands for none.
    pub(super) sites: Vec<Caller>,
}

impl WaitPlaces {
    /// Collects the places of a file on all cores.
    pub(super) fn read(session: &Session<'_>, waits: &Waits, chains: &ChainSetup<'_>) -> Self {
        let events = SampleUses::of(session);
        let workers = by_piece(&session.split.pieces, |_| PlaceWorker {
            session,
            waits,
            events: &events,
            callers: Callers::new(session, chains, |caller| {
                is_c_library(&caller.module) || is_lock_code(caller)
            }),
            tasks: TaskFinder::new(&session.timeline, None),
            functions: Vec::new(),
            switches: FxHashMap::default(),
            wakes: Vec::new(),
        });
        let mut all = Self::default();
        let mut numbers = IndexMap::<Caller, u32, FxBuildHasher>::default();
        for PlaceWorker { callers, switches, wakes, .. } in workers {
            let of_worker: Vec<u32> = callers
                .into_found()
                .into_iter()
                .map(|caller| {
                    let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
                    *numbers.entry(caller).or_insert(next)
                })
                .collect();
            let renumbered = |site: u32| of_worker.get(site as usize).copied().unwrap_or(0);
            for (thread, mut places) in switches {
                for (_, place) in &mut places {
                    place.site = renumbered(place.site);
                }
                all.switches.entry(thread).or_default().append(&mut places);
            }
            let wakes = wakes.into_iter().map(|(offset, place)| {
                (offset, WakerPlace { site: renumbered(place.site), ..place })
            });
            all.wakes.extend(wakes);
        }
        for places in all.switches.values_mut() {
            places.sort_unstable_by_key(|(time, _)| *time);
        }
        all.wakes.sort_unstable_by_key(|(offset, _)| *offset);
        all.sites = numbers.into_keys().collect();
        all
    }

    /// Returns what the switch of a thread at a time waits for.
    pub(super) fn switch(&self, thread: u32, time: u64) -> Option<WaitPlace> {
        let places = self.switches.get(&thread)?;
        let at = places.binary_search_by_key(&time, |(time, _)| *time).ok()?;
        places.get(at).map(|(_, place)| *place)
    }

    /// Returns where the waker was whose sample has this offset.
    pub(super) fn wake(&self, offset: u64) -> Option<WakerPlace> {
        let at = self.wakes.binary_search_by_key(&offset, |(offset, _)| *offset).ok()?;
        self.wakes.get(at).map(|(_, place)| *place)
    }
}

/// What the samples of the file's events are read for.
struct SampleUses {
    /// By the index of the event.
    uses: Vec<SampleUse>,
    /// WaitPlaces of the flags in raw data, with their sizes.
    flags: Vec<Option<(usize, usize)>>,
    origins: Vec<ChainOrigin>,
    /// Numbers of the registers with the first two arguments of a system call.
    arguments: Option<[u32; 2]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SampleUse {
    None,
    Switch,
    Wake,
}

impl SampleUses {
    fn of(session: &Session<'_>) -> Self {
        const DI: u32 = 5;
        const SI: u32 = 4;
        let entries = session.file.attrs.entries();
        let roles =
            session.off_cpu.as_ref().map(|times| times.roles.as_slice()).unwrap_or_default();
        let uses = entries.iter().enumerate().map(|(place, entry)| {
            if roles.get(place) == Some(&Role::Switch) {
                return SampleUse::Switch;
            }
            if tells_of_wakes(entry) { SampleUse::Wake } else { SampleUse::None }
        });
        let formats = Formats::read(session.file);
        let flags = (0..entries.len()).map(|place| formats.event(place)?.place("common_flags"));
        let arguments = match registers(session.file) {
            Some(RegsArch::X86) => Some([DI, SI]),
            Some(RegsArch::Arm64) => Some([0, 1]),
            _ => None,
        };
        let origins = entries.iter().map(|entry| ChainOrigin::of(&entry.attr)).collect();
        Self { uses: uses.collect(), flags: flags.collect(), origins, arguments }
    }
}

/// What a function that passes calls on says of a wait.
#[derive(Clone, Copy, Debug)]
enum PassedFunction {
    Kernel(KernelFunction),
    /// `true` if what it waits for may have two futexes beside each other.
    CLibrary(bool),
}

impl PassedFunction {
    fn of(name: &str, is_kernel: bool) -> Self {
        match is_kernel {
            true => Self::Kernel(KernelFunction::of(name)),
            false => Self::CLibrary(has_two_futexes(name)),
        }
    }
}

/// What a callchain says in front of the program's functions.
#[derive(Clone, Copy, Debug, Default)]
struct PassedPart {
    kernel: KernelPart,
    /// `true` if what it waits for may have two futexes beside each other.
    has_two_futexes: bool,
}

struct PlaceWorker<'s> {
    session: &'s Session<'s>,
    waits: &'s Waits,
    events: &'s SampleUses,
    callers: Callers<'s>,
    tasks: TaskFinder<'s>,
    /// What functions of the kernel and of the C library say, by the number of the function.
    functions: Vec<Option<PassedFunction>>,
    /// By the index of the thread.
    switches: FxHashMap<u32, Vec<(u64, WaitPlace)>>,
    wakes: Vec<(u64, WakerPlace)>,
}

impl PieceWorker for PlaceWorker<'_> {
    fn read(&mut self, _: usize, piece: &Piece<'_>, buffer: &mut UnpackBuffer) {
        for_each_sample(piece, buffer, |raw| self.sample(raw));
    }
}

impl PlaceWorker<'_> {
    #[inline]
    fn sample(&mut self, raw: RawRecord<'_>) {
        let offset = raw.offset;
        let Some((index, sample)) = self.session.file.attrs.sample(raw) else { return };
        let using = self.events.uses.get(index.0).copied().unwrap_or(SampleUse::None);
        if using == SampleUse::None {
            return;
        }
        let (Some(time), Some(pid), Some(tid)) = (sample.time(), sample.pid(), sample.tid()) else {
            return;
        };
        let [pid, tid] = [pid, tid].map(u32::cast_signed);
        let at = self.session.clock.moment(Some(time), offset);
        let space = self.tasks.span(pid, tid, at).0.task.space;
        let context = SampleContext { space, moment: at };
        let origin = self.events.origins.get(index.0).copied().unwrap_or(ChainOrigin::Recorded);
        let (site, passed) = self.walk(&sample, origin, context);
        let kernel = passed.kernel;
        if using == SampleUse::Wake {
            let KernelPart { interrupt, is_exit, .. } = kernel;
            let is_soft = self.is_in_soft_interrupt(index.0, &sample);
            self.wakes.push((offset, WakerPlace { site, interrupt, is_exit, is_soft }));
            return;
        }
        let Some(thread) = self.waits.index(tid, time) else { return };
        let object = self.object(&sample, &passed);
        let kind = kernel.wait_kind();
        let behind_fault = kernel.kind.filter(|_| kernel.is_fault);
        let place = WaitPlace { kind, behind_fault, object, site };
        self.switches.entry(thread).or_default().push((time, place));
    }

    /// Returns whether a wake is in a soft interrupt, and in no hard one.
    fn is_in_soft_interrupt(&self, event: usize, sample: &Sample<'_, '_>) -> bool {
        // `TRACE_FLAG_HARDIRQ` and `TRACE_FLAG_SOFTIRQ`.
        const HARD: u64 = 0x08;
        const SOFT: u64 = 0x10;
        let (Some(Some((offset, size))), Ok(Some(bytes))) =
            (self.events.flags.get(event), sample.raw())
        else {
            return false;
        };
        let raw = RawFields { bytes, endian: self.session.file.endian };
        raw.number(*offset, *size).is_some_and(|flags| flags & (HARD | SOFT) == SOFT)
    }

    /// Returns the number of the function of the program, and what those in front of it say.
    fn walk(
        &mut self,
        sample: &Sample<'_, '_>,
        origin: ChainOrigin,
        context: SampleContext,
    ) -> (u32, PassedPart) {
        let functions = &mut self.functions;
        let mut part = PassedPart::default();
        let mut add = |number: u32, is_kernel: bool, caller: &Caller| {
            let place = number as usize;
            if functions.len() <= place {
                functions.resize(place + 1, None);
            }
            let Some(slot) = functions.get_mut(place) else { return };
            match *slot.get_or_insert_with(|| PassedFunction::of(&caller.name, is_kernel)) {
                PassedFunction::Kernel(function) => part.kernel.add(function),
                PassedFunction::CLibrary(has_two) => part.has_two_futexes |= has_two,
            }
        };
        let site = self.callers.number(sample, origin, context, Some(&mut add));
        (site, part)
    }

    /// Returns what the arguments of the system call name.
    fn object(&self, sample: &Sample<'_, '_>, passed: &PassedPart) -> WaitObject {
        let mut fields = SampleFields::default();
        let is_read = sample.walk(UpTo::field(SampleType::REGS_USER), &mut fields).is_ok();
        let regs = fields.regs_user.filter(|regs| is_read && regs.abi != RegsAbi::NONE);
        let PassedPart { kernel, has_two_futexes } = passed;
        let (Some(regs), Some(numbers), false) = (regs, self.events.arguments, kernel.is_fault)
        else {
            return WaitObject::None;
        };
        match object(&regs, numbers, kernel) {
            Some(WaitObject::Futex(address)) if *has_two_futexes => WaitObject::Futex(address & !7),
            found => found.unwrap_or_default(),
        }
    }
}

/// Returns what the first two arguments of a system call name, in these registers.
fn object(regs: &Regs<'_>, [first, second]: [u32; 2], kernel: &KernelPart) -> Option<WaitObject> {
    let first = regs.get(first)?;
    // Descriptors and numbers of processes are of 32 bits.
    #[expect(clippy::cast_possible_truncation, reason = "the kernel takes the lower half, too")]
    let int = |value: u64| (value as u32).cast_signed();
    Some(match kernel.kind? {
        WaitKind::Futex => WaitObject::Futex(first),
        WaitKind::Child if kernel.is_waitid => WaitObject::Child(int(regs.get(second)?)),
        WaitKind::Child => WaitObject::Child(int(first)),
        WaitKind::Pipe
        | WaitKind::Socket
        | WaitKind::Epoll
        | WaitKind::Eventfd
        | WaitKind::IoUring
        | WaitKind::Terminal
        | WaitKind::FileLock => WaitObject::Descriptor(int(first)),
        _ => WaitObject::None,
    })
}

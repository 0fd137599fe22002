//! Records of a shared recording.

use recrep_format::abi::{CpuMode, RegsAbi, SampleType, context, misc};
use recrep_format::attr::{AttrEntry, AttrIndex};
use recrep_format::bytes::{Encoder, U64s};
use recrep_format::record::{
    Body, BranchStack, Cgroup, EventProperty, Inode, KSymbol, Mmap2, MmapIdentity, RawRecord,
    Record, Regs, Sample, SampleFields, StackUser,
};
use recrep_format::wire::Text;

use super::places::{KERNEL_NAME, KERNEL_SIZE, SharedPlaces, mapped};
use super::removed::{Removed, RemovedData};
use super::texts;
use crate::callchain::{ChainOrigin, MISSING, RETURNS, UNWOUND};
use crate::input::split::Piece;
use crate::input::unpack::UnpackBuffer;
use crate::samples::{ChainReader, ChainSetup, PieceWorker, Session, TaskFinder, by_piece};
use crate::timeline::{Moment, SampleContext, SpaceId, mapping_in};

/// Fields of samples that have data of programs, or addresses of data.
pub(super) const PRIVATE: SampleType = SampleType::ADDR
    .union(SampleType::RAW)
    .union(SampleType::REGS_INTR)
    .union(SampleType::PHYS_ADDR)
    .union(SampleType::AUX);

/// Registers and a copy of the stack: of events that have both, they tell whether a recorder unwound
/// the callchain.
pub(super) const COPIES: SampleType = SampleType::REGS_USER.union(SampleType::STACK_USER);

/// Returns the records, rewritten, in their order.
pub(super) fn rewritten(
    session: &Session<'_>,
    places: &SharedPlaces,
    chains: &ChainSetup<'_>,
) -> (Vec<Vec<u8>>, Removed) {
    let worker = |_| RecordRewriter::new(session, places, chains);
    let workers = by_piece(&session.split.pieces, worker);
    let (mut pieces, mut removed) = (Vec::new(), Removed::default());
    for worker in workers {
        pieces.extend(worker.pieces);
        removed.add(worker.removed);
    }
    pieces.sort_unstable_by_key(|piece| piece.number);
    let mut all = Vec::with_capacity(pieces.len() + 1);
    // Records that simpleperf keeps in a section, of what was mapped before.
    let mut first = RecordRewriter::new(session, places, chains);
    for raw in session.earlier() {
        first.record(&raw);
    }
    all.push(first.out.into_bytes());
    all.extend(pieces.into_iter().map(|piece| piece.bytes));
    (all, removed)
}

/// A mapping at its new place, and its path there.
struct MovedMapping<'m> {
    map: Mmap2<'m>,
    path: Vec<u8>,
}

/// Rewritten records of a piece.
struct RewrittenPiece {
    number: usize,
    bytes: Vec<u8>,
}

/// One worker.
struct RecordRewriter<'s> {
    session: &'s Session<'s>,
    places: &'s SharedPlaces,
    chains: ChainReader<'s>,
    tasks: TaskFinder<'s>,
    out: Encoder,
    pieces: Vec<RewrittenPiece>,
    removed: Removed,
}

impl PieceWorker for RecordRewriter<'_> {
    fn read(&mut self, number: usize, piece: &Piece<'_>, buffer: &mut UnpackBuffer) {
        for raw in piece.records(buffer) {
            self.record(&raw);
        }
        let bytes = std::mem::replace(&mut self.out, Encoder::new(self.session.file.endian));
        self.pieces.push(RewrittenPiece { number, bytes: bytes.into_bytes() });
    }
}

impl<'s> RecordRewriter<'s> {
    fn new(session: &'s Session<'s>, places: &'s SharedPlaces, chains: &'s ChainSetup<'s>) -> Self {
        Self {
            session,
            places,
            chains: chains.reader(),
            tasks: TaskFinder::new(&session.timeline, None),
            out: Encoder::new(session.file.endian),
            pieces: Vec::new(),
            removed: Removed::default(),
        }
    }

    /// Writes a record, or counts it as left out.
    fn record(&mut self, raw: &RawRecord<'_>) {
        let attrs = &self.session.file.attrs;
        if let Some((event, sample)) = attrs.sample(*raw) {
            if self.sample(raw, event, &sample).is_none() {
                self.removed.leave_out(raw.header.kind);
            }
            return;
        }
        let Ok(record) = attrs.decode(raw) else {
            self.removed.leave_out(raw.header.kind);
            return;
        };
        let at = self.session.clock.moment(attrs.time_of(raw), raw.offset);
        let (bits, trailer) = (record.misc & !misc::MMAP_BUILD_ID, record.trailer);
        let path;
        let body = match record.body {
            body @ (Body::Mmap(_) | Body::Mmap2(_)) => {
                let Some(map) = mapping_in(&body, record.misc) else { return };
                let Some(moved) = self.map(&map, CpuMode::of(record.misc), at) else {
                    self.removed.leave_out(raw.header.kind);
                    return;
                };
                path = moved.path;
                Body::Mmap2(Mmap2 { filename: Text::new(&path), ..moved.map })
            }
            Body::KSymbol(symbol) => {
                let addr = self.places.of_kernel(symbol.addr).unwrap_or_default();
                Body::KSymbol(KSymbol { addr, ..symbol })
            }
            Body::Cgroup(Cgroup { id, path: recorded }) => {
                self.removed.note(RemovedData::Directories);
                path = texts::shared_path(recorded.as_bytes());
                Body::Cgroup(Cgroup { id, path: Text::new(&path) })
            }
            Body::EventUpdate(update) if !matches!(update.property, EventProperty::Name(_)) => {
                Body::EventUpdate(update)
            }
            body if is_kept(&body) => body,
            _ => {
                self.removed.leave_out(raw.header.kind);
                return;
            }
        };
        if Record::new(bits, body).with_trailer(trailer).encode(&mut self.out).is_err() {
            self.removed.leave_out(raw.header.kind);
        }
    }

    /// Returns a mapping at its new place; `None` if that is not known.
    fn map<'m>(&mut self, map: &Mmap2<'m>, mode: CpuMode, at: Moment) -> Option<MovedMapping<'m>> {
        let places = self.places;
        let map = Mmap2 { identity: MmapIdentity::Inode(NO_FILE), ..*map };
        let path = texts::shared_path(map.filename.as_bytes());
        if path != map.filename.as_bytes() {
            self.removed.note(RemovedData::Directories);
        }
        if mode == CpuMode::Kernel {
            let addr = places.of_kernel(map.addr)?;
            let is_kernel = path.starts_with(KERNEL_NAME);
            let pgoff = if is_kernel { places.of_kernel(map.pgoff).unwrap_or(0) } else { 0 };
            // Recorders that could not read the length wrote 0.
            let len = if is_kernel && (map.addr == 0 || map.len > KERNEL_SIZE) {
                KERNEL_SIZE
            } else {
                map.len
            };
            return Some(MovedMapping { map: Mmap2 { addr, pgoff, len, ..map }, path });
        }
        if mode.is_guest() {
            return None;
        }
        let place = mapped(self.session, &map, at);
        let (start, shared) = places.module(place.module?.0);
        let Some(start) = start else {
            let addr = places.of_memory(map.addr)?;
            // The offset of memory without a file is the address at which it was mapped first.
            let pgoff = places.of_memory(map.pgoff).unwrap_or(0);
            return Some(MovedMapping { map: Mmap2 { addr, pgoff, ..map }, path });
        };
        let (addr, pgoff) = (start.wrapping_add(place.address), place.address);
        Some(MovedMapping { map: Mmap2 { addr, pgoff, ..map }, path: shared.to_vec() })
    }

    /// Writes a sample; `None` if it is damaged.
    fn sample(
        &mut self,
        raw: &RawRecord<'_>,
        event: AttrIndex,
        sample: &Sample<'_, '_>,
    ) -> Option<()> {
        let AttrEntry { attr, .. } = self.session.file.attrs.get(event)?;
        let mut fields = SampleFields::default();
        sample.read(&mut fields).ok()?;
        let at = self.session.clock.moment(fields.time, raw.offset);
        let [pid, tid] = fields.tid.map_or([-1, -1], |task| task.map(u32::cast_signed));
        let space = self.tasks.span(pid, tid, at).0.task.space;
        let (mode, origin) = (sample.cpu_mode(), ChainOrigin::of(attr));
        self.note_removed(&fields);
        let context = SampleContext { space, moment: at };
        let chain = if fields.callchain.is_some() {
            Some(self.chain(sample, origin, context, &fields)?)
        } else {
            None
        };
        let endian = self.session.file.endian;
        let branches = fields.branch_stack.map(|stack| self.branches(stack, space, at));
        if let (Some(stack), Some(words)) = (&mut fields.branch_stack, &branches) {
            stack.words = U64s::new(words, endian);
        }
        fields.ip = fields.ip.map(|ip| self.places.moved(self.session, Some(mode), space, ip, at));
        let registers;
        if let Some(chain) = &chain {
            fields.callchain = Some(U64s::new(chain.words.as_bytes(), endian));
            if origin == ChainOrigin::Copied
                && let Some(regs) = fields.regs_user
            {
                registers = vec![0; if chain.is_cut { 8 * regs.values.len() } else { 0 }];
                let abi = if chain.is_cut { regs.abi } else { RegsAbi::NONE };
                let values = U64s::new(&registers, endian);
                fields.regs_user = Some(Regs { abi, values, ..regs });
                fields.stack_user = Some(StackUser::default());
            }
        }
        if origin != ChainOrigin::Copied {
            (fields.regs_user, fields.stack_user) = (None, None);
        }
        (fields.addr, fields.raw, fields.aux) = (None, None, None);
        (fields.regs_intr, fields.phys_addr) = (None, None);
        let body = Body::Sample(Box::new(fields));
        Record::new(raw.header.misc, body).encode(&mut self.out).ok()
    }

    /// Notes what a sample has that is left out.
    fn note_removed(&mut self, fields: &SampleFields<'_>) {
        let stack = fields.stack_user.is_some_and(|stack| !stack.copied().is_empty());
        let registers = fields.regs_intr.is_some()
            || fields.regs_user.is_some_and(|regs| regs.abi != RegsAbi::NONE);
        for (is_there, data) in [
            (stack, RemovedData::Stacks),
            (registers, RemovedData::Registers),
            (fields.raw.is_some(), RemovedData::Raw),
            (fields.addr.or(fields.phys_addr).is_some(), RemovedData::DataAddresses),
            (fields.aux.is_some(), RemovedData::Traces),
        ] {
            if is_there {
                self.removed.note(data);
            }
        }
    }

    /// Returns the callchain of a sample, moved, as a recorder that unwinds writes it.
    fn chain(
        &mut self,
        sample: &Sample<'_, '_>,
        origin: ChainOrigin,
        at: SampleContext,
        fields: &SampleFields<'_>,
    ) -> Option<MovedChain> {
        let mut words = std::mem::take(&mut self.chains.words);
        words.clear();
        if origin == ChainOrigin::Calls {
            words.extend(fields.callchain?.iter());
        } else {
            // What is damaged has no frames.
            _ = self.chains.sources.chain(sample, origin, at, &mut words);
        }
        let endian = self.session.file.endian;
        let mut chain = MovedChain { words: Encoder::new(endian), is_cut: false };
        let mut mode = sample.cpu_mode();
        // Addresses of frames that are unwound here are those of the calls.
        let (mut is_unwound, mut is_first) = (false, true);
        for word in &words {
            if *word == MISSING {
                chain.is_cut = true;
                break;
            }
            if *word >= context::MAX {
                let marker = if [RETURNS, UNWOUND].contains(word) { context::USER } else { *word };
                mode = mode_behind(marker, mode);
                (is_unwound, is_first) = (*word == UNWOUND, true);
                chain.words.u64(marker);
                continue;
            }
            let SampleContext { space, moment } = at;
            let moved = self.places.moved(self.session, Some(mode), space, *word, moment);
            let behind = u64::from(is_unwound && !is_first);
            chain.words.u64(moved.wrapping_add(behind));
            is_first = false;
        }
        self.chains.words = words;
        Some(chain)
    }

    fn branches(&self, stack: BranchStack<'_>, space: Option<SpaceId>, at: Moment) -> Vec<u8> {
        let mut e = Encoder::new(self.session.file.endian);
        for branch in stack.entries() {
            for end in [branch.from, branch.to] {
                // Hardware writes 0 for an end that it does not know.
                e.u64(match end {
                    0 => 0,
                    end => self.places.moved(self.session, None, space, end, at),
                });
            }
            e.u64(branch.flags.to_word(e.endian()));
        }
        e.into_bytes()
    }
}

/// A callchain with its new addresses.
struct MovedChain {
    words: Encoder,
    /// `true` if outer frames are missing.
    is_cut: bool,
}

/// Identity of a mapping without a file.
const NO_FILE: Inode = Inode { maj: 0, min: 0, ino: 0, ino_generation: 0 };

/// Returns the CPU mode of the frames behind a marker.
fn mode_behind(marker: u64, before: CpuMode) -> CpuMode {
    match marker {
        context::KERNEL => CpuMode::Kernel,
        context::USER => CpuMode::User,
        context::HV => CpuMode::Hypervisor,
        context::GUEST | context::GUEST_KERNEL | context::GUEST_USER => CpuMode::GuestUser,
        _ => before,
    }
}

/// Returns whether a record has nothing private. Others are left out: those of a newer kernel, too.
fn is_kept(body: &Body<'_>) -> bool {
    matches!(
        body,
        Body::Lost(_)
            | Body::Comm(_)
            | Body::Exit(_)
            | Body::Fork(_)
            | Body::Throttle(_)
            | Body::Unthrottle(_)
            | Body::LostSamples(_)
            | Body::Read(_)
            | Body::Switch
            | Body::SwitchCpuWide(_)
            | Body::FinishedRound
            | Body::FinishedInit
            | Body::IdIndex(_)
            | Body::ThreadMap(_)
            | Body::CpuMap(_)
            | Body::StatConfig(_)
            | Body::Stat(_)
            | Body::StatRound(_)
            | Body::TimeConv(_)
    )
}

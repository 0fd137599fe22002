//! Turns addresses into frames, and recorded chains into chains of frames, while samples are
//! counted.
//!
//! ```text
//!   words      KERNEL k1 k2 USER u1 u2 u3              u2 and u3 are as in the chain before
//!   chain 0 ◄─ u3 ◄─ u2 ◄─ u1 ◄─ k2 ◄─ k1              so this chain begins at the node of that chain's u2
//! ```
//!
//! An address means the same as long as its *context* is the same: the CPU mode, the address space,
//! and the changes that its mappings had seen ([`Contexts`]). It is looked up in two steps, each
//! with a direct-mapped cache of ranges:
//!
//! ```text
//!   context, address      ──► piece of a mapping ──► image: module and all else that its frames have in common
//!   image, address in it  ──► function           ──► frame
//! ```
//!
//! Processes that run the same code share the second step, so that a new process is not unknown
//! territory.

use std::ops::Range;

use recrep_format::abi::CpuMode;

use super::checked::Checks;
use super::images::{
    FrameFields, Image, ImageRange, Images, MappedPiece, RecentPieces, RecentRanges, UNMAPPED,
    word_of,
};
use crate::callchain::read::history::parts;
use crate::callchain::read::words::{FrameWord, for_each_frame};
use crate::callchain::rules::frame_pointers::ChainChecks;
use crate::callchain::tree::chains::Chains;
use crate::callchain::tree::stacks::{CallSite, Frame, Stacks};
use crate::query::End;
use crate::symbols::{Functions, SymbolId};
use crate::timeline::{Contexts, Epoch, ModuleId, Moment, Place, SpaceEpoch, SpaceId, Timeline};

/// Finds the frames and chains of one worker's samples.
#[derive(Debug)]
pub(crate) struct FrameFinder<'t> {
    /// Frames and chains that were found.
    pub stacks: Stacks,
    timeline: &'t Timeline,
    pub(crate) fields: FrameFields,
    functions: Option<&'t Functions<'t>>,
    /// `true` if callers get functions too, not only sampled instructions.
    pub(crate) names_callers: bool,
    /// Checks of the steps of recorded chains.
    pub(crate) checks: Option<Checks<'t>>,
    epoch: Option<Epoch>,
    pub(crate) contexts: Contexts<AddressKind>,
    /// The piece that was used last.
    last: MappedPiece,
    pieces: RecentPieces,
    pub images: Images,
    /// Numbers plus one of the frames of symbols, by image and symbol, [`SYMBOLS`] in a list; 0 if
    /// unknown.
    of_symbols: Vec<Vec<Vec<u32>>>,
    /// Numbers of the frames at recent addresses.
    recent: RecentRanges<u32>,
    words: Vec<ChainWord>,
    /// Frames that are not those of the chain before, outermost first, and the chains that begin
    /// there.
    new: (Vec<u32>, Vec<u32>),
    /// The chain before.
    before: Vec<ChainWord>,
}

/// Properties of an address that decide its frame, besides the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct AddressKind {
    /// CPU mode; `None` for branches: it is not recorded.
    mode: Option<CpuMode>,
    site: CallSite,
    is_named: bool,
    branch: u64,
}

impl AddressKind {
    /// Returns the number of the context that an address of this kind has in an epoch.
    #[inline]
    pub(crate) fn context(self, contexts: &mut Contexts<Self>, epoch: SpaceEpoch) -> u32 {
        contexts.number(self, self.mode.map_or(epoch, |mode| epoch.in_mode(mode)))
    }
}

/// An address of a chain, and the chain that begins there.
#[derive(Clone, Copy, Debug)]
struct ChainWord {
    ip: u64,
    context: u32,
    chain: u32,
}

/// Context of sampled instructions: all that decides their frames, but for the address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sampled {
    context: u32,
    pub space: Option<SpaceId>,
}

/// Number that stands for no function.
const NO_FUNCTION: u32 = u32::MAX;

/// Number of neighboring symbols whose frames are in one list.
const SYMBOLS: usize = 1 << 10;

impl<'t> FrameFinder<'t> {
    /// Creates a finder that has found nothing yet. With `functions`, these replace the addresses
    /// of sampled instructions, and if `names_callers` those of callers. With `checks`, the steps
    /// of chains are checked that are marked so.
    pub(crate) fn new(
        timeline: &'t Timeline,
        fields: FrameFields,
        functions: Option<&'t Functions<'t>>,
        names_callers: bool,
        checks: Option<ChainChecks<'t>>,
    ) -> Self {
        Self {
            stacks: Stacks::default(),
            timeline,
            fields,
            functions,
            names_callers,
            checks: checks.map(Checks::new),
            epoch: None,
            contexts: Contexts::default(),
            last: MappedPiece::default(),
            pieces: RecentPieces::default(),
            images: Images::default(),
            of_symbols: Vec::new(),
            recent: RecentRanges::default(),
            words: Vec::new(),
            new: Default::default(),
            before: Vec::new(),
        }
    }

    /// Forgets the chains that were found, but not their frames: numbers of chains begin anew.
    pub(crate) fn forget_chains(&mut self) {
        self.stacks.chains = Chains::default();
        self.before.clear();
    }

    /// Returns the context of instructions that are sampled in this mode from now on, and when it
    /// ends.
    pub(crate) fn sampled(
        &mut self,
        mode: CpuMode,
        space: Option<SpaceId>,
        at: Moment,
    ) -> (Sampled, Range<Moment>) {
        let context = self.context(Some(mode), true, space, at);
        (
            Sampled { context, space },
            self.epoch.as_ref().map_or(at..at, |epoch| epoch.moments.clone()),
        )
    }

    /// Returns the word that stands for the frame of a sampled instruction, with its function if it
    /// has one (see [`Images::frame`]).
    #[inline]
    pub(crate) fn named(&mut self, sampled: &Sampled, ip: u64, at: impl FnOnce() -> Moment) -> u64 {
        let MappedPiece { shift, image, is_mapped, .. } = self.piece(sampled.context, ip, at);
        let address = ip.wrapping_add(shift);
        // Unlike callers, sampled instructions are always code, so unmapped ones differ.
        let frame = if is_mapped { self.frame_at(address, image, false) } else { NO_FUNCTION };
        if frame != NO_FUNCTION {
            frame.into()
        } else {
            word_of(image, address).unwrap_or_else(|| self.number(address, image).into())
        }
    }

    /// Returns the frame of an instruction by its address in the module: of a sampled one, or
    /// without a CPU mode of the end of a branch.
    #[inline]
    pub(crate) fn mapped(
        &mut self,
        mode: Option<CpuMode>,
        space: Option<SpaceId>,
        ip: u64,
        at: Moment,
    ) -> Frame {
        let context = self.context(mode, false, space, at);
        let MappedPiece { shift, image, .. } = self.piece(context, ip, || at);
        let frame = self.images.get(image).map_or_else(Frame::default, |image| image.frame);
        Frame { address: ip.wrapping_add(shift), ..frame }
    }

    /// Returns the context of an instruction that is in no chain.
    #[inline]
    pub(crate) fn context(
        &mut self,
        mode: Option<CpuMode>,
        is_named: bool,
        space: Option<SpaceId>,
        at: Moment,
    ) -> u32 {
        let epoch = self.epoch(space, at);
        AddressKind { mode, site: CallSite::At, is_named, branch: 0 }
            .context(&mut self.contexts, epoch)
    }

    /// Appends the number of the frame of each address, with its function if it has one, and the
    /// address in its module.
    #[inline]
    pub(crate) fn resolve(
        &mut self,
        epoch: SpaceEpoch,
        at: Moment,
        addresses: impl Iterator<Item = (CpuMode, u64, CallSite)>,
        found: &mut Vec<(u32, u64)>,
    ) {
        let mut last = None;
        for (mode, ip, site) in addresses {
            let kind = self.kind(mode, site, true);
            let context = match last {
                Some((before, context)) if before == kind => context,
                _ => kind.context(&mut self.contexts, epoch),
            };
            last = Some((kind, context));
            found.push(self.frame(context, ip, at));
        }
    }

    /// Returns the number of the frame of a callchain's address, with its function if it has one.
    pub(crate) fn resolve_word(&mut self, epoch: SpaceEpoch, at: Moment, word: &FrameWord) -> u32 {
        let kind = self.kind(word.mode, word.site, true);
        let context = kind.context(&mut self.contexts, epoch);
        let (number, _) = self.frame(context, word.ip, at);
        number
    }

    /// Returns the kind of a frame's address.
    #[inline]
    pub(crate) fn kind(&self, mode: CpuMode, site: CallSite, is_named: bool) -> AddressKind {
        let is_at = site == CallSite::Inlined && !self.fields.inlined;
        let site = if is_at { CallSite::At } else { site };
        AddressKind { mode: Some(mode), site, is_named, branch: 0 }
    }

    /// Returns the number of the chain of these words at this moment.
    #[inline]
    pub(crate) fn chain(&mut self, space: Option<SpaceId>, at: Moment, words: &[u64]) -> u32 {
        if words.is_empty() {
            return 0;
        }
        let epoch = self.epoch(space, at);
        let mut found = std::mem::take(&mut self.words);
        found.clear();
        let (branches, callers) = parts(words);
        for [ip, branch] in branches.as_chunks().0 {
            let kind = AddressKind {
                mode: None,
                site: CallSite::At,
                is_named: self.names_callers,
                branch: *branch,
            };
            found.push(ChainWord {
                ip: *ip,
                context: kind.context(&mut self.contexts, epoch),
                chain: 0,
            });
        }
        let mut last: Option<(AddressKind, u32)> = None;
        for_each_frame(CpuMode::User, callers, |FrameWord { mode, ip, site, .. }| {
            let kind = self.kind(mode, site, self.names_callers);
            let context = match last {
                Some((before, context)) if before == kind => context,
                _ => kind.context(&mut self.contexts, epoch),
            };
            last = Some((kind, context));
            found.push(ChainWord { ip, context, chain: 0 });
        });
        let (mut chain, mut new) = (0, found.len());
        for (word, old) in found.iter_mut().rev().zip(self.before.iter().rev()) {
            if (word.ip, word.context) != (old.ip, old.context) {
                break;
            }
            chain = old.chain;
            word.chain = chain;
            new -= 1;
        }
        let (mut frames, mut chains) = std::mem::take(&mut self.new);
        frames.clear();
        frames.extend(
            found.iter().take(new).rev().map(|word| self.frame(word.context, word.ip, at).0),
        );
        self.stacks.chains.add_all(chain, &frames, &mut chains);
        for (word, added) in found.iter_mut().take(new).rev().zip(&chains) {
            chain = *added;
            word.chain = chain;
        }
        self.new = (frames, chains);
        self.words = std::mem::replace(&mut self.before, found);
        chain
    }

    /// Returns the epoch of a space that this moment is in.
    #[inline]
    pub(crate) fn epoch(&mut self, space: Option<SpaceId>, at: Moment) -> SpaceEpoch {
        match &self.epoch {
            Some(epoch) if epoch.covers(space, at) => epoch.of,
            _ => self.epoch.insert(self.timeline.epoch(space, at)).of,
        }
    }

    /// Returns the number of an address's frame, and the address in its module.
    #[inline]
    fn frame(&mut self, context: u32, ip: u64, at: Moment) -> (u32, u64) {
        let MappedPiece { shift, mask, image, is_checked, .. } = self.piece(context, ip, || at);
        let address = ip.wrapping_add(shift);
        let number = match is_checked {
            true => self.checked_frame(address & mask, image),
            false => self.frame_at(address & mask, image, true),
        };
        (number, address)
    }

    /// Returns the number of the frame at an address of an image. Unless `is_numbered`, it is
    /// [`NO_FUNCTION`] for an address that has a frame of its own.
    #[inline]
    fn frame_at(&mut self, address: u64, image: u32, is_numbered: bool) -> u32 {
        match self.recent.get(image, address) {
            Some(frame) if !is_numbered || frame != NO_FUNCTION => frame,
            _ => self.new_frame(address, image, is_numbered),
        }
    }

    #[cold]
    fn new_frame(&mut self, address: u64, image: u32, is_numbered: bool) -> u32 {
        let site = self.images.get(image).map_or(CallSite::At, |image| image.frame.site);
        let (frame, Range { start, end }) = match self.look_up(address, image, site) {
            (Some(frame), range) => (self.number_of(frame, image), range),
            (None, _) if is_numbered => {
                (self.number(address, image), address..address.saturating_add(1))
            }
            (None, range) => (NO_FUNCTION, range),
        };
        self.recent.put(ImageRange { start, end, image, value: frame }, address);
        frame
    }

    /// Returns the number of an address's own frame.
    pub(crate) fn number(&mut self, address: u64, image: u32) -> u32 {
        let frame = self.images.get(image).map_or_else(Frame::default, |image| image.at(address));
        self.stacks.number(frame)
    }

    /// Returns the number of a frame of an image that stands for more than one address.
    fn number_of(&mut self, frame: Frame, image: u32) -> u32 {
        let symbol = usize::try_from(frame.address).ok().filter(|_| {
            // Each branch has an image of its own, so each would have a table of its own.
            frame.end.is_symbol && !self.fields.ip && frame.branch == 0
        });
        let known = symbol.and_then(|symbol| {
            let lists = self.of_symbols.get_mut(image as usize)?;
            let list = symbol / SYMBOLS;
            if lists.get(list).is_none_or(Vec::is_empty) {
                lists.resize(lists.len().max(list + 1), Vec::new());
                *lists.get_mut(list)? = vec![0; SYMBOLS];
            }
            lists.get_mut(list)?.get_mut(symbol % SYMBOLS)
        });
        match known {
            Some(known) => {
                if *known == 0 {
                    *known = self.stacks.number(frame) + 1;
                }
                *known - 1
            }
            None => self.stacks.number(frame),
        }
    }

    /// Returns the frame of an address, and a range around it with the same frame. `None` stands
    /// for a frame of its own for each address of the range.
    pub(crate) fn look_up(
        &self,
        address: u64,
        image: u32,
        site: CallSite,
    ) -> (Option<Frame>, Range<u64>) {
        let all = 0..u64::MAX;
        let Some(image) = self.images.get(image) else { return (None, all) };
        let functions = self.functions.filter(|_| image.is_named);
        let module = image.frame.module.checked_sub(1);
        let found = module.map(|module| {
            functions.map(|functions| function_at(functions, module as usize, address, site))
        });
        let frame = image.at(address);
        let (frame, range) = match found {
            None if site == CallSite::Nowhere => (frame, all),
            // Without frame pointers, callchains contain arbitrary values, which differ in each
            // sample and mean nothing to a reader.
            None if !self.fields.unmapped => (Frame { address: UNMAPPED, ..frame }, all),
            None | Some(None) => return (None, all),
            Some(Some((Some(symbol), function))) => {
                let end = End { is_symbol: true, ..frame.end };
                (Frame { end, address: symbol.0.into(), ..frame }, function)
            }
            Some(Some((None, gap))) if !self.fields.unnamed => {
                (Frame { address: UNMAPPED, ..frame }, gap)
            }
            Some(Some((None, gap))) => return (None, gap),
        };
        (Some(frame), if self.fields.ip { address..address.saturating_add(1) } else { range })
    }

    /// Returns the piece that an address is in.
    #[inline]
    pub(crate) fn piece(
        &mut self,
        context: u32,
        ip: u64,
        at: impl FnOnce() -> Moment,
    ) -> MappedPiece {
        if !self.last.has(context, ip) {
            self.last =
                self.pieces.get(context, ip).unwrap_or_else(|| self.new_piece(context, ip, at()));
        }
        self.last
    }

    #[cold]
    fn new_piece(&mut self, context: u32, ip: u64, at: Moment) -> MappedPiece {
        let Some((kind, SpaceEpoch { space, .. })) = self.contexts.get(context) else {
            return MappedPiece::default();
        };
        let (fields, AddressKind { mode, site, is_named, branch }) = (self.fields, kind);
        let (mode, place, Range { start, end }) = match mode {
            Some(mode) if site == CallSite::Nowhere => {
                (mode, Place { module: None, address: ip, size: 0, is_shared: false }, 0..u64::MAX)
            }
            // An address behind the last instruction of a mapping belongs to the mapping.
            Some(mode) if site == CallSite::Before => {
                let call = ip.wrapping_sub(1);
                let (place, Range { start, end }) = self.timeline.place_in(mode, space, call, at);
                let place = Place { address: place.address.wrapping_add(1), ..place };
                (mode, place, start.saturating_add(1)..end.saturating_add(1))
            }
            Some(mode) => {
                let (place, range) = self.timeline.place_in(mode, space, ip, at);
                (mode, place, range)
            }
            None => self.timeline.place_in_any_mode(space, ip, at),
        };
        let cpu_mode = if fields.cpu_mode { u8::try_from(mode.bits()).unwrap_or(0) } else { 0 };
        let frame = Frame {
            module: place.module.map_or(0, |ModuleId(module)| module + 1),
            end: End { cpu_mode, ..End::default() },
            site,
            size: if fields.size { place.size } else { 0 },
            branch,
            ..Frame::default()
        };
        let shift = place.address.wrapping_sub(ip);
        let image =
            self.images.number(Image { frame, is_named, shift: fields.ip.then_some(shift) });
        self.of_symbols.resize(self.of_symbols.len().max(image as usize + 1), Vec::new());
        let (is_mapped, is_checked) = (frame.module > 0, site == CallSite::Checked);
        let is_missing = site == CallSite::Nowhere;
        let is_distinct = is_mapped || fields.unmapped || fields.ip || is_missing;
        let mask = if is_distinct { u64::MAX } else { 0 };
        let piece = MappedPiece { start, end, shift, mask, context, image, is_mapped, is_checked };
        self.pieces.put(piece, ip);
        piece
    }
}

/// Returns the function of an address of a module, and the addresses around it with the same one.
fn function_at(
    functions: &Functions<'_>,
    module: usize,
    address: u64,
    site: CallSite,
) -> (Option<SymbolId>, Range<u64>) {
    if !site.is_before() {
        return functions.find(module, address);
    }
    match functions.find(module, address.wrapping_sub(1)) {
        // Code that nothing calls, as the trampoline behind a signal handler.
        (None, before) if before.end == address => {
            (functions.find(module, address).0, address..address.saturating_add(1))
        }
        (None, before) => (None, before.start.saturating_add(1)..before.end),
        (found, before) => (found, before.start.saturating_add(1)..before.end.saturating_add(1)),
    }
}

#[cfg(test)]
mod tests;

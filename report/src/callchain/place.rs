//! Turns addresses into frames, and recorded chains into chains of frames, while samples are counted.
//!
//! ```text
//!   words      KERNEL k1 k2 USER u1 u2 u3              u2 and u3 are as in the chain before
//!   chain 0 ◄─ u3 ◄─ u2 ◄─ u1 ◄─ k2 ◄─ k1              so this chain begins at the node of that chain's u2
//! ```
//!
//! An address means the same as long as its *context* is the same: the CPU mode, the address space, and the changes that
//! its mappings had seen ([`Contexts`]). A frame is looked up once for a range of addresses with the same function: recent
//! ranges are in a cache by address and context. What is not there is looked up in the timeline and named again.

use std::ops::Range;

use recrep_format::abi::{CpuMode, context};

use super::history::parts;
use super::stacks::{Frame, Stacks};
use crate::count::End;
use crate::symbols::Functions;
use crate::timeline::{Contexts, Epoch, ModuleId, Moment, SpaceEpoch, SpaceId, Timeline};

/// Fields that distinguish frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameFields {
    /// Whether the CPU mode is part of a frame.
    pub cpu_mode: bool,
    /// Whether the recorded address is part of a frame.
    pub ip: bool,
    /// Whether the size of the mapping is part of a frame.
    pub size: bool,
    /// Whether return addresses are distinguished from sampled addresses.
    pub returns: bool,
    /// Whether unmapped addresses are distinguished from each other.
    pub unmapped: bool,
}

/// Address that stands for all unmapped addresses, if these are not distinguished.
pub const UNMAPPED: u64 = u64::MAX;

/// Finds the frames and chains of one worker's samples.
#[derive(Debug)]
pub struct FrameFinder<'t> {
    /// Frames and chains that were found.
    pub stacks: Stacks,
    timeline: &'t Timeline,
    fields: FrameFields,
    functions: Option<&'t Functions<'t>>,
    /// Whether callers get functions too, not only sampled instructions.
    names_callers: bool,
    epoch: Option<Epoch>,
    contexts: Contexts<Kind>,
    recent: Vec<Recent>,
    words: Vec<ChainWord>,
    /// The chain before.
    before: Vec<ChainWord>,
}

/// What, besides the epoch, decides which frame an address has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Kind {
    /// CPU mode; `None` for branches: it is not recorded.
    mode: Option<u16>,
    is_return: bool,
    is_named: bool,
    branch: u64,
}

/// An address of a chain, and the chain that begins there.
#[derive(Clone, Copy, Debug)]
struct ChainWord {
    ip: u64,
    kind: Kind,
    context: u32,
    chain: u32,
}

/// A range of addresses and their frame.
#[derive(Clone, Copy, Debug, Default)]
struct Recent {
    start: u64,
    end: u64,
    context: u32,
    frame: u32,
}

/// Log2 of the number of recent ranges.
const RECENT: u32 = 14;

/// Log2 of the number of neighboring addresses that share a place in the cache.
const NEIGHBORS: u32 = 6;

impl<'t> FrameFinder<'t> {
    /// Creates a finder that has found nothing yet. With `functions`, these replace the addresses of sampled
    /// instructions, and if `names_callers` those of callers.
    #[must_use]
    pub fn new(
        timeline: &'t Timeline,
        fields: FrameFields,
        functions: Option<&'t Functions<'t>>,
        names_callers: bool,
    ) -> Self {
        Self {
            stacks: Stacks::default(),
            timeline,
            fields,
            functions,
            names_callers,
            epoch: None,
            contexts: Contexts::default(),
            recent: Vec::new(),
            words: Vec::new(),
            before: Vec::new(),
        }
    }

    /// Returns the frame of a sampled instruction.
    #[inline]
    pub fn own(&mut self, mode: CpuMode, space: Option<SpaceId>, ip: u64, at: Moment) -> Frame {
        let epoch = self.epoch(space, at);
        let kind = Kind { mode: Some(mode.bits()), is_return: false, is_named: true, branch: 0 };
        let context = self.contexts.number(kind, epoch.in_mode(mode));
        let frame = self.frame(&ChainWord { ip, kind, context, chain: 0 }, space, at);
        let frame = self.stacks.frames.get(frame as usize).copied().unwrap_or_default();
        // Unlike callers, sampled instructions are always code.
        if frame.module == 0 { Frame { address: ip, ..frame } } else { frame }
    }

    /// Returns the number of the chain of these words at this moment.
    #[inline]
    pub fn chain(&mut self, space: Option<SpaceId>, at: Moment, words: &[u64]) -> u32 {
        if words.is_empty() {
            return 0;
        }
        let epoch = self.epoch(space, at);
        let Self { words: found, contexts, fields, names_callers, .. } = self;
        found.clear();
        let (branches, callers) = parts(words);
        for [ip, branch] in branches.as_chunks().0 {
            let kind = Kind { mode: None, is_return: false, is_named: *names_callers, branch: *branch };
            found.push(ChainWord { ip: *ip, kind, context: contexts.number(kind, epoch), chain: 0 });
        }
        for_each_address(callers, |mode, ip, is_return| {
            let is_return = is_return && fields.returns;
            let kind = Kind { mode: Some(mode.bits()), is_return, is_named: *names_callers, branch: 0 };
            let context = contexts.number(kind, epoch.in_mode(mode));
            found.push(ChainWord { ip, kind, context, chain: 0 });
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
        let mut found = std::mem::take(&mut self.words);
        for word in found.iter_mut().take(new).rev() {
            let frame = self.frame(word, space, at);
            chain = self.stacks.chains.add(chain, frame);
            word.chain = chain;
        }
        self.words = std::mem::replace(&mut self.before, found);
        chain
    }

    #[inline]
    fn epoch(&mut self, space: Option<SpaceId>, at: Moment) -> SpaceEpoch {
        match self.epoch {
            Some(epoch) if epoch.covers(space, at) => epoch.of,
            _ => self.epoch.insert(self.timeline.epoch(space, at)).of,
        }
    }

    /// Returns the number of a word's frame.
    #[inline]
    fn frame(&mut self, word: &ChainWord, space: Option<SpaceId>, at: Moment) -> u32 {
        if self.recent.is_empty() {
            self.recent.resize(1 << RECENT, Recent::default());
        }
        let near = word.ip >> NEIGHBORS ^ u64::from(word.context) << 48;
        let place = usize::try_from(near.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - RECENT)).unwrap_or(0);
        match self.recent.get(place) {
            Some(recent) if recent.context == word.context && recent.start <= word.ip && word.ip < recent.end => {
                recent.frame
            }
            _ => self.new_frame(word, space, at, place),
        }
    }

    #[cold]
    fn new_frame(&mut self, word: &ChainWord, space: Option<SpaceId>, at: Moment, place: usize) -> u32 {
        let (frame, Range { start, end }) = self.look_up(word, space, at);
        let frame = self.stacks.number(frame);
        if let Some(slot) = self.recent.get_mut(place) {
            *slot = Recent { start, end, context: word.context, frame };
        }
        frame
    }

    /// Returns the frame of an address, and a range around it with the same frame.
    fn look_up(&self, word: &ChainWord, space: Option<SpaceId>, at: Moment) -> (Frame, Range<u64>) {
        let (fields, ip, Kind { mode, is_return, is_named, branch }) = (self.fields, word.ip, word.kind);
        let only = ip..ip.saturating_add(1);
        let (mode, (place, mapped)) = match mode.map(CpuMode::of) {
            Some(mode) => (mode, self.timeline.place_in(mode, space, ip, at)),
            None => {
                let (mode, place) = self.timeline.place_in_any_mode(space, ip, at);
                (mode, (place, only.clone()))
            }
        };
        let cpu_mode = if fields.cpu_mode { u8::try_from(mode.bits()).unwrap_or(0) } else { 0 };
        let frame = Frame {
            module: place.module.map_or(0, |ModuleId(module)| module + 1),
            end: End { cpu_mode, ..End::default() },
            is_return,
            address: place.address,
            ip: if fields.ip { ip } else { 0 },
            size: if fields.size { place.size } else { 0 },
            branch,
            ..Frame::default()
        };
        let Some(ModuleId(module)) = place.module else {
            if fields.unmapped {
                return (frame, only);
            }
            // Unmapped addresses are no code: without frame pointers, callchains contain arbitrary values, which differ
            // in each sample and mean nothing to a reader.
            return (Frame { address: UNMAPPED, ..frame }, if fields.ip { only } else { mapped });
        };
        let functions = self.functions.filter(|_| is_named);
        let found = functions.map(|functions| functions.find(module as usize, place.address));
        let Some((Some(symbol), function)) = found else { return (frame, only) };
        let named = Frame { end: End { is_symbol: true, ..frame.end }, address: u64::from(symbol.0), ..frame };
        let start = ip.saturating_sub(place.address.saturating_sub(function.start));
        let end = ip.saturating_add(function.end.saturating_sub(place.address));
        (named, if fields.ip { only } else { mapped.start.max(start)..mapped.end.min(end) })
    }
}

/// Calls `frame` for each address of a chain, innermost first, with the CPU mode from the context markers (user before
/// the first marker), and whether it is a return address: all are, except the innermost of each mode.
fn for_each_address(words: &[u64], mut frame: impl FnMut(CpuMode, u64, bool)) {
    let (mut mode, mut is_return) = (CpuMode::User, false);
    for word in words {
        let next_mode = match *word {
            context::HV => CpuMode::Hypervisor,
            context::KERNEL => CpuMode::Kernel,
            context::USER => CpuMode::User,
            ip => {
                frame(mode, ip, is_return);
                is_return = true;
                continue;
            }
        };
        (mode, is_return) = (next_mode, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &[u64]) -> Vec<(CpuMode, u64, bool)> {
        let mut all = Vec::new();
        for_each_address(words, |mode, ip, is_return| all.push((mode, ip, is_return)));
        all
    }

    #[test]
    fn context_markers_set_the_cpu_mode_of_later_addresses() {
        let chain = [context::KERNEL, 1, 2, context::USER, 3];
        assert_eq!(of(&chain), [(CpuMode::Kernel, 1, false), (CpuMode::Kernel, 2, true), (CpuMode::User, 3, false)]);
        assert_eq!(of(&[7, context::HV, 8]), [(CpuMode::User, 7, false), (CpuMode::Hypervisor, 8, false)]);
    }
}

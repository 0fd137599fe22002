//! Turns addresses into modules and addresses within them; each distinct address of a space is looked up once.

use recrep_format::abi::{CpuMode, context};
use rustc_hash::FxHashMap;

use super::history::parts;
use super::intern::{Entry, Interner};
use super::stacks::{Frame, Stacks};
use crate::count::End;
use crate::timeline::{Contexts, ModuleId, SpaceEpoch, Timeline};

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

/// Returns the frames of all chains, in the order of the chains' numbers, and sets `hits` for each module with a frame.
#[must_use]
pub fn place(chains: &Interner, timeline: &Timeline, wanted: FrameFields, hits: &mut [bool]) -> Stacks {
    let mut placing = Placing {
        timeline,
        wanted,
        call_frames: FxHashMap::default(),
        branch_frames: FxHashMap::default(),
        contexts: Contexts::default(),
        stacks: Stacks::default(),
    };
    let mut words: Vec<ChainWord> = Vec::new();
    let mut before: (Option<SpaceEpoch>, Vec<ChainWord>) = (None, Vec::new());
    for entry in chains.entries() {
        words.clear();
        let (branches, callers) = parts(chains.words(entry));
        words.extend(branches.as_chunks().0.iter().map(|[ip, branch]| ChainWord {
            ip: *ip,
            mode: None,
            is_return: false,
            branch: *branch,
            frame: 0,
        }));
        for_each_address(callers, |mode, ip, is_return| {
            let is_return = is_return && wanted.returns;
            words.push(ChainWord { ip, mode: Some(mode), is_return, branch: 0, frame: 0 });
        });
        // Consecutive chains are often of one thread and share their outer frames.
        let is_same = |(a, b): &(&ChainWord, &ChainWord)| {
            a.ip == b.ip && a.mode == b.mode && a.is_return == b.is_return && a.branch == b.branch
        };
        let same = match before.0 {
            Some(epoch) if epoch == entry.epoch => {
                words.iter().rev().zip(before.1.iter().rev()).take_while(is_same).count()
            }
            _ => 0,
        };
        words.iter_mut().rev().zip(before.1.iter().rev()).take(same).for_each(|(new, old)| new.frame = old.frame);
        let new = words.len() - same;
        for word in words.iter_mut().take(new) {
            word.frame = placing.frame(entry, word);
        }
        placing.stacks.push(words.iter().map(|word| word.frame));
        before.0 = Some(entry.epoch);
        std::mem::swap(&mut before.1, &mut words);
    }
    for frame in &placing.stacks.frames {
        let module = (frame.module as usize).checked_sub(1);
        if let Some(hit) = module.and_then(|module| hits.get_mut(module)) {
            *hit = true;
        }
    }
    placing.stacks
}

/// Address that stands for all unmapped addresses, if these are not distinguished.
pub const UNMAPPED: u64 = u64::MAX;

/// An address of a chain and the number of its frame.
#[derive(Clone, Copy)]
struct ChainWord {
    ip: u64,
    /// `None` for branches: it is not recorded.
    mode: Option<CpuMode>,
    is_return: bool,
    branch: u64,
    frame: u32,
}

struct Placing<'t> {
    timeline: &'t Timeline,
    wanted: FrameFields,
    /// Frames by address and context.
    call_frames: FxHashMap<(u64, u32), u32>,
    /// Frames of branches by address, branch information and context.
    branch_frames: FxHashMap<(u64, u64, u32), u32>,
    /// Numbers of CPU mode, whether control returns there, and epoch.
    contexts: Contexts<(Option<u16>, bool)>,
    stacks: Stacks,
}

impl Placing<'_> {
    fn frame(&mut self, entry: &Entry, word: &ChainWord) -> u32 {
        let ChainWord { ip, mode, is_return, branch, .. } = *word;
        let space = entry.epoch.space;
        let context = self.contexts.number((mode.map(CpuMode::bits), is_return), entry.epoch.in_mode(mode));
        let (timeline, wanted, stacks) = (self.timeline, self.wanted, &mut self.stacks);
        let new = || {
            let (mode, place) = match mode {
                Some(mode) => (mode, timeline.place_in(mode, space, ip, entry.at)),
                None => timeline.place_in_any_mode_of(space, ip, entry.at),
            };
            let cpu_mode = if wanted.cpu_mode { u8::try_from(mode.bits()).unwrap_or(0) } else { 0 };
            // Unmapped addresses are no code: without frame pointers, callchains contain arbitrary values, which differ
            // in each sample and mean nothing to a reader.
            stacks.number(Frame {
                module: place.module.map_or(0, |ModuleId(module)| module + 1),
                end: End { cpu_mode, ..End::default() },
                is_return,
                address: if place.module.is_some() || wanted.unmapped { place.address } else { UNMAPPED },
                ip: if wanted.ip { ip } else { 0 },
                size: if wanted.size { place.size } else { 0 },
                branch,
                ..Frame::default()
            })
        };
        match branch {
            0 => *self.call_frames.entry((ip, context)).or_insert_with(new),
            _ => *self.branch_frames.entry((ip, branch, context)).or_insert_with(new),
        }
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

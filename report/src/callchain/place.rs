//! From addresses to places: which module, and where in it. Each distinct address of a space is looked up once.

use recrep_format::abi::{CpuMode, context};
use rustc_hash::FxHashMap;

use super::history::parts;
use super::intern::{Entry, Interner, SpaceEpoch};
use super::stacks::{Frame, Stacks};
use crate::count::End;
use crate::timeline::{ModuleId, Timeline};

/// What is wanted of the frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameFields {
    /// Whether the level is part of a frame.
    pub level: bool,
    /// Whether the recorded address is.
    pub ip: bool,
    /// Whether the size of what is mapped there is.
    pub size: bool,
    /// Whether frames are told apart by whether control returns to them.
    pub returns: bool,
    /// Whether addresses where nothing was mapped are told apart.
    pub unmapped: bool,
}

/// Places the frames of all chains, in the order of their numbers. `hits` is told of the modules.
#[must_use]
pub fn place(chains: &Interner, timeline: &Timeline, wanted: FrameFields, hits: &mut [bool]) -> Stacks {
    let mut placing = Placing {
        timeline,
        wanted,
        spots: FxHashMap::default(),
        of_branches: FxHashMap::default(),
        homes: FxHashMap::default(),
        last: None,
        stacks: Stacks::default(),
    };
    let mut words: Vec<Spot> = Vec::new();
    let mut before: (Option<SpaceEpoch>, Vec<Spot>) = (None, Vec::new());
    for entry in chains.entries() {
        words.clear();
        let (branches, callers) = parts(chains.words(entry));
        words.extend(branches.as_chunks().0.iter().map(|[ip, branch]| Spot {
            ip: *ip,
            mode: None,
            is_return: false,
            branch: *branch,
            frame: 0,
        }));
        levels(callers, |mode, ip, is_return| {
            let is_return = is_return && wanted.returns;
            words.push(Spot { ip, mode: Some(mode), is_return, branch: 0, frame: 0 });
        });
        // Chains that follow each other are often of one thread, whose outer frames stay.
        let is_same = |(a, b): &(&Spot, &Spot)| {
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

/// Stands for all addresses where nothing was mapped.
pub const UNMAPPED: u64 = u64::MAX;

/// An address of a chain and the number of its frame.
#[derive(Clone, Copy)]
struct Spot {
    ip: u64,
    /// Of branches it is not known.
    mode: Option<CpuMode>,
    is_return: bool,
    branch: u64,
    frame: u32,
}

/// What decides the meaning of an address: its CPU mode, whether control returns to it, and where it is.
type Home = ((Option<u16>, bool), SpaceEpoch);

struct Placing<'t> {
    timeline: &'t Timeline,
    wanted: FrameFields,
    /// Frames by address and by what decides the meaning of that.
    spots: FxHashMap<(u64, u32), u32>,
    /// The same of branches, by what is known of them too.
    of_branches: FxHashMap<(u64, u64, u32), u32>,
    homes: FxHashMap<Home, u32>,
    last: Option<(Home, u32)>,
    stacks: Stacks,
}

impl Placing<'_> {
    /// The number of what decides the meaning of addresses; mostly that of the frame before.
    fn home(&mut self, kind: (Option<u16>, bool), epoch: SpaceEpoch) -> u32 {
        match self.last {
            Some((known, home)) if known == (kind, epoch) => home,
            _ => {
                let next = u32::try_from(self.homes.len()).unwrap_or(u32::MAX);
                let home = *self.homes.entry((kind, epoch)).or_insert(next);
                self.last = Some(((kind, epoch), home));
                home
            }
        }
    }

    fn frame(&mut self, entry: &Entry, spot: &Spot) -> u32 {
        let Spot { ip, mode, is_return, branch, .. } = *spot;
        let SpaceEpoch { space, mapped, kernel } = entry.epoch;
        // The kernel is the same in every space, and a space does not ask the kernel.
        let epoch = match mode {
            Some(CpuMode::Kernel) => SpaceEpoch { space: None, mapped: 0, kernel },
            Some(_) => SpaceEpoch { space, mapped, kernel: 0 },
            None => entry.epoch,
        };
        let home = self.home((mode.map(CpuMode::bits), is_return), epoch);
        let (timeline, wanted, stacks) = (self.timeline, self.wanted, &mut self.stacks);
        let new = || {
            let (mode, place) = match mode {
                Some(mode) => (mode, timeline.place_in(mode, space, ip, entry.at)),
                None => timeline.place_in_any_mode_of(space, ip, entry.at),
            };
            let level = if wanted.level { u8::try_from(mode.bits()).unwrap_or(0) } else { 0 };
            // Where nothing was mapped is no code: what is found there, where functions keep no frame pointers, differs
            // in each sample and says nothing to a person.
            stacks.number(Frame {
                module: place.module.map_or(0, |ModuleId(module)| module + 1),
                end: End { level, ..End::default() },
                is_return,
                address: if place.module.is_some() || wanted.unmapped { place.address } else { UNMAPPED },
                ip: if wanted.ip { ip } else { 0 },
                size: if wanted.size { place.size } else { 0 },
                branch,
                ..Frame::default()
            })
        };
        match branch {
            0 => *self.spots.entry((ip, home)).or_insert_with(new),
            _ => *self.of_branches.entry((ip, branch, home)).or_insert_with(new),
        }
    }
}

/// Calls `frame` for each address of a chain, innermost first, with the CPU mode that the marks say, and whether control
/// returns to it: all but the innermost of each level. Before the first mark it is the user's.
fn levels(words: &[u64], mut frame: impl FnMut(CpuMode, u64, bool)) {
    let (mut mode, mut is_return) = (CpuMode::User, false);
    for word in words {
        let level = match *word {
            context::HV => CpuMode::Hypervisor,
            context::KERNEL => CpuMode::Kernel,
            context::USER => CpuMode::User,
            ip => {
                frame(mode, ip, is_return);
                is_return = true;
                continue;
            }
        };
        (mode, is_return) = (level, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &[u64]) -> Vec<(CpuMode, u64, bool)> {
        let mut all = Vec::new();
        levels(words, |mode, ip, is_return| all.push((mode, ip, is_return)));
        all
    }

    #[test]
    fn marks_say_the_level_of_what_follows() {
        let chain = [context::KERNEL, 1, 2, context::USER, 3];
        assert_eq!(of(&chain), [(CpuMode::Kernel, 1, false), (CpuMode::Kernel, 2, true), (CpuMode::User, 3, false)]);
        assert_eq!(of(&[7, context::HV, 8]), [(CpuMode::User, 7, false), (CpuMode::Hypervisor, 8, false)]);
    }
}

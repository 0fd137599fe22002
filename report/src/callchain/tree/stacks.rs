//! Frames, and chains of them.

use indexmap::IndexSet;
use rayon::prelude::*;
use recrep_format::abi::context;
use rustc_hash::FxBuildHasher;

use super::chains::{Chains, Node};
use crate::query::{End, Field, Key, Meta};

/// A frame: a function, or an address without a function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Frame {
    /// Number of the module plus one; 0 if nothing was mapped.
    pub module: u32,
    /// Kind of [`Frame::address`], and the CPU mode.
    pub end: End,
    /// Address in the module's own terms, or number of a symbol.
    pub address: u64,
    /// Recorded address, if asked for.
    pub ip: u64,
    /// Offset in the function, if asked for.
    pub offset: u32,
    pub site: CallSite,
    /// The step to the next frame of a chain, and whether this frame can be the next one of
    /// another; only of [`CallSite::Checked`].
    pub step: Step,
    pub can_be_called: bool,
    /// Number of the source line plus one, if asked for.
    pub line: u32,
    /// Size of the mapping in bytes, if asked for.
    pub size: u64,
    /// Information about the branch whose source or target it is ([`crate::callchain::BranchInfo`]); 0 for a
    /// frame of a call.
    pub branch: u64,
}

/// Where the instruction of a frame is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum CallSite {
    /// At the address, which is that of a sampled or interrupted instruction, of the last byte of a
    /// call instruction, or of what perf looks up.
    #[default]
    At,
    /// The same, except that inlined functions are those of the call before the address.
    Inlined,
    /// Before the address, which is where a call returns to: at its end there may be another
    /// function.
    Before,
    /// The same; the step to its caller is checked.
    Checked,
    /// Nowhere: it stands for frames that are not known.
    Nowhere,
}

impl CallSite {
    /// Returns whether it is before the address.
    #[inline]
    pub(crate) fn is_before(self) -> bool {
        matches!(self, Self::Before | Self::Checked)
    }
}

/// A step of the kernel's from a frame to the next one, by frame pointers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Step {
    /// Nothing is known: it is believed.
    #[default]
    Unchecked,
    /// To the caller.
    Right,
    /// To a frame further out: the caller, or more, is missing.
    Skips,
    /// To what means nothing.
    Wrong,
    /// There is no caller.
    Outermost,
}

impl Step {
    /// Number of steps.
    pub(crate) const COUNT: usize = Self::Outermost as usize + 1;
}

/// Address that stands for one or more frames that are not known, in chains and in frames. No code
/// is there: the kernel has errors there.
pub(crate) const MISSING: u64 = context::MAX - 1;

/// Reference from a key to its sample's callchain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ChainRef {
    /// Chain of the callers; 0 for none.
    pub callers: u32,
    /// `true` if the sampled instruction is the innermost frame.
    pub own: bool,
}

impl ChainRef {
    /// Returns the reference as a word of a key.
    #[inline]
    pub(crate) fn pack(self) -> u64 {
        u64::from(self.callers) << 1 | u64::from(self.own)
    }

    /// Returns the reference from a word made by [`ChainRef::pack`].
    #[inline]
    pub(crate) fn unpack(word: u64) -> Self {
        Self { callers: u32::try_from(word >> 1).unwrap_or(0), own: word & 1 == 1 }
    }
}

impl Frame {
    /// Returns the frame that stands for those that are not known, in this CPU mode.
    pub(crate) fn missing(cpu_mode: u8) -> Self {
        Self { end: End { cpu_mode, ..End::default() }, address: MISSING, ..Self::default() }
    }

    /// Returns whether it stands for frames that are not known: `[callers unknown]`.
    #[inline]
    pub(crate) fn is_missing(&self) -> bool {
        self.module == 0 && self.address == MISSING
    }

    /// Returns the frame of a key's sampled instruction.
    #[inline]
    pub(crate) fn of(key: &Key) -> Self {
        Self {
            module: u32::try_from(Field::Module.of(key)).unwrap_or(0),
            end: Meta::unpack(Field::Meta.of(key)).at,
            address: Field::Address.of(key),
            ip: Field::Ip.of(key),
            offset: u32::try_from(Field::Offset.of(key)).unwrap_or(u32::MAX),
            site: CallSite::At,
            step: Step::Unchecked,
            can_be_called: false,
            line: u32::try_from(Field::Line.of(key)).unwrap_or(0),
            size: Field::MapSize.of(key),
            branch: 0,
        }
    }

    /// Replaces the frame of a key's sampled instruction.
    #[inline]
    pub(crate) fn put(&self, key: &mut Key) {
        let meta = Meta { at: self.end, ..Meta::unpack(Field::Meta.of(key)) };
        for (field, value) in [
            (Field::Meta, meta.pack()),
            (Field::Module, u64::from(self.module)),
            (Field::Address, self.address),
            (Field::Ip, self.ip),
            (Field::Offset, u64::from(self.offset)),
            (Field::Line, u64::from(self.line)),
            (Field::MapSize, self.size),
        ] {
            *field.of_mut(key) = value;
        }
    }
}

/// Distinct frames and distinct chains of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stacks {
    /// Distinct frames, indexed by the numbers in chains.
    pub frames: IndexSet<Frame, FxBuildHasher>,
    /// Chains of the frames' numbers.
    pub chains: Chains,
}

/// Frames that replace those of other stacks, by their numbers.
struct Replacements {
    /// Those of all frames, one after another; of each the outermost first.
    frames: Vec<u32>,
    /// Ends of those of each frame in `frames`.
    ends: Vec<usize>,
    /// Those of the frame that stands for callers that are not known.
    missing: Vec<u32>,
}

impl Replacements {
    /// Returns the frames that replace the frame of this number, outermost first.
    #[inline]
    fn frames_of(&self, number: u32) -> &[u32] {
        let number = number as usize;
        let start = number.checked_sub(1).and_then(|before| self.ends.get(before));
        let range = start.copied().unwrap_or(0)..self.ends.get(number).copied().unwrap_or(0);
        self.frames.get(range).unwrap_or_default()
    }
}

/// How a node is linked to its callers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    /// `true` if they are called as recorded.
    pub keeps_callers: bool,
    /// `true` if callers are missing in between.
    pub lacks_callers: bool,
}

impl Stacks {
    /// Adds the chains of `other`, in which `frames` replaces each frame by any number of frames,
    /// innermost first. Steps that were found to be wrong are corrected. Returns the new numbers of
    /// chains, indexed by the old ones. Chains that become equal get one number.
    ///
    /// ```text
    ///   other      a ─Right─► b ─Skips─► c ─Wrong─► d            innermost frame first
    ///   corrected  a          b  [callers unknown]  c  [callers unknown]
    ///   replaced   a1 a2      b1 …                               a: a1, inlined in a2
    /// ```
    #[must_use]
    pub(crate) fn join(
        &mut self,
        other: &Self,
        frames: impl Fn(Frame, &mut Vec<Frame>),
    ) -> Vec<u32> {
        self.chains.reserve(other.chains.len());
        let replaced = self.replacements(other, frames);
        // Callers come before what they call, so those of each chain have their new number.
        other.chains.fold_callers(0, |node, callers| {
            let link = other.link(node);
            let mut chain = if link.keeps_callers { callers } else { 0 };
            if link.lacks_callers {
                chain = self.chains.add_each(chain, &replaced.missing);
            }
            self.chains.add_each(chain, replaced.frames_of(node.frame))
        })
    }

    /// Returns the frames of `self` that replace those of `other`, adding those that are new.
    fn replacements(
        &mut self,
        other: &Self,
        frames: impl Fn(Frame, &mut Vec<Frame>),
    ) -> Replacements {
        let mut replaced = Replacements {
            frames: Vec::with_capacity(other.frames.len()),
            ends: Vec::with_capacity(other.frames.len()),
            missing: Vec::new(),
        };
        let mut new = Vec::new();
        for old in &other.frames {
            new.clear();
            frames(*old, &mut new);
            replaced.frames.extend(new.iter().rev().map(|frame| self.number(*frame)));
            replaced.ends.push(replaced.frames.len());
        }
        if let Some(checked) = other.frames.iter().find(|frame| frame.step != Step::Unchecked) {
            new.clear();
            frames(Frame::missing(checked.end.cpu_mode), &mut new);
            replaced.missing.extend(new.iter().map(|frame| self.number(*frame)));
        }
        replaced
    }

    /// Returns how a node is linked to its callers, as the step from its frame was checked.
    pub(crate) fn link(&self, node: Node) -> Link {
        let step = self.frame(node.frame).map_or(Step::Unchecked, |frame| frame.step);
        let (keeps_callers, lacks_callers) = match step {
            Step::Unchecked => (true, false),
            // The stack does not end at a frame that has a caller.
            Step::Right => (true, node.callers == 0),
            Step::Skips => (self.can_be_called(node.callers), true),
            Step::Wrong => (false, true),
            Step::Outermost => (false, false),
        };
        Link { keeps_callers, lacks_callers }
    }

    /// Returns whether the innermost frame of a chain can be what a step led to.
    fn can_be_called(&self, chain: u32) -> bool {
        let frame = self.chains.node(chain).and_then(|node| self.frame(node.frame));
        frame.is_some_and(|frame| frame.can_be_called)
    }

    /// Returns the number of a frame; `None` if it is unknown.
    pub(crate) fn find(&self, frame: &Frame) -> Option<u32> {
        self.frames.get_index_of(frame).map(small)
    }

    /// Returns the number of a frame, adding the frame if it is new.
    pub(crate) fn number(&mut self, frame: Frame) -> u32 {
        small(self.frames.insert_full(frame).0)
    }

    /// Returns the frame with this number.
    #[inline]
    pub(crate) fn frame(&self, number: u32) -> Option<&Frame> {
        self.frames.get_index(number as usize)
    }

    /// Returns a value for each frame, made on all cores.
    pub(crate) fn of_frames<T: Send>(&self, value: impl Fn(&Frame) -> T + Sync + Send) -> Vec<T> {
        (0..self.frames.len())
            .into_par_iter()
            .with_max_len(NAMES_AT_ONCE)
            .map(|number| value(&self.frames.get_index(number).copied().unwrap_or_default()))
            .collect()
    }
}

/// Greatest number of frames of which a core makes values at a time. Names of C++ take long, and
/// many may be in a row.
pub(crate) const NAMES_AT_ONCE: usize = 256;

/// Returns a number of frames, chains, classes or bases in 32 bits.
pub(crate) fn small(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(address: u64) -> Frame {
        Frame { module: 1, address, ..Frame::default() }
    }

    /// Adds a chain of frames, innermost first.
    fn add(stacks: &mut Stacks, addresses: &[u64]) -> u32 {
        let numbers: Vec<u32> =
            addresses.iter().map(|address| stacks.number(frame(*address))).collect();
        numbers.iter().rev().fold(0, |callers, frame| stacks.chains.add(callers, *frame))
    }

    fn addresses(stacks: &Stacks, chain: u32) -> Vec<u64> {
        stacks.chains.frames(chain).map(|number| stacks.frames[number as usize].address).collect()
    }

    #[test]
    fn chains_that_become_equal_are_merged() {
        let mut stacks = Stacks::default();
        let chains = [&[10, 20][..], &[11, 20], &[20], &[]].map(|chain| add(&mut stacks, chain));
        assert_eq!((chains[3], stacks.chains.len()), (0, 3));
        let mut folded = Stacks::default();
        let numbers = folded.join(&stacks, |f, new| new.push(frame(f.address / 10)));
        assert!(folded.frames.iter().eq(&[frame(1), frame(2)]));
        let texts = chains.map(|chain| addresses(&folded, numbers[chain as usize]));
        assert_eq!(texts, [vec![1, 2], vec![1, 2], vec![2], vec![]]);
        assert_eq!(
            (numbers[chains[0] as usize], folded.chains.len()),
            (numbers[chains[1] as usize], 2)
        );
    }

    #[test]
    fn a_frame_becomes_several_or_none() {
        let mut stacks = Stacks::default();
        let chain = add(&mut stacks, &[1, 2, 3]);
        let mut joined = Stacks::default();
        let numbers = joined.join(&stacks, |f, new| match f.address {
            1 => new.extend([frame(7), frame(8)]),
            2 => {}
            _ => new.push(f),
        });
        assert_eq!(addresses(&joined, numbers[chain as usize]), [7, 8, 3]);
    }

    #[test]
    fn wrong_steps_are_corrected() {
        use Step::{Outermost, Right, Skips, Unchecked, Wrong};

        // Innermost first: 1 to 3, of which each leads to the next as the step says.
        let shown = |steps: [Step; 3], can_be_called: bool| {
            let mut stacks = Stacks::default();
            let mut frames: Vec<u32> = (1..)
                .zip(steps)
                .map(|(address, step)| {
                    stacks.number(Frame { step, can_be_called, ..frame(address) })
                })
                .collect();
            frames.reverse();
            let chain = frames.iter().fold(0, |callers, frame| stacks.chains.add(callers, *frame));
            let mut joined = Stacks::default();
            let numbers = joined.join(&stacks, |frame, new| {
                new.push(Frame { step: Unchecked, can_be_called: false, ..frame });
            });
            addresses(&joined, numbers[chain as usize])
        };
        assert_eq!(shown([Unchecked; 3], true), [1, 2, 3]);
        assert_eq!(shown([Right, Right, Outermost], true), [1, 2, 3]);
        assert_eq!(shown([Right; 3], true), [1, 2, 3, MISSING], "it ends too early");
        assert_eq!(shown([Skips, Right, Unchecked], true), [1, MISSING, 2, 3]);
        assert_eq!(shown([Skips, Right, Unchecked], false), [1, MISSING]);
        assert_eq!(shown([Right, Wrong, Right], true), [1, 2, MISSING]);
        assert_eq!(shown([Outermost, Right, Right], true), [1]);
        assert_eq!(shown([Right, Skips, Skips], true), [1, 2, MISSING, 3, MISSING]);
    }

    #[test]
    fn joined_chains_keep_their_frames() {
        let (mut all, mut part) = (Stacks::default(), Stacks::default());
        let chain = add(&mut part, &[6, 5]);
        let numbers = [0; 2].map(|_| all.join(&part, |frame, new| new.push(frame)));
        assert_eq!(numbers[0], numbers[1]);
        assert_eq!((all.frames.len(), all.chains.len()), (2, 2));
        assert_eq!(addresses(&all, numbers[0][chain as usize]), [6, 5]);
    }
}

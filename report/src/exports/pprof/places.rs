//! Numbers of the code places that samples have: frames inlined into one another are one place.

use std::collections::BTreeSet;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::exports::frames::{CodePlace, Frames};

/// Places in the order in which they were found.
pub(super) struct PlaceNumbers<'f, 'p> {
    frames: &'f Frames<'p>,
    pub(super) all: Vec<CodePlace>,
    known: FxHashMap<CodePlace, u32>,
    /// Places of frames without inlined ones, by the numbers of the frames.
    of_frames: FxHashMap<u32, u32>,
    /// Places of inlined frames with the one that contains them.
    of_inlined: FxHashMap<Vec<u32>, u32>,
}

impl<'f, 'p> PlaceNumbers<'f, 'p> {
    pub(super) fn new(frames: &'f Frames<'p>) -> Self {
        Self {
            frames,
            all: Vec::new(),
            known: FxHashMap::default(),
            of_frames: FxHashMap::default(),
            of_inlined: FxHashMap::default(),
        }
    }

    /// Returns the number of a place, adding the place if it is new.
    pub(super) fn number(&mut self, place: CodePlace) -> u32 {
        let all = &mut self.all;
        *self.known.entry(place).or_insert_with_key(|place| {
            all.push(place.clone());
            u32::try_from(all.len() - 1).unwrap_or(u32::MAX)
        })
    }

    /// Returns the numbers of the places of a stack, given its frames, innermost first.
    pub(super) fn of_stack(&mut self, frames: impl Iterator<Item = u32>) -> Vec<u32> {
        let (mut places, mut open) = (Vec::new(), Vec::new());
        for number in frames {
            let Some(frame) = self.frames.get(number) else { continue };
            open.push(number);
            if !frame.is_inlined {
                places.push(self.of_open(&open));
                open.clear();
            }
        }
        if !open.is_empty() {
            places.push(self.of_open(&open));
        }
        places
    }

    /// Returns the number of the place of one frame, or of inlined ones with that.
    fn of_open(&mut self, open: &[u32]) -> u32 {
        let known = match open {
            [only] => self.of_frames.get(only),
            several => self.of_inlined.get(several),
        };
        if let Some(known) = known {
            return *known;
        }
        let number = self.number(self.frames.place(open));
        match open {
            [only] => self.of_frames.insert(*only, number),
            several => self.of_inlined.insert(several.to_vec(), number),
        };
        number
    }
}

/// Moves callers into their call where another place has their address, which is that behind the
/// call: a sample may have been taken right there, in another line. An address of a profile has the
/// lines of one place.
pub(super) fn keep_callers_apart<'s>(
    places: &mut [CodePlace],
    stacks: impl Iterator<Item = &'s [u32]>,
) {
    let (mut sampled, mut callers) = (BTreeSet::new(), BTreeSet::new());
    for stack in stacks {
        if let [innermost, outer @ ..] = stack {
            sampled.insert(*innermost);
            callers.extend(outer);
        }
    }
    let mut taken = FxHashSet::default();
    for number in sampled.iter().chain(callers.difference(&sampled)) {
        if let Some(place) = places.get_mut(*number as usize)
            && !taken.insert((place.module, place.address))
        {
            place.address = place.address.map(|address| address.wrapping_sub(1));
        }
    }
}

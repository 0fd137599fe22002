//! Draws of runs for two sides.

use std::path::PathBuf;
use std::time::Duration;

/// A recording.
pub(crate) struct Run {
    pub(crate) file: PathBuf,
    /// Time from the start of the session.
    pub(crate) start: Duration,
}

/// Which runs are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Draw {
    /// Of all, as long as the sides are mixed.
    InTurn,
    /// Of the first third of the session and the last.
    Apart,
}

/// The runs of two sides.
pub(crate) struct Sides<'r> {
    pub(crate) base: Vec<&'r Run>,
    pub(crate) new: Vec<&'r Run>,
}

/// Attempts to draw sides that are mixed.
const ATTEMPTS: usize = 1000;

impl<'r> Sides<'r> {
    /// Draws as many runs for each side; no run is on both sides if they are the same runs. Returns
    /// `None` if there are too few.
    pub(crate) fn drawn(
        base: &'r [Run],
        new: &'r [Run],
        draw: Draw,
        side: usize,
        random: &mut Random,
    ) -> Option<Self> {
        let are_same = std::ptr::eq(base, new);
        let (mut base, mut new): (Vec<&Run>, Vec<&Run>) = match draw {
            Draw::InTurn => (base.iter().collect(), new.iter().collect()),
            Draw::Apart => (
                base.iter().take(base.len() / 3).collect(),
                new.iter().skip(new.len() - new.len() / 3).collect(),
            ),
        };
        for _ in 0..ATTEMPTS {
            random.shuffle(&mut base);
            random.shuffle(&mut new);
            let left = base.get(..side)?;
            let right = match draw {
                Draw::InTurn if are_same => base.get(side..2 * side)?,
                _ => new.get(..side)?,
            };
            // One run a side is never in turn.
            if draw == Draw::Apart || side == 1 || are_mixed(left, right) {
                return Some(Self { base: left.into(), new: right.into() });
            }
        }
        None
    }
}

/// Returns whether base started first in a quarter to three quarters of all pairs.
fn are_mixed(base: &[&Run], new: &[&Run]) -> bool {
    let later = |run: &&Run| new.iter().filter(|other| run.start < other.start).count();
    let (first, all) = (base.iter().map(later).sum::<usize>(), base.len() * new.len());
    (all..=3 * all).contains(&(4 * first))
}

/// Pseudo-random numbers (xorshift64*), the same for the same start.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub(crate) fn shuffle<T>(&mut self, all: &mut [T]) {
        for last in (1..all.len()).rev() {
            #[allow(clippy::cast_possible_truncation, reason = "it is an index")]
            let other = (self.next() % (last as u64 + 1)) as usize;
            all.swap(last, other);
        }
    }
}

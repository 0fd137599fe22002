//! The seeds of a fuzz target, and damaged variants of them: the same in every run.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// Function that takes the bytes of a fuzz target.
pub(crate) type Target = fn(&[u8]);

/// Numbers that are the same in every run (splitmix64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }
}

pub(crate) fn seeds(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut paths: Vec<_> = fs::read_dir(folder)
        .unwrap_or_else(|e| {
            panic!("{}: {e}; the seeds are made by the example fuzz_seeds", folder.display())
        })
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    paths.iter().map(|path| (path.display().to_string(), fs::read(path).unwrap())).collect()
}

/// One kind of damage: cut, flipped bytes, a word that is an extreme, a size, a piece that comes
/// twice or not at all.
fn damaged(seed: &[u8], other: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    const EXTREMES: [u64; 8] = [0, 1, 7, 8, 0xff, 0xffff, u32::MAX as u64, u64::MAX];
    let mut bytes = seed.to_vec();
    let at = numbers.below(bytes.len());
    match numbers.below(7) {
        0 => bytes.truncate(at),
        1 => (0..=numbers.below(4)).for_each(|_| {
            let at = numbers.below(bytes.len());
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << numbers.below(8);
            }
        }),
        2 => {
            let value = EXTREMES[numbers.below(EXTREMES.len())];
            let value =
                if numbers.below(2) == 0 { value.to_le_bytes() } else { value.to_be_bytes() };
            let len = [1, 2, 4, 8][numbers.below(4)];
            let at = at & !(len - 1);
            bytes.iter_mut().skip(at).zip(&value[..len]).for_each(|(to, from)| *to = *from);
        }
        3 => bytes.iter_mut().skip(at).take(2).for_each(|byte| *byte = numbers.next() as u8),
        4 => drop(bytes.drain(at..(at + 1 + numbers.below(40)).min(seed.len()).max(at))),
        5 => {
            let piece = seed[at..(at + 1 + numbers.below(64)).min(seed.len())].to_vec();
            bytes.splice(at..at, piece);
        }
        _ => {
            bytes.truncate(at);
            bytes.extend_from_slice(&other[numbers.below(other.len())..]);
        }
    }
    bytes
}

pub(crate) fn run(name: &str, what: &str, target: Target, bytes: &[u8]) {
    if catch_unwind(AssertUnwindSafe(|| target(bytes))).is_err() {
        let kept = std::env::temp_dir().join(format!("recrep-{name}-failure"));
        let _ = fs::write(&kept, bytes);
        panic!("target {name} fails on {what}; the input is in {}", kept.display());
    }
}

/// Runs a target over the seeds in `folder`, and over 3,000 damaged variants of them.
pub(crate) fn replay(name: &str, folder: &Path, target: Target) {
    let times: usize =
        std::env::var("RECREP_REPLAY").ok().and_then(|times| times.parse().ok()).unwrap_or(1);
    let seeds = seeds(folder);
    let mut numbers = Numbers(42);
    for (path, seed) in &seeds {
        run(name, path, target, seed);
    }
    for round in 0..3000 * times {
        let (path, seed) = &seeds[round % seeds.len()];
        let (_, other) = &seeds[numbers.below(seeds.len())];
        let mut bytes = damaged(seed, other, &mut numbers);
        for _ in 0..numbers.below(3) {
            bytes = damaged(&bytes, other, &mut numbers);
        }
        run(name, &format!("damage {round} of {path}"), target, &bytes);
    }
    println!("{name}: {} inputs from {} seeds", seeds.len() + 3000 * times, seeds.len());
    assert!(!seeds.is_empty());
}

//! The clock: conversion from the CPU's cycle counter to the timestamps of records, by fields of
//! the control page.
//!
//! ```text
//!   time = time_zero + (cycles >> shift) * mult + ((cycles & (1 << shift) - 1) * mult >> shift)
//! ```
//!
//! The kernel changes the fields under the sequence counter `lock`, which is odd during a change
//! and incremented after it.

#![allow(unsafe_code)] // The instruction that reads the counter.

use std::sync::atomic::{Ordering, fence};

use super::memory::SharedMemory;
use super::page::{CAPABILITIES, LOCK, TIME_CYCLES, TIME_MASK, TIME_SHIFT_MULT, TIME_ZERO};

/// Fields of the control page for the conversion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    /// `time_shift`.
    pub shift: u16,
    /// `time_mult`.
    pub mult: u32,
    /// `time_zero`.
    pub zero: u64,
    /// `time_cycles`.
    pub cycles: u64,
    /// `time_mask`.
    pub mask: u64,
    /// `cap_user_time_short`: `cycles` and `mask` apply, because the CPU's counter has fewer than
    /// 64 bits.
    pub short: bool,
}

/// Number of attempts after which the page is considered invalid.
const ATTEMPTS: usize = 10_000;

impl Clock {
    /// Reads the control page; `None` if it has no conversion (`cap_user_time_zero`).
    pub(super) fn read(page: &SharedMemory) -> Option<Self> {
        (0..ATTEMPTS).find_map(|_| Self::try_read(page))?
    }

    /// Reads once; `None` if the kernel was changing the fields.
    fn try_read(page: &SharedMemory) -> Option<Option<Self>> {
        let word = |offset| page.word(offset).load(Ordering::Relaxed);
        let lock = |order| half(page.word(LOCK).load(order));
        let before = lock(Ordering::Acquire);
        let times = word(TIME_SHIFT_MULT).to_ne_bytes();
        let [_, _, shift_0, shift_1, mult @ ..] = times;
        let clock = Self {
            shift: u16::from_ne_bytes([shift_0, shift_1]),
            mult: u32::from_ne_bytes(mult),
            zero: word(TIME_ZERO),
            cycles: word(TIME_CYCLES),
            mask: word(TIME_MASK),
            short: capability(word(CAPABILITIES), 5),
        };
        let known = capability(word(CAPABILITIES), 4);
        fence(Ordering::Acquire);
        (lock(Ordering::Relaxed) == before && before.is_multiple_of(2))
            .then_some(known.then_some(clock))
    }
}

/// Returns the first 32 bits in memory.
fn half(word: u64) -> u32 {
    let [a, b, c, d, ..] = word.to_ne_bytes();
    u32::from_ne_bytes([a, b, c, d])
}

/// Returns a one-bit field. Bit fields are allocated from the least significant bit on
/// little-endian machines, otherwise from the most significant one.
fn capability(word: u64, number: u32) -> bool {
    let shift = if cfg!(target_endian = "big") { 63 - number } else { number };
    word >> shift & 1 == 1
}

/// Returns the CPU's cycle counter; 0 if user space cannot read one.
pub(crate) fn cycles() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86_64 has the instruction. (PR_SET_TSC can forbid it, but this process does
    // not set it.)
    #[allow(unused_unsafe, reason = "later compilers have it safe")]
    return unsafe { std::arch::x86_64::_rdtsc() };
    #[cfg(not(target_arch = "x86_64"))]
    0
}

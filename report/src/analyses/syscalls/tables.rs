//! The table that the number of a sampled system call is of.
//!
//! A 64-bit kernel has a table of its own for 32-bit calls: those of 32-bit programs, and on x86 those
//! that 64-bit programs make by `int $0x80`. What tells, the best first:
//!
//! * The registers at the call or its return. They are of 32 bits; or, on x86-64, `rcx` is not the
//!   address that the call returns to, as the instruction `syscall` leaves it.
//! * The program: all that it has mapped is below 4 GiB.

use std::ops::Range;

use recrep_format::abi::{RegsAbi, SampleType};
use recrep_format::layout::UpTo;
use recrep_format::record::{Regs, Sample, SampleFields};
use rustc_hash::FxHashMap;

use super::names::{CallNumber, arch, compat_of};
use crate::samples::Session;
use crate::timeline::{Moment, SpaceId};

/// Numbers of `rcx` and `rip` among sampled registers.
const RCX: u32 = 2;
const RIP: u32 = 8;

/// Tells the tables of one worker's samples apart.
pub(super) struct CallTables<'s> {
    session: &'s Session<'s>,
    arch: String,
    /// `false` if the machine has one table.
    has_two: bool,
    has_registers: bool,
    /// Moments of the execs of each process.
    execs: FxHashMap<i32, Vec<Moment>>,
    /// Address spaces whose programs are of 32 bits, or not, from an exec on.
    known: FxHashMap<(SpaceId, Moment), bool>,
}

impl<'s> CallTables<'s> {
    pub(super) fn new(session: &'s Session<'s>) -> Self {
        let arch = arch(session.file);
        let mut execs: FxHashMap<i32, Vec<Moment>> = FxHashMap::default();
        for (at, pid) in session.side_band.execs() {
            execs.entry(*pid).or_default().push(*at);
        }
        for moments in execs.values_mut() {
            moments.sort_unstable();
        }
        let has_registers = session.samples_have(SampleType::REGS_USER);
        let has_two = compat_of(&arch).is_some();
        Self { session, arch, has_two, has_registers, execs, known: FxHashMap::default() }
    }

    /// Returns whether the program of a process at a moment is of 32 bits.
    pub(super) fn is_of_32_bits(&mut self, pid: i32, space: Option<SpaceId>, at: Moment) -> bool {
        let Some(space) = space.filter(|_| self.has_two) else { return false };
        let moments = self.program(pid, at);
        let timeline = &self.session.timeline;
        let is_known = self.known.entry((space, moments.start));
        *is_known.or_insert_with(|| timeline.is_of_32_bits(space, &moments))
    }

    /// Returns the moments during which a process runs the program that it runs at a moment.
    fn program(&self, pid: i32, at: Moment) -> Range<Moment> {
        let execs = self.execs.get(&pid).map(Vec::as_slice).unwrap_or_default();
        let next = execs.partition_point(|exec| *exec <= at);
        let last = next.checked_sub(1).and_then(|last| execs.get(last));
        let until = execs.get(next).copied().unwrap_or(Moment::END);
        last.copied().unwrap_or(Moment::START)..until
    }

    /// Returns the number of a sampled call with its table.
    #[inline]
    pub(super) fn number(
        &self,
        number: i32,
        sample: &Sample<'_, '_>,
        is_exit: bool,
        is_of_32_bits: bool,
    ) -> CallNumber {
        let proved = if self.has_registers && self.has_two {
            self.proved(number, sample, is_exit)
        } else {
            None
        };
        CallNumber::of(number, proved, is_of_32_bits)
    }

    fn proved(&self, number: i32, sample: &Sample<'_, '_>, is_exit: bool) -> Option<bool> {
        /// Numbers of `execve` and `execveat` in the tables of x86-64, x86, AArch64 and Arm: the
        /// registers are the new program's when they return.
        const EXECS: [i32; 7] = [59, 322, 11, 358, 221, 281, 387];
        if is_exit && EXECS.contains(&number) {
            return None;
        }
        let mut fields = SampleFields::default();
        sample.walk(UpTo::field(SampleType::REGS_USER), &mut fields).ok()?;
        is_compat_call(&self.arch, fields.regs_user.as_ref()?)
    }
}

/// Returns whether sampled registers show a 32-bit call on this architecture; `None` if they show
/// nothing.
pub(super) fn is_compat_call(arch: &str, regs: &Regs<'_>) -> Option<bool> {
    match regs.abi {
        RegsAbi::ABI_32 => Some(true),
        RegsAbi::ABI_64 if arch == "x86_64" => Some(regs.get(RCX)? != regs.get(RIP)?),
        RegsAbi::ABI_64 => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use recrep_format::bytes::U64s;
    use recrep_format::endian::Endian;

    use super::*;

    #[test]
    fn registers_show_the_table() {
        let shown = |arch, abi, rcx: u64| {
            let values = [rcx, 0x40_1002].map(u64::to_le_bytes).concat();
            let values = U64s::new(&values, Endian::Little);
            is_compat_call(arch, &Regs { abi, mask: 1 << RCX | 1 << RIP, values })
        };
        assert_eq!(shown("x86_64", RegsAbi::ABI_64, 0x40_1002), Some(false));
        assert_eq!(shown("x86_64", RegsAbi::ABI_64, 5), Some(true));
        assert_eq!(shown("x86_64", RegsAbi::ABI_32, 5), Some(true));
        assert_eq!(shown("aarch64", RegsAbi::ABI_64, 5), Some(false));
        assert_eq!(shown("x86_64", RegsAbi::NONE, 5), None);
        let without =
            Regs { abi: RegsAbi::ABI_64, mask: 0, values: U64s::new(&[], Endian::Little) };
        assert_eq!(is_compat_call("x86_64", &without), None);
    }
}

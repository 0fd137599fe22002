//! Calls of functions in the code of processes.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

use recrep_format::endian::Endian;
use rustc_hash::FxHashMap;

/// Number of functions whose calls are remembered.
const MOST_FUNCTIONS: usize = 256;
/// Most bytes of code that are searched for calls of a function.
const MOST_CODE: usize = 64 << 20;

/// Direct calls of functions of x86-64, as a thread that writes has found them.
#[derive(Default)]
pub(super) struct CallCache {
    /// Addresses behind the calls, by process and function.
    known: FxHashMap<(u32, u64), Option<Vec<u64>>>,
}

impl CallCache {
    /// Returns the addresses that calls of a function return to, of all calls in the code that is
    /// mapped with it; `None` if that cannot be read, or jumps to the function.
    pub(super) fn find(
        &mut self,
        pid: u32,
        function: u64,
        mapped: &Range<u64>,
    ) -> Option<Vec<u64>> {
        if self.known.len() >= MOST_FUNCTIONS {
            self.known.clear();
        }
        let known = self.known.entry((pid, function));
        known.or_insert_with(|| calls(&read(pid, mapped)?, mapped.start, function)).clone()
    }
}

/// Reads the code of a process.
fn read(pid: u32, mapped: &Range<u64>) -> Option<Vec<u8>> {
    let length = usize::try_from(mapped.end.checked_sub(mapped.start)?).ok()?;
    if length > MOST_CODE {
        return None;
    }
    let mut code = vec![0; length];
    let memory = File::open(format!("/proc/{pid}/mem")).ok()?;
    memory.read_exact_at(&mut code, mapped.start).ok()?;
    Some(code)
}

fn calls(code: &[u8], start: u64, function: u64) -> Option<Vec<u64>> {
    let mut found = Vec::new();
    for (address, bytes) in (start..).zip(code.windows(5)) {
        let [opcode @ (0xe8 | 0xe9), distance @ ..] = bytes else { continue };
        let Ok(distance) = distance.try_into() else { continue };
        let distance = Endian::Little.u32(distance).cast_signed();
        let end = address + 5;
        match end.wrapping_add_signed(distance.into()) == function {
            true if *opcode == 0xe9 => return None,
            true => found.push(end),
            false => {}
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_found_unless_code_jumps_there() {
        // call 0x1010; nop; call 0x1010
        let mut code = vec![0xe8, 0x0b, 0, 0, 0, 0x90, 0xe8, 0x05, 0, 0, 0];
        assert_eq!(calls(&code, 0x1000, 0x1010), Some(vec![0x1005, 0x100b]));
        assert_eq!(calls(&code, 0x1000, 0x1011), Some(vec![]));
        // jmp 0x1010
        code.extend([0xe9, 0, 0, 0, 0]);
        assert_eq!(calls(&code, 0x1000, 0x1010), None);
    }
}

//! The code of processes, for functions that have no rules.

use std::collections::hash_map::Entry;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;

use rustc_hash::FxHashMap;

/// Number of pieces of code that are remembered.
const MOST_PIECES: usize = 1 << 14;
/// Size of a piece: pages consist of whole ones.
const PIECE: usize = 256;
/// Log2 of the nanoseconds after which code is compared with that of the process again, as JITs may
/// have replaced it.
const CHECKED_AFTER: u32 = 30;

/// Pieces of the code of processes, as a thread that writes has read them.
#[derive(Default)]
pub(super) struct CodeCache {
    processes: FxHashMap<u32, ProcessPieces>,
    /// Number of pieces of all processes.
    pieces: usize,
    /// The last version that a process got.
    versions: u64,
    /// The last piece that was copied from.
    last: Option<LastPiece>,
    /// The memory of the last process that was asked for.
    memory: Option<(u32, Option<File>)>,
}

/// A piece of the code of a process. Code is read an instruction at a time.
struct LastPiece {
    pid: u32,
    address: u64,
    bytes: [u8; PIECE],
}

/// Pieces of the code of a process.
#[derive(Default)]
struct ProcessPieces {
    /// When it was last compared with the process.
    checked: u64,
    /// Another one after each change.
    version: u64,
    /// By address; `None` if it cannot be read.
    pieces: FxHashMap<u64, Option<[u8; PIECE]>>,
}

impl CodeCache {
    /// Reads again what is known of a process if it is to be compared at this time, and returns a
    /// number that differs where code was replaced: of two processes, and of two moments.
    pub(super) fn version(&mut self, pid: u32, time: u64) -> u64 {
        let now = time >> CHECKED_AFTER;
        let known = process(&mut self.processes, &mut self.versions, pid);
        if known.checked < now {
            known.checked = now;
            self.last = None;
            let memory = memory_of(&mut self.memory, pid);
            let mut has_changed = false;
            for (address, bytes) in &mut known.pieces {
                // A process that has ended has the code that it had.
                if let Some(read) = memory.and_then(|memory| read(memory, *address)) {
                    has_changed |= *bytes != Some(read);
                    *bytes = Some(read);
                }
            }
            if has_changed {
                self.versions += 1;
                known.version = self.versions;
            }
        }
        known.version
    }

    /// Copies code of a process, and returns the number of bytes that are known.
    pub(super) fn copy(&mut self, pid: u32, address: u64, to: &mut [u8]) -> usize {
        let mut copied = 0;
        while let Some(to) = to.get_mut(copied..).filter(|to| !to.is_empty()) {
            let at = address.wrapping_add(copied as u64);
            let offset = usize::try_from(at % PIECE as u64).unwrap_or_default();
            let Some(piece) = self.piece(pid, at - offset as u64) else { break };
            let known = piece.get(offset..).unwrap_or_default();
            let length = known.len().min(to.len());
            for (to, byte) in to.iter_mut().zip(known) {
                *to = *byte;
            }
            copied += length;
        }
        copied
    }

    /// Returns whether a process has this code at an address now; `None` if it has ended.
    pub(super) fn has_now(&mut self, pid: u32, address: u64, code: &[u8]) -> Option<bool> {
        let memory = memory_of(&mut self.memory, pid)?;
        let mut now = vec![0; code.len()];
        match memory.read_exact_at(&mut now, address) {
            Ok(()) => Some(now == code),
            // The memory of a process that has ended is empty.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => None,
            Err(_) => Some(false),
        }
    }

    /// Returns the piece of code at an address, which is read if it is not known.
    fn piece(&mut self, pid: u32, address: u64) -> Option<&[u8; PIECE]> {
        if self.last.as_ref().is_none_or(|last| (last.pid, last.address) != (pid, address)) {
            let bytes = self.find(pid, address)?;
            self.last = Some(LastPiece { pid, address, bytes });
        }
        self.last.as_ref().map(|last| &last.bytes)
    }

    fn find(&mut self, pid: u32, address: u64) -> Option<[u8; PIECE]> {
        if self.pieces >= MOST_PIECES {
            // What is replaced from now on would not be noticed, so all get other versions.
            self.processes.clear();
            self.pieces = 0;
        }
        let known = process(&mut self.processes, &mut self.versions, pid);
        match known.pieces.entry(address) {
            Entry::Occupied(piece) => *piece.get(),
            Entry::Vacant(new) => {
                self.pieces += 1;
                let memory = memory_of(&mut self.memory, pid);
                *new.insert(memory.and_then(|memory| read(memory, address)))
            }
        }
    }
}

/// Returns what is known of a process; a new one has a version of its own.
fn process<'a>(
    processes: &'a mut FxHashMap<u32, ProcessPieces>,
    versions: &mut u64,
    pid: u32,
) -> &'a mut ProcessPieces {
    processes.entry(pid).or_insert_with(|| {
        *versions += 1;
        ProcessPieces { version: *versions, ..ProcessPieces::default() }
    })
}

/// Returns the memory of a process; `None` if it may not be read.
fn memory_of(last: &mut Option<(u32, Option<File>)>, pid: u32) -> Option<&File> {
    if last.as_ref().is_none_or(|(known, _)| *known != pid) {
        *last = Some((pid, File::open(format!("/proc/{pid}/mem")).ok()));
    }
    last.as_ref()?.1.as_ref()
}

fn read(memory: &File, address: u64) -> Option<[u8; PIECE]> {
    let mut bytes = [0; PIECE];
    memory.read_exact_at(&mut bytes, address).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_that_is_replaced_has_another_version() {
        let (mut code, pid) = (CodeCache::default(), std::process::id());
        let mut memory = vec![7_u8; 3 * PIECE];
        let address = memory.as_ptr().addr() as u64 + 5;
        let mut copy = [0; 2 * PIECE];
        let first = code.version(pid, 1 << 30);
        assert_eq!((code.copy(pid, address, &mut copy), copy), (2 * PIECE, [7; 2 * PIECE]));
        memory.fill(8);
        // Not before it is to be compared.
        assert_eq!(code.version(pid, (1 << 30) + 1), first);
        code.copy(pid, address, &mut copy);
        assert_eq!(copy[0], 7);
        let second = code.version(pid, 2 << 30);
        assert_ne!(second, first);
        code.copy(pid, address, &mut copy);
        assert_eq!(copy[0], std::hint::black_box(&memory)[0]);
        assert_eq!(code.version(pid, 3 << 30), second, "nothing has changed");
        assert_ne!(code.version(1, 3 << 30), second, "that is another process");
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let (mut code, pid) = (CodeCache::default(), std::process::id());
        let version = code.version(pid, 0);
        for piece in 0..2 * MOST_PIECES as u64 {
            code.copy(pid, piece * PIECE as u64, &mut [0]);
        }
        assert!(code.pieces <= MOST_PIECES && code.processes[&pid].pieces.len() <= MOST_PIECES);
        assert_ne!(code.version(pid, 0), version);
    }
}

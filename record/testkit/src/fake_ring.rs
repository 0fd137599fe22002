//! A data ring on a memfd that a test fills record by record.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;

use recrep_record::parts::Ring;

use super::kernel_side::{DATA_HEAD, DATA_TAIL};

pub struct FakeRing {
    memory: File,
    page: u64,
    size: u64,
    head: u64,
    lost: u64,
}

impl FakeRing {
    pub fn new(pages: u64) -> Self {
        let memory =
            File::from(rustix::fs::memfd_create("ring", rustix::fs::MemfdFlags::CLOEXEC).unwrap());
        let page = rustix::param::page_size() as u64;
        memory.set_len((pages + 1) * page).unwrap();
        Self { memory, page, size: pages * page, head: 0, lost: 0 }
    }

    /// Sets head and tail, as if that many bytes had been written and read.
    pub fn start_at(&mut self, position: u64) {
        self.head = position;
        self.memory.write_all_at(&position.to_ne_bytes(), DATA_HEAD as u64).unwrap();
        self.memory.write_all_at(&position.to_ne_bytes(), DATA_TAIL as u64).unwrap();
    }

    pub fn map(&self) -> Ring {
        Ring::map(self.memory.as_fd(), usize::try_from(self.size / self.page).unwrap()).unwrap()
    }

    pub fn memory(&self) -> BorrowedFd<'_> {
        self.memory.as_fd()
    }

    pub fn tail(&self) -> u64 {
        let mut bytes = [0; 8];
        self.memory.read_exact_at(&mut bytes, DATA_TAIL as u64).unwrap();
        u64::from_ne_bytes(bytes)
    }

    /// Returns whether there is room for so many bytes.
    pub fn has_room(&self, bytes: u64) -> bool {
        self.head - self.tail() + bytes <= self.size
    }

    pub fn set_head(&self, head: u64) {
        self.memory.write_all_at(&head.to_ne_bytes(), DATA_HEAD as u64).unwrap();
    }

    pub fn map_backward(&self) -> Ring {
        Ring::map_backward(self.memory.as_fd(), usize::try_from(self.size / self.page).unwrap())
            .unwrap()
    }

    /// Writes a record like the kernel to an overwritten ring: before the previous one.
    pub fn write_backward(&mut self, record: &[u8]) {
        self.head = self.head.wrapping_sub(record.len() as u64);
        for (at, byte) in (0..).zip(record) {
            let place = self.head.wrapping_add(at) % self.size;
            self.memory.write_all_at(&[*byte], self.page + place).unwrap();
        }
        self.set_head(self.head);
    }

    /// Writes a record like the kernel: wraps around the end; without space, drops the record, and
    /// writes a LOST record before the next.
    pub fn write(&mut self, record: &[u8]) -> bool {
        let mut bytes = Vec::new();
        if self.lost > 0 {
            // Its trailer: TID, TIME, CPU, IDENTIFIER.
            bytes.extend(fake_record(2, &[0, self.lost, 0, 0, 0, 0]));
        }
        bytes.extend(record);
        if self.head + bytes.len() as u64 - self.tail() > self.size {
            self.lost += 1;
            return false;
        }
        self.lost = 0;
        for (at, byte) in (self.head..).zip(&bytes) {
            self.memory.write_all_at(&[*byte], self.page + at % self.size).unwrap();
        }
        self.head += bytes.len() as u64;
        self.set_head(self.head);
        true
    }
}

/// Returns a record of this type, with these numbers after its header.
pub fn fake_record(kind: u32, words: &[u64]) -> Vec<u8> {
    let size = u16::try_from(8 + words.len() * 8).unwrap();
    let mut bytes = kind.to_ne_bytes().to_vec();
    bytes.extend(0u16.to_ne_bytes());
    bytes.extend(size.to_ne_bytes());
    bytes.extend(words.iter().flat_map(|w| w.to_ne_bytes()));
    bytes
}

//! Room in an address space for mappings. In a profile, all processes share one.

use std::collections::BTreeMap;

/// First address of the kernel's half.
pub(crate) const KERNEL: u64 = 1 << 63;

/// Returns whether an address in the module of this name, empty for none, is the kernel's: that of a
/// 32-bit machine has no half of its own.
pub(crate) fn is_kernel(address: u64, module: &[u8]) -> bool {
    module.starts_with(b"[kernel.") || address >= KERNEL && module != b"[vsyscall]"
}

const PAGE: u64 = 4096;

/// First address at which mappings are put that cannot be where they want to be.
const FIRST: u64 = 1 << 32;

/// Returns the address of the page of an address.
pub(crate) fn page_of(address: u64) -> u64 {
    address & !(PAGE - 1)
}

/// Returns the address of the first page behind an address.
pub(crate) fn page_after(address: u64) -> u64 {
    page_of(address).saturating_add(PAGE)
}

/// User addresses, and which of them are taken.
#[derive(Debug)]
pub(crate) struct Room {
    /// Disjoint ranges: first address, address after the last.
    taken: BTreeMap<u64, u64>,
    next: u64,
}

impl Room {
    /// Creates room in which these addresses are taken.
    pub(crate) fn without(addresses: impl Iterator<Item = u64>) -> Self {
        let taken = addresses.map(|address| (address, address.saturating_add(1))).collect();
        Self { taken, next: FIRST }
    }

    /// Takes `len` bytes at `wanted` if these are free, else elsewhere, and returns the address;
    /// `None` if there is no room.
    pub(crate) fn take(&mut self, wanted: u64, len: u64) -> Option<u64> {
        let mut at = wanted;
        if self.obstacle(at, len)?.is_some() {
            at = self.next;
            while let Some(end) = self.obstacle(at, len)? {
                at = page_after(end);
            }
            self.next = page_after(at.checked_add(len)?);
        }
        self.taken.insert(at, at + len);
        Some(at)
    }

    /// Returns the end of a range that is in the way; `None` if these are no user addresses.
    fn obstacle(&self, at: u64, len: u64) -> Option<Option<u64>> {
        let end = at.checked_add(len).filter(|end| *end <= KERNEL)?;
        let before = self.taken.range(..end).next_back();
        Some(before.map(|(_, end)| *end).filter(|taken| *taken > at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_do_not_overlap() {
        let mut room = Room::without([0x5000, FIRST + 0x10].into_iter());
        assert_eq!(room.take(0x1000, 0x1000), Some(0x1000));
        assert_eq!(room.take(0x4000, 0x1000), Some(0x4000));
        assert_eq!(room.take(0x4800, 0x800), Some(FIRST + 0x1000));
        assert_eq!(room.take(0x4800, 0x800), Some(FIRST + 0x2000));
        assert_eq!(room.take(KERNEL - 1, 2), None);
        assert_eq!(room.take(0, KERNEL), None);
    }
}

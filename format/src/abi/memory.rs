//! The bits of the fields of `perf_mem_data_src`, and of a transaction's word.

use bitflags::bitflags;

/// The bits of the fields of [`DataSrc`](super::DataSrc) (`PERF_MEM_*`).
pub mod mem {
    /// `op`: a load.
    pub const OP_LOAD: u32 = 0x2;
    /// `op`: a store.
    pub const OP_STORE: u32 = 0x4;
    /// `op`: a prefetch.
    pub const OP_PREFETCH: u32 = 0x8;
    /// `op`: the execution of code.
    pub const OP_EXEC: u32 = 0x10;
    /// `lvl`: not available.
    pub const LVL_NA: u32 = 0x1;
    /// `lvl`: a hit.
    pub const LVL_HIT: u32 = 0x2;
    /// `lvl`: a miss.
    pub const LVL_MISS: u32 = 0x4;
    /// `lvl`: level 1.
    pub const LVL_L1: u32 = 0x8;
    /// `lvl`: a line fill buffer.
    pub const LVL_LFB: u32 = 0x10;
    /// `lvl`: level 2.
    pub const LVL_L2: u32 = 0x20;
    /// `lvl`: level 3.
    pub const LVL_L3: u32 = 0x40;
    /// `lvl`: memory of the same node.
    pub const LVL_LOCAL_RAM: u32 = 0x80;
    /// `lvl`: memory of another node, one or two hops away.
    pub const LVL_REMOTE_RAM: u32 = 0x300;
    /// `lvl`: a cache of another node, one or two hops away.
    pub const LVL_REMOTE_CACHE: u32 = 0xc00;
    /// `lvl`: I/O memory.
    pub const LVL_IO: u32 = 0x1000;
    /// `lvl`: memory that is not cached.
    pub const LVL_UNCACHED: u32 = 0x2000;
    /// `snoop`: a hit.
    pub const SNOOP_HIT: u32 = 0x4;
    /// `snoop`: a hit of a modified line.
    pub const SNOOP_HITM: u32 = 0x10;
    /// `snoopx`: forwarded.
    pub const SNOOPX_FWD: u32 = 0x1;
    /// `snoopx`: from a peer.
    pub const SNOOPX_PEER: u32 = 0x2;
    /// `lock`: locked.
    pub const LOCKED: u32 = 0x2;
    /// `blk`: data could not be forwarded.
    pub const BLK_DATA: u32 = 0x2;
    /// `blk`: an address conflict.
    pub const BLK_ADDR: u32 = 0x4;
}

bitflags! {
    /// The reason why a transaction aborted (`PERF_TXN_*`, the field TRANSACTION of samples).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct Transaction: u64 {
        /// It was elided from a lock.
        const ELISION = 1 << 0;
        /// It was a transaction proper.
        const TRANSACTION = 1 << 1;
        /// The sampled instruction aborted it.
        const SYNC = 1 << 2;
        /// Something else aborted it.
        const ASYNC = 1 << 3;
        /// A retry may succeed.
        const RETRY = 1 << 4;
        /// A conflict with another access.
        const CONFLICT = 1 << 5;
        /// Too many writes.
        const CAPACITY_WRITE = 1 << 6;
        /// Too many reads.
        const CAPACITY_READ = 1 << 7;
        const _ = !0;
    }
}

impl Transaction {
    /// Returns the code that the program gave for the abort: the upper half of the word.
    pub const fn abort_code(self) -> u32 {
        (self.bits() >> 32) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_abort_code_is_the_upper_half() {
        let word = Transaction::from_bits_retain(0xab << 32 | 0b10_0110);
        assert_eq!(word.abort_code(), 0xab);
        assert!(
            word.contains(Transaction::TRANSACTION | Transaction::SYNC | Transaction::CONFLICT)
        );
        assert!(!word.intersects(Transaction::ASYNC | Transaction::CAPACITY_READ));
    }
}

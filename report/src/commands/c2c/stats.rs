//! What accesses were, counted as perf c2c counts them: `perf c2c report --stats`, number by number.

use std::io::{self, Write};

use recrep_format::abi::DataSrc;
use serde::Serialize;

/// The bits of the fields of `union perf_mem_data_src`.
mod bits {
    pub(super) const OP_LOAD: u32 = 2;
    pub(super) const OP_STORE: u32 = 4;
    pub(super) const LVL_NA: u32 = 0x1;
    pub(super) const LVL_HIT: u32 = 0x2;
    pub(super) const LVL_MISS: u32 = 0x4;
    pub(super) const LVL_L1: u32 = 0x8;
    pub(super) const LVL_LFB: u32 = 0x10;
    pub(super) const LVL_L2: u32 = 0x20;
    pub(super) const LVL_L3: u32 = 0x40;
    pub(super) const LVL_LOCAL_RAM: u32 = 0x80;
    pub(super) const LVL_REMOTE_RAM: u32 = 0x300;
    pub(super) const LVL_REMOTE_CACHE: u32 = 0xc00;
    pub(super) const LVL_IO: u32 = 0x1000;
    pub(super) const LVL_UNCACHED: u32 = 0x2000;
    pub(super) const SNOOP_HIT: u32 = 0x4;
    pub(super) const SNOOP_HITM: u32 = 0x10;
    pub(super) const SNOOPX_PEER: u32 = 2;
    pub(super) const LOCKED: u32 = 2;
    pub(super) const BLK_DATA: u32 = 2;
    pub(super) const BLK_ADDR: u32 = 4;
}

macro_rules! stats {
    ($($(#[$meta:meta])* $name:ident,)*) => {
        /// How many accesses there were of each kind, under perf's names.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
        pub(super) struct Stats {
            $( $(#[$meta])* pub(super) $name: u64, )*
        }

        impl Stats {
            /// Adds those of others.
            pub(super) fn add(&mut self, other: &Self) {
                $( self.$name += other.$name; )*
            }

            /// So many of the same.
            fn times(mut self, count: u64) -> Self {
                $( self.$name *= count; )*
                self
            }
        }
    };
}

stats! {
    /// All.
    records,
    /// Locked.
    locks,
    /// Loads.
    load,
    /// Loads of what is not cached.
    ld_uncache,
    /// Loads from devices.
    ld_io,
    /// Loads that missed.
    ld_miss,
    /// Loads without an address.
    ld_noadrs,
    /// Loads from a fill buffer.
    ld_fbhit,
    /// Loads from the L1.
    ld_l1hit,
    /// Loads from the L2.
    ld_l2hit,
    /// Loads from the last level, but for modified lines of other cores.
    ld_llchit,
    /// Loads of modified lines of other cores.
    lcl_hitm,
    /// Loads of modified lines of other nodes.
    rmt_hitm,
    /// Loads of clean lines of other nodes.
    rmt_hit,
    /// Loads from this node's memory.
    lcl_dram,
    /// Loads from other nodes' memory.
    rmt_dram,
    /// Loads from memory of what no other cache had.
    ld_excl,
    /// Loads from memory of what others had, too.
    ld_shared,
    /// Loads that waited for data.
    blk_data,
    /// Loads that waited for an address.
    blk_addr,
    /// Loads from a peer's cache on this node.
    lcl_peer,
    /// Loads from a peer's cache on another node.
    rmt_peer,
    /// Stores.
    store,
    /// Stores to what is not cached.
    st_uncache,
    /// Stores without an address.
    st_noadrs,
    /// Stores that hit the L1.
    st_l1hit,
    /// Stores that missed the L1.
    st_l1miss,
    /// Stores of which no level is known.
    st_na,
    /// Accesses whose code or data no mapping holds.
    nomap,
    /// Neither loads nor stores.
    noparse,
}

/// What is known of an access beside its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reach {
    /// Whether it has an address.
    pub(super) has_address: bool,
    /// Whether both its code and its data are mapped.
    pub(super) is_mapped: bool,
}

impl Reach {
    /// From the text of the `reach` key.
    pub(super) fn of(cell: u64) -> Self {
        Self { has_address: cell & 1 != 0, is_mapped: cell & 6 == 6 }
    }
}

impl Stats {
    /// Of so many accesses of one kind.
    pub(super) fn of(src: DataSrc, reach: Reach, count: u64) -> Self {
        use bits::{BLK_ADDR, BLK_DATA, LOCKED, OP_LOAD, OP_STORE};
        let has = |field: u32, bit: u32| u64::from(field & bit != 0);
        let mut one = Self {
            records: 1,
            locks: has(src.lock(), LOCKED),
            blk_data: has(src.blk(), BLK_DATA),
            blk_addr: has(src.blk(), BLK_ADDR),
            ..Self::default()
        };
        let is_whole = match src.op() {
            op if op & OP_LOAD != 0 => one.load(src, reach.has_address),
            op if op & OP_STORE != 0 => one.store(src, reach.has_address),
            _ => {
                one.noparse = 1;
                false
            }
        };
        one.nomap = u64::from(is_whole && !reach.is_mapped);
        one.times(count)
    }

    /// Whether there is more to say than that it has no address.
    fn load(&mut self, src: DataSrc, has_address: bool) -> bool {
        use bits::*;
        let has = |bit: u32| u64::from(src.lvl() & bit != 0);
        let (hit, hitm) = (src.snoop() & SNOOP_HIT != 0, src.snoop() & SNOOP_HITM != 0);
        let is_peer = src.snoopx() & SNOOPX_PEER != 0;
        // Where the field tells how many hops away, another core of the same node is meant.
        let is_remote = src.remote() == 1 && src.hops() == 0;
        self.load = 1;
        if !has_address {
            self.ld_noadrs = 1;
            return false;
        }
        if src.lvl() & LVL_HIT != 0 {
            self.ld_uncache = has(LVL_UNCACHED);
            self.ld_io = has(LVL_IO);
            self.ld_fbhit = has(LVL_LFB);
            self.ld_l1hit = has(LVL_L1);
            self.ld_l2hit = has(LVL_L2);
            self.lcl_hitm = if hitm { has(LVL_L3) } else { 0 };
            self.ld_llchit = has(LVL_L3) - self.lcl_hitm;
            self.lcl_peer = if is_peer { has(LVL_L2) + has(LVL_L3) } else { 0 };
            self.lcl_dram = has(LVL_LOCAL_RAM);
            self.rmt_dram = u64::from(is_remote) | has(LVL_REMOTE_RAM);
            let from_memory = self.lcl_dram + self.rmt_dram;
            (self.ld_shared, self.ld_excl) = if hit { (from_memory, 0) } else { (0, from_memory) };
        }
        if is_remote || src.lvl() & LVL_REMOTE_CACHE != 0 {
            self.rmt_hitm = u64::from(hitm && !hit);
            self.rmt_peer = u64::from(is_peer && !hit && !hitm);
            self.rmt_hit = u64::from(hit) | self.rmt_peer;
        }
        self.ld_miss = has(LVL_MISS);
        true
    }

    fn store(&mut self, src: DataSrc, has_address: bool) -> bool {
        use bits::*;
        let has = |bit: u32| u64::from(src.lvl() & bit != 0);
        self.store = 1;
        if !has_address {
            self.st_noadrs = 1;
            return false;
        }
        if src.lvl() & LVL_HIT != 0 {
            self.st_uncache = has(LVL_UNCACHED);
            self.st_l1hit = has(LVL_L1);
        }
        self.st_l1miss = if src.lvl() & LVL_MISS != 0 { has(LVL_L1) } else { 0 };
        self.st_na = has(LVL_NA);
        true
    }

    /// Loads of modified lines of others.
    pub(super) fn hitm(&self) -> u64 {
        self.lcl_hitm + self.rmt_hitm
    }

    /// Loads from peers' caches.
    pub(super) fn peer(&self) -> u64 {
        self.lcl_peer + self.rmt_peer
    }

    /// Loads that no cache of this node could serve.
    fn llc_misses(&self) -> u64 {
        self.lcl_dram + self.rmt_dram + self.rmt_hitm + self.rmt_hit
    }

    /// Prints perf's table.
    pub(super) fn print(&self, out: &mut impl Write) -> io::Result<()> {
        let line = "=".repeat(49);
        writeln!(out, "{line}\n            Trace Event Information\n{line}")?;
        let misses = self.llc_misses();
        for (name, number) in [
            ("Total records", self.records),
            ("Locked Load/Store Operations", self.locks),
            ("Load Operations", self.load),
            ("Loads - uncacheable", self.ld_uncache),
            ("Loads - IO", self.ld_io),
            ("Loads - Miss", self.ld_miss),
            ("Loads - no mapping", self.ld_noadrs),
            ("Load Fill Buffer Hit", self.ld_fbhit),
            ("Load L1D hit", self.ld_l1hit),
            ("Load L2D hit", self.ld_l2hit),
            ("Load LLC hit", self.ld_llchit + self.lcl_hitm),
            ("Load Local HITM", self.lcl_hitm),
            ("Load Remote HITM", self.rmt_hitm),
            ("Load Remote HIT", self.rmt_hit),
            ("Load Local DRAM", self.lcl_dram),
            ("Load Remote DRAM", self.rmt_dram),
            ("Load MESI State Exclusive", self.ld_excl),
            ("Load MESI State Shared", self.ld_shared),
            ("Load LLC Misses", misses),
            ("Load access blocked by data", self.blk_data),
            ("Load access blocked by address", self.blk_addr),
            ("Load HIT Local Peer", self.lcl_peer),
            ("Load HIT Remote Peer", self.rmt_peer),
        ] {
            writeln!(out, "  {name:<34}: {number:>10}")?;
        }
        for (name, number) in [
            ("LLC Misses to Local DRAM", self.lcl_dram),
            ("LLC Misses to Remote DRAM", self.rmt_dram),
            ("LLC Misses to Remote cache (HIT)", self.rmt_hit),
            ("LLC Misses to Remote cache (HITM)", self.rmt_hitm),
        ] {
            writeln!(out, "  {name:<34}: {:>10.1}%", crate::count::metrics::share(number, misses))?;
        }
        for (name, number) in [
            ("Store Operations", self.store),
            ("Store - uncacheable", self.st_uncache),
            ("Store - no mapping", self.st_noadrs),
            ("Store L1D Hit", self.st_l1hit),
            ("Store L1D Miss", self.st_l1miss),
            ("Store No available memory level", self.st_na),
            ("No Page Map Rejects", self.nomap),
            ("Unable to parse data source", self.noparse),
        ] {
            writeln!(out, "  {name:<34}: {number:>10}")?;
        }
        Ok(())
    }

    /// Prints perf's table of the lines that cores take from each other, if these are the accesses of so many.
    pub(super) fn print_shared(&self, lines: usize, out: &mut impl Write) -> io::Result<()> {
        let line = "=".repeat(49);
        writeln!(out, "\n{line}\n    Global Shared Cache Line Event Information\n{line}")?;
        for (name, number) in [
            ("Total Shared Cache Lines", lines as u64),
            ("Load HITs on shared lines", self.load),
            ("Fill Buffer Hits on shared lines", self.ld_fbhit),
            ("L1D hits on shared lines", self.ld_l1hit),
            ("L2D hits on shared lines", self.ld_l2hit),
            ("LLC hits on shared lines", self.ld_llchit + self.lcl_hitm),
            ("Load hits on peer cache or nodes", self.peer()),
            ("Locked Access on shared lines", self.locks),
            ("Blocked Access on shared lines", self.blk_data + self.blk_addr),
            ("Store HITs on shared lines", self.store),
            ("Store L1D hits on shared lines", self.st_l1hit),
            ("Store No available memory level", self.st_na),
            ("Total Merged records", self.hitm() + self.store),
        ] {
            writeln!(out, "  {name:<34}: {number:>10}")?;
        }
        Ok(())
    }
}

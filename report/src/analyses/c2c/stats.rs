//! Classification of accesses, with the numbers of `perf c2c report --stats`.

use std::io::{self, Write};

use recrep_format::abi::{DataSrc, mem};
use serde::Serialize;

use super::args::Display;
use crate::count::metrics::share;

macro_rules! stats {
    ($($(#[$meta:meta])* $name:ident: $label:literal,)*) => {
        /// Number of accesses of each kind, under perf's names (`struct c2c_stats`); the texts are
        /// those of its table.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
        pub(super) struct Stats {
            $( $(#[$meta])* pub(super) $name: u64, )*
        }

        impl Stats {
            pub(super) fn add(&mut self, other: &Self) {
                $( self.$name += other.$name; )*
            }

            /// Returns the numbers with their texts, in perf's order.
            pub(super) fn labelled(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$( ($label, self.$name), )*].into_iter()
            }

            fn times(mut self, count: u64) -> Self {
                $( self.$name *= count; )*
                self
            }
        }
    };
}

stats! {
    records: "Total records",
    locks: "Locked Load/Store Operations",
    load: "Load Operations",
    ld_uncache: "Loads - uncacheable",
    ld_io: "Loads - IO",
    ld_miss: "Loads - Miss",
    /// Loads without a data address.
    ld_noadrs: "Loads - no mapping",
    ld_fbhit: "Load Fill Buffer Hit",
    ld_l1hit: "Load L1D hit",
    ld_l2hit: "Load L2D hit",
    /// Loads that hit the last level cache, without HITMs.
    ld_llchit: "Load LLC hit",
    /// Local HITMs: lines modified by another core of the same node.
    lcl_hitm: "Load Local HITM",
    /// Remote HITMs: lines modified by a core of another node.
    rmt_hitm: "Load Remote HITM",
    /// Loads of unmodified lines from a cache of another node.
    rmt_hit: "Load Remote HIT",
    lcl_dram: "Load Local DRAM",
    rmt_dram: "Load Remote DRAM",
    /// Loads from memory without a snoop hit (MESI exclusive).
    ld_excl: "Load MESI State Exclusive",
    /// Loads from memory with a snoop hit (MESI shared).
    ld_shared: "Load MESI State Shared",
    /// Accesses blocked because data could not be forwarded.
    blk_data: "Load access blocked by data",
    /// Accesses blocked by an address conflict.
    blk_addr: "Load access blocked by address",
    /// Loads from a peer's cache on the same node.
    lcl_peer: "Load HIT Local Peer",
    /// Loads from a peer's cache on another node.
    rmt_peer: "Load HIT Remote Peer",
    store: "Store Operations",
    st_uncache: "Store - uncacheable",
    /// Stores without a data address.
    st_noadrs: "Store - no mapping",
    st_l1hit: "Store L1D Hit",
    st_l1miss: "Store L1D Miss",
    st_na: "Store No available memory level",
    /// Accesses whose code or data address is not mapped.
    nomap: "No Page Map Rejects",
    /// Accesses that are neither loads nor stores.
    noparse: "Unable to parse data source",
}

impl Stats {
    /// Classifies `count` equal accesses; `reach` is a cell of the sort key `reach`.
    pub(super) fn of(src: DataSrc, reach: u64, count: u64) -> Self {
        use mem::{BLK_ADDR, BLK_DATA, LOCKED, OP_LOAD, OP_STORE};
        let has = |field: u32, bit: u32| u64::from(field & bit != 0);
        let (has_address, is_mapped) = (reach & 1 != 0, reach & 6 == 6);
        let mut one = Self {
            records: 1,
            locks: has(src.lock(), LOCKED),
            blk_data: has(src.blk(), BLK_DATA),
            blk_addr: has(src.blk(), BLK_ADDR),
            ..Self::default()
        };
        let is_whole = match src.op() {
            op if op & OP_LOAD != 0 => one.load(src, has_address),
            op if op & OP_STORE != 0 => one.store(src, has_address),
            _ => {
                one.noparse = 1;
                false
            }
        };
        one.nomap = u64::from(is_whole && !is_mapped);
        one.times(count)
    }

    /// Classifies a load. Returns whether it has a data address.
    fn load(&mut self, src: DataSrc, has_address: bool) -> bool {
        use mem::*;
        let has = |bit: u32| u64::from(src.lvl() & bit != 0);
        let (hit, hitm) = (src.snoop() & SNOOP_HIT != 0, src.snoop() & SNOOP_HITM != 0);
        let is_peer = src.snoopx() & SNOOPX_PEER != 0;
        // With `hops` set, `remote` means another core of the same node, as on POWER.
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

    /// Classifies a store. Returns whether it has a data address.
    fn store(&mut self, src: DataSrc, has_address: bool) -> bool {
        use mem::*;
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

    pub(super) fn hitm(&self) -> u64 {
        self.lcl_hitm + self.rmt_hitm
    }

    pub(super) fn peer(&self) -> u64 {
        self.lcl_peer + self.rmt_peer
    }

    /// Returns the number of loads for which lines are listed.
    pub(super) fn shown(&self, display: Display) -> u64 {
        match display {
            Display::Tot => self.hitm(),
            Display::Lcl => self.lcl_hitm,
            Display::Rmt => self.rmt_hitm,
            Display::Peer => self.peer(),
        }
    }

    /// Returns the number of loads that missed the last level cache.
    fn llc_misses(&self) -> u64 {
        self.lcl_dram + self.rmt_dram + self.rmt_hitm + self.rmt_hit
    }

    /// Prints perf's table "Trace Event Information".
    pub(super) fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        let line = "=".repeat(49);
        writeln!(out, "{line}\n            Trace Event Information\n{line}")?;
        let misses = self.llc_misses();
        // The table counts local HITMs as hits too.
        let counted = Self { ld_llchit: self.ld_llchit + self.lcl_hitm, ..*self };
        for (name, number) in counted.labelled() {
            // Sums and shares stand between the numbers.
            if name == "Load access blocked by data" {
                row("Load LLC Misses", misses, out)?;
            }
            if name == "Store Operations" {
                for (name, number) in [
                    ("LLC Misses to Local DRAM", self.lcl_dram),
                    ("LLC Misses to Remote DRAM", self.rmt_dram),
                    ("LLC Misses to Remote cache (HIT)", self.rmt_hit),
                    ("LLC Misses to Remote cache (HITM)", self.rmt_hitm),
                ] {
                    writeln!(out, "  {name:<34}: {:>10.1}%", share(number, misses))?;
                }
            }
            row(name, number, out)?;
        }
        Ok(())
    }

    /// Prints perf's table of shared cache lines, where `self` has the accesses of `lines` lines.
    pub(super) fn print_shared(&self, lines: usize, out: &mut dyn Write) -> io::Result<()> {
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
            row(name, number, out)?;
        }
        Ok(())
    }
}

fn row(name: &str, number: u64, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "  {name:<34}: {number:>10}")
}

//! `union perf_mem_data_src`: where a load's data came from, each field by name, spelt as perf's
//! columns spell it.
//!
//! The kernel declares the word once for each byte order, so that its value is the same in both.

use std::fmt::{self, Write};

/// The source of the data of a memory access (`PERF_SAMPLE_DATA_SRC`).
/// ```
/// use recrep_format::abi::DataSrc;
///
/// // As a load that hit the L3 has it.
/// let src = DataSrc(0x6_8810_0842);
/// assert_eq!((src.op_name(), &*src.mem(), &*src.snoop_name()), ("LOAD", "L3 hit", "None"));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DataSrc(pub u64);

macro_rules! fields {
    ($($(#[$meta:meta])* $name:ident = $shift:literal, $width:literal;)*) => {
        impl DataSrc {
            $( $(#[$meta])* #[must_use]
            pub const fn $name(self) -> u32 {
                ((self.0 >> $shift) & ((1 << $width) - 1)) as u32
            } )*
        }
    };
}

fields! {
    /// The kind of access: 1 not known, 2 load, 4 store, 8 prefetch, 16 execution.
    op = 0, 5;
    /// The level, a bit each, hit and miss among them (deprecated in favour of `lvl_num`).
    lvl = 5, 14;
    /// The answers of other caches, a bit each.
    snoop = 19, 5;
    /// 1 not known, 2 locked.
    lock = 24, 2;
    /// The TLB, a bit each, hit and miss among them.
    dtlb = 26, 7;
    /// The level, by number.
    lvl_num = 33, 4;
    /// 1: remote.
    remote = 37, 1;
    /// More on snooping: 1 forwarded, 2 from a peer.
    snoopx = 38, 2;
    /// The reason why the access was blocked: 1 not known, 2 data, 4 address.
    blk = 40, 3;
    /// The distance: 1 core, 2 node, 3 socket, 4 board.
    hops = 43, 3;
}

/// Bits `first` to `last` of the word.
const fn bits(first: u32, last: u32) -> u64 {
    (u64::MAX >> (63 - last)) & (u64::MAX << first)
}

impl DataSrc {
    /// The value for a sample without the field: every part not known (`PERF_MEM_DATA_SRC_NONE`).
    pub const NONE: Self = Self(1 | 1 << 5 | 1 << 19 | 1 << 24 | 1 << 26 | 15 << 33);
    /// The bits that [`DataSrc::op_name`] reads.
    pub const OP: u64 = bits(0, 4);
    /// The bits that [`DataSrc::mem`] reads.
    pub const MEM: u64 = bits(5, 18) | bits(33, 37) | bits(43, 45);
    /// The bits that [`DataSrc::snoop_name`] reads.
    pub const SNOOP: u64 = bits(19, 23) | bits(38, 39);
    /// The bits that [`DataSrc::locked_name`] reads.
    pub const LOCKED: u64 = bits(24, 25);
    /// The bits that [`DataSrc::tlb_name`] reads.
    pub const TLB: u64 = bits(26, 32);
    /// The bits that [`DataSrc::blocked_name`] reads.
    pub const BLOCKED: u64 = bits(40, 42);
}

const NA: u32 = 1;
const HIT: u32 = 2;
const MISS: u32 = 4;
const LVLNUM_NA: u32 = 15;

const LEVELS: [&str; 14] = [
    "N/A",
    "HIT",
    "MISS",
    "L1",
    "LFB/MAB",
    "L2",
    "L3",
    "Local RAM",
    "Remote RAM (1 hop)",
    "Remote RAM (2 hops)",
    "Remote Cache (1 hop)",
    "Remote Cache (2 hops)",
    "I/O",
    "Uncached",
];
const SNOOPS: [&str; 5] = ["N/A", "None", "Hit", "Miss", "HitM"];
const SNOOPXS: [&str; 2] = ["Fwd", "Peer"];
const TLBS: [&str; 7] = ["N/A", "HIT", "MISS", "L1", "L2", "Walker", "Fault"];

const fn level_number(number: u32) -> Option<&'static str> {
    Some(match number {
        1 => "L1",
        2 => "L2",
        3 => "L3",
        4 => "L4",
        5 => "L2 MHB",
        6 => "Memory-side Cache",
        8 => "Uncached",
        9 => "CXL",
        10 => "I/O",
        11 => "Any cache",
        12 => "LFB/MAB",
        13 => "RAM",
        14 => "PMEM",
        15 => "N/A",
        _ => return None,
    })
}

/// Appends the names of the set bits, joined as perf joins them.
fn join(out: &mut String, bits: u32, names: &[&str]) {
    for (_, name) in names.iter().enumerate().filter(|(bit, _)| bits >> bit & 1 == 1) {
        if !out.is_empty() {
            out.push_str(" or ");
        }
        out.push_str(name);
    }
}

impl DataSrc {
    /// perf's column `mem`: the level, and whether it was hit.
    pub fn mem(self) -> String {
        let hit_miss = match self.lvl() {
            lvl if lvl & HIT != 0 => " hit",
            lvl if lvl & MISS != 0 => " miss",
            _ => " ",
        };
        let mut out = String::new();
        if !matches!(self.lvl_num(), 0 | LVLNUM_NA) {
            if self.remote() == 1 {
                out.push_str("Remote ");
            }
            let hops = match self.hops() {
                0 => "",
                1 => "core, same node ",
                2 => "node, same socket ",
                3 => "socket, same board ",
                4 => "board ",
                _ => "Unknown hops ",
            };
            out.push_str(hops);
            match level_number(self.lvl_num()) {
                Some(name) => out.push_str(name),
                // Writing to a string does not fail.
                None => drop(write!(out, "Unknown level {}", self.lvl_num())),
            }
        } else {
            join(&mut out, self.lvl() & !(NA | HIT | MISS), &LEVELS);
            if out.is_empty() {
                return "N/A".into();
            }
        }
        out.push_str(hit_miss);
        out
    }

    /// perf's column `snoop`.
    pub fn snoop_name(self) -> String {
        let mut out = String::new();
        join(&mut out, self.snoop(), &SNOOPS);
        join(&mut out, self.snoopx(), &SNOOPXS);
        if out.is_empty() { "N/A".into() } else { out }
    }

    /// perf's column `tlb`.
    pub fn tlb_name(self) -> String {
        let mut out = String::new();
        join(&mut out, self.dtlb() & !(HIT | MISS), &TLBS);
        if out.is_empty() {
            out.push_str("N/A");
        }
        for (bit, word) in [(HIT, " hit"), (MISS, " miss")] {
            if self.dtlb() & bit != 0 {
                out.push_str(word);
            }
        }
        out
    }

    /// perf's column `locked`.
    pub fn locked_name(self) -> &'static str {
        match self.lock() {
            lock if lock & NA != 0 => "N/A",
            lock if lock & 2 != 0 => "Yes",
            _ => "No",
        }
    }

    /// perf's column `blocked`, which begins with a space.
    pub fn blocked_name(self) -> String {
        let blk = self.blk();
        if blk == 0 || blk & NA != 0 {
            return " N/A".into();
        }
        let data = if blk & 2 != 0 { " Data" } else { "" };
        format!("{data}{}", if blk & 4 != 0 { " Addr" } else { "" })
    }

    /// Returns the kind of access, as perf names it.
    pub fn op_name(self) -> &'static str {
        match self.op() {
            op if op & 1 != 0 => "N/A",
            op if op & 2 != 0 => "LOAD",
            op if op & 4 != 0 => "STORE",
            op if op & 8 != 0 => "PFETCH",
            op if op & 16 != 0 => "EXEC",
            _ => "No",
        }
    }
}

/// All fields on one line, as `perf script` prints them after the raw value.
impl fmt::Display for DataSrc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (op, lvl, snp) = (self.op_name(), self.mem(), self.snoop_name());
        let (tlb, lck, blk) = (self.tlb_name(), self.locked_name(), self.blocked_name());
        write!(f, "|OP {op}|LVL {lvl}|SNP {snp}|TLB {tlb}|LCK {lck}|BLK {blk}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_fill_the_word_without_a_gap() {
        let all = DataSrc(u64::MAX);
        let widths = [5, 14, 5, 2, 7, 4, 1, 2, 3, 3];
        let fields = [
            all.op(),
            all.lvl(),
            all.snoop(),
            all.lock(),
            all.dtlb(),
            all.lvl_num(),
            all.remote(),
            all.snoopx(),
            all.blk(),
            all.hops(),
        ];
        assert!(fields.iter().zip(widths).all(|(field, width)| *field == (1 << width) - 1));
        assert_eq!(widths.iter().sum::<u32>(), 46);
    }

    #[test]
    fn a_column_reads_its_own_bits_only() {
        let parts = [DataSrc::MEM, DataSrc::SNOOP, DataSrc::LOCKED, DataSrc::TLB, DataSrc::BLOCKED];
        let all = parts.iter().fold(0x1f, |all, part| {
            assert_eq!(all & part, 0);
            all | part
        });
        assert_eq!(all, (1 << 46) - 1);
        for word in [0, u64::MAX, 0x1234_5678_9abc_def0, 0x0fed_cba9_8765_4321] {
            let src = DataSrc(word);
            assert_eq!(DataSrc(word & DataSrc::MEM).mem(), src.mem());
            assert_eq!(DataSrc(word & DataSrc::SNOOP).snoop_name(), src.snoop_name());
            assert_eq!(DataSrc(word & DataSrc::LOCKED).locked_name(), src.locked_name());
            assert_eq!(DataSrc(word & DataSrc::TLB).tlb_name(), src.tlb_name());
            assert_eq!(DataSrc(word & DataSrc::BLOCKED).blocked_name(), src.blocked_name());
        }
        assert_eq!(DataSrc::NONE.to_string(), "|OP N/A|LVL N/A|SNP N/A|TLB N/A|LCK N/A|BLK  N/A");
    }

    #[test]
    fn columns_read_as_perfs() {
        // A load, L1 hit, no snoop, TLB L1 or L2 hit, not locked.
        let l1 = DataSrc(2 | (0x0a << 5) | (2 << 19) | (0x1a << 26));
        assert_eq!(l1.mem().as_str(), "L1 hit");
        assert_eq!(l1.snoop_name().as_str(), "None");
        assert_eq!(l1.locked_name(), "No");
        assert_eq!((l1.tlb_name().as_str(), l1.blocked_name().as_str()), ("L1 or L2 hit", " N/A"));
        assert_eq!(DataSrc(0).mem(), "N/A");
        assert_eq!(
            DataSrc((13 << 33) | (1 << 37) | (3 << 43)).mem(),
            "Remote socket, same board RAM "
        );
        assert_eq!(DataSrc((7 << 33) | (4 << 5)).mem(), "Unknown level 7 miss");
        assert_eq!(DataSrc((4 << 19) | (2 << 38)).snoop_name(), "Hit or Peer");
        assert_eq!(DataSrc(6 << 40).blocked_name(), " Data Addr");
        assert_eq!(l1.to_string(), "|OP LOAD|LVL L1 hit|SNP None|TLB L1 or L2 hit|LCK No|BLK  N/A");
    }
}

//! The rules for breakpoints, by architecture (the kernel's `arch/*/kernel/hw_breakpoint.c`).

use recrep_format::abi::AttrFlags;
use recrep_format::attr::Attr;

use crate::machine::registers::Arch;

/// `HW_BREAKPOINT_R` and `_X`; between them, 2, is `_W`.
const READ: u32 = 1;
const EXECUTE: u32 = 4;

/// Returns whether an address is the kernel's, as on all 64-bit machines that rec knows.
pub(super) const fn is_of_kernel(address: u64) -> bool {
    address >> 63 == 1
}

/// Returns the rule that a breakpoint breaks, and what would keep to it.
pub(super) fn broken_rule(attr: &Attr, arch: Arch) -> Option<String> {
    let (address, length, kind) = (attr.config1, attr.config2, attr.bp_type);
    if is_of_kernel(address) && attr.flags.contains(AttrFlags::EXCLUDE_KERNEL) {
        return Some(
            "the address is the kernel's, and the event leaves the kernel out; leave out the \
             modifier u, and run as root"
                .to_owned(),
        );
    }
    kinds(kind, arch)
        .or_else(|| lengths(length, kind, arch))
        .or_else(|| alignment(address, length, kind, arch))
}

fn kinds(kind: u32, arch: Arch) -> Option<String> {
    if kind & EXECUTE != 0 && kind != EXECUTE {
        return Some(
            "a breakpoint watches either data (r, w, rw) or the execution of code (x), not both; \
             use two events"
                .to_owned(),
        );
    }
    (kind == READ && arch == Arch::X86_64).then(|| {
        "x86 cannot watch for reads alone; watch reads and writes (:rw), or writes (:w)".to_owned()
    })
}

fn lengths(length: u64, kind: u32, arch: Arch) -> Option<String> {
    let fits = match (kind, arch) {
        (EXECUTE, Arch::X86_64) => length == 8,
        (EXECUTE, _) => length == 4,
        // Arm watches any part of 8 bytes.
        (_, Arch::Aarch64) => (1..=8).contains(&length),
        _ => matches!(length, 1 | 2 | 4 | 8),
    };
    let rule = match (kind, arch) {
        (EXECUTE, _) => {
            "a breakpoint on code has the length of one instruction, as the kernel counts it: \
             leave /LENGTH out"
        }
        (_, Arch::Aarch64) => "a breakpoint watches 1 to 8 bytes",
        _ => "a breakpoint watches 1, 2, 4 or 8 bytes",
    };
    (!fits).then(|| format!("{rule} (now {length})"))
}

fn alignment(address: u64, length: u64, kind: u32, arch: Arch) -> Option<String> {
    let aligned = match (kind, arch) {
        (EXECUTE, Arch::Aarch64) => address.is_multiple_of(4),
        (EXECUTE, _) => true,
        (_, Arch::Aarch64) => address % 8 + length <= 8,
        _ => length == 0 || address.is_multiple_of(length),
    };
    let end = address.saturating_add(length);
    (!aligned).then(|| match (kind, arch) {
        (EXECUTE, _) => format!(
            "an instruction has an address that is a multiple of 4, unlike \
                                 {address:#x}"
        ),
        (_, Arch::Aarch64) => {
            format!(
                "a breakpoint lies within 8 aligned bytes, unlike {address:#x} to {end:#x}; \
                     watch the parts by two events"
            )
        }
        _ => format!(
            "the address of a breakpoint is a multiple of its length, unlike {address:#x} for \
             {length} bytes; watch fewer bytes (mem:{address:#x}/1), or the parts by two events"
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRITE: u32 = 2;

    #[test]
    fn each_rule_is_told() {
        use Arch::{Aarch64, Other, X86_64};
        for (arch, address, length, kind, told) in [
            (X86_64, 0x1000, 4, READ, "reads alone"),
            (X86_64, 0x1000, 4, READ | WRITE | EXECUTE, "not both"),
            (Aarch64, 0x1000, 4, WRITE | EXECUTE, "not both"),
            (X86_64, 0x1000, 3, WRITE, "1, 2, 4 or 8 bytes (now 3)"),
            (Aarch64, 0x1000, 9, WRITE, "1 to 8 bytes (now 9)"),
            (Other, 0x1000, 16, WRITE, "1, 2, 4 or 8 bytes (now 16)"),
            (X86_64, 0x1000, 4, EXECUTE, "leave /LENGTH out"),
            (Aarch64, 0x1000, 8, EXECUTE, "leave /LENGTH out"),
            (X86_64, 0x1001, 8, WRITE, "a multiple of its length, unlike 0x1001 for 8 bytes"),
            (Aarch64, 0x1007, 2, WRITE, "within 8 aligned bytes, unlike 0x1007 to 0x1009"),
            (Aarch64, 0x1002, 4, EXECUTE, "a multiple of 4, unlike 0x1002"),
        ] {
            let attr = Attr { config1: address, config2: length, bp_type: kind, ..Attr::default() };
            let rule = broken_rule(&attr, arch).unwrap_or_else(|| panic!("{told}"));
            assert!(rule.contains(told), "{rule}");
        }
    }

    #[test]
    fn good_ones_break_none() {
        for (arch, address, length, kind) in [
            (Arch::X86_64, 0x1008, 8, READ | WRITE),
            (Arch::X86_64, 0x1001, 1, WRITE),
            (Arch::X86_64, 0x1001, 8, EXECUTE),
            (Arch::Aarch64, 0x1001, 3, READ),
            (Arch::Aarch64, 0x1004, 4, EXECUTE),
            (Arch::Other, 0x1004, 4, READ),
        ] {
            let attr = Attr { config1: address, config2: length, bp_type: kind, ..Attr::default() };
            assert_eq!(broken_rule(&attr, arch), None, "{arch:?} {address:#x}/{length}");
        }
    }

    #[test]
    fn an_address_of_the_kernel_needs_the_kernel() {
        let flags = AttrFlags::EXCLUDE_KERNEL;
        let attr = Attr {
            config1: 0xffff_ffff_8100_0000,
            config2: 4,
            bp_type: WRITE,
            flags,
            ..Attr::default()
        };
        assert!(broken_rule(&attr, Arch::X86_64).unwrap().contains("run as root"));
        assert_eq!(broken_rule(&Attr { flags: AttrFlags::empty(), ..attr }, Arch::X86_64), None);
    }
}

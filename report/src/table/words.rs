//! Branch flags, processes, addresses and CPU modes, formatted as in perf's columns.

use recrep_format::abi::{BranchFlags, CpuMode};

use crate::query::sort_key::SortKey;

/// Formats the flag of a branch that the column shows.
pub(super) fn branch(column: SortKey, flags: BranchFlags) -> String {
    let text = match column {
        SortKey::InTx => {
            if flags.in_tx() {
                "T"
            } else {
                "."
            }
        }
        SortKey::Abort => {
            if flags.abort() {
                "A"
            } else {
                "."
            }
        }
        _ if flags.predicted() => "N",
        _ if flags.mispred() => "Y",
        _ => "N/A",
    };
    text.into()
}

/// Formats a pid; -1 if no record says it.
pub(super) fn process(word: u64) -> String {
    u32::try_from(word).map_or(-1, u32::cast_signed).to_string()
}

/// Formats an address like C's `%#.16llx`, which gives zero no prefix.
pub(super) fn padded_hex(address: u64) -> String {
    if address == 0 { format!("{address:016x}") } else { format!("{address:#018x}") }
}

/// Returns the letter of a CPU mode in the symbol column.
pub(super) fn cpu_mode_letter(bits: u8) -> char {
    match CpuMode::of(u16::from(bits)) {
        CpuMode::Kernel => 'k',
        CpuMode::User => '.',
        _ => 'H',
    }
}

/// Returns the name of a CPU mode in JSON and CSV.
pub(super) fn cpu_mode(bits: u8) -> &'static str {
    match CpuMode::of(u16::from(bits)) {
        CpuMode::Kernel => "kernel",
        CpuMode::User => "user",
        CpuMode::Hypervisor => "hypervisor",
        CpuMode::GuestKernel => "guest_kernel",
        CpuMode::GuestUser => "guest_user",
        CpuMode::Unknown | CpuMode::Reserved => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_formatted_as_in_perf() {
        assert_eq!(padded_hex(0x903d), "0x000000000000903d");
        assert_eq!(padded_hex(0), "0000000000000000");
        assert_eq!([1, 2, 3, 0].map(cpu_mode_letter), ['k', '.', 'H', 'H']);
        let modes = ["unknown", "kernel", "user", "hypervisor", "guest_kernel", "guest_user", "unknown"];
        assert_eq!([0, 1, 2, 3, 4, 5, 6].map(cpu_mode), modes);
    }
}

//! Texts of single words of a key, as in perf's columns.

use recrep_format::abi::{BranchFlags, CpuMode, DataSrc, Transaction};

use super::key::CacheLine;

/// Formats a bit.
pub(super) fn either(bit: u64, [set, unset]: [&str; 2]) -> String {
    if bit == 0 { unset } else { set }.into()
}

/// Returns whether a branch was mispredicted; `None` if that is unknown.
pub(crate) fn is_mispredicted(flags: u64) -> Option<bool> {
    let flags = BranchFlags(flags);
    match (flags.predicted(), flags.mispred()) {
        (true, _) => Some(false),
        (false, true) => Some(true),
        (false, false) => None,
    }
}

/// Formats whether a branch was mispredicted.
pub(super) fn prediction(flags: u64) -> String {
    is_mispredicted(flags).map_or("N/A", |is_missed| if is_missed { "Y" } else { "N" }).into()
}

/// Formats the kind of mapping that a cache line is in.
pub(super) fn mapping(line: u64) -> String {
    match CacheLine::unpack(line) {
        CacheLine { is_mapped: false, .. } => "none",
        CacheLine { is_shared: true, .. } => "shared",
        CacheLine { .. } => "private",
    }
    .into()
}

/// Returns the kind of access and the other parts of a data source, under the names of their sort
/// keys.
pub(crate) fn data_src_parts(src: DataSrc) -> [(&'static str, String); 6] {
    [
        ("op", src.op_name().to_owned()),
        ("mem", src.mem().trim().to_owned()),
        ("snoop", src.snoop_name()),
        ("tlb", src.tlb_name()),
        ("locked", src.locked_name().to_owned()),
        ("blocked", src.blocked_name().trim().to_owned()),
    ]
}

/// Formats an address like C's `%#.16llx`, which gives zero no prefix.
pub(crate) fn padded_hex(address: u64) -> String {
    if address == 0 { format!("{address:016x}") } else { format!("{address:#018x}") }
}

/// Returns the letter of a CPU mode in the symbol column.
pub(crate) fn cpu_mode_letter(bits: u8) -> char {
    match CpuMode::of(u16::from(bits)) {
        CpuMode::Kernel => 'k',
        CpuMode::User => '.',
        CpuMode::GuestKernel => 'g',
        CpuMode::GuestUser => 'u',
        CpuMode::Hypervisor | CpuMode::Unknown | CpuMode::Reserved => 'H',
    }
}

/// Returns the name of a CPU mode in JSON and CSV.
pub(crate) fn mode_name(bits: u8) -> &'static str {
    match CpuMode::of(u16::from(bits)) {
        CpuMode::Kernel => "kernel",
        CpuMode::User => "user",
        CpuMode::Hypervisor => "hypervisor",
        CpuMode::GuestKernel => "guest_kernel",
        CpuMode::GuestUser => "guest_user",
        CpuMode::Unknown | CpuMode::Reserved => "unknown",
    }
}

/// Transaction flags (`PERF_TXN_*`) and their texts, in the order in which perf prints them.
const TRANSACTION: [(Transaction, &str); 8] = [
    (Transaction::ELISION, "EL "),
    (Transaction::TRANSACTION, "TX "),
    (Transaction::SYNC, "SYNC "),
    (Transaction::ASYNC, "ASYNC "),
    (Transaction::RETRY, "RETRY "),
    (Transaction::CONFLICT, "CON "),
    (Transaction::CAPACITY_WRITE, "CAP-WRITE "),
    (Transaction::CAPACITY_READ, "CAP-READ "),
];

/// Flags that say whether the sampled instruction (`SYNC`) or another one (`ASYNC`) ended the
/// transaction.
const SYNC_OR_ASYNC: Transaction = Transaction::SYNC.union(Transaction::ASYNC);

/// Formats a transaction word. The abort code, in the upper half, comes last.
pub(super) fn transaction(word: u64) -> String {
    let flags = Transaction::from_bits_retain(word);
    let parts = TRANSACTION.iter().filter(|(bit, _)| flags.contains(*bit));
    let mut text: String = parts.map(|(_, name)| *name).collect();
    if word != 0 && !flags.intersects(SYNC_OR_ASYNC) {
        text += "NEITHER ";
    }
    if flags.abort_code() != 0 {
        text += &format!(":{:x}", flags.abort_code());
    }
    text.trim_end().to_owned()
}

/// Formats a page size in the unit that perf chooses: 1024 of a unit are not converted to the next
/// one.
pub(super) fn page_size(bytes: u64) -> String {
    if bytes == 0 {
        return "N/A".into();
    }
    let steps = (0..3).take_while(|step| bytes >> (10 * step) >= 2 * 1024).count();
    format!("{}{}", bytes >> (10 * steps), "BKMG".get(steps..=steps).unwrap_or_default())
}

/// Returns the CPU in a cell; -1 if it was not sampled.
pub(crate) fn cpu_number(cell: u64) -> i32 {
    u32::try_from(cell).map_or(-1, u32::cast_signed)
}

/// Formats a CPU as in perf: three digits, `-001` if it was not sampled.
pub(crate) fn cpu(number: u32) -> String {
    if number == u32::MAX { "-001".into() } else { format!("{number:03}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_formatted_as_in_perf() {
        assert_eq!(padded_hex(0x903d), "0x000000000000903d");
        assert_eq!(padded_hex(0), "0000000000000000");
        assert_eq!([1, 2, 3, 4, 5, 0].map(cpu_mode_letter), ['k', '.', 'H', 'g', 'u', 'H']);
        let modes =
            ["unknown", "kernel", "user", "hypervisor", "guest_kernel", "guest_user", "unknown"];
        assert_eq!([0, 1, 2, 3, 4, 5, 6].map(mode_name), modes);
    }

    #[test]
    fn page_sizes_have_perfs_units() {
        assert_eq!(
            [0, 4096, 2 << 20, 1 << 30, 1024].map(page_size),
            ["N/A", "4K", "2M", "1024M", "1024B"]
        );
    }

    #[test]
    fn transactions_list_flags_and_abort_code() {
        assert_eq!(transaction(0), "");
        assert_eq!(transaction(0b11), "EL TX NEITHER");
        assert_eq!(transaction(0xff_0000_0026), "TX SYNC CON :ff");
    }
}

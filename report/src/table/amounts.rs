//! Page sizes and transactions, formatted as in perf's columns.

/// Transaction flags (`PERF_TXN_*`) and their texts, in the order in which perf prints them.
const TRANSACTION: [(u64, &str); 8] = [
    (1, "EL "),
    (1 << 1, "TX "),
    (1 << 2, "SYNC "),
    (1 << 3, "ASYNC "),
    (1 << 4, "RETRY "),
    (1 << 5, "CON "),
    (1 << 6, "CAP-WRITE "),
    (1 << 7, "CAP-READ "),
];

/// Flags that say whether the sampled instruction (`SYNC`) or another one (`ASYNC`) ended the transaction.
const SYNC_OR_ASYNC: u64 = 1 << 2 | 1 << 3;

/// Formats a transaction word. The abort code, in the upper half, comes last.
pub(super) fn transaction(word: u64) -> String {
    let parts = TRANSACTION.iter().filter(|(bit, _)| word & bit != 0);
    let mut text: String = parts.map(|(_, name)| *name).collect();
    if word != 0 && word & SYNC_OR_ASYNC == 0 {
        text += "NEITHER ";
    }
    if word >> 32 != 0 {
        text += &format!(":{:x}", word >> 32);
    }
    text.trim_end().to_owned()
}

/// Formats a page size in the unit that perf chooses: 1024 of a unit are not converted to the next one.
pub(super) fn page_size(bytes: u64) -> String {
    if bytes == 0 {
        return "N/A".into();
    }
    let (mut size, mut units) = (bytes, "BKMG".chars());
    let mut unit = units.next();
    while size / 1024 > 1 {
        let Some(next) = units.next() else { break };
        (size, unit) = (size / 1024, Some(next));
    }
    format!("{size}{}", unit.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_sizes_have_perfs_units() {
        assert_eq!([0, 4096, 2 << 20, 1 << 30, 1024].map(page_size), ["N/A", "4K", "2M", "1024M", "1024B"]);
    }

    #[test]
    fn transactions_list_flags_and_abort_code() {
        assert_eq!(transaction(0), "");
        assert_eq!(transaction(0b11), "EL TX NEITHER");
        assert_eq!(transaction(0xff_0000_0026), "TX SYNC CON :ff");
    }
}

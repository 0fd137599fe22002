//! Page sizes and transactions, formatted as in perf's columns.

use recrep_format::abi::Transaction;

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

/// Flags that say whether the sampled instruction (`SYNC`) or another one (`ASYNC`) ended the transaction.
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

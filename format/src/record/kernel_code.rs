//! Changes of the kernel's code: KSYMBOL, BPF_EVENT, TEXT_POKE.

use crate::abi::{BpfEventType, KSymbolFlags, KSymbolType};
use crate::wire::{Text, wire};

wire! {
    /// A kernel symbol was added or removed (`PERF_RECORD_KSYMBOL`).
    pub struct KSymbol<'a> {
        /// Its address.
        pub addr: u64 => hex,
        /// Its length in bytes.
        pub len: u32,
        /// Its origin.
        pub ksym_type: KSymbolType,
        /// Flags: whether it was removed.
        pub flags: KSymbolFlags,
        /// Its name.
        pub name: Text<'a>,
    }

    /// A BPF program was loaded or unloaded (`PERF_RECORD_BPF_EVENT`).
    pub struct BpfEvent {
        /// The change.
        pub event_type: BpfEventType => "type",
        /// Flags; the kernel defines none yet.
        pub flags: u16 => hex,
        /// The program's id.
        pub id: u32,
        /// Its tag.
        pub tag: [u8; 8],
    }

    /// The kernel changed its own text (`PERF_RECORD_TEXT_POKE`).
    pub struct TextPoke<'a> {
        /// Its address.
        pub addr: u64 => hex,
        /// Number of old bytes.
        pub old_len: u16,
        /// Number of new bytes.
        pub new_len: u16,
        /// The old bytes, the new bytes, padding.
        pub bytes: &'a [u8] => hidden,
    }
}

impl<'a> TextPoke<'a> {
    /// Returns the bytes before the change, fewer if the record is too short.
    pub fn old_bytes(&self) -> &'a [u8] {
        self.bytes.get(..self.old_len.into()).unwrap_or(self.bytes)
    }

    /// Returns the bytes after the change, fewer if the record is too short.
    pub fn new_bytes(&self) -> &'a [u8] {
        let rest = self.bytes.get(self.old_len.into()..).unwrap_or_default();
        rest.get(..self.new_len.into()).unwrap_or(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_and_new_bytes() {
        let poke = |old_len, new_len, bytes| TextPoke { addr: 0, old_len, new_len, bytes };
        let both = |poke: TextPoke<'static>| (poke.old_bytes(), poke.new_bytes());
        assert_eq!(both(poke(1, 2, &[0x90, 0xeb, 0xfe, 0])), (&[0x90][..], &[0xeb, 0xfe][..]));
        assert_eq!(both(poke(1, 9, &[0x90, 0xeb])), (&[0x90][..], &[0xeb][..]));
        assert_eq!(both(poke(9, 1, &[0x90])), (&[0x90][..], &[][..]));
    }
}

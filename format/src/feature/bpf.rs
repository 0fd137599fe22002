//! BPF programs and their types, as the kernel described them when they were recorded.

use crate::bytes::{Cursor, Encoder};
use crate::error::Result;
use crate::fields::named;
use crate::wire::{List, Wire, wire};

named! {
    /// A BPF program (`struct perf_bpil`): `struct bpf_prog_info` and the arrays it points to.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct BpfProgInfoEntry<'a> {
        /// `struct bpf_prog_info` of the recorder, with offsets into the data in the place of
        /// addresses.
        pub info: &'a [u8] => "info_len",
        /// The arrays.
        pub data: &'a [u8] => "data_len",
        /// The arrays in the data, a bit each.
        pub arrays: u64 => hex,
    }
}

impl<'a> Wire<'a> for BpfProgInfoEntry<'a> {
    fn decode(c: &mut Cursor<'a>, what: &'static str) -> Result<Self> {
        let (info_len, data_len, arrays) = (c.u32(what)?, c.u32(what)?, c.u64(what)?);
        Ok(Self {
            info: c.take(info_len as usize, what)?,
            data: c.take(data_len as usize, what)?,
            arrays,
        })
    }
    fn encode(&self, e: &mut Encoder) -> Result<()> {
        e.length(self.info.len(), "the length of a BPF program's description")?;
        e.length(self.data.len(), "the length of a BPF program's arrays")?;
        e.u64(self.arrays);
        e.bytes(self.info);
        e.bytes(self.data);
        Ok(())
    }
}

named! {
    /// A BTF object: types in the BPF type format.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct BpfBtfEntry<'a> {
        /// Its id.
        pub id: u32,
        /// The types.
        pub data: &'a [u8] => "data_size",
    }
}

impl<'a> Wire<'a> for BpfBtfEntry<'a> {
    fn decode(c: &mut Cursor<'a>, what: &'static str) -> Result<Self> {
        let (id, len) = (c.u32(what)?, c.u32(what)?);
        Ok(Self { id, data: c.take(len as usize, what)? })
    }
    fn encode(&self, e: &mut Encoder) -> Result<()> {
        e.u32(self.id);
        e.length(self.data.len(), "the length of a BTF object")?;
        e.bytes(self.data);
        Ok(())
    }
}

wire! {
    /// The BPF programs (`BPF_PROG_INFO`).
    pub owned struct BpfProgInfo<'a> {
        /// The programs.
        pub programs: List<BpfProgInfoEntry<'a>>,
    }

    /// The BPF types (`BPF_BTF`).
    pub owned struct BpfBtf<'a> {
        /// The objects.
        pub objects: List<BpfBtfEntry<'a>>,
    }
}

//! Mappings: MMAP, MMAP2.

use crate::abi::misc;
use crate::build_id::BuildId;
use crate::bytes::{Cursor, Encoder};
use crate::error::{Error, Result};
use crate::fields::{named, shown};
use crate::wire::{Text, Wire, wire};

/// The record, in errors.
const WHAT: &str = "Mmap2";

wire! {
    /// A mapping (`PERF_RECORD_MMAP`).
    pub struct Mmap<'a> {
        /// The process; all ones for the kernel's own.
        pub pid: u32 => signed,
        /// The thread.
        pub tid: u32 => signed,
        /// The first address (AVMA).
        pub addr: u64 => hex,
        /// Its length in bytes.
        pub len: u64 => hex,
        /// The offset in the file, in bytes; for the kernel image the address of its reference
        /// symbol.
        pub pgoff: u64 => hex,
        /// The file, or a name such as `[vdso]`, `//anon`, `[kernel.kallsyms]_text`.
        pub filename: Text<'a>,
    }
}

wire! {
    /// A file by device and inode.
    pub struct Inode {
        /// The device's major number.
        pub maj: u32,
        /// The device's minor number.
        pub min: u32,
        /// The inode.
        pub ino: u64,
        /// Its generation.
        pub ino_generation: u64,
    }

    /// A file by build ID, in the place of device and inode.
    pub struct MmapBuildId {
        /// Number of bytes of the build ID: 20, or fewer.
        pub size: u8 => "build_id_size",
        /// Kept as found.
        pub reserved: [u8; 3] => hidden,
        /// The build ID, and zeroes.
        pub bytes: [u8; 20] => "build_id",
    }
}

/// The file of an MMAP2. A build ID has the bit [`misc::MMAP_BUILD_ID`], but so may an inode: Linux
/// leaves the bit set for each event that gets the record after one with
/// [`AttrFlags::BUILD_ID`](crate::abi::AttrFlags::BUILD_ID), whichever program opened it. What
/// cannot be a build ID followed by zeroes is an inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MmapIdentity {
    /// By device and inode.
    Inode(Inode),
    /// By build ID.
    BuildId(MmapBuildId),
}

shown! {
    MmapIdentity: |identity| match identity {
        MmapIdentity::Inode(inode) => inode.value(),
        MmapIdentity::BuildId(id) => id.value(),
    };
}

impl MmapIdentity {
    /// Returns the build ID; `None` for a file by inode.
    pub fn build_id(&self) -> Option<BuildId> {
        match self {
            Self::Inode(_) => None,
            Self::BuildId(b) => BuildId::new(b.bytes.get(..usize::from(b.size))?),
        }
    }

    fn decode(c: &mut Cursor<'_>, bits: u16) -> Result<Self> {
        let mut ahead = *c;
        if bits & misc::MMAP_BUILD_ID != 0 {
            let id = MmapBuildId::decode(&mut ahead, WHAT)?;
            let rest = id.bytes.get(usize::from(id.size)..);
            if id.reserved == [0; 3] && rest.is_some_and(|rest| rest.iter().all(|byte| *byte == 0))
            {
                *c = ahead;
                return Ok(Self::BuildId(id));
            }
        }
        Ok(Self::Inode(Wire::decode(c, WHAT)?))
    }

    fn encode(&self, e: &mut Encoder, bits: u16) -> Result<()> {
        let start = e.len();
        match self {
            Self::Inode(inode) => inode.encode(e)?,
            Self::BuildId(id) => id.encode(e)?,
        }
        let read = Self::decode(
            &mut Cursor::new(e.as_bytes().get(start..).unwrap_or_default(), 0, e.endian()),
            bits,
        )?;
        if read != *self {
            return Err(Error::invalid(
                start as u64,
                WHAT,
                format!("misc {bits:#x} with {self:?}"),
            ));
        }
        Ok(())
    }
}

named! {
    /// A mapping with the identity of its file (`PERF_RECORD_MMAP2`).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Mmap2<'a> {
        /// The process; all ones for the kernel's own.
        pub pid: u32 => signed,
        /// The thread.
        pub tid: u32 => signed,
        /// The first address (AVMA).
        pub addr: u64 => hex,
        /// Its length in bytes.
        pub len: u64 => hex,
        /// The offset in the file, in bytes.
        pub pgoff: u64 => hex,
        /// The identity of the file.
        pub identity: MmapIdentity,
        /// The protection of its pages ([`prot`](crate::abi::prot)).
        pub prot: u32,
        /// Its flags ([`map_flags`](crate::abi::map_flags)).
        pub flags: u32 => hex,
        /// The file.
        pub filename: Text<'a>,
    }
}

impl<'a> Mmap2<'a> {
    pub(super) fn decode(c: &mut Cursor<'a>, bits: u16) -> Result<Self> {
        Ok(Self {
            pid: c.u32(WHAT)?,
            tid: c.u32(WHAT)?,
            addr: c.u64(WHAT)?,
            len: c.u64(WHAT)?,
            pgoff: c.u64(WHAT)?,
            identity: MmapIdentity::decode(c, bits)?,
            prot: c.u32(WHAT)?,
            flags: c.u32(WHAT)?,
            filename: Wire::decode(c, WHAT)?,
        })
    }

    pub(super) fn encode(&self, e: &mut Encoder, bits: u16) -> Result<()> {
        e.u32(self.pid);
        e.u32(self.tid);
        e.u64(self.addr);
        e.u64(self.len);
        e.u64(self.pgoff);
        self.identity.encode(e, bits)?;
        e.u32(self.prot);
        e.u32(self.flags);
        self.filename.encode(e)
    }
}

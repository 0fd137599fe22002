//! Mappings: MMAP, MMAP2.

use crate::abi::misc;
use crate::build_id::BuildId;
use crate::bytes::{Cursor, Encoder};
use crate::error::{Error, Result};
use crate::wire;
use crate::wire::{Text, Wire};

wire! {
    /// A mapping (`PERF_RECORD_MMAP`).
    pub struct Mmap<'a> {
        /// The process; all ones for the kernel's own.
        pub pid: u32,
        /// The thread.
        pub tid: u32,
        /// The first address (AVMA).
        pub addr: u64,
        /// Its length in bytes.
        pub len: u64,
        /// The offset in the file, in bytes; for the kernel image the address of its reference symbol.
        pub pgoff: u64,
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
        pub size: u8,
        /// Kept as found.
        pub reserved: [u8; 3],
        /// The build ID, and zeroes.
        pub bytes: [u8; 20],
    }
}

/// The file of an MMAP2; the bit [`misc::MMAP_BUILD_ID`] tells the two apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MmapIdentity {
    /// By device and inode.
    Inode(Inode),
    /// By build ID.
    BuildId(MmapBuildId),
}

impl MmapIdentity {
    /// Returns the build ID; `None` for a file by inode.
    #[must_use]
    pub fn build_id(&self) -> Option<BuildId> {
        match self {
            Self::Inode(_) => None,
            Self::BuildId(b) => BuildId::new(b.bytes.get(..usize::from(b.size))?),
        }
    }
}

/// A mapping with the identity of its file (`PERF_RECORD_MMAP2`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mmap2<'a> {
    /// The process; all ones for the kernel's own.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// The first address (AVMA).
    pub addr: u64,
    /// Its length in bytes.
    pub len: u64,
    /// The offset in the file, in bytes.
    pub pgoff: u64,
    /// The identity of the file.
    pub identity: MmapIdentity,
    /// The protection of its pages ([`prot`](crate::abi::prot)).
    pub prot: u32,
    /// Its flags ([`map_flags`](crate::abi::map_flags)).
    pub flags: u32,
    /// The file.
    pub filename: Text<'a>,
}

impl<'a> Mmap2<'a> {
    pub(super) fn decode(c: &mut Cursor<'a>, bits: u16) -> Result<Self> {
        const WHAT: &str = "Mmap2";
        Ok(Self {
            pid: c.u32(WHAT)?,
            tid: c.u32(WHAT)?,
            addr: c.u64(WHAT)?,
            len: c.u64(WHAT)?,
            pgoff: c.u64(WHAT)?,
            identity: if bits & misc::MMAP_BUILD_ID == 0 {
                MmapIdentity::Inode(Wire::decode(c, WHAT)?)
            } else {
                MmapIdentity::BuildId(Wire::decode(c, WHAT)?)
            },
            prot: c.u32(WHAT)?,
            flags: c.u32(WHAT)?,
            filename: Wire::decode(c, WHAT)?,
        })
    }

    pub(super) fn encode(&self, e: &mut Encoder, bits: u16) -> Result<()> {
        if matches!(self.identity, MmapIdentity::BuildId(_)) != (bits & misc::MMAP_BUILD_ID != 0) {
            let detail = format!("misc {bits:#x} with {:?}", self.identity);
            return Err(Error::invalid(e.len() as u64, "Mmap2", detail));
        }
        e.u32(self.pid);
        e.u32(self.tid);
        e.u64(self.addr);
        e.u64(self.len);
        e.u64(self.pgoff);
        match &self.identity {
            MmapIdentity::Inode(inode) => inode.encode(e)?,
            MmapIdentity::BuildId(id) => id.encode(e)?,
        }
        e.u32(self.prot);
        e.u32(self.flags);
        self.filename.encode(e)
    }
}

//! What the records that say what is mapped have in common.

use recrep_format::abi::{AttrFlags, map_flags, misc, prot};
use recrep_format::attr::Attr;
use recrep_format::build_id::BuildId;
use recrep_format::read::File;
use recrep_format::record::{Body, Inode, Mmap, Mmap2, MmapIdentity};

use crate::timeline::{Mapping, Memory, ModuleId};

/// Inode in records of mappings without a file.
const NO_INODE: Inode = Inode { maj: 0, min: 0, ino: 0, ino_generation: 0 };

/// Returns the mapping of a module, from its start, which is looked up as `first`, to `end`.
pub(super) fn mapping(map: &Mmap2<'_>, end: u64, module: ModuleId, first: u64) -> Option<Mapping> {
    (map.addr < end).then_some(Mapping {
        start: map.addr,
        end,
        first,
        module: Some(module),
        memory: Memory::Code,
        is_shared: map.flags & map_flags::SHARED != 0 && map.prot & prot::EXEC == 0 && is_file(map),
    })
}

/// Returns whether the times of all events are those of `CLOCK_MONOTONIC`.
pub(super) fn is_monotonic(file: &File<'_>) -> bool {
    const CLOCK_MONOTONIC: i32 = 1;
    file.attrs.entries().iter().all(|entry| {
        let Attr { flags, clockid, .. } = &entry.attr;
        flags.contains(AttrFlags::USE_CLOCKID) && *clockid == CLOCK_MONOTONIC
    })
}

/// Returns the build ID in a record; `None` if the recorder did not fill it in.
pub(super) fn build_id_in(map: &Mmap2<'_>) -> Option<BuildId> {
    map.identity.build_id().filter(|id| !id.is_blank())
}

/// Returns whether an `MMAP2` record has the device and inode of a file.
fn is_file(map: &Mmap2<'_>) -> bool {
    match map.identity {
        MmapIdentity::Inode(inode) => inode != NO_INODE,
        MmapIdentity::BuildId(_) => false,
    }
}

/// Returns whether the name of a mapped file has the form `jit-PID.dump`.
pub(super) fn is_jit_dump(path: &[u8]) -> bool {
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    let number = name.strip_prefix(b"jit-").and_then(|rest| rest.strip_suffix(b".dump"));
    number.is_some_and(|digits| !digits.is_empty() && digits.iter().all(u8::is_ascii_digit))
}

/// Returns the mapping in an `MMAP2` or an `MMAP` record. The latter says nothing about the file,
/// and the mapping is code unless it is marked as data.
pub(crate) fn mapping_in<'a>(body: &Body<'a>, bits: u16) -> Option<Mmap2<'a>> {
    match *body {
        Body::Mmap2(map) => Some(map),
        Body::Mmap(Mmap { pid, tid, addr, len, pgoff, filename }) => {
            let prot = if bits & misc::MMAP_DATA == 0 { prot::EXEC } else { 0 };
            let identity = MmapIdentity::Inode(NO_INODE);
            Some(Mmap2 { pid, tid, addr, len, pgoff, identity, prot, flags: 0, filename })
        }
        _ => None,
    }
}

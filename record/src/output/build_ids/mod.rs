//! Build IDs of what was mapped.
//!
//! ```text
//!  MMAP2 with a build ID (the kernel's) ───────────────▶ modules ──▶ the file's table, or a stream's records
//!  MMAP2 with an inode, vDSO ─▶ reader (a thread) ─────▶   ▲
//!                                 mapped ▶ elf             │
//!  /proc/PID/maps ─▶ read at once: the synthesized MMAP2 has it too
//! ```
//!
//! perf record marks the files that samples hit, for which it reads the whole recording back. rec
//! writes those of all files that were mapped as code while it recorded (as
//! `perf record --buildid-all` does): which those are it has seen in passing, and an entry too many
//! costs a reader nothing.

mod elf;
mod mapped;
mod maps_line;
mod modules;
mod reader;

use std::fs;

use recrep_format::abi::CpuMode;
use recrep_format::build_id::BuildId;

use crate::machine::kernel_image::KernelImage;

pub(crate) use elf::vdso;
pub(crate) use mapped::{FileId, FileIdentity, MappedFile};
pub(crate) use maps_line::MapsLine;
pub(crate) use modules::Modules;
pub(crate) use reader::BuildIdReader;

/// A file and its build ID.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Identified {
    /// Kernel or user.
    pub mode: CpuMode,
    pub name: Vec<u8>,
    /// Its build ID.
    pub id: BuildId,
}

/// Returns the build IDs of the kernel, of its modules (where they are known), and of the files
/// that processes mapped.
pub(crate) fn collect(files: &Modules, kernel: Option<&KernelImage>) -> Vec<Identified> {
    let mut all = Vec::new();
    let mut add = |mode, name: &[u8], id: Option<BuildId>| {
        all.extend(id.map(|id| Identified { mode, name: name.to_vec(), id }));
    };
    add(
        CpuMode::Kernel,
        b"[kernel.kallsyms]",
        fs::read("/sys/kernel/notes").ok().and_then(|n| elf::in_notes(&n)),
    );
    for module in kernel.map(|k| k.modules.as_slice()).unwrap_or_default() {
        let notes = fs::read(format!("/sys/module/{}/notes/.note.gnu.build-id", module.name));
        add(CpuMode::Kernel, module.path.as_bytes(), notes.ok().and_then(|n| elf::in_notes(&n)));
    }
    for (name, id) in files.identified() {
        add(CpuMode::User, name, Some(id));
    }
    all
}

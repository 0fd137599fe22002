//! Synthesized records on their way into the file.

use recrep_format::abi::{CpuMode, misc};
use recrep_format::attr::Attr;
use recrep_format::bytes::Encoder;
use recrep_format::endian::Endian;
use recrep_format::layout::TrailerLayout;
use recrep_format::record::{Body, Comm, Inode, Mmap, Mmap2, MmapIdentity, Record, Task as TaskFields, Trailer};
use recrep_format::wire::Text;

use super::image::KernelImage;
use super::maps::Mapping;
use crate::error::Result;
use crate::output::Output;
use crate::tally::Modules;

/// Buffered records are written when there are so many bytes of them.
const FLUSH_AT: usize = 256 << 10;
/// The kernel's own process in MMAP records (`machine->pid` of the host in perf).
const KERNEL_PID: u32 = u32::MAX;

/// Writes synthesized records.
#[derive(Debug)]
pub struct Synthesizer<'a> {
    output: &'a mut Output,
    modules: &'a mut Modules,
    encoder: Encoder,
    layout: TrailerLayout,
    id: u64,
    with_data: bool,
}

impl<'a> Synthesizer<'a> {
    /// Writes to `output` records of the event that tracks (`attr`, `id`), and notes the files in `modules`; with
    /// data mappings too where `with_data`.
    pub fn new(output: &'a mut Output, modules: &'a mut Modules, attr: &Attr, id: u64, with_data: bool) -> Self {
        let encoder = Encoder::new(Endian::NATIVE);
        Self { output, modules, encoder, layout: TrailerLayout::of(attr), id, with_data }
    }

    /// The kernel's image and its modules.
    ///
    /// # Errors
    /// What writing gives.
    pub fn kernel(&mut self, image: &KernelImage) -> Result<()> {
        let name = format!("[kernel.kallsyms]{}", image.reference);
        self.kernel_mmap(image.start, image.end - image.start, image.reference_at, name.as_bytes())?;
        for module in &image.modules {
            self.kernel_mmap(module.start, module.size, 0, module.path.as_bytes())?;
        }
        Ok(())
    }

    /// Writes what is buffered, and the mark that the synthesized records are over.
    ///
    /// # Errors
    /// What writing gives.
    pub fn finish(mut self) -> Result<()> {
        self.encoder.bytes(&crate::drain::marker(Body::FinishedInit));
        self.output.write(self.encoder.as_bytes())
    }

    fn kernel_mmap(&mut self, addr: u64, len: u64, pgoff: u64, name: &[u8]) -> Result<()> {
        let mmap = Mmap { pid: KERNEL_PID, tid: 0, addr, len, pgoff, filename: Text::new(name) };
        self.put(CpuMode::Kernel.bits(), Body::Mmap(mmap), [KERNEL_PID, 0])
    }

    pub(super) fn fork(&mut self, [pid, tid]: [u32; 2], [ppid, ptid]: [u32; 2]) -> Result<()> {
        let fields = TaskFields { pid, ppid, tid, ptid, time: 0 };
        self.put(misc::FORK_EXEC, Body::Fork(fields), [pid, tid])
    }

    pub(super) fn comm(&mut self, [pid, tid]: [u32; 2], comm: &[u8]) -> Result<()> {
        self.put(0, Body::Comm(Comm { pid, tid, comm: Text::new(comm) }), [pid, tid])
    }

    pub(super) fn mmap(&mut self, pid: u32, map: &Mapping<'_>) -> Result<()> {
        let code = map.is_code();
        let wanted = code || (self.with_data && map.is_readable());
        if !wanted {
            return Ok(());
        }
        let (id, name) = (map.file, map.name());
        if code {
            self.modules.note(name, id);
        }
        let inode = Inode { maj: id.maj, min: id.min, ino: id.ino, ino_generation: 0 };
        let mmap = Mmap2 {
            pid,
            tid: pid,
            addr: map.start,
            len: map.end - map.start,
            pgoff: map.pgoff,
            identity: MmapIdentity::Inode(inode),
            prot: map.prot,
            flags: map.flags,
            filename: Text::new(name),
        };
        let data = if code { 0 } else { misc::MMAP_DATA };
        self.put(CpuMode::User.bits() | data, Body::Mmap2(mmap), [pid, pid])
    }

    fn put(&mut self, misc: u16, body: Body<'_>, tid: [u32; 2]) -> Result<()> {
        let trailer = Trailer { tid: Some(tid), identifier: Some(self.id), ..Trailer::default() };
        let record = Record::new(misc, body).with_trailer(trailer.shaped(&self.layout));
        // A name too long for a record (65,535 bytes; paths have 4,096) is left out, as nothing can name it.
        let _ = record.encode(&mut self.encoder);
        if self.encoder.len() >= FLUSH_AT {
            self.output.write(self.encoder.as_bytes())?;
            self.encoder.clear();
        }
        Ok(())
    }
}

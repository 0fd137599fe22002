//! Writer of synthesized records.

use std::time::Duration;

use recrep_format::abi::{AttrFlags, BpfEventType, CpuMode, KSymbolFlags, KSymbolType, misc};
use recrep_format::attr::Attr;
use recrep_format::build_id::BuildId;
use recrep_format::bytes::{Encoder, U64s};
use recrep_format::endian::Endian;
use recrep_format::layout::SampleIdLayout;
use recrep_format::record::{
    Body, BpfEvent, Cgroup, Comm, Inode, KSymbol, Mmap, Mmap2, MmapBuildId, MmapIdentity,
    Namespaces, Record, SampleId, Task as TaskFields,
};
use recrep_format::wire::Text;

use crate::kernel::bpf::BpfProgram;
use crate::machine::kernel_image::KernelImage;
use crate::messages::error::Result;
use crate::output::Output;
use crate::output::build_ids::MapsLine;
use crate::output::build_ids::{MappedFile, Modules};
use crate::plan::config::{SideBand, Synth};

/// Buffered bytes at which records are written to the file.
const FLUSH_AT: usize = 256 << 10;
/// Default of `--proc-map-timeout`, as in perf record.
const MAP_TIMEOUT: Duration = Duration::from_millis(500);
/// Pid of the kernel in MMAP records (`machine->pid` of the host in perf).
const KERNEL_PID: u32 = u32::MAX;

#[derive(Debug)]
pub(crate) struct Synthesizer<'a> {
    output: &'a Output,
    modules: &'a mut Modules,
    encoder: Encoder,
    layout: SampleIdLayout,
    id: u64,
    flags: AttrFlags,
    synth: Synth,
    map_timeout: Duration,
    /// Number of processes whose mappings could not all be read within the time limit.
    cut: usize,
}

impl<'a> Synthesizer<'a> {
    /// Creates a writer to `output`. `attr` and `id` (of a counter) are those of the tracking
    /// event, whose fields the records get; `asked` selects the kinds of records. Mapped files are
    /// added to `modules`.
    pub(crate) fn new(
        output: &'a Output,
        modules: &'a mut Modules,
        attr: &Attr,
        id: u64,
        asked: &SideBand,
    ) -> Self {
        let encoder = Encoder::new(Endian::NATIVE);
        let (layout, flags) = (SampleIdLayout::of(attr), attr.flags);
        let (synth, map_timeout) = (asked.synth, asked.map_timeout.unwrap_or(MAP_TIMEOUT));
        Self { output, modules, encoder, layout, id, flags, synth, map_timeout, cut: 0 }
    }

    pub(super) fn wants_tasks(&self) -> bool {
        self.synth.task
    }

    pub(super) fn wants_mappings(&self) -> bool {
        self.synth.mmap
    }

    /// Returns the time limit for reading the mappings of one process.
    pub(super) fn map_timeout(&self) -> Duration {
        self.map_timeout
    }

    pub(super) fn wants_cgroups(&self) -> bool {
        self.synth.cgroup && self.flags.contains(AttrFlags::CGROUP)
    }

    pub(super) fn wants_namespaces(&self) -> bool {
        self.synth.task && self.flags.contains(AttrFlags::NAMESPACES)
    }

    /// Writes records of the kernel's image and modules.
    pub(crate) fn kernel(&mut self, image: &KernelImage) -> Result<()> {
        let name = format!("[kernel.kallsyms]{}", image.reference);
        self.kernel_mmap(
            image.start,
            image.end - image.start,
            image.reference_at,
            name.as_bytes(),
        )?;
        for module in &image.modules {
            self.kernel_mmap(module.start, module.size, 0, module.path.as_bytes())?;
        }
        Ok(())
    }

    pub(super) fn bpf_symbol(&mut self, addr: u64, len: u32, name: &[u8]) -> Result<()> {
        let (ksym_type, flags) = (KSymbolType::BPF, KSymbolFlags::empty());
        self.put(
            0,
            Body::KSymbol(KSymbol { addr, len, ksym_type, flags, name: Text::new(name) }),
            [0, 0],
        )
    }

    /// A program that was loaded, unless such records are not wanted.
    pub(super) fn bpf_program(&mut self, program: &BpfProgram) -> Result<()> {
        if !self.flags.contains(AttrFlags::BPF_EVENT) {
            return Ok(());
        }
        let event = BpfEvent {
            event_type: BpfEventType::PROG_LOAD,
            flags: 0,
            id: program.id,
            tag: program.tag,
        };
        self.put(0, Body::BpfEvent(event), [0, 0])
    }

    /// Writes the buffered records, and a FINISHED_INIT record. Returns the number of processes
    /// whose mappings could not all be read in time.
    pub(crate) fn finish(mut self) -> Result<usize> {
        self.encoder.bytes(&crate::drain::marker(Body::FinishedInit));
        self.output.write(self.encoder.as_bytes())?;
        Ok(self.cut)
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

    /// Writes a mapping. `cut` marks the last one that was read in time, which is written in any
    /// case.
    pub(super) fn mmap(&mut self, pid: u32, map: &MapsLine<'_>, cut: bool) -> Result<()> {
        self.cut += usize::from(cut);
        let code = map.is_code();
        let wanted =
            cut || code || (self.flags.contains(AttrFlags::MMAP_DATA) && map.is_readable());
        if !wanted {
            return Ok(());
        }
        if let Some(spaces) = self.output.spaces() {
            spaces.existing(pid, map);
        }
        let (id, name) = (map.file, map.name());
        let mapped = MappedFile { pid, range: map.start..map.end, file: id };
        // As the kernel does, of data too.
        let known = if self.flags.contains(AttrFlags::BUILD_ID) {
            self.modules.build_id(name, &mapped)
        } else {
            None
        };
        match known {
            Some(known) if code => self.modules.add_identified(name, known, None),
            None if code => self.modules.add_file(name, mapped),
            _ => {}
        }
        // Readers search GNU notes for what the record has.
        let known = known.filter(|id| !id.is_of_go()).and_then(of_mmap);
        let inode = Inode { maj: id.maj, min: id.min, ino: id.ino, ino_generation: id.generation };
        let mmap = Mmap2 {
            pid,
            tid: pid,
            addr: map.start,
            len: map.end - map.start,
            pgoff: map.pgoff,
            identity: known.map_or(MmapIdentity::Inode(inode), MmapIdentity::BuildId),
            prot: map.prot,
            flags: map.flags,
            filename: Text::new(name),
        };
        let data = if code { 0 } else { misc::MMAP_DATA };
        let by_id = if known.is_some() { misc::MMAP_BUILD_ID } else { 0 };
        let cut = if cut { misc::PROC_MAP_PARSE_TIMEOUT } else { 0 };
        self.put(CpuMode::User.bits() | data | by_id | cut, Body::Mmap2(mmap), [pid, pid])
    }

    pub(super) fn cgroup(&mut self, id: u64, path: &[u8]) -> Result<()> {
        self.put(0, Body::Cgroup(Cgroup { id, path: Text::new(path) }), [0, 0])
    }

    /// Writes a NAMESPACES record. `links` are pairs of device and inode.
    pub(super) fn namespaces(&mut self, [pid, tid]: [u32; 2], links: &[[u64; 2]]) -> Result<()> {
        let mut words = Encoder::new(Endian::NATIVE);
        for word in links.as_flattened() {
            words.u64(*word);
        }
        let links = U64s::new(words.as_bytes(), Endian::NATIVE);
        let nr_namespaces = links.len() as u64 / 2;
        self.put(0, Body::Namespaces(Namespaces { pid, tid, nr_namespaces, links }), [pid, tid])
    }

    fn put(&mut self, misc: u16, body: Body<'_>, tid: [u32; 2]) -> Result<()> {
        let trailer = SampleId { tid: Some(tid), identifier: Some(self.id), ..SampleId::default() };
        let record = Record::new(misc, body).with_trailer(trailer.shaped(&self.layout));
        // A name too long for a record (65,535 bytes) is skipped; paths have at most 4,096 bytes.
        let _ = record.encode(&mut self.encoder);
        if self.encoder.len() >= FLUSH_AT {
            self.output.write(self.encoder.as_bytes())?;
            self.encoder.clear();
        }
        Ok(())
    }
}

/// Returns a build ID as MMAP2 records have it.
fn of_mmap(id: BuildId) -> Option<MmapBuildId> {
    let size = u8::try_from(id.as_bytes().len()).ok()?;
    Some(MmapBuildId { size, reserved: [0; 3], bytes: id.padded() })
}

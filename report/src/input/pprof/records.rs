//! The records and features of the recording.

use std::io::Cursor;

use recrep_format::abi::{CpuMode, KSymbolFlags, KSymbolType, SampleType, context, misc, prot};
use recrep_format::attr::AttrEntry;
use recrep_format::bytes::{Encoder, U64s};
use recrep_format::endian::Endian;
use recrep_format::feature::{
    Arch, BuildIdEvent, BuildIds, Bundle, ClockData, Cmdline, CpuDesc, CpuId, EventDesc,
    HeaderString, Hostname, NrCpus, OsRelease, SampleTime, Version,
};
use recrep_format::record::{
    Body, Comm, Inode, KSymbol, Lost, LostSamples, Mmap2, MmapBuildId, MmapIdentity, Record,
    SampleFields, SampleId, Task,
};
use recrep_format::wire::{List, Text};
use recrep_format::write::{FeatureWriter, FileWriter};
use rustc_hash::FxHashSet;

use super::decoded::Decoded;
use super::decoded::ProfileError;
use super::events::{Events, Measured};
use super::layout::{AddressLayout, Mapped, MappedKind, cut};
use super::names;
use super::points::Points;
use super::tasks::{ProfileTasks, TidOwners};
use crate::pprof::PprofSample;

/// Most words of a callchain: a record has at most 64 KiB.
const LONGEST_CHAIN: usize = 8000;

/// Process of the kernel's mappings.
const KERNEL_PID: u32 = u32::MAX;

/// Writes the recording.
pub(super) struct RecordWriter<'w, 'a> {
    pub(super) decoded: &'w Decoded<'a>,
    pub(super) events: &'w Events,
    pub(super) points: &'w Points,
    pub(super) layout: &'w AddressLayout,
}

impl RecordWriter<'_, '_> {
    /// Returns the recording, whose records may have `most` bytes, and the number of samples.
    pub(super) fn recording(
        &self,
        tasks: ProfileTasks,
        most: usize,
    ) -> Result<(Vec<u8>, u64), ProfileError> {
        let entries: Vec<AttrEntry> =
            self.events.all.iter().map(|event| event.entry.clone()).collect();
        let mut out = FileWriter::new(Cursor::default(), Endian::NATIVE, &entries)?;
        let mut records = Records::default();
        self.kernel(&mut records)?;
        self.losses(&mut records)?;
        let samples = self.samples(tasks, &mut records, most)?;
        out.write(records.bytes.as_bytes())?;
        let mut features = FeatureWriter::new(Endian::NATIVE);
        features.add(&EventDesc::of(&entries)?);
        self.facts(&mut features);
        let body = names::bundle(self.decoded, self.points, self.layout)?;
        features.add(&Bundle::of(&body, &body));
        Ok((out.finish(&features)?.into_inner(), samples))
    }

    /// Writes the mappings of the kernel.
    fn kernel(&self, records: &mut Records) -> Result<(), ProfileError> {
        for mapped in &self.layout.kernel {
            if mapped.kind == MappedKind::KernelSymbol {
                let len = mapped.range.end - mapped.range.start;
                let symbol = KSymbol {
                    addr: mapped.range.start,
                    len: u32::try_from(len).unwrap_or(u32::MAX),
                    ksym_type: KSymbolType::UNKNOWN,
                    flags: KSymbolFlags::empty(),
                    name: Text::new(mapped.name()),
                };
                records.put(CpuMode::Kernel, [KERNEL_PID; 2], 1, Body::KSymbol(symbol))?;
            } else {
                records.map(CpuMode::Kernel, KERNEL_PID, mapped, mapped.path().as_ref())?;
            }
        }
        Ok(())
    }

    /// Writes what was lost.
    fn losses(&self, records: &mut Records) -> Result<(), ProfileError> {
        let lost = self.decoded.facts.as_ref().map_or(0, |facts| facts.lost_events);
        if lost > 0 {
            records.put(CpuMode::User, [0; 2], 1, Body::Lost(Lost { id: 1, lost }))?;
        }
        for (event, id) in self.events.all.iter().zip(1..) {
            if event.lost_samples > 0 {
                let lost = LostSamples { lost: event.lost_samples };
                records.put(CpuMode::User, [0; 2], id, Body::LostSamples(lost))?;
            }
        }
        Ok(())
    }

    /// Writes the samples, each after the name and the mappings of its task; returns their number.
    fn samples(
        &self,
        mut tasks: ProfileTasks,
        records: &mut Records,
        most: usize,
    ) -> Result<u64, ProfileError> {
        let mut totals = vec![Measured::default(); self.events.all.len()];
        let mut stack =
            Stack { ip: 0, mode: CpuMode::User, words: Vec::new(), mappings: Vec::new() };
        let (mut mapped, mut named) = (FxHashSet::default(), None);
        let mut owners = TidOwners::default();
        for (task, number) in std::mem::take(&mut tasks.of_samples) {
            let sample = self.decoded.sample_at(number)?;
            let counts = self.events.all.iter().map(|event| event.count(&sample));
            let counts = counts.collect::<Result<Vec<_>, _>>()?;
            if counts.iter().all(Option::is_none) {
                continue;
            }
            let (cpu, mode) = tasks.place_of(self.decoded, &sample)?;
            self.stack(&sample, mode, &mut stack)?;
            let jit = stack.mappings.iter().find_map(|place| self.jit(*place));
            let id = tasks.numbers(task, jit);
            if named != Some((task, id)) {
                let comm = Text::new(cut(tasks.comm(self.decoded, task)));
                let [pid, tid] = id;
                if owners.replaces(pid, tid) {
                    // A name leaves a thread in its process; a fork begins another thread.
                    let fork = Task { pid, ppid: pid, tid, ptid: pid, time: 0 };
                    records.put(CpuMode::User, id, 1, Body::Fork(fork))?;
                    mapped.retain(|(of, _)| *of != pid);
                }
                records.put(CpuMode::User, id, 1, Body::Comm(Comm { pid, tid, comm }))?;
                named = Some((task, id));
            }
            for place in &stack.mappings {
                if mapped.insert((id[0], *place))
                    && let Some(at) = self.layout.user.get(place)
                {
                    records.map(CpuMode::User, id[0], at, at.path_in(id[0]).as_ref())?;
                }
            }
            for ((count, total), event) in counts.iter().zip(&mut totals).zip(1..) {
                let Some(count) = count else { continue };
                total.add(*count)?;
                records.sample(&stack, id, cpu, event, *count, self.fields(event))?;
            }
            if records.bytes.len() > most {
                return Err(ProfileError::TooLong(most));
            }
        }
        let mut all = Measured::default();
        for total in totals {
            all.add(Measured { period: 0, ..total })?;
        }
        Ok(all.samples)
    }

    fn fields(&self, event: u64) -> SampleType {
        let event = usize::try_from(event - 1).ok().and_then(|event| self.events.all.get(event));
        event.map_or(self.events.fields, |event| event.entry.attr.sample_type)
    }

    fn jit(&self, mapping: usize) -> Option<u32> {
        match self.layout.user.get(&mapping)?.kind {
            MappedKind::Jit(pid) => Some(pid),
            _ => None,
        }
    }

    /// Sets the stack to that of a sample, whose CPU mode is `mode` if that does not follow from
    /// its address.
    fn stack(
        &self,
        sample: &PprofSample,
        mode: Option<&str>,
        stack: &mut Stack,
    ) -> Result<(), ProfileError> {
        stack.words.clear();
        stack.mappings.clear();
        let mode = match mode {
            Some("guest_kernel") => Some(CpuMode::GuestKernel),
            Some("guest_user") => Some(CpuMode::GuestUser),
            Some("hypervisor") => Some(CpuMode::Hypervisor),
            Some("user") => Some(CpuMode::User),
            Some("kernel") => Some(CpuMode::Kernel),
            _ => None,
        };
        let mut last = None;
        for location in &sample.location {
            for point in self.points.of_location(self.decoded.location(*location)?) {
                let is_kernel = match mode.filter(|_| last.is_none()) {
                    Some(mode) => mode == CpuMode::Kernel,
                    None => point.is_kernel,
                };
                let marker = if is_kernel { context::KERNEL } else { context::USER };
                if last.replace(marker) != Some(marker) {
                    stack.words.push(marker);
                }
                if stack.words.len() < LONGEST_CHAIN {
                    stack.words.push(point.ip);
                }
                if let Some(mapping) = point.mapping.filter(|_| !point.is_kernel)
                    && !stack.mappings.contains(&mapping)
                {
                    stack.mappings.push(mapping);
                }
            }
        }
        stack.words.truncate(LONGEST_CHAIN);
        stack.ip = stack.words.get(1).copied().unwrap_or(0);
        let is_kernel = stack.words.first() == Some(&context::KERNEL);
        stack.mode = mode.unwrap_or(if is_kernel { CpuMode::Kernel } else { CpuMode::User });
        Ok(())
    }

    /// Adds what is known of the recorded machine.
    fn facts(&self, features: &mut FeatureWriter) {
        let Decoded { facts, time, duration, .. } = self.decoded;
        let facts = facts.clone().unwrap_or_default();
        let [first, last] = facts.sample_times.unwrap_or([1, duration.saturating_add(1)]);
        if *duration > 0 || facts.sample_times.is_some() {
            features.add(&SampleTime { first, last });
        }
        if *time > 0 {
            let clockid = u32::MAX;
            features.add(&ClockData { version: 1, clockid, wall_clock: *time, clock: first });
        }
        if let Some(name) = &facts.host {
            features.add(&Hostname::new(name));
        }
        if let Some(release) = &facts.kernel {
            features.add(&OsRelease::new(release));
        }
        if let Some(arch) = &facts.arch {
            features.add(&Arch::new(arch));
        }
        if let Some(cpu) = &facts.cpu {
            features.add(&CpuDesc::new(cpu));
        }
        if let Some(id) = &facts.cpu_id {
            features.add(&CpuId::new(id));
        }
        if let Some([available, online]) = facts.cpus {
            features.add(&NrCpus { available, online });
        }
        if !facts.command.is_empty() {
            let args = facts.command.iter().map(|word| HeaderString::new(word)).collect();
            features.add(&Cmdline { args: List(args) });
        }
        features.add(&Version::new(facts.recorder.as_deref().unwrap_or("pprof")));
        let kernel = self.layout.kernel.iter().find(|mapped| mapped.kind == MappedKind::Kernel);
        if let Some((mapped, id)) = kernel.and_then(|mapped| Some((mapped, mapped.build_id?))) {
            let entries = vec![BuildIdEvent::new(CpuMode::Kernel, &id, mapped.name())];
            features.add(&BuildIds { entries });
        }
    }
}

/// Stack of a sample.
#[derive(Debug)]
struct Stack {
    ip: u64,
    mode: CpuMode,
    /// Callchain, with context markers.
    words: Vec<u64>,
    /// Places of the mappings of its user frames.
    mappings: Vec<usize>,
}

/// Records in the making.
struct Records {
    bytes: Encoder,
    words: Encoder,
}

impl Default for Records {
    fn default() -> Self {
        Self { bytes: Encoder::new(Endian::NATIVE), words: Encoder::new(Endian::NATIVE) }
    }
}

impl Records {
    /// Appends a record that is no sample, of this process and thread and the event with this id.
    fn put(
        &mut self,
        mode: CpuMode,
        task: [u32; 2],
        event: u64,
        body: Body<'_>,
    ) -> Result<(), ProfileError> {
        let bits = match &body {
            Body::Mmap2(Mmap2 { identity: MmapIdentity::BuildId(_), .. }) => misc::MMAP_BUILD_ID,
            _ => 0,
        };
        let trailer = SampleId {
            tid: Some(task),
            stream_id: Some(event),
            cpu: Some([u32::MAX, 0]),
            identifier: Some(event),
            ..SampleId::default()
        };
        Ok(Record::new(mode.bits() | bits, body).with_trailer(trailer).encode(&mut self.bytes)?)
    }

    fn map(
        &mut self,
        mode: CpuMode,
        pid: u32,
        mapped: &Mapped,
        path: &[u8],
    ) -> Result<(), ProfileError> {
        let identity = match &mapped.build_id {
            Some(id) => MmapIdentity::BuildId(MmapBuildId {
                size: u8::try_from(id.as_bytes().len()).unwrap_or(0),
                reserved: [0; 3],
                bytes: id.padded(),
            }),
            None => MmapIdentity::Inode(NO_FILE),
        };
        let path = if mapped.kind == MappedKind::Kernel { KERNEL_NAME } else { path };
        let map = Mmap2 {
            pid,
            tid: pid,
            addr: mapped.range.start,
            len: mapped.range.end - mapped.range.start,
            pgoff: mapped.offset,
            identity,
            prot: if mapped.kind == MappedKind::Memory { 0 } else { prot::EXEC },
            flags: 0,
            filename: Text::new(path),
        };
        self.put(mode, [pid; 2], 1, Body::Mmap2(map))
    }

    fn sample(
        &mut self,
        stack: &Stack,
        task: [u32; 2],
        cpu: Option<u32>,
        event: u64,
        count: Measured,
        fields: SampleType,
    ) -> Result<(), ProfileError> {
        self.words = Encoder::new(Endian::NATIVE);
        for word in &stack.words {
            self.words.u64(*word);
        }
        let chain = U64s::new(self.words.as_bytes(), Endian::NATIVE);
        let sample = SampleFields {
            identifier: Some(event),
            ip: Some(stack.ip),
            tid: Some(task),
            stream_id: Some(count.samples),
            cpu: Some([cpu.unwrap_or(u32::MAX), 0]),
            period: Some(count.period),
            callchain: fields.contains(SampleType::CALLCHAIN).then_some(chain),
            ..SampleFields::default()
        };
        let record = Record::new(stack.mode.bits(), Body::Sample(Box::new(sample)));
        Ok(record.encode(&mut self.bytes)?)
    }
}

/// Device and inode of a file that nothing is known of.
const NO_FILE: Inode = Inode { maj: 0, min: 0, ino: 0, ino_generation: 0 };

/// Name of the kernel in its mapping record.
const KERNEL_NAME: &[u8] = b"[kernel.kallsyms]";

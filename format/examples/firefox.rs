//! Converts a recording to a profile for the Firefox Profiler.
//!
//! ```sh
//! cargo run --release -p recrep-format --example firefox -- -o profile.json perf.data
//! perf record -g -o - -- ./app | cargo run --release -p recrep-format --example firefox > profile.json
//! samply load profile.json
//! ```
//!
//! | perf.data | profile |
//! |---|---|
//! | COMM, FORK, EXIT | processes, a new one after an exec, and threads; names are inherited at first |
//! | MMAP, MMAP2, the feature BUILD_ID | libraries |
//! | SAMPLE of the first event | a sample with its stack; of idle tasks, in a thread for each CPU |
//!
//! samply resolves the addresses. The threads and their samples are those of `samply import
//! perf.data --save-only -o samply.json`, but for idle tasks, which it leaves out, and samples of
//! one thread at one time, of which it keeps one. Copied stacks are not unwound, and user addresses
//! are offsets in the file, which some linkers move by a page.

#![allow(clippy::print_stderr, reason = "standard output is for the profile")]

use std::collections::HashMap;
use std::error::Error;
use std::fs;
use std::io::{self, BufWriter, Read, Write};
use std::time::SystemTime;

use fxprof_processed_profile::debugid::DebugId;
use fxprof_processed_profile::{
    CategoryColor, CategoryHandle, CpuDelta, Frame, FrameFlags, FrameInfo, LibMappings,
    LibraryHandle, LibraryInfo, ProcessHandle, Profile, SamplingInterval, ThreadHandle, Timestamp,
};
use recrep_format::abi::{CallchainContext, CpuMode, EventType, SwEvent, misc};
use recrep_format::attr::{Attr, AttrIndex};
use recrep_format::build_id::BuildId;
use recrep_format::error::Result;
use recrep_format::feature::BuildIds;
use recrep_format::read::File;
use recrep_format::record::{
    Body, CallchainItem, CallchainItems, Mmap, Mmap2, RawRecord, Sample, Task,
};

fn main() -> std::result::Result<(), Box<dyn Error>> {
    let args: Vec<_> = std::env::args().skip(1).collect();
    let (input, output) = match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => (None, None),
        ["-o", output] => (None, Some(output)),
        ["-o", output, input] | [input, "-o", output] => (Some(input), Some(output)),
        [input] => (Some(input), None),
        _ => return Err("usage: firefox [-o FILE] [FILE]".into()),
    };
    let mut bytes = Vec::new();
    match input {
        Some(path) => drop(fs::File::open(path)?.read_to_end(&mut bytes)?),
        None => drop(io::stdin().lock().read_to_end(&mut bytes)?),
    }
    let file = File::parse(&bytes)?;
    let mut converter = Converter::new(build_ids(&file)?);
    let unpacked = file.unpacked();
    // What is damaged is left out.
    let mut records = Vec::new();
    for record in unpacked.records() {
        match record {
            Ok(record) => records.push(record),
            Err(error) => eprintln!("{error}"),
        }
    }
    // A name, or a mapping, counts for the samples after it. Records of one time keep their order.
    records.sort_by_key(|record| time(&file, record));
    for record in records {
        if let Err(error) = converter.convert(&file, &record) {
            eprintln!("{error}");
        }
    }
    file.warnings.iter().for_each(|warning| eprintln!("{warning}"));
    let out: Box<dyn Write> = match output {
        Some(path) => Box::new(fs::File::create(path)?),
        None => Box::new(io::stdout().lock()),
    };
    let mut out = BufWriter::new(out);
    serde_json::to_writer(&mut out, &converter.profile)?;
    Ok(out.flush()?)
}

/// Returns the time of a record. Synthesized records have 0 or all ones in its place: they describe
/// what was there before all others.
fn time(file: &File<'_>, record: &RawRecord<'_>) -> Option<u64> {
    file.attrs.time_of(record).filter(|time| !matches!(*time, 0 | u64::MAX))
}

/// Returns the build IDs that a recording has, by the names of the files.
fn build_ids(file: &File<'_>) -> Result<HashMap<Vec<u8>, BuildId>> {
    let Some(feature) = file.feature::<BuildIds<'_>>() else { return Ok(HashMap::new()) };
    let entries = feature?.entries;
    Ok(entries
        .iter()
        .filter_map(|entry| Some((entry.name().to_vec(), entry.build_id()?)))
        .collect())
}

/// A profile in the making, and what is known at the current time.
struct Converter {
    profile: Profile,
    /// Processes by pid.
    processes: HashMap<u32, Process>,
    /// Threads by pid and tid.
    threads: HashMap<(u32, u32), Thread>,
    kernel_image: LibMappings<LibraryHandle>,
    kernel_modules: LibMappings<LibraryHandle>,
    build_ids: HashMap<Vec<u8>, BuildId>,
    user: CategoryHandle,
    kernel: CategoryHandle,
    /// Time of the first sample, in nanoseconds of the perf clock.
    start: Option<u64>,
    /// Time of the current record; 0 before the first sample.
    now: Timestamp,
}

struct Process {
    handle: ProcessHandle,
    libs: LibMappings<LibraryHandle>,
}
struct Thread {
    handle: ThreadHandle,
    name: Option<String>,
}

impl Converter {
    fn new(build_ids: HashMap<Vec<u8>, BuildId>) -> Self {
        let mut profile =
            Profile::new("perf.data", SystemTime::now().into(), SamplingInterval::from_millis(1));
        Self {
            processes: HashMap::new(),
            threads: HashMap::new(),
            kernel_image: LibMappings::new(),
            kernel_modules: LibMappings::new(),
            build_ids,
            user: profile.add_category("User", CategoryColor::Yellow),
            kernel: profile.add_category("Kernel", CategoryColor::Orange),
            start: None,
            now: Timestamp::from_nanos_since_reference(0),
            profile,
        }
    }

    fn convert(&mut self, file: &File<'_>, record: &RawRecord<'_>) -> Result<()> {
        let time = time(file, record);
        if let (Some(time), Some(start)) = (time, self.start) {
            self.now = Timestamp::from_nanos_since_reference(time.saturating_sub(start));
        }
        if let Some((AttrIndex(0), sample)) = file.attrs.sample(*record)
            && let Some(first) = file.attrs.get(AttrIndex(0))
        {
            if self.start.is_none() {
                self.start = time;
                self.profile.set_interval(SamplingInterval::from_nanos(interval(&first.attr)));
            }
            return self.sample(&sample, &first.attr);
        }
        let record = file.attrs.decode(record)?;
        let has = |bit| record.misc & bit != 0;
        match record.body {
            Body::Comm(comm) => {
                if has(misc::COMM_EXEC) {
                    self.exit(comm.pid, comm.tid);
                }
                self.set_name(comm.pid, comm.tid, &comm.comm.to_text());
            }
            // A process that exists already is synthesized as a FORK; its own mappings follow.
            Body::Fork(task) => self.fork(&task, !has(misc::FORK_EXEC)),
            Body::Exit(task) => self.exit(task.pid, task.tid),
            Body::Mmap(map) if !has(misc::MMAP_DATA) => self.map(&map, None),
            Body::Mmap2(map) if !has(misc::MMAP_DATA) => {
                let Mmap2 { pid, tid, addr, len, pgoff, filename, identity, .. } = map;
                self.map(&Mmap { pid, tid, addr, len, pgoff, filename }, identity.build_id());
            }
            _ => {}
        }
        Ok(())
    }

    fn fork(&mut self, task: &Task, copies_mappings: bool) {
        let name = self.thread(task.ppid, task.ptid).name.clone();
        if self.thread(task.pid, task.tid).name.is_none() {
            name.into_iter().for_each(|name| self.set_name(task.pid, task.tid, &name));
        }
        if task.pid != task.ppid && copies_mappings {
            self.process(task.pid).libs = self.process(task.ppid).libs.clone();
        }
    }

    /// Ends a thread, or with its first thread a process; later records with these ids are of
    /// others.
    fn exit(&mut self, pid: u32, tid: u32) {
        let ends = |key: &(u32, u32)| key.0 == pid && (key.1 == tid || tid == pid);
        for (_, thread) in self.threads.extract_if(|key, _| ends(key)) {
            self.profile.set_thread_end_time(thread.handle, self.now);
        }
        if let Some(process) = (tid == pid).then(|| self.processes.remove(&pid)).flatten() {
            self.profile.set_process_end_time(process.handle, self.now);
        }
    }

    fn process(&mut self, pid: u32) -> &mut Process {
        self.processes.entry(pid).or_insert_with(|| {
            let name = if pid == 0 { "swapper".to_owned() } else { format!("<{pid}>") };
            Process {
                handle: self.profile.add_process(&name, pid, self.now),
                libs: LibMappings::new(),
            }
        })
    }

    fn thread(&mut self, pid: u32, tid: u32) -> &mut Thread {
        let process = self.process(pid).handle;
        self.threads.entry((pid, tid)).or_insert_with(|| {
            let handle = self.profile.add_thread(process, tid, self.now, pid == tid);
            let name = (pid == 0).then(|| format!("swapper/{tid}"));
            name.iter().for_each(|name| self.profile.set_thread_name(handle, name));
            Thread { handle, name }
        })
    }

    fn set_name(&mut self, pid: u32, tid: u32, name: &str) {
        let thread = self.thread(pid, tid);
        thread.name = Some(name.to_owned());
        let handle = thread.handle;
        self.profile.set_thread_name(handle, name);
        if pid == tid {
            let process = self.process(pid).handle;
            self.profile.set_process_name(process, name);
        }
    }

    fn map(&mut self, map: &Mmap<'_>, build_id: Option<BuildId>) {
        let path = map.filename.to_text();
        // The image of the kernel has the name of its first symbol behind its own.
        let is_image = path.starts_with("[kernel.kallsyms]");
        let path = if is_image { "[kernel.kallsyms]" } else { &path };
        let name = path.rsplit('/').next().unwrap_or(path);
        let build_id = build_id.or_else(|| self.build_ids.get(path.as_bytes()).copied());
        let lib = self.profile.add_lib(LibraryInfo {
            name: name.to_owned(),
            debug_name: name.to_owned(),
            path: path.to_owned(),
            debug_path: path.to_owned(),
            debug_id: build_id.map(debug_id).unwrap_or_default(),
            code_id: build_id.map(|id| id.to_string()),
            arch: None,
            symbol_table: None,
        });
        let end = map.addr.saturating_add(map.len);
        if map.pid == u32::MAX {
            // The image may span its modules.
            let libs = if is_image { &mut self.kernel_image } else { &mut self.kernel_modules };
            libs.add_mapping(map.addr, end, 0, lib);
        } else if let [Ok(begin), Ok(_)] =
            [map.pgoff, map.pgoff.saturating_add(map.len)].map(u32::try_from)
        {
            // An address in a library has 32 bits.
            self.process(map.pid).libs.add_mapping(map.addr, end, begin, lib);
        }
    }

    fn sample(&mut self, sample: &Sample<'_, '_>, attr: &Attr) -> Result<()> {
        let (Some(pid), Some(tid)) = (sample.pid(), sample.tid()) else { return Ok(()) };
        // All idle tasks have the tid 0: each gets the number of its CPU.
        let id = if tid == 0 { (0, sample.cpu().unwrap_or(0)) } else { (pid, tid) };
        let thread = self.thread(id.0, id.1).handle;
        let frames = self.frames(pid, sample)?;
        let stack = self.profile.intern_stack_frames(thread, frames.into_iter().rev());
        let is_clock = attr.kind == EventType::SOFTWARE
            && matches!(SwEvent(attr.config), SwEvent::CPU_CLOCK | SwEvent::TASK_CLOCK);
        let nanoseconds = sample.period().filter(|_| is_clock).unwrap_or_else(|| interval(attr));
        self.profile.add_sample(thread, self.now, stack, CpuDelta::from_nanos(nanoseconds), 1);
        Ok(())
    }

    /// Returns the stack of a sample, innermost frame first; a profile has it last.
    fn frames(&self, pid: u32, sample: &Sample<'_, '_>) -> Result<Vec<FrameInfo>> {
        let mut frames = Vec::new();
        for item in
            sample.callchain()?.into_iter().flat_map(|chain| CallchainItems::new(chain.iter()))
        {
            // The rest of a deferred chain comes in another record.
            let CallchainItem::Frame { ip, context } = item else { break };
            let mode = context.map_or(sample.cpu_mode(), CallchainContext::cpu_mode);
            frames.push(self.frame(pid, mode, ip, frames.is_empty()));
        }
        if frames.is_empty() {
            frames.extend(sample.ip().map(|ip| self.frame(pid, sample.cpu_mode(), ip, true)));
        }
        Ok(frames)
    }

    /// Returns the frame of an address: the innermost is that of an instruction, the others are
    /// where calls return to.
    fn frame(&self, pid: u32, mode: CpuMode, address: u64, is_innermost: bool) -> FrameInfo {
        let address = if is_innermost { address } else { address.saturating_sub(1) };
        let module = || self.kernel_modules.convert_address(address);
        let (category, found) = match mode {
            CpuMode::Kernel => {
                (self.kernel, module().or_else(|| self.kernel_image.convert_address(address)))
            }
            CpuMode::User => (
                self.user,
                self.processes.get(&pid).and_then(|of| of.libs.convert_address(address)),
            ),
            _ => (CategoryHandle::OTHER, None),
        };
        let frame = found.map_or(Frame::AdjustedReturnAddress(address), |(offset, lib)| {
            Frame::RelativeAddressFromAdjustedReturnAddress(*lib, offset)
        });
        FrameInfo { frame, category_pair: category.into(), flags: FrameFlags::empty() }
    }
}

/// Returns the time that a sample stands for, in nanoseconds; 1 ms where only a number of events is
/// known.
fn interval(attr: &Attr) -> u64 {
    attr.frequency().and_then(|hz| 1_000_000_000_u64.checked_div(hz)).unwrap_or(1_000_000)
}

/// Returns the debug ID of an ELF file: the first 16 bytes of its build ID, as a GUID.
fn debug_id(build_id: BuildId) -> DebugId {
    let guid = build_id.padded().first_chunk::<16>().copied().unwrap_or_default();
    DebugId::from_guid_age(&guid, 0).unwrap_or_default()
}

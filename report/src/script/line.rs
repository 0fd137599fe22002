//! One sample as `perf script` prints it.

use std::io::{self, Write};

use recrep_format::abi::{BranchEntry, CpuMode, DataSrc, EventType, ReadFormat, SampleType, sw};
use recrep_format::attr::Attr;
use recrep_format::attrs::AttrIndex;
use recrep_format::record::{RawRecord, SampleFields};
use rustc_hash::FxHashMap;

use super::fields::{Field, Fields};
use super::frames::{Finder, frames};
use super::query::ScriptQuery;
use crate::resolve::Resolver;
use crate::stage::Stage;
use crate::timeline::{Moment, Place, Task};
use crate::unwind::{Chain, Scratch, Unwinding};
use crate::view::escape;
use crate::warning::Warning;

/// The last reading of each counter: a sample that reads counters stands for what each has gained.
type Readings = FxHashMap<u64, u64>;

/// How many frames of a callchain perf prints (`PERF_MAX_STACK_DEPTH`).
const MOST_FRAMES: usize = 127;

/// What stands for a sample without a source of its data: nothing is known (`PERF_MEM_DATA_SRC_NONE`).
const DATA_SRC_NONE: u64 = 0x1e_0508_0021;

/// Prints samples; some columns are as wide as what came before them.
pub(super) struct Printer<'s, 'f> {
    stage: &'s Stage<'f>,
    finder: Finder<'s, 'f>,
    unwinding: Option<Unwinding<'s, 'f>>,
    scratch: Scratch,
    /// The columns of each event.
    fields: Vec<Fields>,
    missing: Vec<Warning>,
    name_width: usize,
    data_src_width: usize,
    chains: bool,
    nanoseconds: bool,
    readings: Readings,
    lines: usize,
}

/// A sample with what was found out about it.
struct Found<'a> {
    mode: CpuMode,
    fields: SampleFields<'a>,
    period: u64,
    task: Task,
    at: Moment,
    place: Place,
}

impl<'s, 'f> Printer<'s, 'f> {
    pub(super) fn new(stage: &'s Stage<'f>, query: &ScriptQuery, resolver: &'s Resolver) -> Self {
        let entries = stage.file.attrs.entries();
        let mut missing = Vec::new();
        let mut fields = Vec::new();
        for (entry, name) in entries.iter().zip(&stage.events) {
            let wanted = query.fields.clone().unwrap_or_else(|| Fields::usual(&entry.attr));
            let lacks: Vec<_> = wanted.lacking(&entry.attr).iter().map(|field| field.name()).collect();
            if !lacks.is_empty() {
                let message = format!("the samples of {name} have no {}: shown as nothing known", lacks.join(", "));
                missing.push(Warning::new("field-not-sampled", message));
            }
            fields.push(wanted);
        }
        Self {
            stage,
            finder: Finder::new(stage, resolver),
            unwinding: Unwinding::new(stage, resolver),
            scratch: Scratch::default(),
            fields,
            missing,
            name_width: stage.events.iter().map(String::len).max().unwrap_or(0),
            data_src_width: 0,
            chains: entries.iter().any(|e| e.attr.sample_type.contains(SampleType::CALLCHAIN)),
            nanoseconds: query.nanoseconds,
            readings: Readings::default(),
            lines: 0,
        }
    }

    /// How many samples were printed.
    pub(super) fn lines(&self) -> usize {
        self.lines
    }

    /// What was asked for and is not sampled.
    pub(super) fn missing(self) -> Vec<Warning> {
        self.missing
    }

    /// Prints a sample: once, or for each counter that it reads.
    pub(super) fn sample(&mut self, raw: RawRecord<'_>, out: &mut impl Write) -> io::Result<()> {
        let attrs = &self.stage.file.attrs;
        let Some((index, sample)) = attrs.sample(raw) else { return Ok(()) };
        let (Ok(fields), Some(entry)) = (sample.fields(), attrs.get(index)) else { return Ok(()) };
        let at = self.stage.clock.moment(fields.time, raw.offset);
        let [pid, tid] = fields.tid.map_or([-1, -1], |t| t.map(u32::cast_signed));
        let task = self.stage.timeline.thread(pid, tid, at);
        let mode = sample.cpu_mode();
        if matches!(mode, CpuMode::GuestKernel | CpuMode::GuestUser) {
            return Ok(());
        }
        let place = self.finder.place(mode, &task, fields.ip.unwrap_or(0), at);
        let period = fields.period.unwrap_or(entry.attr.sample_period);
        let mut found = Found { mode, fields, period, task, at, place };
        let Some(read) = found.fields.read.take() else { return self.print(index, &found, out) };
        let group = entry.attr.read_format.contains(ReadFormat::GROUP);
        for counter in read.counters().take(if group { usize::MAX } else { 1 }) {
            let id = counter.id.or_else(|| sample.event_id()).unwrap_or(0);
            let last = self.readings.insert(id, counter.value).unwrap_or(0);
            found.period = counter.value.wrapping_sub(last);
            if found.period != 0 {
                self.print(attrs.by_id(id).unwrap_or(index), &found, out)?;
            }
        }
        Ok(())
    }

    fn print(&mut self, index: AttrIndex, s: &Found<'_>, out: &mut impl Write) -> io::Result<()> {
        let Some(fields) = self.fields.get(index.0).cloned() else { return Ok(()) };
        let Some(attr) = self.stage.file.attrs.get(index).map(|entry| &entry.attr) else { return Ok(()) };
        self.lines += 1;
        self.start(&fields, attr, s, out)?;
        if fields.has(Field::Period) {
            write!(out, "{:>10} ", s.period)?;
        }
        if fields.has(Field::Event) {
            let name = self.stage.events.get(index.0).map_or("", String::as_str);
            write!(out, "{:>width$}: ", escape(name), width = self.name_width)?;
        }
        if fields.has(Field::Addr) {
            self.addr(s.fields.addr.unwrap_or(0), &fields, attr, s, out)?;
        }
        if fields.has(Field::DataSrc) {
            let src = s.fields.data_src.unwrap_or(DATA_SRC_NONE);
            let text = format!("{src:>16x} {}", DataSrc(src));
            self.data_src_width = self.data_src_width.max(text.len());
            write!(out, "{text:<width$}", width = self.data_src_width)?;
        }
        weights(&fields, attr, s, out)?;
        if fields.has(Field::Ip) {
            self.ip(&fields, attr, s, out)?;
        }
        if let Some(stack) = s.fields.branch_stack.filter(|_| fields.has(Field::BrStack)) {
            for branch in stack.entries() {
                self.branch(&branch, &fields, s, out)?;
            }
        }
        if fields.has(Field::PhysAddr) {
            write!(out, "{:>16x}", s.fields.phys_addr.unwrap_or(0))?;
        }
        let sizes = [(Field::DataPageSize, s.fields.data_page_size), (Field::CodePageSize, s.fields.code_page_size)];
        for (field, size) in sizes {
            if fields.has(field) {
                write!(out, " {}", page_size(size.unwrap_or(0)))?;
            }
        }
        writeln!(out)
    }

    /// The part that every line begins with.
    fn start(&self, fields: &Fields, attr: &Attr, s: &Found<'_>, out: &mut impl Write) -> io::Result<()> {
        if fields.has(Field::Comm) {
            let tid = s.fields.tid.map_or(-1, |[_, tid]| tid.cast_signed());
            let comm = self.stage.timeline.comm(self.stage.timeline.comm_so_far(tid, s.at));
            let comm = escape(&comm);
            let frames_follow = fields.has(Field::Ip) && self.has_chain(attr);
            if frames_follow { write!(out, "{comm} ") } else { write!(out, "{comm:>16} ") }?;
        }
        let [pid, tid] = s.fields.tid.map_or([-1, -1], |t| t.map(u32::cast_signed));
        match (fields.has(Field::Pid), fields.has(Field::Tid)) {
            (true, true) => write!(out, "{pid:>7}/{tid:<7} "),
            (true, false) => write!(out, "{pid:>7} "),
            (false, true) => write!(out, "{tid:>7} "),
            (false, false) => Ok(()),
        }?;
        if fields.has(Field::Cpu) {
            write!(out, "[{:03}] ", s.fields.cpu.map_or(-1, |[cpu, _]| cpu.cast_signed()))?;
        }
        if fields.has(Field::Misc) {
            let letter = match s.mode {
                CpuMode::Kernel => "K",
                CpuMode::User => "U",
                CpuMode::Hypervisor => "H",
                _ => "",
            };
            write!(out, "{letter:<6}")?;
        }
        if let Some(time) = s.fields.time.filter(|_| fields.has(Field::Time)) {
            let (seconds, nanoseconds) = (time / 1_000_000_000, time % 1_000_000_000);
            if self.nanoseconds {
                write!(out, "{seconds:>5}.{nanoseconds:09}: ")?;
            } else {
                let text = format!("{seconds}.{:06}", nanoseconds / 1000);
                write!(out, "{text:>12}: ")?;
            }
        }
        Ok(())
    }

    fn has_chain(&self, attr: &Attr) -> bool {
        self.chains && attr.sample_type.contains(SampleType::CALLCHAIN)
    }

    /// The data address; where it is one of memory that is mapped, what is there.
    fn addr(&mut self, addr: u64, fields: &Fields, attr: &Attr, s: &Found<'_>, out: &mut impl Write) -> io::Result<()> {
        write!(out, "{addr:>16x}")?;
        let faults = [sw::PAGE_FAULTS, sw::PAGE_FAULTS_MIN, sw::PAGE_FAULTS_MAJ];
        if attr.kind == EventType::SOFTWARE && faults.contains(&attr.config) {
            let place = self.finder.place_of_either(s.mode, &s.task, addr, s.at);
            self.names(place, fields, out)?;
        }
        Ok(())
    }

    /// The sampled instruction, or a line for each frame.
    fn ip(&mut self, fields: &Fields, attr: &Attr, s: &Found<'_>, out: &mut impl Write) -> io::Result<()> {
        let Some(chain) = s.fields.callchain.filter(|_| self.has_chain(attr)) else {
            write!(out, " {:>16x}", s.fields.ip.unwrap_or(0))?;
            return self.names(s.place, fields, out);
        };
        writeln!(out)?;
        for (mode, ip) in frames(chain, s.mode, MOST_FRAMES) {
            let place = self.finder.place(mode, &s.task, ip, s.at);
            write!(out, "\t{ip:>16x}")?;
            self.names(place, fields, out)?;
            writeln!(out)?;
        }
        for ip in self.unwound(attr, s) {
            let place = self.finder.place(CpuMode::User, &s.task, ip, s.at);
            write!(out, "\t{ip:>16x}")?;
            self.names(place, fields, out)?;
            writeln!(out)?;
        }
        Ok(())
    }

    /// The user part of a callchain whose stack was copied.
    fn unwound(&mut self, attr: &Attr, s: &Found<'_>) -> Vec<u64> {
        let Some(unwinding) = &self.unwinding else { return Vec::new() };
        let mut chain = Chain::default();
        let to = (&mut self.scratch, &mut chain);
        unwinding.sample((&s.fields, attr), (&s.task, s.at), MOST_FRAMES, to);
        chain.ips
    }

    /// Function and module of an address, as far as they are asked for.
    fn names(&mut self, place: Place, fields: &Fields, out: &mut impl Write) -> io::Result<()> {
        if fields.has(Field::Sym) {
            match self.finder.symbol(place) {
                Some((name, offset)) if fields.has(Field::SymOff) => write!(out, " {name}+{offset:#x}"),
                Some((name, _)) => write!(out, " {name}"),
                None => write!(out, " [unknown]"),
            }?;
        }
        if fields.has(Field::Dso) {
            write!(out, " ({})", self.finder.dso(place))?;
        }
        Ok(())
    }

    fn branch(&self, b: &BranchEntry, fields: &Fields, s: &Found<'_>, out: &mut impl Write) -> io::Result<()> {
        let module = |address| {
            let found = self.finder.place_of_either(s.mode, &s.task, address, s.at);
            if fields.has(Field::Dso) { format!(" ({})", self.finder.dso(found)) } else { String::new() }
        };
        let flags = b.flags;
        let predicted = match (flags.mispred(), flags.predicted()) {
            (false, false) => '-',
            (_, true) => 'P',
            (true, false) => 'M',
        };
        let (tx, abort) = (if flags.in_tx() { 'X' } else { '-' }, if flags.abort() { 'A' } else { '-' });
        write!(out, " 0x{:x}{}/0x{:x}{}", b.from, module(b.from), b.to, module(b.to))?;
        let (cycles, kind, spec) = (flags.cycles(), flags.kind_name(), flags.spec_name());
        write!(out, "/{predicted}/{tx}/{abort}/{cycles}/{kind}/{spec} ")
    }
}

fn weights(fields: &Fields, attr: &Attr, s: &Found<'_>, out: &mut impl Write) -> io::Result<()> {
    let weight = s.fields.weight.unwrap_or(0);
    let split = attr.sample_type.contains(SampleType::WEIGHT_STRUCT);
    if fields.has(Field::Weight) {
        write!(out, "{:>16}", if split { weight & 0xffff_ffff } else { weight })?;
    }
    for (field, shift) in [(Field::InsLat, 32), (Field::RetireLat, 48)] {
        if fields.has(field) {
            write!(out, "{:>16}", if split { weight >> shift & 0xffff } else { 0 })?;
        }
    }
    Ok(())
}

/// A page size as perf prints it.
fn page_size(bytes: u64) -> String {
    match bytes {
        0 => "N/A".into(),
        _ if bytes >= 1 << 30 => format!("{}G", bytes >> 30),
        _ if bytes >= 1 << 20 => format!("{}M", bytes >> 20),
        _ if bytes >= 1 << 10 => format!("{}K", bytes >> 10),
        _ => format!("{bytes}B"),
    }
}

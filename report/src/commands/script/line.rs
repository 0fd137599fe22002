//! Lines of samples and other records, as `perf script` prints them.

use std::io::{self, Write};

use recrep_format::abi::{CpuMode, DataSrc, EventType, ReadFormat, RecordType, SampleType, sw};
use recrep_format::attr::Attr;
use recrep_format::attrs::AttrIndex;
use recrep_format::feature::{Arch, ClockData};
use recrep_format::record::{RawRecord, Record, Sample, SampleFields};
use rustc_hash::FxHashMap;

use super::branches::{self, Spot};
use super::chain::{ChainPrinter, Site};
use super::fields::{Field, Fields};
use super::filter::{Asked, SampleFilter};
use super::frames::Finder;
use super::outputs::Outputs;
use super::query::ScriptQuery;
use super::source::{self, SourceFiles};
use super::start::{Start, Who};
use super::{records, values};
use crate::commands::dump::RegisterNames;
use crate::pipeline::session::Session;
use crate::query::warning::Warning;
use crate::symbols::Resolver;
use crate::terminal::escape::escape;
use crate::timeline::cgroups::Groups;
use crate::timeline::{Moment, Place, Task};
use crate::tracepoints::{Formats, Running};

/// Last value of each counter. The increment since then is the period of a sample that reads counters.
type Readings = FxHashMap<u64, u64>;

/// `PERF_MEM_DATA_SRC_NONE`, printed for samples without `data_src`.
const DATA_SRC_NONE: u64 = 0x1e_0508_0021;

/// Printer of samples. Some columns are as wide as the widest value so far.
pub(super) struct Printer<'s, 'f> {
    session: &'s Session<'f>,
    finder: Finder<'s, 'f>,
    chains: ChainPrinter<'s>,
    filter: SampleFilter<'s>,
    start: Start,
    sources: SourceFiles,
    groups: Groups,
    registers: RegisterNames,
    source_paths: bool,
    formats: &'s Formats,
    kernel: Running<'s>,
    /// Fields of each event.
    fields: Vec<Fields>,
    missing: Vec<Warning>,
    name_width: usize,
    data_src_width: usize,
    readings: Readings,
    lines: usize,
    text: Vec<u8>,
}

/// A sample with its task, comm and place.
struct Found<'a> {
    mode: CpuMode,
    misc: u16,
    sample: Sample<'a, 'a>,
    fields: SampleFields<'a>,
    period: u64,
    task: Task,
    tid: [i32; 2],
    comm: String,
    at: Moment,
    place: Place,
}

impl<'s, 'f> Printer<'s, 'f> {
    /// # Errors
    /// Returns an error if the file lacks what the query needs: the wall clock for `tod`, or an event to switch at.
    pub(super) fn new(
        session: &'s Session<'f>,
        query: &'s ScriptQuery,
        resolver: &'s Resolver,
        formats: &'s Formats,
        chains: ChainPrinter<'s>,
    ) -> anyhow::Result<Self> {
        let (fields, missing): (Vec<_>, Vec<_>) = columns(session, query).into_iter().unzip();
        let clock = session.file.feature::<ClockData>().and_then(Result::ok);
        if clock.is_none() && fields.iter().any(|fields: &Fields| fields.has(Field::Tod)) {
            anyhow::bail!("tod: the file does not relate its clock to the wall clock; record with -k CLOCKID");
        }
        let cgroups = fields.iter().any(|fields| fields.has(Field::Cgroup));
        let groups = if cgroups {
            Groups::read(session.file, &session.split.side_band, &session.clock)
        } else {
            Groups::default()
        };
        let arch = session.file.feature::<Arch<'_>>().and_then(Result::ok);
        Ok(Self {
            session,
            finder: Finder::new(session, resolver, query.look.kernel_path),
            chains,
            filter: SampleFilter::new(&query.filters, session)?,
            start: Start::new(&query.look, clock),
            sources: SourceFiles::default(),
            groups,
            registers: RegisterNames::of(&arch.map_or_else(Default::default, |arch| arch.0.to_text().into_owned())),
            source_paths: query.symbol_sources.source_paths,
            formats,
            kernel: Running::new(formats, &session.timeline, session.side_band.modules.iter().collect(), resolver),
            fields,
            missing: missing.into_iter().flatten().collect(),
            name_width: session.events.iter().map(String::len).max().unwrap_or(0),
            data_src_width: 0,
            readings: Readings::default(),
            lines: 0,
            text: Vec::new(),
        })
    }

    /// Returns the number of samples that were printed.
    pub(super) fn lines(&self) -> usize {
        self.lines
    }

    /// Returns whether any event has this field.
    pub(super) fn has(&self, field: Field) -> bool {
        self.fields.iter().any(|fields| fields.has(field))
    }

    /// Returns warnings about fields that cannot be printed and about unproven names.
    pub(super) fn warnings(mut self) -> Vec<Warning> {
        self.missing.extend(self.finder.warnings());
        self.missing
    }

    /// Prints a record that is not a sample.
    pub(super) fn record(&mut self, raw: RawRecord<'_>, out: &mut impl Write) -> io::Result<()> {
        if raw.header.kind == RecordType::FINISHED_ROUND {
            return writeln!(out, "PERF_RECORD_FINISHED_ROUND");
        }
        let attrs = &self.session.file.attrs;
        let Some(index) = attrs.event_of(&raw) else { return Ok(()) };
        let (Ok(Record { trailer, body, .. }), Some(entry)) = (attrs.decode(&raw), attrs.get(index)) else {
            return Ok(());
        };
        let at = self.session.clock.moment(attrs.time_of(&raw), raw.offset);
        let mut own = trailer.tid.map_or([-1, -1], |tid| tid.map(u32::cast_signed));
        let mut cpu = trailer.cpu.map(|[cpu, _]| cpu);
        let mut time = trailer.time;
        let task = records::task(&body);
        if !entry.attr.sample_id_all() {
            (own, cpu, time) = (task.map_or(own, |task| task.tid), Some(0), Some(task.map_or(0, |task| task.time)));
        }
        if !self.filter.lists_records_of(cpu) {
            return Ok(());
        }
        let [_, tid] = task.map_or(own, |task| task.tid);
        let timeline = &self.session.timeline;
        let comm = if tid == -1 { ":-1".into() } else { timeline.comm(timeline.comm_so_far(tid, at)) };
        let Some(fields) = self.fields.get(index.0) else { return Ok(()) };
        let who = Who {
            comm: &comm,
            tid: own,
            cpu: cpu.map_or(-1, u32::cast_signed),
            time,
            misc: raw.header.misc,
            kind: raw.header.kind,
            frames_follow: fields.has(Field::Ip) && self.chains.has(&entry.attr),
        };
        self.start.print(&who, fields, out)?;
        let kernel_symbol = |finder: &mut Finder<'_, '_>, address| {
            let task = timeline.thread(-1, -1, at);
            let place = finder.place(CpuMode::Kernel, &task, address, at);
            finder.symbol(place).map(|function| format!("{}+0x{:x}", function.name, function.offset))
        };
        records::print(&raw, &body, |address| kernel_symbol(&mut self.finder, address), out)
    }

    /// Prints a sample: once, or once for each counter that it reads and whose value has changed.
    pub(super) fn sample<W: Write>(&mut self, raw: RawRecord<'_>, outputs: &mut Outputs<'_, W>) -> io::Result<()> {
        let attrs = &self.session.file.attrs;
        let Some((index, sample)) = attrs.sample(raw) else { return Ok(()) };
        let (Ok(fields), Some(entry)) = (sample.fields(), attrs.get(index)) else { return Ok(()) };
        let at = self.session.clock.moment(fields.time, raw.offset);
        let tid = fields.tid.map_or([-1, -1], |t| t.map(u32::cast_signed));
        let task = self.session.timeline.thread(tid[0], tid[1], at);
        let mode = sample.cpu_mode();
        if matches!(mode, CpuMode::GuestKernel | CpuMode::GuestUser) {
            return Ok(());
        }
        let place = self.finder.place(mode, &task, fields.ip.unwrap_or(0), at);
        let period = fields.period.unwrap_or(entry.attr.sample_period);
        let comm = self.session.timeline.comm(self.session.timeline.comm_so_far(tid[1], at)).into_owned();
        let mut found = Found { mode, misc: raw.header.misc, sample, fields, period, task, tid, comm, at, place };
        let Some(read) = found.fields.read.take() else { return self.print(index, &found, outputs) };
        let group = entry.attr.read_format.contains(ReadFormat::GROUP);
        for counter in read.counters().take(if group { usize::MAX } else { 1 }) {
            let id = counter.id.or_else(|| sample.event_id()).unwrap_or(0);
            let last = self.readings.insert(id, counter.value).unwrap_or(0);
            found.period = counter.value.wrapping_sub(last);
            if found.period != 0 {
                self.print(attrs.by_id(id).unwrap_or(index), &found, outputs)?;
            }
        }
        Ok(())
    }

    fn passes(&mut self, index: AttrIndex, s: &Found<'_>) -> bool {
        let asked = Asked {
            time: s.fields.time,
            cpu: s.fields.cpu.map(|[cpu, _]| cpu),
            comm: &s.comm,
            tid: [s.task.pid, s.tid[1]],
            module: s.place.module.map(|module| module.0 as usize),
        };
        if !self.filter.passes(&asked) {
            return false;
        }
        if let Some(symbols) = self.filter.symbols() {
            let function = self.finder.symbol(s.place);
            let ip = s.fields.ip.unwrap_or(0);
            let start = function.as_ref().map(|function| ip.wrapping_sub(function.offset));
            if !function.is_some_and(|function| symbols.names.contains(&function.name))
                && !symbols.has_address(ip, start)
            {
                return false;
            }
        }
        self.filter.is_on(index)
    }

    fn print<W: Write>(&mut self, index: AttrIndex, s: &Found<'_>, outputs: &mut Outputs<'_, W>) -> io::Result<()> {
        let Some(fields) = self.fields.get(index.0).filter(|fields| !fields.is_empty()).cloned() else { return Ok(()) };
        let session = self.session;
        let Some(attr) = session.file.attrs.get(index).map(|entry| &entry.attr) else { return Ok(()) };
        if !self.passes(index, s) {
            return Ok(());
        }
        self.lines += 1;
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        self.line(index, attr, &fields, s, &mut text)?;
        outputs.sample(index, &text)?;
        self.text = text;
        Ok(())
    }

    fn line(
        &mut self,
        index: AttrIndex,
        attr: &Attr,
        fields: &Fields,
        s: &Found<'_>,
        out: &mut Vec<u8>,
    ) -> io::Result<()> {
        let who = Who {
            comm: &s.comm,
            tid: s.tid,
            cpu: s.fields.cpu.map_or(-1, |[cpu, _]| cpu.cast_signed()),
            time: s.fields.time,
            misc: s.misc,
            kind: RecordType::SAMPLE,
            frames_follow: fields.has(Field::Ip) && self.chains.has(attr),
        };
        self.start.print(&who, fields, out)?;
        if fields.has(Field::Period) {
            write!(out, "{:>10} ", s.period)?;
        }
        if fields.has(Field::Event) {
            let name = self.session.events.get(index.0).map_or("", String::as_str);
            write!(out, "{:>width$}: ", escape(name), width = self.name_width)?;
        }
        if let Some(raw) = s.fields.raw.filter(|_| fields.has(Field::Trace)) {
            let text = self.formats.event(index.0).map(|event| event.text(raw, &self.kernel));
            write!(out, "{}", escape(text.as_deref().unwrap_or_default()))?;
        }
        if is_branch_trace(attr) {
            self.branch_trace(fields, attr, s, out)?;
        } else {
            self.rest(fields, attr, s, out)?;
        }
        if fields.has(Field::SrcCode)
            && let Some(code) = self.sources.code(&mut self.finder, s.place, s.tid[1])
        {
            writeln!(out, "{code}")?;
        }
        Ok(())
    }

    /// Prints the fields after the event's name.
    fn rest(&mut self, fields: &Fields, attr: &Attr, s: &Found<'_>, out: &mut Vec<u8>) -> io::Result<()> {
        if fields.has(Field::Addr) {
            self.addr(fields, attr, s, out)?;
        }
        if fields.has(Field::DataSrc) {
            let src = s.fields.data_src.unwrap_or(DATA_SRC_NONE);
            let text = format!("{src:>16x} {}", DataSrc(src));
            self.data_src_width = self.data_src_width.max(text.len());
            write!(out, "{text:<width$}", width = self.data_src_width)?;
        }
        values::weights(fields, attr, &s.fields, out)?;
        if fields.has(Field::Cgroup) {
            let cgroup = s.fields.cgroup.and_then(|id| self.groups.cgroup(id));
            write!(out, " {}", escape(cgroup.unwrap_or("unknown")))?;
        }
        if fields.has(Field::Ip) {
            self.ip(fields, attr, s, out)?;
        }
        values::registers(fields, self.registers, attr, &s.fields, out)?;
        if let Some(stack) = s.fields.branch_stack {
            let spot = Spot { mode: s.mode, task: &s.task, at: s.at };
            branches::print(stack.entries(), fields, &spot, &mut self.finder, out)?;
        }
        let is_bpf = attr.kind == EventType::SOFTWARE && attr.config == sw::BPF_OUTPUT;
        if is_bpf && fields.has(Field::BpfOutput) {
            values::bpf_output(s.fields.raw.unwrap_or_default(), out)?;
        }
        if fields.has(Field::PhysAddr) {
            write!(out, "{:>16x}", s.fields.phys_addr.unwrap_or(0))?;
        }
        values::page_sizes(fields, &s.fields, out)?;
        writeln!(out)
    }

    /// Prints a sample of a branch trace (`branches` with a period of 1): source and target of the branch.
    fn branch_trace(&mut self, fields: &Fields, attr: &Attr, s: &Found<'_>, out: &mut Vec<u8>) -> io::Result<()> {
        let line_comes_last = fields.has(Field::SrcLine) && !self.chains.has(attr);
        if fields.has(Field::Ip) {
            let mut fields = fields.clone();
            if line_comes_last {
                fields.remove(Field::SrcLine);
            }
            self.ip(&fields, attr, s, out)?;
        }
        if fields.has(Field::Addr) || (attr.sample_type.contains(SampleType::ADDR) && fields.are_usual()) {
            write!(out, " => ")?;
            self.addr(fields, attr, s, out)?;
        }
        if line_comes_last
            && fields.has(Field::Ip)
            && let Some(line) = source::line(&mut self.finder, s.place, self.source_paths)
        {
            write!(out, "\n  {line}")?;
        }
        writeln!(out)
    }

    /// Prints the data address; for page faults and branch traces also the function and module at it.
    fn addr(&mut self, fields: &Fields, attr: &Attr, s: &Found<'_>, out: &mut Vec<u8>) -> io::Result<()> {
        let addr = s.fields.addr.unwrap_or(0);
        write!(out, "{addr:>16x}")?;
        let faults = [sw::PAGE_FAULTS, sw::PAGE_FAULTS_MIN, sw::PAGE_FAULTS_MAJ];
        let is_fault = attr.kind == EventType::SOFTWARE && faults.contains(&attr.config);
        if is_fault || is_branch_trace(attr) {
            let place = self.finder.place_of_either(s.mode, &s.task, addr, s.at);
            self.finder.names(place, fields, out)?;
        }
        Ok(())
    }

    /// Prints the sampled instruction address, or one line per frame.
    fn ip(&mut self, fields: &Fields, attr: &Attr, s: &Found<'_>, out: &mut Vec<u8>) -> io::Result<()> {
        if self.chains.has(attr) && s.fields.callchain.is_some() {
            let site = Site { mode: s.mode, task: &s.task, at: s.at };
            return self.chains.print((&s.sample, attr), fields, &site, &mut self.finder, out);
        }
        write!(out, " {:>16x}", s.fields.ip.unwrap_or(0))?;
        self.finder.names(s.place, fields, out)?;
        if fields.has(Field::SrcLine)
            && let Some(line) = source::line(&mut self.finder, s.place, self.source_paths)
        {
            write!(out, "\n  {line}")?;
        }
        Ok(())
    }
}

/// Returns the fields of each event, with warnings about those that cannot be printed.
fn columns(session: &Session<'_>, query: &ScriptQuery) -> Vec<(Fields, Vec<Warning>)> {
    let of = |(entry, name): (&recrep_format::attrs::AttrEntry, &String)| {
        let fields = query.fields.of(&entry.attr);
        let names = |fields: Vec<Field>| fields.iter().map(|field| field.name()).collect::<Vec<_>>().join(", ");
        let (lacks, idle) = (names(fields.lacking(&entry.attr)), names(fields.idle()));
        let mut warnings = Vec::new();
        if !lacks.is_empty() {
            let message = format!("the samples of {name} have no {lacks}: printed as unknown or 0, or left out");
            warnings.push(Warning::new("field-not-sampled", message));
        }
        if !idle.is_empty() {
            let message = format!("{idle} of {name}: printed only with ip, addr or branches, symoff only with sym");
            warnings.push(Warning::new("field-alone", message));
        }
        (fields, warnings)
    };
    session.file.attrs.entries().iter().zip(&session.events).map(of).collect()
}

/// Returns whether an event records every branch (perf's `is_bts_event`).
fn is_branch_trace(attr: &Attr) -> bool {
    /// `PERF_COUNT_HW_BRANCH_INSTRUCTIONS`, as a bit.
    const BRANCHES: u64 = 4;
    attr.kind == EventType::HARDWARE && attr.config & BRANCHES != 0 && attr.sample_period == 1
}

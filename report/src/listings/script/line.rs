//! Lines of samples and other records, as `perf script` prints them.

use std::io::{self, Write};

use recrep_format::abi::{
    CpuMode, DataSrc, EventType, HwEvent, ReadFormat, RecordType, RegsArch, SampleType, SwEvent,
    SynthEvent,
};
use recrep_format::attr::{Attr, AttrEntry};
use recrep_format::feature::{Arch, ClockData};
use recrep_format::record::{RawRecord, Record, SampleFields};
use rustc_hash::FxHashMap;

use super::args::ScriptQuery;
use super::chain::ChainPrinter;
use super::field_values::{CsvColumns, FieldSources};
use super::fields::{Fields, OutputField, fields_of};
use super::filter::ListingFilter;
use super::outputs::OutputLines;
use super::row;
use super::sample::ScriptSample;
use super::source::{self, SourceTexts};
use super::start::{LineStart, StartPrinter};
use super::{records, synth, values};
use crate::count::{CounterKey, Reading};
use crate::exports::outputs::SampleForm;
use crate::query::Warning;
use crate::samples::{ChainSetup, CounterTraits, Session, TaskFinder};
use crate::symbols::Functions;
use crate::terminal::digits;
use crate::terminal::escape::escape;
use crate::timeline::{Groups, ModuleId, Place};
use crate::tracepoints::{Formats, RecordedKernel};

/// All that the lines of a file have in common.
pub(super) struct ScriptListing<'s> {
    pub(super) session: &'s Session<'s>,
    pub(super) query: &'s ScriptQuery,
    pub(super) functions: &'s Functions<'s>,
    chains: ChainSetup<'s>,
    filter: ListingFilter<'s>,
    pub(super) counters: CounterTraits,
    start: StartPrinter<'s>,
    groups: Groups,
    registers: Option<RegsArch>,
    kernel: RecordedKernel<'s>,
    /// Fields of each event.
    fields: Vec<Fields>,
    /// Columns of CSV.
    pub(super) columns: CsvColumns,
    /// The names of the events as they are printed, all of one width.
    names: Vec<String>,
    /// Warnings of columns that samples lack.
    pub(super) missing: Vec<Warning>,
}

/// Prints samples, for one worker.
pub(super) struct Printer<'s> {
    listing: &'s ScriptListing<'s>,
    pub(super) chains: ChainPrinter<'s>,
    tasks: TaskFinder<'s>,
    // What follows is of the lines printed before, on which the next ones depend.
    start: StartPrinter<'s>,
    sources: SourceTexts,
    /// `true` if samples are left out until one switches them on.
    is_off: bool,
    /// The width of the data sources.
    data_src_width: usize,
    /// Last value of each counter. The increment since then is the period of a sample that reads
    /// counters.
    pub(super) readings: FxHashMap<CounterKey, Reading>,
    /// Number of values that are lower than the one before.
    pub(super) lower_values: u64,
    /// Number of samples.
    pub(super) lines: usize,
}

impl<'s> ScriptListing<'s> {
    pub(super) fn new(
        session: &'s Session<'s>,
        query: &'s ScriptQuery,
        functions: &'s Functions<'s>,
        formats: &'s Formats,
        chains: ChainSetup<'s>,
    ) -> anyhow::Result<Self> {
        let (fields, missing): (Vec<_>, Vec<_>) = columns(session, query).into_iter().unzip();
        let clock = session.file.feature::<ClockData>().and_then(Result::ok);
        if clock.is_none() && fields.iter().any(|fields: &Fields| fields.has(OutputField::Tod)) {
            anyhow::bail!(
                "tod: the file does not relate its clock to the wall clock; record with -k CLOCKID"
            );
        }
        let cgroups = fields.iter().any(|fields| fields.has(OutputField::Cgroup));
        let groups = if cgroups {
            Groups::read(session.file, &session.split.side_band, &session.clock)
        } else {
            Groups::default()
        };
        let arch = session.file.feature::<Arch<'_>>().and_then(Result::ok);
        let width = session.events.iter().map(String::len).max().unwrap_or(0);
        Ok(Self {
            session,
            query,
            functions,
            chains,
            filter: ListingFilter::new(&query.filters.samples, &query.filters.switches, session)?,
            counters: CounterTraits::read(session),
            start: StartPrinter::new(&query.look, clock),
            groups,
            registers: arch.and_then(|arch| RegsArch::of(&arch.0.to_text())),
            kernel: RecordedKernel { formats, timeline: &session.timeline, functions },
            columns: CsvColumns::of(session, &fields, query.look.hide_call_graph),
            fields,
            names: session
                .events
                .iter()
                .map(|name| format!("{:>width$}: ", escape(name)))
                .collect(),
            missing: missing.into_iter().flatten().collect(),
        })
    }

    pub(super) fn has(&self, field: OutputField) -> bool {
        self.fields.iter().any(|fields| fields.has(field))
    }

    /// Returns whether lines depend on the lines before, so that one worker must print all.
    pub(super) fn is_ordered(&self) -> bool {
        let mut attrs = self.session.file.attrs.entries().iter().map(|entry| &entry.attr);
        self.query.limit.is_some()
            || self.query.look.reltime
            || self.query.look.deltatime
            || self.filter.on.or(self.filter.off).is_some()
            || self.has(OutputField::DataSrc)
            || self.has(OutputField::SrcCode)
            || attrs.any(|attr| attr.sample_type.contains(SampleType::READ))
    }
}

impl<'s> Printer<'s> {
    /// Returns a printer that has printed nothing.
    pub(super) fn new(listing: &'s ScriptListing<'s>) -> Self {
        let ScriptListing { session, query, functions, .. } = *listing;
        Self {
            listing,
            chains: ChainPrinter::new(session, query, functions, &listing.chains),
            tasks: TaskFinder::new(&session.timeline, None),
            start: listing.start.clone(),
            sources: SourceTexts::default(),
            is_off: listing.filter.on.is_some(),
            data_src_width: 0,
            readings: FxHashMap::default(),
            lower_values: 0,
            lines: 0,
        }
    }

    /// Returns whether as many samples were printed as are asked for.
    pub(super) fn is_done(&self) -> bool {
        self.listing.query.limit.is_some_and(|limit| self.lines >= limit)
    }

    /// Prints a record; `position` is its place in the listing.
    pub(super) fn print(
        &mut self,
        raw: RawRecord<'s>,
        position: usize,
        lines: &mut OutputLines,
    ) -> io::Result<()> {
        self.chains.finder.now = position;
        match self.listing.session.file.attrs.sample(raw) {
            Some(_) => self.sample(raw, lines),
            None => self.record(raw, &mut lines.main),
        }
    }

    /// Prints a record that is no sample.
    fn record(&mut self, raw: RawRecord<'_>, out: &mut Vec<u8>) -> io::Result<()> {
        if raw.header.kind == RecordType::FINISHED_ROUND {
            return writeln!(out, "PERF_RECORD_FINISHED_ROUND");
        }
        let session = self.listing.session;
        let attrs = &session.file.attrs;
        let Some(index) = attrs.event_of(&raw) else { return Ok(()) };
        let (Ok(Record { trailer, body, .. }), Some(entry)) =
            (attrs.decode(&raw), attrs.get(index))
        else {
            return Ok(());
        };
        let at = session.clock.moment(trailer.time, raw.offset);
        let mut own = trailer.tid.map_or([-1, -1], |tid| tid.map(u32::cast_signed));
        let mut cpu = trailer.cpu.map(|[cpu, _]| cpu);
        let mut time = trailer.time;
        let task = records::task(&body);
        if !entry.attr.sample_id_all() {
            (own, cpu, time) = (
                task.map_or(own, |(task, _)| task),
                Some(0),
                Some(task.map_or(0, |(_, time)| time)),
            );
        }
        if !self.listing.filter.samples.counts_cpu(|| cpu) {
            return Ok(());
        }
        let [_, tid] = task.map_or(own, |(task, _)| task);
        let timeline = &session.timeline;
        let comm = if tid == -1 {
            ":-1".into()
        } else {
            timeline.comm(timeline.span(own[0], tid, at).comm_so_far(at))
        };
        let Some(fields) = self.listing.fields.get(index.0) else { return Ok(()) };
        let who =
            LineStart { comm, tid: own, cpu, time, misc: raw.header.misc, kind: raw.header.kind };
        self.start.print(
            &who,
            fields,
            fields.has(OutputField::Ip) && self.chains.has(&entry.attr),
            out,
        );
        let finder = &mut self.chains.finder;
        records::print(
            &raw,
            &body,
            |address| {
                let task = timeline.span(-1, -1, at).task;
                let place = finder.place(CpuMode::Kernel, &task, address, at);
                let function = finder.symbol(place)?;
                Some(format!("{}+0x{:x}", function.name, function.offset(place.address)))
            },
            out,
        )
    }

    /// Returns the module that a sample hit.
    pub(super) fn module(&mut self, raw: RawRecord<'s>) -> Option<ModuleId> {
        let mut fields = SampleFields::default();
        let found = ScriptSample::of(self.listing.session, &mut self.tasks, raw, &mut fields)?;
        self.chains.finder.place_of(&found).module
    }

    /// Prints a sample: once, or for each counter that it reads.
    fn sample(&mut self, raw: RawRecord<'s>, lines: &mut OutputLines) -> io::Result<()> {
        let session = self.listing.session;
        let mut fields = SampleFields::default();
        let Some(mut found) = ScriptSample::of(session, &mut self.tasks, raw, &mut fields) else {
            return Ok(());
        };
        let (attrs, event) = (&session.file.attrs, found.event);
        let Some(read) = found.fields.read.take() else { return self.counted(&found, lines) };
        let group = found.attr.read_format.contains(ReadFormat::GROUP);
        let by_thread = self.listing.counters.by_thread.get(event.0) == Some(&true);
        let scales = self.listing.counters.scales.get(event.0) == Some(&true);
        let thread = if by_thread { found.task.thread.pack() } else { 0 };
        for counter in read.counters().take(if group { usize::MAX } else { 1 }) {
            let id = counter.id.or_else(|| found.sample.event_id()).unwrap_or(0);
            let reading = Reading::of(&read, &counter, scales);
            let last = self.readings.insert(CounterKey { id, thread }, reading).unwrap_or_default();
            let period = reading.increment(last);
            self.lower_values += u64::from(period.is_none());
            if let Some(period @ 1..) = period {
                found.fields.period = Some(period);
                found.event = attrs.by_id(id).unwrap_or(event);
                found.attr = attrs.get(found.event).map_or(found.attr, |entry| &entry.attr);
                self.counted(&found, lines)?;
            }
        }
        Ok(())
    }

    /// Returns whether a sample is listed.
    fn is_listed(&mut self, s: &ScriptSample<'_>) -> bool {
        let filter = &self.listing.filter;
        let [_, tid] = s.who.tid;
        let module = match filter.samples.modules {
            Some(_) => self.chains.finder.place_of(s).module,
            None => None,
        };
        if !filter.samples.takes(s.who.time, s.who.cpu, &s.task, tid, module) {
            return false;
        }
        let filters = &self.listing.query.filters;
        if let Some(symbols) = &filters.symbols {
            let place = self.chains.finder.place_of(s);
            let (function, ip) = (self.chains.finder.symbol(place), s.ip());
            let start =
                function.as_ref().map(|function| ip.wrapping_sub(function.offset(place.address)));
            if !function.is_some_and(|function| symbols.names.contains(&*function.name))
                && !symbols.has_address(ip, start, filters.addr_range.unwrap_or(1))
            {
                return false;
            }
        }
        filter.is_on(s.event, &mut self.is_off)
    }

    /// Prints a sample of an event, if it passes the filters.
    fn counted(&mut self, s: &ScriptSample<'_>, lines: &mut OutputLines) -> io::Result<()> {
        let fields = self.listing.fields.get(s.event.0).filter(|fields| !fields.is_empty());
        let Some(fields) = fields.filter(|_| self.is_listed(s)) else { return Ok(()) };
        self.lines += 1;
        let out = lines.of_sample(s.event);
        match self.listing.query.form() {
            SampleForm::Text => self.line(fields, s, out),
            form => self.row(form, fields, s, out),
        }
    }

    /// Prints a sample in a form that is not text.
    fn row(
        &mut self,
        form: SampleForm,
        shown: &Fields,
        s: &ScriptSample<'_>,
        out: &mut Vec<u8>,
    ) -> io::Result<()> {
        let ScriptListing { session, query, groups, registers, kernel, columns, .. } = self.listing;
        let mut sources = FieldSources {
            start: &mut self.start,
            chains: &mut self.chains,
            sources: &mut self.sources,
            kernel,
            groups,
            registers: *registers,
            event: session.events.get(s.event.0).map_or("", String::as_str),
            source_paths: query.symbol_sources.source_paths,
        };
        match form {
            SampleForm::Csv => row::write_csv(&sources.cells(columns, shown, s), out),
            _ => row::write_json(&sources.object(shown, s), out),
        }
    }

    fn line(&mut self, fields: &Fields, s: &ScriptSample<'_>, out: &mut Vec<u8>) -> io::Result<()> {
        self.start.print(
            &s.who,
            fields,
            fields.has(OutputField::Ip) && self.chains.has(s.attr),
            out,
        );
        if fields.has(OutputField::Period) {
            digits::decimal(out, s.fields.period.unwrap_or(s.attr.sample_period), 10);
            out.push(b' ');
        }
        if fields.has(OutputField::Event) {
            let name = self.listing.names.get(s.event.0).map_or(": ", String::as_str);
            out.extend_from_slice(name.as_bytes());
        }
        if let Some(raw) = s.fields.raw.filter(|_| fields.has(OutputField::Trace)) {
            let kernel = &self.listing.kernel;
            let text = kernel.formats.event(s.event.0).map(|event| event.text(raw, kernel));
            out.extend_from_slice(escape(text.as_deref().unwrap_or_default()).as_bytes());
        }
        if let Some(raw) = s.fields.raw.filter(|_| fields.has(OutputField::Synth))
            && s.attr.kind == EventType::SYNTH
        {
            synth::print(SynthEvent(s.attr.config), raw, out)?;
        }
        if is_branch_trace(s.attr) {
            self.branch_trace(fields, s, out)?;
        } else {
            self.rest(fields, s, out)?;
        }
        if fields.has(OutputField::SrcCode) {
            let place = self.chains.finder.place_of(s);
            if let Some(code) = self.sources.code(&mut self.chains.finder, place, s.who.tid[1]) {
                writeln!(out, "{code}")?;
            }
        }
        Ok(())
    }

    /// Prints what follows the event's name.
    fn rest(&mut self, fields: &Fields, s: &ScriptSample<'_>, out: &mut Vec<u8>) -> io::Result<()> {
        if fields.has(OutputField::Addr) {
            self.addr(fields, s, out);
        }
        if fields.has(OutputField::DataSrc) {
            let src = s.fields.data_src.unwrap_or(DataSrc::NONE.0);
            let text = format!("{src:>16x} {}", DataSrc(src));
            let width = &mut self.data_src_width;
            *width = text.len().max(*width);
            write!(out, "{text:<width$}")?;
        }
        values::weights(fields, s.fields, out)?;
        if fields.has(OutputField::Cgroup) {
            let cgroup = s.fields.cgroup.and_then(|id| self.listing.groups.cgroup(id));
            write!(out, " {}", escape(cgroup.unwrap_or("unknown")))?;
        }
        if fields.has(OutputField::Ip) {
            self.ip(fields, fields.has(OutputField::SrcLine), s, out);
        }
        values::registers(fields, self.listing.registers, s.fields, out)?;
        self.chains.finder.branches(s, fields, out);
        let is_bpf = s.attr.kind == EventType::SOFTWARE && s.attr.config == SwEvent::BPF_OUTPUT.0;
        if is_bpf && fields.has(OutputField::BpfOutput) {
            values::bpf_output(s.fields.raw.unwrap_or_default(), out)?;
        }
        if fields.has(OutputField::PhysAddr) {
            digits::hex(out, s.fields.phys_addr.unwrap_or(0), 16);
        }
        values::page_sizes(fields, s.fields, out)?;
        values::ipc(fields, s, out)?;
        out.push(b'\n');
        Ok(())
    }

    /// Prints a sample of every branch (`branches` with a period of 1): from where to where.
    fn branch_trace(
        &mut self,
        fields: &Fields,
        s: &ScriptSample<'_>,
        out: &mut Vec<u8>,
    ) -> io::Result<()> {
        let line_comes_last = fields.has(OutputField::SrcLine) && !self.chains.has(s.attr);
        if fields.has(OutputField::Ip) {
            self.ip(fields, fields.has(OutputField::SrcLine) && !line_comes_last, s, out);
        }
        if fields.has(OutputField::Addr)
            || (s.attr.sample_type.contains(SampleType::ADDR) && fields.unasked)
        {
            write!(out, " => ")?;
            self.addr(fields, s, out);
        }
        values::ipc(fields, s, out)?;
        if line_comes_last && fields.has(OutputField::Ip) {
            self.source_line(self.chains.finder.place_of(s), out);
        }
        writeln!(out)
    }

    /// Prints the data address, and what is there if it is one of memory that is mapped.
    fn addr(&mut self, fields: &Fields, s: &ScriptSample<'_>, out: &mut Vec<u8>) {
        let addr = s.fields.addr.unwrap_or(0);
        digits::hex(out, addr, 16);
        let faults =
            [SwEvent::PAGE_FAULTS.0, SwEvent::PAGE_FAULTS_MIN.0, SwEvent::PAGE_FAULTS_MAJ.0];
        let is_fault = s.attr.kind == EventType::SOFTWARE && faults.contains(&s.attr.config);
        if is_fault || is_branch_trace(s.attr) {
            let place = self.chains.finder.place_of_either(s, addr);
            self.chains.finder.names(place, fields, out);
        }
    }

    /// Prints the sampled instruction, or a line for each frame.
    fn ip(&mut self, fields: &Fields, has_line: bool, s: &ScriptSample<'_>, out: &mut Vec<u8>) {
        if self.chains.has(s.attr) && s.fields.callchain.is_some() {
            return self.chains.print(fields, s, out);
        }
        out.push(b' ');
        digits::hex(out, s.ip(), 16);
        let place = self.chains.finder.place_of(s);
        self.chains.finder.names(place, fields, out);
        if has_line {
            self.source_line(place, out);
        }
    }

    /// Prints the source line of a place, beginning on a new line.
    fn source_line(&mut self, place: Place, out: &mut Vec<u8>) {
        let whole_path = self.listing.query.symbol_sources.source_paths;
        source::print(source::line(&mut self.chains.finder, place, whole_path), out);
    }
}

/// Returns the fields of each event, with warnings about those that cannot be printed.
fn columns(session: &Session<'_>, query: &ScriptQuery) -> Vec<(Fields, Vec<Warning>)> {
    let of = |(entry, name): (&AttrEntry, &String)| {
        let fields = fields_of(&query.fields, &entry.attr);
        // In a row, each field stands for itself.
        let idle = if query.form() == SampleForm::Text { fields.idle() } else { Vec::new() };
        let [lacks, idle] = [fields.lacking(&entry.attr), idle]
            .map(|fields| fields.iter().map(|field| field.name()).collect::<Vec<_>>().join(", "));
        let mut warnings = Vec::new();
        if !lacks.is_empty() {
            let message = format!(
                "the samples of {name} have no {lacks}: printed as unknown or 0, or left out"
            );
            warnings.push(Warning::new("field-not-sampled", message));
        }
        if !idle.is_empty() {
            let message = format!(
                "{idle} of {name}: printed only with ip, addr or branches, symoff only with sym"
            );
            warnings.push(Warning::new("field-alone", message));
        }
        (fields, warnings)
    };
    session.file.attrs.entries().iter().zip(&session.events).map(of).collect()
}

/// Returns whether an event records every branch (perf's `is_bts_event`).
fn is_branch_trace(attr: &Attr) -> bool {
    // As in perf, the number is tested as a bit.
    attr.kind == EventType::HARDWARE
        && attr.config & HwEvent::BRANCH_INSTRUCTIONS.0 != 0
        && attr.sample_period == 1
}

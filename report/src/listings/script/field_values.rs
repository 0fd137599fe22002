//! Values of the fields of samples, for the forms other than text.

use std::io::{self, Write};

use recrep_format::abi::{
    DataSrc, EventType, RegisterName, RegsAbi, RegsArch, SampleType, SwEvent, SynthEvent, Weight,
};
use recrep_format::attr::AttrEntry;
use recrep_format::record::Regs;

use super::chain::ChainPrinter;
use super::fields::{Fields, OutputField};
use super::row::{self, CALLCHAIN, FieldValue, SampleRow};
use super::sample::ScriptSample;
use super::source::{self, SourceTexts};
use super::start::{StartPrinter, letters};
use super::{synth, values};
use crate::decode::Elapsed;
use crate::query::word_text::data_src_parts;
use crate::samples::Session;
use crate::terminal::escape::escape;
use crate::timeline::Groups;
use crate::tracepoints::{RecordedKernel, hex};

/// Columns of CSV: the fields of all events.
pub(super) struct CsvColumns {
    fields: Vec<OutputField>,
    has_callchains: bool,
}

impl CsvColumns {
    /// Returns the columns for the fields of each event.
    pub(super) fn of(session: &Session<'_>, shown: &[Fields], hides_callchains: bool) -> Self {
        let all = OutputField::ALL.iter().copied();
        let fields = all.filter(|field| shown.iter().any(|shown| shown.has(*field))).collect();
        let mut events = session.file.attrs.entries().iter().zip(shown);
        let has_callchains = !hides_callchains
            && events.any(|(AttrEntry { attr, .. }, shown)| {
                shown.has(OutputField::Ip) && attr.sample_type.contains(SampleType::CALLCHAIN)
            });
        Self { fields, has_callchains }
    }

    /// Writes the line of names.
    pub(super) fn write_heading(&self, out: &mut impl Write) -> io::Result<()> {
        let names = self.fields.iter().map(|field| field.name());
        row::write_names(names.chain(self.has_callchains.then_some(CALLCHAIN)), out)
    }
}

/// What values are found with, for one worker.
pub(super) struct FieldSources<'p, 's> {
    pub(super) start: &'p mut StartPrinter<'s>,
    pub(super) chains: &'p mut ChainPrinter<'s>,
    pub(super) sources: &'p mut SourceTexts,
    pub(super) kernel: &'p RecordedKernel<'s>,
    pub(super) groups: &'p Groups,
    pub(super) registers: Option<RegsArch>,
    pub(super) event: &'p str,
    pub(super) source_paths: bool,
}

impl FieldSources<'_, '_> {
    /// Returns the fields that are printed of a sample.
    pub(super) fn object<'v>(&mut self, shown: &Fields, s: &'v ScriptSample<'_>) -> SampleRow<'v> {
        let mut row: SampleRow<'v> = Vec::new();
        for field in shown.iter() {
            row.push((field.name(), self.value(field, shown, s)));
        }
        row.extend(self.callchain(shown, s).map(|chain| (CALLCHAIN, chain)));
        row
    }

    /// Returns the cells of a sample; those of fields that are not printed of it are missing.
    pub(super) fn cells<'v>(
        &mut self,
        columns: &CsvColumns,
        shown: &Fields,
        s: &'v ScriptSample<'_>,
    ) -> SampleRow<'v> {
        let mut row: SampleRow<'v> = Vec::new();
        for field in &columns.fields {
            let is_shown = shown.has(*field);
            let value = if is_shown { self.value(*field, shown, s) } else { FieldValue::Missing };
            row.push((field.name(), value));
        }
        if columns.has_callchains {
            let chain = self.callchain(shown, s).unwrap_or(FieldValue::Missing);
            row.push((CALLCHAIN, chain));
        }
        row
    }

    /// Returns the callchain of a sample; `None` if it is not printed.
    fn callchain(&mut self, shown: &Fields, s: &ScriptSample<'_>) -> Option<FieldValue<'static>> {
        let is_shown = shown.has(OutputField::Ip) && self.chains.has(s.attr);
        let has_chain = is_shown && s.fields.callchain.is_some();
        has_chain.then(|| FieldValue::Frames(self.chains.rows(shown, s)))
    }

    fn value<'v>(
        &mut self,
        field: OutputField,
        shown: &Fields,
        s: &'v ScriptSample<'_>,
    ) -> FieldValue<'v> {
        use OutputField as F;
        let ([pid, tid], fields) = (s.who.tid, &s.fields);
        match field {
            F::Comm => FieldValue::Text(escape(&s.who.comm)),
            F::Pid => FieldValue::Id(pid),
            F::Tid => FieldValue::Id(tid),
            F::Cpu => number(s.who.cpu),
            F::Time => number(s.who.time.map(|time| self.start.relative(time))),
            F::Tod => text(s.who.time.map(|time| self.start.time_of_day(time))),
            F::Misc => text(Some(letters(s.who.misc, s.who.kind))),
            F::Event => text(Some(escape(self.event).into_owned())),
            F::Trace => text(fields.raw.map(|raw| self.trace(s.event.0, raw))),
            F::Period => FieldValue::Number(fields.period.unwrap_or(s.attr.sample_period)),
            F::Ip => address(fields.ip),
            F::Addr => address(fields.addr),
            F::PhysAddr => address(fields.phys_addr),
            F::DataSrc => fields.data_src.map_or(FieldValue::Missing, data_src),
            F::Weight => number(fields.weight.map(Weight::cost)),
            F::InsLat | F::RetireLat => {
                let parts = fields.weight.and_then(Weight::parts);
                let is_first = field == F::InsLat;
                number(parts.map(|parts| if is_first { parts.var2 } else { parts.var3 }))
            }
            F::DataPageSize => number(fields.data_page_size),
            F::CodePageSize => number(fields.code_page_size),
            F::Ipc => values::elapsed(s).map_or(FieldValue::Missing, |elapsed| {
                let Elapsed { instructions, cycles } = elapsed;
                FieldValue::Numbers(vec![("instructions", instructions), ("cycles", cycles)])
            }),
            F::Cgroup => {
                let cgroup = fields.cgroup.and_then(|id| self.groups.cgroup(id));
                text(cgroup.map(|path| escape(path).into_owned()))
            }
            F::Iregs => self.registers(fields.regs_intr.as_ref()),
            F::Uregs => self.registers(fields.regs_user.as_ref()),
            F::Synth => synth_values(s),
            F::BpfOutput => {
                let is_bpf =
                    s.attr.kind == EventType::SOFTWARE && s.attr.config == SwEvent::BPF_OUTPUT.0;
                text(fields.raw.filter(|_| is_bpf).map(|raw| hex(raw, "")))
            }
            F::BrStack | F::BrStackSym | F::BrStackOff => self.branches(field, shown, s),
            F::Sym | F::SymOff | F::Dso | F::DsOff => {
                let finder = &mut self.chains.finder;
                let place = finder.place_of(s);
                finder.name_value(field, place)
            }
            F::SrcLine => {
                let finder = &mut self.chains.finder;
                let place = finder.place_of(s);
                text(source::line(finder, place, self.source_paths))
            }
            F::SrcCode => {
                let place = self.chains.finder.place_of(s);
                text(self.sources.code(&mut self.chains.finder, place, tid))
            }
        }
    }

    fn trace(&self, event: usize, raw: &[u8]) -> String {
        let text = self.kernel.formats.event(event).map(|event| event.text(raw, self.kernel));
        escape(text.as_deref().unwrap_or_default()).into_owned()
    }

    fn registers(&self, registers: Option<&Regs<'_>>) -> FieldValue<'static> {
        let Some(registers) = registers.filter(|all| all.abi != RegsAbi::NONE) else {
            return FieldValue::Missing;
        };
        let named = |(number, value)| {
            (RegisterName::of(self.registers, number).to_string(), format!("{value:#x}"))
        };
        FieldValue::Named(registers.iter().map(named).collect())
    }

    fn branches(
        &mut self,
        form: OutputField,
        shown: &Fields,
        s: &ScriptSample<'_>,
    ) -> FieldValue<'static> {
        let Some(stack) = s.fields.branch_stack else { return FieldValue::Missing };
        let mut texts = Vec::new();
        for branch in stack.entries() {
            let mut text = Vec::new();
            self.chains.finder.branch(&branch, form, shown, s, &mut text);
            texts.push(String::from_utf8_lossy(&text).into_owned());
        }
        FieldValue::Texts(texts)
    }
}

/// Returns the values of an event that is made of a trace.
fn synth_values(s: &ScriptSample<'_>) -> FieldValue<'static> {
    let raw = s.fields.raw.filter(|_| s.attr.kind == EventType::SYNTH);
    let values = raw.and_then(|raw| synth::values(SynthEvent(s.attr.config), raw));
    values.map_or(FieldValue::Missing, FieldValue::Named)
}

fn number(number: Option<impl Into<u64>>) -> FieldValue<'static> {
    number.map_or(FieldValue::Missing, |number| FieldValue::Number(number.into()))
}

fn address(address: Option<u64>) -> FieldValue<'static> {
    address.map_or(FieldValue::Missing, FieldValue::Hex)
}

fn text(text: Option<String>) -> FieldValue<'static> {
    text.map_or(FieldValue::Missing, |text| FieldValue::Text(text.into()))
}

/// Returns the parts of a data source.
fn data_src(word: u64) -> FieldValue<'static> {
    let parts = data_src_parts(DataSrc(word));
    FieldValue::Named(parts.into_iter().map(|(name, part)| (name.to_owned(), part)).collect())
}

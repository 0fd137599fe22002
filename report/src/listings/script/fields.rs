//! Fields that are printed for the samples of an event, under `perf script`'s names, and `-F`,
//! which chooses them.
//!
//! ```text
//!   comm,ip,sym        exactly these fields, for all events
//!   +srcline,-period   the default fields, with srcline added and period removed
//!   sw:ip              only for software events; other prefixes are hw, trace, raw and break
//!   trace:             no fields: the samples of tracepoints are not printed
//! ```
//!
//! Several `-F` apply in order. Default fields that samples do not have are left out; fields that
//! were asked for are printed as unknown.

use recrep_format::abi::{EventType, SampleType};
use recrep_format::attr::Attr;

use recrep_console::nearest::did_you_mean;

macro_rules! fields {
    ($($(#[$meta:meta])* $name:ident = $text:literal, $bit:expr;)*) => {
        /// A field of the output.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub(super) enum OutputField {
            $( $(#[$meta])* $name, )*
        }

        impl OutputField {
            pub(super) const ALL: &'static [Self] = &[$(Self::$name),*];

            /// Returns its name on the command line.
            pub(super) fn name(self) -> &'static str {
                match self { $( Self::$name => $text, )* }
            }

            /// Returns the `sample_type` bits that it needs; empty if every sample has it.
            fn needs(self) -> SampleType {
                match self { $( Self::$name => $bit, )* }
            }
        }
    };
}

fields! {
    Comm = "comm", SampleType::empty();
    Pid = "pid", SampleType::TID;
    Tid = "tid", SampleType::TID;
    Cpu = "cpu", SampleType::CPU;
    Time = "time", SampleType::TIME;
    Event = "event", SampleType::empty();
    /// Text of a tracepoint's fields.
    Trace = "trace", SampleType::RAW;
    Period = "period", SampleType::empty();
    Addr = "addr", SampleType::ADDR;
    DataSrc = "data_src", SampleType::DATA_SRC;
    Weight = "weight", SampleType::empty();
    /// Instruction latency, from a `PERF_SAMPLE_WEIGHT_STRUCT`.
    InsLat = "ins_lat", SampleType::WEIGHT_STRUCT;
    /// Retirement latency, from a `PERF_SAMPLE_WEIGHT_STRUCT`.
    RetireLat = "retire_lat", SampleType::WEIGHT_STRUCT;
    /// Sampled instruction address, or the callchain.
    Ip = "ip", SampleType::IP;
    Sym = "sym", SampleType::IP;
    SymOff = "symoff", SampleType::IP;
    Dso = "dso", SampleType::IP;
    /// Module with the offset in it.
    DsOff = "dsoff", SampleType::IP;
    /// Source line of the ip.
    SrcLine = "srcline", SampleType::IP;
    /// Text of the source line, from the source file.
    SrcCode = "srccode", SampleType::IP;
    Cgroup = "cgroup", SampleType::CGROUP;
    Iregs = "iregs", SampleType::REGS_INTR;
    Uregs = "uregs", SampleType::REGS_USER;
    /// Branch stack by address.
    BrStack = "brstack", SampleType::BRANCH_STACK;
    /// Branch stack by function.
    BrStackSym = "brstacksym", SampleType::BRANCH_STACK;
    /// Branch stack by offset in the module.
    BrStackOff = "brstackoff", SampleType::BRANCH_STACK;
    /// What an event says that is made of a trace.
    Synth = "synth", SampleType::empty();
    /// Output of a BPF program.
    BpfOutput = "bpf-output", SampleType::empty();
    PhysAddr = "phys_addr", SampleType::PHYS_ADDR;
    /// Size of the page at the data address.
    DataPageSize = "data_page_size", SampleType::DATA_PAGE_SIZE;
    /// Size of the page at the ip.
    CodePageSize = "code_page_size", SampleType::CODE_PAGE_SIZE;
    /// Instructions per cycle, of a trace.
    Ipc = "ipc", SampleType::RAW;
    /// CPU mode and other `misc` bits of the record header.
    Misc = "misc", SampleType::empty();
    Tod = "tod", SampleType::TIME;
}

/// Returns the names of all fields, for help.
pub(crate) fn names() -> String {
    OutputField::ALL.iter().map(|field| field.name()).collect::<Vec<_>>().join(", ")
}

/// Fields that are printed for an event's samples.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Fields {
    set: Vec<OutputField>,
    /// The same as bits, once they are complete: every sample asks for many of them.
    bits: u64,
    /// Those that were named.
    asked: Vec<OutputField>,
    /// `true` if no `-F` applies to the event.
    pub(super) unasked: bool,
}

/// Fields of perf that rep does not support, with the reasons.
const UNSUPPORTED: [(&str, &str); 12] = [
    ("callindent", DECODED),
    ("insn", CODE),
    ("disasm", CODE),
    ("insnlen", CODE),
    ("brstackinsn", CODE),
    ("brstackinsnlen", CODE),
    ("brstackdisasm", CODE),
    ("brcntr", CODE),
    ("flags", DECODED),
    ("machine_pid", GUESTS),
    ("vcpu", GUESTS),
    ("metric", "it needs the metric tables of perf stat, which rep does not have"),
];
const DECODED: &str = "only decoded traces have it, and rep does not make it of them";
const CODE: &str = "it needs the machine code, and rep does not disassemble";
const GUESTS: &str = "samples of guests are not assigned to their machine and virtual CPU";

impl OutputField {
    /// Returns the field with this name, or a message.
    fn named(name: &str) -> Result<Self, String> {
        if let Some(field) = Self::ALL.iter().find(|field| field.name() == name) {
            return Ok(*field);
        }
        if let Some((name, why)) = UNSUPPORTED.iter().find(|(field, _)| *field == name) {
            return Err(format!("`{name}` is not supported: {why}"));
        }
        let near = did_you_mean(name, Self::ALL.iter().map(|field| field.name()));
        let mark = if near.is_empty() { ";" } else { "" };
        Err(format!("unknown field `{name}`{near}{mark} `rep help fields` lists all"))
    }

    fn bit(self) -> u64 {
        1 << (self as u32)
    }

    fn is_sampled(self, attr: &Attr) -> bool {
        let has_weight =
            attr.sample_type.intersects(SampleType::WEIGHT | SampleType::WEIGHT_STRUCT);
        attr.sample_type.contains(self.needs())
            && (self != Self::Weight || has_weight)
            && (self != Self::Trace || attr.kind == EventType::TRACEPOINT)
            && (self != Self::Ipc || attr.kind == EventType::HARDWARE)
    }
}

impl Fields {
    /// Returns the default fields of perf. `unasked` is whether no `-F` applies to the event: only
    /// then do tracepoints with callchains have `ip`, `sym`, `symoff` and `dso`.
    fn usual(attr: &Attr, unasked: bool) -> Self {
        use OutputField as F;
        let mut set = vec![
            F::Comm,
            F::Tid,
            F::Cpu,
            F::Time,
            F::Event,
            F::Ip,
            F::Sym,
            F::SymOff,
            F::Dso,
            F::Period,
        ];
        match attr.kind {
            EventType::TRACEPOINT => {
                set.retain(|f| !matches!(f, F::Period));
                set.push(F::Trace);
                if !unasked || !attr.sample_type.contains(SampleType::CALLCHAIN) {
                    set.retain(|f| !matches!(f, F::Ip | F::Sym | F::SymOff | F::Dso));
                }
            }
            EventType::SOFTWARE => set.push(F::BpfOutput),
            EventType::SYNTH => {
                set.retain(|f| !matches!(f, F::Period));
                set.push(F::Synth);
            }
            EventType::RAW => {
                set.extend([F::Addr, F::DataSrc, F::Weight, F::InsLat, F::RetireLat, F::PhysAddr]);
                set.extend([F::DataPageSize, F::CodePageSize]);
            }
            _ => {}
        }
        Self { set, unasked, ..Self::default() }
    }

    fn add(&mut self, field: OutputField) {
        self.set.push(field);
        self.asked.push(field);
    }

    fn remove(&mut self, field: OutputField) {
        self.set.retain(|have| *have != field);
        self.asked.retain(|have| *have != field);
    }

    /// Removes default fields that the samples do not have, and adds `dso` to `dsoff`.
    fn completed(mut self, attr: &Attr) -> Self {
        let asked = &self.asked;
        self.set.retain(|field| asked.contains(field) || field.is_sampled(attr));
        if self.set.contains(&OutputField::DsOff) && !self.set.contains(&OutputField::Dso) {
            self.set.push(OutputField::Dso);
        }
        self.bits = self.set.iter().fold(0, |bits, field| bits | field.bit());
        self
    }

    #[inline]
    pub(super) fn has(&self, field: OutputField) -> bool {
        self.bits & field.bit() != 0
    }

    pub(super) fn is_empty(&self) -> bool {
        self.set.is_empty()
    }

    /// Iterates over the fields, in the order of their declarations.
    pub(super) fn iter(&self) -> impl Iterator<Item = OutputField> {
        OutputField::ALL.iter().copied().filter(|field| self.has(*field))
    }

    /// Returns the fields that the samples of an event do not have.
    pub(super) fn lacking(&self, attr: &Attr) -> Vec<OutputField> {
        self.set.iter().filter(|field| !field.is_sampled(attr)).copied().collect()
    }

    /// Returns the named fields that are not printed because the field they belong to is missing.
    pub(super) fn idle(&self) -> Vec<OutputField> {
        let addresses = [
            OutputField::Ip,
            OutputField::Addr,
            OutputField::BrStack,
            OutputField::BrStackSym,
            OutputField::BrStackOff,
        ];
        let asked = self.asked.iter().copied();
        let idle = asked.filter(|field| match field {
            OutputField::SymOff if !self.has(OutputField::Sym) => true,
            OutputField::SrcLine => !self.has(OutputField::Ip),
            OutputField::Sym | OutputField::SymOff | OutputField::Dso | OutputField::DsOff => {
                !addresses.iter().any(|address| self.has(*address))
            }
            _ => false,
        });
        idle.collect()
    }
}

/// Types of events whose fields are chosen together, by prefix.
const KINDS: [(&str, EventType); 6] = [
    ("hw", EventType::HARDWARE),
    ("sw", EventType::SOFTWARE),
    ("trace", EventType::TRACEPOINT),
    ("raw", EventType::RAW),
    ("break", EventType::BREAKPOINT),
    ("synth", EventType::SYNTH),
];

fn can_have(kind: EventType, field: OutputField) -> bool {
    match field {
        OutputField::BpfOutput => matches!(kind, EventType::SOFTWARE | EventType::TRACEPOINT),
        OutputField::Synth => kind == EventType::SYNTH,
        OutputField::Ipc => kind == EventType::HARDWARE,
        _ => true,
    }
}

/// One `-F`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    /// Type of events that it applies to; `None` for all.
    kind: Option<EventType>,
    /// `true` if its fields replace the previous ones.
    replaces: bool,
    /// Fields that are added (`true`) or removed (`false`).
    changes: Vec<(bool, OutputField)>,
}

/// Returns the fields of an event's samples. `all` has all `-F` options, in order.
pub(super) fn fields_of(all: &[Rule], attr: &Attr) -> Fields {
    let kind = attr.kind;
    let rules = || all.iter().filter(|rule| rule.kind.is_none_or(|of| of == kind));
    let mut fields = Fields::usual(attr, rules().next().is_none());
    for rule in rules() {
        if rule.replaces {
            (fields.set, fields.asked) = Default::default();
        }
        for (is_added, field) in rule.changes.iter().filter(|(_, field)| can_have(kind, *field)) {
            if !rule.replaces {
                fields.remove(*field);
            }
            if *is_added {
                fields.add(*field);
            }
        }
    }
    fields.completed(attr)
}

impl Rule {
    /// Returns whether it adds a field.
    pub(super) fn adds(&self, field: OutputField) -> bool {
        self.changes.contains(&(true, field))
    }

    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (kind, list) = match text.split_once(':') {
            Some((prefix, list)) => {
                let known = KINDS.iter().find(|(name, _)| *name == prefix).map(|(_, kind)| *kind);
                (
                    Some(known.ok_or_else(|| {
                        format!("`{prefix}` is not hw, sw, trace, raw, break or synth")
                    })?),
                    list,
                )
            }
            None if text.is_empty() => return Err("no field is given".into()),
            None => (None, text),
        };
        let names: Vec<&str> =
            list.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
        let signs = ['+', '-'];
        let signed = names.iter().filter(|name| name.starts_with(signs)).count();
        if signed != 0 && signed != names.len() {
            return Err("+ and - cannot be mixed with fields that have neither".into());
        }
        let mut changes = Vec::with_capacity(names.len());
        for text in names {
            let name = text.trim_start_matches(signs);
            let field = OutputField::named(name)?;
            if kind.is_some_and(|kind| !can_have(kind, field)) {
                return Err(format!("`{name}` is not a field of these events"));
            }
            changes.push((!text.starts_with('-'), field));
        }
        Ok(Self { kind, replaces: signed == 0, changes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_are_not_sampled_are_reported() {
        let attr = Attr { sample_type: SampleType::IP, ..Attr::default() };
        let mut fields = Fields::default();
        let named = [
            OutputField::Comm,
            OutputField::Ip,
            OutputField::Addr,
            OutputField::Weight,
            OutputField::SymOff,
        ];
        named.into_iter().for_each(|field| fields.add(field));
        let mut fields = fields.completed(&attr);
        assert_eq!(fields.lacking(&attr), [OutputField::Addr, OutputField::Weight]);
        assert_eq!(fields.idle(), [OutputField::SymOff]);
        assert!(!Fields::usual(&attr, true).completed(&attr).has(OutputField::Time));
        fields.remove(OutputField::Ip);
        fields.remove(OutputField::Addr);
        fields.add(OutputField::Dso);
        assert_eq!(fields.completed(&attr).idle(), [OutputField::SymOff, OutputField::Dso]);
    }

    #[test]
    fn names_match_perf() {
        assert_eq!(OutputField::named("brstacksym"), Ok(OutputField::BrStackSym));
        assert!(OutputField::named("phys_adr").unwrap_err().contains("phys_addr"));
        assert!(OutputField::named("insn").unwrap_err().contains("disassemble"));
        assert!(OutputField::named("vcpu").unwrap_err().contains("guests"));
    }

    fn of(kind: EventType, lists: &[&str]) -> Vec<&'static str> {
        let sample_type = SampleType::IP | SampleType::TID | SampleType::TIME;
        let attr = Attr { kind, sample_type, ..Attr::default() };
        let rules: Vec<_> = lists.iter().map(|list| Rule::parse(list).unwrap()).collect();
        fields_of(&rules, &attr).set.iter().map(|field| field.name()).collect()
    }

    #[test]
    fn rules_follow_each_other_by_kind() {
        let sw = |lists: &[&str]| of(EventType::SOFTWARE, lists);
        assert_eq!(sw(&["comm,ip"]), ["comm", "ip"]);
        assert_eq!(sw(&["ip", "sw:comm"]), ["comm"]);
        assert_eq!(sw(&["ip", "trace:comm"]), ["ip"]);
        assert_eq!(sw(&["sw:"]), [""; 0]);
        assert_eq!(sw(&["ip", "+time,-ip"]), ["time"]);
        let default = sw(&[]);
        assert!(default.contains(&"symoff") && !default.contains(&"cpu"), "{default:?}");
        assert!(!sw(&["-sym,-symoff"]).contains(&"sym"));
        assert!(!of(EventType::HARDWARE, &["ip,bpf-output"]).contains(&"bpf-output"));
        let synth = of(EventType::SYNTH, &["-ip", "synth:+period"]);
        assert!(synth.contains(&"synth") && synth.contains(&"period"), "{synth:?}");
        assert_eq!(sw(&["ip,dsoff"]), ["ip", "dsoff", "dso"]);
    }

    #[test]
    fn messages_name_the_mistake() {
        for (list, word) in [
            ("comm,+ip", "mixed"),
            ("nope:ip", "nope"),
            ("ip,nope", "nope"),
            ("+ip,insn", "mixed"),
            ("hw:bpf-output", "bpf-output"),
            ("", "no field"),
        ] {
            let message = Rule::parse(list).unwrap_err();
            assert!(message.contains(word), "{list}: {message}");
        }
    }
}

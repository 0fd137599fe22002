//! The columns of `rep script`, under `perf script`'s names.

use recrep_format::abi::{EventType, SampleType};
use recrep_format::attr::Attr;

macro_rules! fields {
    ($($(#[$meta:meta])* $name:ident = $text:literal, $bit:expr;)*) => {
        /// A column.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Field {
            $( $(#[$meta])* $name, )*
        }

        impl Field {
            /// Every column.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// Its name on the command line.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $( Self::$name => $text, )* }
            }

            /// What an event must sample for it; nothing where every sample has it.
            #[must_use]
            pub fn needs(self) -> SampleType {
                match self { $( Self::$name => $bit, )* }
            }
        }
    };
}

fields! {
    /// The thread's name.
    Comm = "comm", SampleType::empty();
    /// The process.
    Pid = "pid", SampleType::TID;
    /// The thread.
    Tid = "tid", SampleType::TID;
    /// The CPU.
    Cpu = "cpu", SampleType::CPU;
    /// When.
    Time = "time", SampleType::TIME;
    /// The event.
    Event = "event", SampleType::empty();
    /// What a tracepoint recorded.
    Trace = "trace", SampleType::RAW;
    /// What the sample stands for.
    Period = "period", SampleType::empty();
    /// The data address.
    Addr = "addr", SampleType::ADDR;
    /// Where the data came from.
    DataSrc = "data_src", SampleType::DATA_SRC;
    /// The cost.
    Weight = "weight", SampleType::empty();
    /// The instruction latency, of a WEIGHT_STRUCT.
    InsLat = "ins_lat", SampleType::WEIGHT_STRUCT;
    /// The retirement latency, of a WEIGHT_STRUCT.
    RetireLat = "retire_lat", SampleType::WEIGHT_STRUCT;
    /// The sampled instruction, or the callchain.
    Ip = "ip", SampleType::IP;
    /// The function.
    Sym = "sym", SampleType::IP;
    /// How far into the function.
    SymOff = "symoff", SampleType::IP;
    /// The module.
    Dso = "dso", SampleType::IP;
    /// The module with the offset in it.
    DsOff = "dsoff", SampleType::IP;
    /// The source line of the ip.
    SrcLine = "srcline", SampleType::IP;
    /// The text of the source line, from the source file.
    SrcCode = "srccode", SampleType::IP;
    /// The cgroup's path.
    Cgroup = "cgroup", SampleType::CGROUP;
    /// The registers at the interrupt.
    Iregs = "iregs", SampleType::REGS_INTR;
    /// The user registers.
    Uregs = "uregs", SampleType::REGS_USER;
    /// The branch stack.
    BrStack = "brstack", SampleType::BRANCH_STACK;
    /// The branch stack by function.
    BrStackSym = "brstacksym", SampleType::BRANCH_STACK;
    /// The branch stack by offsets in modules.
    BrStackOff = "brstackoff", SampleType::BRANCH_STACK;
    /// What a BPF program has written.
    BpfOutput = "bpf-output", SampleType::empty();
    /// The physical data address.
    PhysAddr = "phys_addr", SampleType::PHYS_ADDR;
    /// The page size behind the data address.
    DataPageSize = "data_page_size", SampleType::DATA_PAGE_SIZE;
    /// The page size behind the ip.
    CodePageSize = "code_page_size", SampleType::CODE_PAGE_SIZE;
    /// The CPU mode and other bits of the header.
    Misc = "misc", SampleType::empty();
    /// When, by the wall clock.
    Tod = "tod", SampleType::TIME;
}

/// The columns of an event's samples.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields {
    set: Vec<Field>,
    /// Those that were named.
    asked: Vec<Field>,
    /// Whether nothing was said of columns.
    unasked: bool,
}

/// perf's fields that are none of rep's, and why.
const NOT: [(&str, &str); 12] = [
    ("callindent", DECODED),
    ("insn", CODE),
    ("disasm", CODE),
    ("insnlen", CODE),
    ("brstackinsn", CODE),
    ("brstackinsnlen", CODE),
    ("brstackdisasm", CODE),
    ("brcntr", CODE),
    ("synth", DECODED),
    ("ipc", DECODED),
    ("flags", DECODED),
    ("metric", "metrics of groups are computed by perf stat's tables, which rep does not have"),
];
const DECODED: &str = "only decoded traces have it, and rep decodes none";
const CODE: &str = "it needs the code itself, and rep does not disassemble";
/// Fields of guests, whose samples are not listed.
const GUESTS: [&str; 2] = ["machine_pid", "vcpu"];

impl Field {
    /// The column of this name.
    ///
    /// # Errors
    /// There is none.
    pub fn named(name: &str) -> Result<Self, String> {
        if let Some(field) = Self::ALL.iter().find(|field| field.name() == name) {
            return Ok(*field);
        }
        if let Some((name, why)) = NOT.iter().find(|(not, _)| *not == name) {
            return Err(format!("`{name}` is not shown: {why}"));
        }
        if GUESTS.contains(&name) {
            return Err(format!("`{name}` is not shown: only samples of guests have it, and these are not listed"));
        }
        let list = Self::ALL.iter().map(|field| field.name()).collect::<Vec<_>>().join(", ");
        Err(format!("no field is called `{name}`; there are: {list}"))
    }

    /// Whether the samples of an event have it.
    fn is_sampled(self, attr: &Attr) -> bool {
        let weighs = attr.sample_type.intersects(SampleType::WEIGHT | SampleType::WEIGHT_STRUCT);
        attr.sample_type.contains(self.needs())
            && (self != Self::Weight || weighs)
            && (self != Self::Trace || attr.kind == EventType::TRACEPOINT)
    }

    /// Whether it is shown only beside an address.
    fn is_of_an_address(self) -> bool {
        matches!(self, Self::Sym | Self::SymOff | Self::Dso | Self::DsOff | Self::SrcLine | Self::SrcCode)
    }
}

impl Fields {
    /// What perf prints of an event when nothing is asked for; of tracepoints whose samples have callchains these only where
    /// nothing is `unasked` of columns.
    #[must_use]
    pub(super) fn usual(attr: &Attr, unasked: bool) -> Self {
        use Field as F;
        let common = [F::Comm, F::Tid, F::Cpu, F::Time, F::Event, F::Ip, F::Sym, F::SymOff, F::Dso, F::Period];
        let mut set = common.to_vec();
        match attr.kind {
            EventType::TRACEPOINT => {
                set.retain(|f| !matches!(f, F::Period));
                set.push(F::Trace);
                if !unasked || !attr.sample_type.contains(SampleType::CALLCHAIN) {
                    set.retain(|f| !matches!(f, F::Ip | F::Sym | F::SymOff | F::Dso));
                }
            }
            EventType::SOFTWARE => set.push(F::BpfOutput),
            EventType::RAW => {
                set.extend([F::Addr, F::DataSrc, F::Weight, F::InsLat, F::RetireLat, F::PhysAddr]);
                set.extend([F::DataPageSize, F::CodePageSize]);
            }
            _ => {}
        }
        Self { set, asked: Vec::new(), unasked }
    }

    pub(super) fn set(&mut self, fields: impl Iterator<Item = Field>) {
        self.set = fields.collect();
        self.asked = self.set.clone();
    }

    pub(super) fn add(&mut self, field: Field) {
        self.remove(field);
        self.set.push(field);
        self.asked.push(field);
    }

    pub(super) fn remove(&mut self, field: Field) {
        self.set.retain(|have| *have != field);
        self.asked.retain(|have| *have != field);
    }

    /// Without what nobody asked for and the samples do not have, with what fields bring along.
    #[must_use]
    pub(super) fn completed(mut self, attr: &Attr) -> Self {
        let asked = &self.asked;
        self.set.retain(|field| asked.contains(field) || field.is_sampled(attr));
        if self.has(Field::DsOff) && !self.has(Field::Dso) {
            self.set.push(Field::Dso);
        }
        self
    }

    /// Whether a column is in the set.
    #[must_use]
    pub fn has(&self, field: Field) -> bool {
        self.set.contains(&field)
    }

    /// Whether there are no columns at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.set.is_empty()
    }

    /// Whether nothing was said of columns.
    #[must_use]
    pub fn are_usual(&self) -> bool {
        self.unasked
    }

    /// The columns.
    pub fn iter(&self) -> std::slice::Iter<'_, Field> {
        self.set.iter()
    }

    /// The columns that the samples of an event cannot have.
    #[must_use]
    pub fn lacking(&self, attr: &Attr) -> Vec<Field> {
        self.set.iter().filter(|field| !field.is_sampled(attr)).copied().collect()
    }

    /// The columns that were asked for and have nothing to stand beside.
    #[must_use]
    pub fn idle(&self) -> Vec<Field> {
        let addresses = [Field::Ip, Field::Addr, Field::BrStack, Field::BrStackSym, Field::BrStackOff];
        let is_idle = |field: &Field| match field {
            Field::SymOff if !self.has(Field::Sym) => true,
            Field::SrcLine => !self.has(Field::Ip),
            Field::SrcCode => false,
            field => field.is_of_an_address() && !addresses.iter().any(|address| self.has(*address)),
        };
        self.asked.iter().copied().filter(is_idle).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_event_does_not_sample_is_told() {
        let attr = Attr { sample_type: SampleType::IP, ..Attr::default() };
        let mut fields = Fields::default();
        fields.set([Field::Comm, Field::Ip, Field::Addr, Field::Weight, Field::SymOff].into_iter());
        assert_eq!(fields.lacking(&attr), [Field::Addr, Field::Weight]);
        assert_eq!(fields.idle(), [Field::SymOff]);
        assert!(!Fields::usual(&attr, true).completed(&attr).has(Field::Time));
        fields.remove(Field::Ip);
        fields.remove(Field::Addr);
        fields.add(Field::Dso);
        assert_eq!(fields.idle(), [Field::SymOff, Field::Dso]);
    }

    #[test]
    fn names_are_perfs() {
        assert_eq!(Field::named("brstacksym"), Ok(Field::BrStackSym));
        assert!(Field::named("nope").unwrap_err().contains("phys_addr"));
        assert!(Field::named("insn").unwrap_err().contains("disassemble"));
        assert!(Field::named("vcpu").unwrap_err().contains("guests"));
    }
}

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
    /// The branch stack.
    BrStack = "brstack", SampleType::BRANCH_STACK;
    /// The physical data address.
    PhysAddr = "phys_addr", SampleType::PHYS_ADDR;
    /// The page size behind the data address.
    DataPageSize = "data_page_size", SampleType::DATA_PAGE_SIZE;
    /// The page size behind the ip.
    CodePageSize = "code_page_size", SampleType::CODE_PAGE_SIZE;
    /// The CPU mode and other bits of the header.
    Misc = "misc", SampleType::empty();
}

/// A set of columns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields {
    set: Vec<Field>,
}

/// A name that no column has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no field is called `{0}`; there are: {list}", list = Field::ALL.iter().map(|f| f.name()).collect::<Vec<_>>().join(", "))]
pub struct UnknownField(String);

impl Fields {
    /// Reads a list such as `comm,ip,sym`.
    ///
    /// # Errors
    /// A name is no column's.
    pub fn parse(list: &str) -> Result<Self, UnknownField> {
        let one = |name: &str| {
            let found = Field::ALL.iter().find(|field| field.name() == name);
            found.copied().ok_or_else(|| UnknownField(name.to_owned()))
        };
        Ok(Self { set: list.split(',').map(str::trim).map(one).collect::<Result<_, _>>()? })
    }

    /// What perf prints of an event when nothing is asked for, as far as the event samples it.
    #[must_use]
    pub fn usual(attr: &Attr) -> Self {
        use Field as F;
        let common = [F::Comm, F::Tid, F::Cpu, F::Time, F::Event, F::Ip, F::Sym, F::SymOff, F::Dso, F::Period];
        let mut set = common.to_vec();
        match attr.kind {
            EventType::TRACEPOINT => {
                set.retain(|f| !matches!(f, F::Period));
                if !attr.sample_type.contains(SampleType::CALLCHAIN) {
                    set.retain(|f| !matches!(f, F::Ip | F::Sym | F::SymOff | F::Dso));
                }
            }
            EventType::RAW => set.extend([F::Addr, F::DataSrc, F::Weight, F::PhysAddr]),
            _ => {}
        }
        set.retain(|field| attr.sample_type.contains(field.needs()));
        if !attr.sample_type.intersects(SampleType::WEIGHT | SampleType::WEIGHT_STRUCT) {
            set.retain(|field| *field != F::Weight);
        }
        Self { set }
    }

    /// Whether a column is in the set.
    #[must_use]
    pub fn has(&self, field: Field) -> bool {
        self.set.contains(&field)
    }

    /// The columns.
    pub fn iter(&self) -> std::slice::Iter<'_, Field> {
        self.set.iter()
    }

    /// The columns that the samples of an event cannot have.
    #[must_use]
    pub fn lacking(&self, attr: &Attr) -> Vec<Field> {
        let weighs = attr.sample_type.intersects(SampleType::WEIGHT | SampleType::WEIGHT_STRUCT);
        let lacks = |field: &&Field| !attr.sample_type.contains(field.needs()) || (**field == Field::Weight && !weighs);
        self.set.iter().filter(lacks).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_perfs() {
        let fields =
            Fields::parse("comm,pid,tid,cpu,time,event,ip,sym,dso,addr,period,weight,data_src,phys_addr,brstack");
        assert_eq!(fields.unwrap().iter().count(), 15);
        let error = Fields::parse("comm,nope").unwrap_err().to_string();
        assert!(error.contains("`nope`") && error.contains("phys_addr"), "{error}");
    }

    #[test]
    fn what_an_event_does_not_sample_is_told() {
        let attr = Attr { sample_type: SampleType::IP, ..Attr::default() };
        let fields = Fields::parse("comm,ip,addr,weight").unwrap();
        assert_eq!(fields.lacking(&attr), [Field::Addr, Field::Weight]);
        assert!(!Fields::usual(&attr).has(Field::Time));
    }
}

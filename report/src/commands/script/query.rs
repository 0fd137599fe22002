//! The query of `rep script`.

use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;

use recrep_format::abi::RecordType;

use super::choice::FieldChoice;
use crate::query::{Filters, Source, SymbolOptions};

/// Query of `rep script`.
#[derive(Clone, Debug, PartialEq)]
pub struct ScriptQuery {
    /// Input.
    pub source: Source,
    /// Fields to print.
    pub fields: FieldChoice,
    /// Filters of samples.
    pub filters: ScriptFilters,
    /// Types of other records to print among the samples.
    pub records: BTreeSet<RecordType>,
    /// Sources of symbols.
    pub symbol_sources: SymbolOptions,
    /// Output style.
    pub look: ScriptStyle,
    /// `true` if the file's header is printed.
    pub header: bool,
    /// `true` if nothing else is printed.
    pub header_only: bool,
    /// If set, each event's samples go to a file of their own, whose name begins with this path.
    pub per_event_dump: Option<PathBuf>,
    /// `true` to print all records as `rep dump` does.
    pub dump: bool,
    /// Maximum number of samples to print.
    pub limit: Option<usize>,
}

/// Reference point of printed times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Since {
    /// Zero of the perf clock.
    #[default]
    Clock,
    /// Time of the first line.
    First,
    /// Time of the previous line.
    Previous,
}

/// Output style.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScriptStyle {
    /// `true` if times have nanoseconds.
    pub nanoseconds: bool,
    /// Reference point of printed times.
    pub since: Since,
    /// `true` if callchains are printed.
    pub chains: bool,
    /// Maximum number of frames of a callchain.
    pub max_stack: usize,
    /// Functions at which callchains end.
    pub stop_at: HashSet<String>,
    /// Whether inlined functions are printed as frames; `None`: those of unwound frames only.
    pub inline: Option<bool>,
    /// `true` if the paths of the kernel image and modules are printed instead of names such as `[kernel.kallsyms]`.
    pub kernel_path: bool,
    /// `true` if comms and CPUs are short, as latency tracers print them.
    pub latency: bool,
}

/// Filters of samples.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScriptFilters {
    /// Filters that histograms have too.
    pub samples: Filters,
    /// Only these functions, by name, by start address, or by sampled address.
    pub symbols: Option<Symbols>,
    /// Event whose samples start printing.
    pub switch_on: Option<String>,
    /// Event whose samples stop printing.
    pub switch_off: Option<String>,
    /// `true` if the samples that start and stop printing are printed too.
    pub show_switches: bool,
}

/// Functions by name and by address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Symbols {
    /// Names of functions.
    pub names: HashSet<String>,
    /// Start addresses of functions, or sampled addresses.
    pub addresses: Vec<u64>,
    /// Number of bytes from each address in which a sampled address matches.
    pub range: u64,
}

impl Symbols {
    /// Parses a list such as `main,0x401000`.
    pub fn parse(list: &str, range: u64) -> Self {
        let mut found = Self { range: range.max(1), ..Self::default() };
        for name in list.split(',').map(str::trim) {
            let address = name.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok());
            match address {
                Some(address) => found.addresses.push(address),
                None => drop(found.names.insert(name.to_owned())),
            }
        }
        found
    }

    /// Returns whether a sampled address, or the start of its function, matches one of the addresses.
    pub fn has_address(&self, ip: u64, start: Option<u64>) -> bool {
        let is_near = |from: u64| ip.checked_sub(from).is_some_and(|past| past < self.range);
        self.addresses.iter().any(|address| is_near(*address) || start == Some(*address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_go_by_name_and_address() {
        let symbols = Symbols::parse("main, 0x1000,add", 16);
        assert_eq!(symbols.names, ["main".to_owned(), "add".to_owned()].into());
        let has = |ip, start| symbols.has_address(ip, start);
        assert!(has(0x1000, None) && has(0x100f, None) && has(0x2000, Some(0x1000)));
        assert!(!has(0x1010, None) && !has(0xfff, Some(0xff0)));
        assert!(!Symbols::parse("0x1000", 0).has_address(0x1001, None));
    }
}

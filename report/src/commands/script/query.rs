//! What can be asked of `rep script`.

use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;

use recrep_format::abi::RecordType;

use super::choice::FieldChoice;
use crate::query::Source;
use crate::query::SymbolOptions;
use crate::query::times::Times;

/// What was asked of `rep script`.
#[derive(Clone, Debug, PartialEq)]
pub struct ScriptQuery {
    /// The input.
    pub source: Source,
    /// The columns.
    pub fields: FieldChoice,
    /// Which samples.
    pub filters: ScriptFilters,
    /// Which records are listed among the samples.
    pub records: BTreeSet<RecordType>,
    /// Where symbols come from.
    pub symbol_sources: SymbolOptions,
    /// How lines look.
    pub look: Look,
    /// What is told of the file before its samples.
    pub header: Header,
    /// Each event's samples in a file of its own, whose names begin with this path.
    pub per_event_dump: Option<PathBuf>,
    /// The records themselves, as `rep dump` prints them.
    pub dump: bool,
    /// Only so many samples.
    pub limit: Option<usize>,
}

/// What is told of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Header {
    /// Nothing.
    #[default]
    None,
    /// Its header, then its samples.
    Before,
    /// Its header alone.
    Only,
}

/// What times count from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Since {
    /// The perf clock's zero.
    #[default]
    Clock,
    /// The first line.
    First,
    /// The line before.
    Previous,
}

/// How lines look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// Nanoseconds in times.
    pub nanoseconds: bool,
    /// What times count from.
    pub since: Since,
    /// Whether callchains have lines.
    pub chains: bool,
    /// How many frames of a callchain are shown.
    pub max_stack: usize,
    /// A callchain ends at a function of these names.
    pub stop_at: HashSet<String>,
    /// Frames for inlined functions too.
    pub inline: bool,
    /// The file of the kernel's symbols in place of its name.
    pub kernel_path: bool,
    /// Short names and CPUs, as tracers print them.
    pub latency: bool,
}

/// How many frames of a callchain perf prints (`PERF_MAX_STACK_DEPTH`).
const MOST_FRAMES: usize = 127;

impl Default for Look {
    fn default() -> Self {
        Self {
            nanoseconds: false,
            since: Since::Clock,
            chains: true,
            max_stack: MOST_FRAMES,
            stop_at: HashSet::new(),
            inline: false,
            kernel_path: false,
            latency: false,
        }
    }
}

/// Which samples are listed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScriptFilters {
    /// Only threads of these names.
    pub comms: Option<HashSet<String>>,
    /// Only modules of these names or paths.
    pub dsos: Option<HashSet<String>>,
    /// Only these functions, by name, by where they begin, or by the sampled address.
    pub symbols: Option<Symbols>,
    /// Only these processes.
    pub pids: Option<HashSet<i32>>,
    /// Only these threads.
    pub tids: Option<HashSet<i32>>,
    /// Only these CPUs.
    pub cpus: Option<HashSet<u32>>,
    /// Only these stretches of time.
    pub times: Option<Times>,
    /// Nothing before a sample of this event.
    pub switch_on: Option<String>,
    /// Nothing from a sample of this event on.
    pub switch_off: Option<String>,
    /// The samples that switch are listed too.
    pub show_switches: bool,
}

/// Functions by name and by address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Symbols {
    /// Names.
    pub names: HashSet<String>,
    /// Addresses: a function's first one, or a sampled one.
    pub addresses: Vec<u64>,
    /// How many bytes from each address count.
    pub range: u64,
}

impl Symbols {
    /// From a list such as `main,0x401000`.
    #[must_use]
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

    /// Whether a sampled address, or where its function begins, is one of those asked for.
    #[must_use]
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

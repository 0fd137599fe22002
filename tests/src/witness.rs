//! Contents of a module's symbol tables at an offset, read by `readelf`: the judge where rep and
//! perf name a function differently.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::UNIX_EPOCH;

use crate::run::run;

/// The name that both programs give to an address without a function.
const UNKNOWN: &str = "[unknown]";

/// The modules of one recording, each read once.
#[derive(Debug)]
pub struct Witness {
    recording: PathBuf,
    modules: HashMap<String, Option<Module>>,
}

/// The tables of one module.
#[derive(Debug, Default)]
struct Module {
    segments: Vec<Segment>,
    linkage: Vec<Range>,
    symbols: Vec<Symbol>,
    /// `true` if there is more than what is linked dynamically.
    complete: bool,
}

/// Addresses.
#[derive(Debug)]
struct Range {
    start: u64,
    end: u64,
}

/// A loaded segment.
#[derive(Debug)]
struct Segment {
    offset: u64,
    address: u64,
    size: u64,
}

/// A symbol that is defined, with an end that is its start if it has no size.
#[derive(Debug)]
struct Symbol {
    range: Range,
    function: bool,
    name: String,
}

impl Witness {
    /// A witness for the modules in a recording.
    pub fn new(recording: &Path) -> Self {
        Self { recording: recording.to_owned(), modules: HashMap::new() }
    }

    /// Returns whether rep may call a function `name`, as its file spells it, where perf says
    /// `theirs`: see `Form::Strangers`.
    pub fn confirms(&mut self, path: &str, offset: u64, name: &str, theirs: &str) -> bool {
        let recording = &self.recording;
        let module = self.modules.entry(path.to_owned()).or_insert_with(|| {
            let readelf = || run(Command::new("readelf").args(["-lSsW", "--"]).arg(path));
            as_recorded(recording, path)
                .then(readelf)
                .filter(|read| read.code() == 0)
                .map(|read| Module::parse(&String::from_utf8_lossy(&read.stdout)))
        });
        match module {
            Some(module) => {
                module.has(offset, name)
                    || (!module.complete && theirs == UNKNOWN && name != UNKNOWN)
            }
            None => name == UNKNOWN || theirs == UNKNOWN,
        }
    }
}

/// Returns whether the file at `path` is there, unchanged since the recording began.
fn as_recorded(recording: &Path, path: &str) -> bool {
    let began = fs::metadata(recording).and_then(|file| file.created()).ok();
    let began = began.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    fs::metadata(path).is_ok_and(|file| {
        let changed = u64::try_from(file.ctime()).unwrap_or(0);
        file.is_file() && began.is_none_or(|began| changed < began.as_secs())
    })
}

impl Module {
    /// The tables that `readelf -lSsW` prints.
    fn parse(text: &str) -> Self {
        let mut module = Self::default();
        for line in text.lines() {
            // Sections: "[ 1] .plt PROGBITS 0000000000001020 001020 000060 10 AX …"
            let section =
                line.split_once(']').filter(|(before, _)| before.trim_start().starts_with('['));
            let words: Vec<&str> =
                section.map_or(line, |(_, rest)| rest).split_whitespace().collect();
            match words[..] {
                [name, _, start, _, size, ..] if section.is_some() && name.starts_with(".plt") => {
                    module.linkage.extend(Range::of(hex(start), hex(size)));
                }
                [".symtab", "SYMTAB", ..] if section.is_some() => module.complete = true,
                ["LOAD", offset, address, _, size, ..] => {
                    if let [Some(offset), Some(address), Some(size)] =
                        [offset, address, size].map(hex)
                    {
                        module.segments.push(Segment { offset, address, size });
                    }
                }
                [number, start, size, kind, _, _, index, name]
                | [number, start, size, kind, _, _, index, name, _]
                    if number.ends_with(':') && index != "UND" && index != "ABS" =>
                {
                    let size = if size.starts_with("0x") { hex(size) } else { size.parse().ok() };
                    let function = kind == "FUNC" || kind == "IFUNC";
                    let name = unversioned(name).to_owned();
                    let range = Range::of(hex(start), size);
                    module.symbols.extend(range.map(|range| Symbol { range, function, name }));
                }
                _ => {}
            }
        }
        module
    }

    /// Returns whether `name` is right for what is at `offset` of the file.
    fn has(&self, offset: u64, name: &str) -> bool {
        let segment = self.segments.iter().find(|segment| {
            offset.checked_sub(segment.offset).is_some_and(|within| within < segment.size)
        });
        let Some(address) = segment.map(|segment| offset - segment.offset + segment.address) else {
            return name == UNKNOWN;
        };
        if name.ends_with("@plt") || name == ".plt" {
            return self.linkage.iter().any(|section| section.has(address));
        }
        let mut covering = self.symbols.iter().filter(|symbol| self.covers(symbol, address));
        if name == UNKNOWN {
            return !covering.any(|symbol| symbol.function);
        }
        covering.any(|symbol| symbol.name == unversioned(name))
    }

    /// Returns whether the address belongs to the symbol; one without a size goes on to the next.
    fn covers(&self, symbol: &Symbol, address: u64) -> bool {
        let start = symbol.range.start;
        let sizeless = start == symbol.range.end && start <= address;
        let next = || {
            self.symbols
                .iter()
                .any(|other| start < other.range.start && other.range.start <= address)
        };
        symbol.range.has(address) || (sizeless && !next())
    }
}

impl Range {
    fn of(start: Option<u64>, size: Option<u64>) -> Option<Self> {
        Some(Self { start: start?, end: start?.checked_add(size?)? })
    }

    fn has(&self, address: u64) -> bool {
        self.start <= address && address < self.end
    }
}

fn hex(number: &str) -> Option<u64> {
    u64::from_str_radix(number.trim_start_matches("0x"), 16).ok()
}

/// A name without `@VERSION`.
fn unversioned(name: &str) -> &str {
    name.split_once('@').map_or(name, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLES: &str = "
Section Headers:
  [Nr] Name              Type            Address          Off    Size   ES Flg Lk Inf Al
  [ 9] .plt              PROGBITS        0000000000002000 001000 000020 10  AX  0   0 16
  [10] .text             PROGBITS        0000000000002020 001020 000fe0 00  AX  0   0 16
  [30] .symtab           SYMTAB          0000000000000000 003000 000100 18     31   1  8
Program Headers:
  Type           Offset   VirtAddr           PhysAddr           FileSiz  MemSiz   Flg Align
  LOAD           0x001000 0x0000000000002000 0x0000000000002000 0x001000 0x001000 R E 0x1000
Symbol table '.symtab' contains 5 entries:
   Num:    Value          Size Type    Bind   Vis      Ndx Name
     1: 0000000000000000     0 FUNC    GLOBAL DEFAULT  UND gone@GLIBC_2.34 (2)
     2: 0000000000002020    16 FUNC    LOCAL  DEFAULT   10 f
     3: 0000000000002020    16 FUNC    WEAK   DEFAULT   10 alias@@V_1
     4: 0000000000002040     0 NOTYPE  LOCAL  DEFAULT   10 label
     5: 0000000000002080  0x20 OBJECT  LOCAL  DEFAULT   10 data
";

    #[test]
    fn the_tables_decide() {
        let module = Module::parse(TABLES);
        assert!(module.complete);
        assert!(!Module::parse("").complete);
        for (offset, names) in [
            (0x1010, vec!["f@plt", ".plt", UNKNOWN]),
            (0x1020, vec!["f", "alias"]),
            (0x102f, vec!["f", "alias"]),
            (0x1030, vec![UNKNOWN]),
            (0x1070, vec!["label", UNKNOWN]),
            (0x1090, vec!["data", UNKNOWN]),
            (0x10a0, vec![UNKNOWN]),
            (0x2000, vec![UNKNOWN]),
            (0, vec![UNKNOWN]),
        ] {
            for name in ["f@plt", ".plt", "f", "alias", "label", "data", "gone", UNKNOWN] {
                assert_eq!(
                    module.has(offset, name),
                    names.contains(&name),
                    "{name} at {offset:#x}"
                );
            }
        }
    }

    #[test]
    fn without_tables_only_one_may_name_it() {
        let dir = tempfile::tempdir().unwrap();
        let recording = dir.path().join("perf.data");
        fs::write(&recording, "").unwrap();
        let mut witness = Witness::new(&recording);
        for path in ["/not/there", recording.to_str().unwrap()] {
            assert!(
                witness.confirms(path, 0, "f", UNKNOWN) && witness.confirms(path, 0, UNKNOWN, "f")
            );
            assert!(!witness.confirms(path, 0, "f", "g"));
        }
    }

    #[test]
    fn a_module_that_is_there() {
        let mut witness = Witness::new(Path::new("/not/there"));
        let path = std::env::current_exe().unwrap();
        let path = path.to_str().unwrap();
        assert!(
            !witness.confirms(path, 0, "main", UNKNOWN)
                && witness.confirms(path, 0, UNKNOWN, "main")
        );
        let module = witness.modules[path].as_ref().unwrap();
        let main = module.symbols.iter().find(|symbol| symbol.name == "main").unwrap().range.start;
        let segment = module
            .segments
            .iter()
            .find(|segment| (segment.address..segment.address + segment.size).contains(&main));
        let offset = segment.map(|segment| main - segment.address + segment.offset).unwrap();
        assert!(
            witness.confirms(path, offset, "main", "f")
                && witness.confirms(path, offset, "main", UNKNOWN)
        );
        assert!(
            !witness.confirms(path, offset, "f", "main")
                && !witness.confirms(path, offset, UNKNOWN, "main")
        );
    }
}

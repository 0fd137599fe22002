//! BPF programs that were loaded before: KSYMBOL for each function, BPF_EVENT for each program.

use std::collections::HashMap;

use super::writer::Synthesizer;
use crate::kernel::bpf::BpfProgram;
use crate::machine::kernel_image::BpfSymbol;
use crate::messages::error::Result;

/// The code that calls programs (trampolines, dispatchers) is this long at most, and so is taken to
/// be the last of the symbols, of which no other one shows the end.
const PAGE: u64 = 4096;
/// Longer than most programs: the greatest length that is taken from the address of the next
/// symbol.
const LONGEST: u64 = 64 << 10;

/// The BPF code of the kernel.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BpfCode {
    programs: Vec<BpfProgram>,
    /// `true` if the list is not to be had, so that symbols are all that there is.
    is_hidden: bool,
}

/// A kernel symbol with its length.
#[derive(Debug, PartialEq, Eq)]
struct Symbol {
    addr: u64,
    len: u32,
    name: Vec<u8>,
}

impl Symbol {
    fn write(&self, to: &mut Synthesizer<'_>) -> Result<()> {
        to.bpf_symbol(self.addr, self.len, &self.name)
    }
}

impl BpfCode {
    /// Returns the programs as the kernel lists them, or what is known where it does not list them
    /// to this user (EPERM).
    pub(crate) fn new(programs: std::result::Result<Vec<BpfProgram>, rustix::io::Errno>) -> Self {
        use rustix::io::Errno;
        let is_hidden = matches!(programs, Err(Errno::PERM | Errno::ACCESS));
        Self { programs: programs.unwrap_or_default(), is_hidden }
    }

    /// Returns whether `/proc/kallsyms` has names that the list has not: those of functions in
    /// full, and of the code that calls programs by their type information.
    pub(crate) fn needs_symbols(&self) -> bool {
        self.is_hidden
            || self.programs.iter().any(|program| program.has_btf || program.functions.len() > 1)
    }

    /// Writes the programs. `symbols`: those of `/proc/kallsyms`, by address, as far as they are
    /// needed.
    pub(crate) fn write(&self, to: &mut Synthesizer<'_>, symbols: &[BpfSymbol]) -> Result<()> {
        let names: HashMap<u64, &[u8]> =
            symbols.iter().map(|symbol| (symbol.addr, symbol.name.as_slice())).collect();
        for program in &self.programs {
            functions(program, &names).iter().try_for_each(|symbol| symbol.write(to))?;
            to.bpf_program(program)?;
        }
        others(&self.programs, symbols).iter().try_for_each(|symbol| symbol.write(to))
    }
}

/// The functions of a program, with the kernel's names for them.
fn functions(program: &BpfProgram, names: &HashMap<u64, &[u8]>) -> Vec<Symbol> {
    let is_alone = program.functions.len() == 1 && !program.name.is_empty();
    let named = program.functions.iter().map(|function| {
        let name = names.get(&function.addr).map_or_else(
            || {
                let tag: String = function.tag.iter().map(|byte| format!("{byte:02x}")).collect();
                let own: &[u8] = if is_alone { &program.name } else { b"F" };
                [b"bpf_prog_", tag.as_bytes(), b"_", own].concat()
            },
            |name| name.to_vec(),
        );
        Symbol { addr: function.addr, len: function.len, name }
    });
    named.collect()
}

/// The symbols that are no function of a listed program, up to the next symbol.
fn others(programs: &[BpfProgram], symbols: &[BpfSymbol]) -> Vec<Symbol> {
    let listed: Vec<u64> = {
        let mut all: Vec<_> =
            programs.iter().flat_map(|program| &program.functions).map(|f| f.addr).collect();
        all.sort_unstable();
        all
    };
    let next = |addr: u64| {
        let symbol = symbols
            .get(symbols.partition_point(|symbol| symbol.addr <= addr))
            .map(|symbol| symbol.addr);
        let function = listed.get(listed.partition_point(|listed| *listed <= addr)).copied();
        symbol.into_iter().chain(function).min()
    };
    let unlisted = symbols.iter().filter(|symbol| listed.binary_search(&symbol.addr).is_err());
    let sized = unlisted.filter_map(|symbol| {
        let gap = next(symbol.addr).map(|next| next - symbol.addr);
        let is_program = symbol.name.starts_with(b"bpf_prog_");
        let len = match gap {
            Some(gap) if is_program && gap <= LONGEST => gap,
            gap => gap.unwrap_or(PAGE).min(PAGE),
        };
        Some(Symbol { addr: symbol.addr, len: u32::try_from(len).ok()?, name: symbol.name.clone() })
    });
    sized.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::bpf::BpfFunction;
    use rustix::io::Errno;

    fn function(addr: u64, len: u32) -> BpfFunction {
        BpfFunction { addr, len, tag: [0xab, 0xcd, 0, 0, 0, 0, 0, 1] }
    }

    fn symbol(addr: u64, name: &str) -> BpfSymbol {
        BpfSymbol { addr, name: name.into() }
    }

    fn sized(symbols: Vec<Symbol>) -> Vec<(u64, u32, String)> {
        symbols.into_iter().map(|s| (s.addr, s.len, String::from_utf8(s.name).unwrap())).collect()
    }

    #[test]
    fn functions_have_the_kernel_s_names() {
        let mut program = BpfProgram {
            name: b"main".to_vec(),
            functions: vec![function(0x1000, 8)],
            ..Default::default()
        };
        let names = HashMap::new();
        assert_eq!(
            sized(functions(&program, &names)),
            [(0x1000, 8, "bpf_prog_abcd000000000001_main".to_owned())]
        );
        program.functions.push(function(0x1040, 9));
        let names =
            HashMap::from([(0x1040, &b"bpf_prog_abcd000000000001_a_long_name_of_a_function"[..])]);
        assert_eq!(
            sized(functions(&program, &names)),
            [
                (0x1000, 8, "bpf_prog_abcd000000000001_F".to_owned()),
                (0x1040, 9, "bpf_prog_abcd000000000001_a_long_name_of_a_function".to_owned())
            ]
        );
    }

    #[test]
    fn symbols_alone_end_where_the_next_begins() {
        let listed = [BpfProgram { functions: vec![function(0x5000, 8)], ..Default::default() }];
        let symbols = [
            symbol(0x1000, "bpf_prog_1_a"),
            symbol(0x3000, "bpf_trampoline_1"),
            symbol(0x4800, "bpf_dispatcher_xdp"),
            symbol(0x5000, "bpf_prog_2_b"),
            symbol(0x9000, "bpf_prog_3_c"),
            symbol(0x9_0000, "bpf_prog_4_d"),
        ];
        let found = sized(others(&listed, &symbols));
        let found: Vec<_> = found.iter().map(|(addr, len, _)| (*addr, *len)).collect();
        assert_eq!(
            found,
            [
                (0x1000, 0x2000),
                (0x3000, 0x1000),
                (0x4800, 0x800),
                (0x9000, 0x1000),
                (0x9_0000, 0x1000)
            ]
        );
    }

    #[test]
    fn symbols_are_read_where_the_list_leaves_something_open() {
        let plain = BpfProgram { functions: vec![function(0x1000, 8)], ..Default::default() };
        let needs = |programs| BpfCode::new(programs).needs_symbols();
        assert!(!needs(Ok(vec![])) && !needs(Ok(vec![plain.clone()])) && !needs(Err(Errno::NOSYS)));
        assert!(
            needs(Ok(vec![BpfProgram { has_btf: true, ..plain.clone() }]))
                && needs(Err(Errno::PERM))
        );
        assert!(needs(Ok(vec![BpfProgram {
            functions: vec![function(1, 1), function(2, 1)],
            ..plain
        }])));
    }
}

//! Tables of the symbols that a recording brings itself.

use super::kernel::kallsyms::Kallsyms;
use crate::symbols::elf::extents::end_unsized;
use crate::symbols::file::Refusal;
use crate::symbols::module::recorded::{Base, RecordedContents, RecordedSymbols};
use crate::symbols::module::{Module, ModuleKind};
use crate::symbols::names::table::{Listing, SymbolTable, TableBuilder};

impl RecordedSymbols {
    /// Builds the table of a module's symbols: of a file, of the kernel (whose reference symbol
    /// moves them), or of a module of the kernel.
    pub(crate) fn table(&self, module: &Module, demangle: bool) -> Result<SymbolTable, Refusal> {
        let RecordedContents { base, symbols, kernel, kallsyms, .. } = &*self.0;
        let loaded_at =
            if let ModuleKind::KernelModule { start } = module.kind { Some(start) } else { None };
        if let (true, Some(text)) = (symbols.is_empty(), kallsyms) {
            let list = Kallsyms::parse(text.to_vec())?;
            return match loaded_at {
                Some(_) => list.module(&module.kernel_module_name()),
                None => list.kernel(module.origin.reference.as_ref()),
            };
        }
        let base = match *base {
            Base::File(base) | Base::Mapping(base) => base,
            Base::Module(base) => base.wrapping_sub(loaded_at.unwrap_or(0)),
            Base::Zero => 0,
        };
        let of_kernel =
            kernel.iter().flat_map(|kernel| &kernel.0.symbols).map(|symbol| (symbol, 0));
        let mut table = TableBuilder::new(demangle);
        for (symbol, base) in symbols.iter().map(|symbol| (symbol, base)).chain(of_kernel) {
            let start = symbol.start.wrapping_sub(base);
            table.add(&symbol.name, start, start.saturating_add(symbol.len.into()));
        }
        table.settle();
        table.listing = Listing::Whole;
        end_unsized(&mut table, None);
        Ok(table.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbols::module::recorded::RecordedSymbol;

    fn symbols(base: Base, kernel: Option<RecordedSymbols>) -> RecordedSymbols {
        let symbol = |start, name: &[u8]| RecordedSymbol { start, len: 16, name: name.into() };
        RecordedSymbols::new(
            base,
            vec![symbol(0x1010, b"f"), symbol(0x1020, b"_Z1gi")],
            kernel,
            None,
        )
    }

    fn name(symbols: &RecordedSymbols, kind: &ModuleKind, address: u64) -> Option<String> {
        let table = symbols.table(&Module::new(b"[x]", None, kind.clone()), true).unwrap();
        table.lookup(address).map(|symbol| String::from_utf8_lossy(symbol.name).into_owned())
    }

    #[test]
    fn symbols_are_looked_up_by_the_address_of_their_kind() {
        let offset = symbols(Base::File(0x800), None);
        assert_eq!(name(&offset, &ModuleKind::File, 0x810).as_deref(), Some("f"));
        assert_eq!(name(&offset, &ModuleKind::File, 0x82f).as_deref(), Some("_Z1gi"));
        assert_eq!(name(&offset, &ModuleKind::File, 0x830), None);
        let mapping = symbols(Base::Mapping(0x1000), None);
        assert_eq!(name(&mapping, &ModuleKind::File, 0x10).as_deref(), Some("f"));
        let kernel = symbols(Base::Zero, None);
        assert_eq!(name(&kernel, &ModuleKind::Kernel, 0x1010).as_deref(), Some("f"));
        // A module whose address 0x1000 is 0x20 into its memory.
        let module = symbols(Base::Module(0x1000 - 0x20), Some(kernel));
        let kind = ModuleKind::KernelModule { start: 0x9000 };
        assert_eq!(name(&module, &kind, 0x9030).as_deref(), Some("f"));
        assert_eq!(name(&module, &kind, 0x1020).as_deref(), Some("_Z1gi"));
    }

    #[test]
    fn a_list_of_the_kernel_is_used_where_no_symbols_are() {
        let text = b"ffffffff81000000 T _text\nffffffff81000010 t a\nffffffffc0000000 t b\t[snd]\n";
        let list = RecordedSymbols::new(Base::Zero, Vec::new(), None, Some(text));
        assert_eq!(name(&list, &ModuleKind::Kernel, 0xffff_ffff_8100_0011).as_deref(), Some("a"));
        assert!(list == RecordedSymbols::new(Base::Zero, Vec::new(), None, Some(text)));
        assert!(list != symbols(Base::Zero, None));
    }
}

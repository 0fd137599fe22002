//! Generator of small ELF files for tests: a text segment, a data segment, and the symbols that a
//! test wants.
//!
//! ```text
//!   offset  0x1000  0x3000  0x4000                     address = offset + bias
//!           .text   .data   .note .symtab .strtab …    .bss behind .data, in memory only
//! ```

use object::elf;

use crate::symbols::elf::ElfImage;

/// Indices of the sections that symbols can be in.
pub(crate) const TEXT: u16 = 1;
pub(crate) const DATA: u16 = 2;
pub(crate) const BSS: u16 = 3;

/// Contents of a generated file.
#[derive(Clone, Default)]
pub(crate) struct TestElf {
    /// Added to file offsets to make addresses.
    pub(crate) bias: u64,
    pub(crate) symtab: Vec<TestSymbol>,
    pub(crate) dynsym: Vec<TestSymbol>,
    pub(crate) build_id: Option<[u8; 20]>,
    pub(crate) debug_link: Option<&'static str>,
    /// `true` to imitate `objcopy --only-keep-debug`: sections without contents, segments with
    /// wrong offsets.
    pub(crate) debug_only: bool,
    /// The beginning of `.text`.
    pub(crate) code: Vec<u8>,
    /// Addresses of functions that `.eh_frame` has, and their lengths.
    pub(crate) unwound: Vec<(u64, u32)>,
}

#[derive(Clone, Copy)]
pub(crate) struct TestSymbol {
    pub(crate) name: &'static str,
    pub(crate) address: u64,
    pub(crate) size: u64,
    pub(crate) kind: elf::SymbolType,
    pub(crate) bind: elf::SymbolBind,
    pub(crate) section: u16,
    pub(crate) hidden: bool,
}

/// A global function.
pub(crate) fn function(name: &'static str, address: u64, size: u64) -> TestSymbol {
    let (kind, bind) = (elf::STT_FUNC, elf::STB_GLOBAL);
    TestSymbol { name, address, size, kind, bind, section: TEXT, hidden: false }
}

/// A file in the making: its contents so far, the names of its sections, their headers.
struct Writer {
    bytes: Vec<u8>,
    names: Vec<u8>,
    headers: Vec<u8>,
    sections: u64,
}

impl TestElf {
    pub(crate) fn image(&self) -> ElfImage {
        ElfImage::parse(self.build().into()).unwrap()
    }

    pub(crate) fn build(&self) -> Vec<u8> {
        // The first section header is empty.
        let (bytes, names, headers) = (vec![0; 0x4000], b"\0".to_vec(), vec![0; 64]);
        let mut file = Writer { bytes, names, headers, sections: 1 };
        let kind = if self.debug_only { elf::SHT_NOBITS } else { elf::SHT_PROGBITS };
        let code = elf::SHF_ALLOC.0 | elf::SHF_EXECINSTR.0;
        for (name, offset, kind, size, flags) in [
            (".text", 0x1000, kind, 0x800, code),
            (".data", 0x3000, kind, 0x800, elf::SHF_ALLOC.0),
            (".bss", 0x3800, elf::SHT_NOBITS, 0x4000, elf::SHF_ALLOC.0),
        ] {
            file.header(name, kind, [flags, offset + self.bias, offset, size], [0, 0]);
        }
        file.bytes[0x1000..0x1000 + self.code.len()].copy_from_slice(&self.code);
        if let Some(id) = self.build_id {
            let note = [&[4, 0, 0, 0, 20, 0, 0, 0, 3, 0, 0, 0][..], b"GNU\0", &id].concat();
            file.section(".note.gnu.build-id", elf::SHT_NOTE, &note, [0, 0]);
        }
        if !self.unwound.is_empty() {
            file.section(".eh_frame", elf::SHT_PROGBITS, &eh_frame(&self.unwound), [0, 0]);
        }
        if let Some(link) = self.debug_link {
            let contents = [link.as_bytes(), &[0; 8]].concat();
            file.section(".gnu_debuglink", elf::SHT_PROGBITS, &contents, [0, 0]);
        }
        for (name, strings_name, kind, symbols) in [
            (".symtab", ".strtab", elf::SHT_SYMTAB, &self.symtab),
            (".dynsym", ".dynstr", elf::SHT_DYNSYM, &self.dynsym),
        ] {
            if !symbols.is_empty() {
                let (table, strings) = symbol_table(symbols);
                file.section(name, kind, &table, [file.sections + 1, 24]);
                file.section(strings_name, elf::SHT_STRTAB, &strings, [0, 0]);
            }
        }
        file.finish(self)
    }
}

impl Writer {
    /// Adds a section header.
    fn header(
        &mut self,
        name: &str,
        kind: elf::SectionType,
        [flags, address, offset, size]: [u64; 4],
        [link, entry_size]: [u64; 2],
    ) {
        let name = add(&mut self.names, name.as_bytes());
        put(&mut self.headers, 4, &[name, kind.0.into()]);
        put(&mut self.headers, 8, &[flags, address, offset, size]);
        put(&mut self.headers, 4, &[link, 0]);
        put(&mut self.headers, 8, &[8, entry_size]);
        self.sections += 1;
    }

    /// Adds a section that is not loaded.
    fn section(&mut self, name: &str, kind: elf::SectionType, contents: &[u8], more: [u64; 2]) {
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
        self.header(name, kind, [0, 0, self.bytes.len() as u64, contents.len() as u64], more);
        self.bytes.extend(contents);
    }

    /// Adds the names and headers of the sections, and what is at the beginning of the file.
    fn finish(mut self, file: &TestElf) -> Vec<u8> {
        // With its own name.
        let size = self.names.len() + ".shstrtab\0".len();
        let offset = self.bytes.len();
        self.header(".shstrtab", elf::SHT_STRTAB, [0, 0, offset as u64, size as u64], [0, 0]);
        self.bytes.extend(&self.names);
        let mut head = Vec::new();
        head.extend(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
        put(&mut head, 2, &[3, elf::EM_X86_64.0.into()]);
        put(&mut head, 4, &[1]);
        put(&mut head, 8, &[0, 64, self.bytes.len() as u64]);
        put(&mut head, 4, &[0]);
        put(&mut head, 2, &[64, 56, 2, 64, self.sections, self.sections - 1]);
        for (offset, file_size, memory_size) in
            [(0x1000, 0x1000_u64, 0x1000_u64), (0x3000, 0x800, 0x4800)]
        {
            put(&mut head, 4, &[elf::PT_LOAD.0.into(), 5]);
            let (placed, file_size) = if file.debug_only { (0x40, 0) } else { (offset, file_size) };
            let address = offset + file.bias;
            put(&mut head, 8, &[placed, address, address, file_size, memory_size, 0x1000]);
        }
        self.bytes.extend(&self.headers);
        self.bytes[..head.len()].copy_from_slice(&head);
        self.bytes
    }
}

fn symbol_table(symbols: &[TestSymbol]) -> (Vec<u8>, Vec<u8>) {
    let (mut table, mut strings) = (vec![0; 24], b"\0".to_vec());
    for symbol in symbols {
        put(&mut table, 4, &[add(&mut strings, symbol.name.as_bytes())]);
        table.push(symbol.bind.0 << 4 | symbol.kind.0);
        table.push(if symbol.hidden { 2 } else { 0 });
        put(&mut table, 2, &[symbol.section.into()]);
        put(&mut table, 8, &[symbol.address, symbol.size]);
    }
    (table, strings)
}

/// `.eh_frame` with an entry for each function, by its address and length.
pub(crate) fn eh_frame(functions: &[(u64, u32)]) -> Vec<u8> {
    // A CIE whose pointers are absolute and have 8 bytes.
    let mut section = vec![20, 0, 0, 0, 0, 0, 0, 0, 1, b'z', b'R', 0, 1, 0x78, 16, 1, 0x04];
    section.extend([0x0c, 7, 8, 0x90, 1, 0, 0]);
    for (start, length) in functions {
        let to_cie = u64::try_from(section.len()).unwrap() + 4;
        put(&mut section, 4, &[24, to_cie]);
        put(&mut section, 8, &[*start, (*length).into()]);
        section.extend([0; 4]);
    }
    section.extend([0; 4]);
    section
}

/// Appends a string and returns its offset: 0, which means no name, if it is empty.
fn add(strings: &mut Vec<u8>, text: &[u8]) -> u64 {
    if text.is_empty() {
        return 0;
    }
    let at = strings.len();
    strings.extend(text);
    strings.push(0);
    at as u64
}

/// Appends numbers of `size` bytes each.
fn put(bytes: &mut Vec<u8>, size: usize, numbers: &[u64]) {
    bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes().into_iter().take(size)));
}

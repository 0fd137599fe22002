//! Generator of small ELF files for tests: a text segment, a data segment, and the symbols that a test wants.
//!
//! ```text
//!   offset  0x1000  0x3000  0x4000                     address = offset + bias
//!           .text   .data   .note .symtab .strtab …    .bss behind .data, in memory only
//! ```

use object::elf;

use super::elf::Image;
use super::file::Contents;

/// Indices of the sections that symbols can be in.
pub(super) const TEXT: u16 = 1;
pub(super) const DATA: u16 = 2;
pub(super) const BSS: u16 = 3;

/// Contents of a generated file.
#[derive(Clone, Default)]
pub(super) struct TestElf {
    /// Added to file offsets to make addresses.
    pub(super) bias: u64,
    pub(super) symtab: Vec<TestSymbol>,
    pub(super) dynsym: Vec<TestSymbol>,
    pub(super) build_id: Option<[u8; 20]>,
    pub(super) debug_link: Option<&'static str>,
    /// `true` to imitate `objcopy --only-keep-debug`: sections without contents, segments with wrong offsets.
    pub(super) debug_only: bool,
}

#[derive(Clone, Copy)]
pub(super) struct TestSymbol {
    pub(super) name: &'static str,
    pub(super) address: u64,
    pub(super) size: u64,
    pub(super) kind: elf::SymbolType,
    pub(super) bind: elf::SymbolBind,
    pub(super) section: u16,
    pub(super) hidden: bool,
}

/// A global function.
pub(super) fn function(name: &'static str, address: u64, size: u64) -> TestSymbol {
    let (kind, bind) = (elf::STT_FUNC, elf::STB_GLOBAL);
    TestSymbol { name, address, size, kind, bind, section: TEXT, hidden: false }
}

#[derive(Default)]
struct Header {
    name: usize,
    kind: u32,
    flags: u64,
    address: u64,
    offset: usize,
    size: usize,
    link: u32,
    entry: u64,
}

impl TestElf {
    pub(super) fn image(&self) -> Image {
        Image::parse(Contents::Memory(self.build())).unwrap()
    }

    pub(super) fn build(&self) -> Vec<u8> {
        let mut bytes = vec![0; 0x4000];
        let mut names = b"\0".to_vec();
        let mut headers = vec![Header::default()];
        let kind = if self.debug_only { elf::SHT_NOBITS } else { elf::SHT_PROGBITS };
        for (name, offset, kind) in
            [(".text", 0x1000, kind), (".data", 0x3000, kind), (".bss", 0x3800, elf::SHT_NOBITS)]
        {
            let name = add(&mut names, name.as_bytes());
            let (flags, address) = (elf::SHF_ALLOC.0, offset as u64 + self.bias);
            headers.push(Header { name, kind: kind.0, flags, address, offset, size: 0x800, ..Header::default() });
        }
        headers[3].size = 0x4000;
        if let Some(id) = self.build_id {
            let note = [&[4, 0, 0, 0, 20, 0, 0, 0, 3, 0, 0, 0][..], b"GNU\0", &id].concat();
            headers.push(append(&mut bytes, &mut names, ".note.gnu.build-id", elf::SHT_NOTE, &note));
        }
        if let Some(link) = self.debug_link {
            let text = [link.as_bytes(), &[0; 8]].concat();
            headers.push(append(&mut bytes, &mut names, ".gnu_debuglink", elf::SHT_PROGBITS, &text));
        }
        for (name, strings_name, kind, symbols) in [
            (".symtab", ".strtab", elf::SHT_SYMTAB, &self.symtab),
            (".dynsym", ".dynstr", elf::SHT_DYNSYM, &self.dynsym),
        ] {
            if !symbols.is_empty() {
                let (table, strings) = symbol_table(symbols);
                let link = u32::try_from(headers.len() + 1).unwrap();
                let table = append(&mut bytes, &mut names, name, kind, &table);
                headers.push(Header { link, entry: 24, ..table });
                headers.push(append(&mut bytes, &mut names, strings_name, elf::SHT_STRTAB, &strings));
            }
        }
        let name = add(&mut names, b".shstrtab");
        headers.push(Header {
            name,
            kind: elf::SHT_STRTAB.0,
            offset: bytes.len(),
            size: names.len(),
            ..Header::default()
        });
        bytes.extend(&names);
        let sections_at = bytes.len();
        headers.iter().for_each(|header| header.write(&mut bytes));
        self.write_head(&mut bytes, sections_at, headers.len());
        bytes
    }

    fn write_head(&self, bytes: &mut [u8], sections_at: usize, sections: usize) {
        let mut head = Vec::new();
        head.extend(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
        half(&mut head, &[3, elf::EM_X86_64.0]);
        word(&mut head, &[1]);
        long(&mut head, &[0, 64, sections_at as u64]);
        word(&mut head, &[0]);
        let sections = u16::try_from(sections).unwrap();
        half(&mut head, &[64, 56, 2, 64, sections, sections - 1]);
        for (offset, file_size, memory_size) in [(0x1000, 0x1000_u64, 0x1000_u64), (0x3000, 0x800, 0x4800)] {
            word(&mut head, &[elf::PT_LOAD.0, 5]);
            let (placed, file_size) = if self.debug_only { (0x40, 0) } else { (offset, file_size) };
            let address = offset + self.bias;
            long(&mut head, &[placed, address, address, file_size, memory_size, 0x1000]);
        }
        bytes[..head.len()].copy_from_slice(&head);
    }
}

impl Header {
    fn write(&self, bytes: &mut Vec<u8>) {
        word(bytes, &[u32::try_from(self.name).unwrap(), self.kind]);
        long(bytes, &[self.flags, self.address, self.offset as u64, self.size as u64]);
        word(bytes, &[self.link, 0]);
        long(bytes, &[8, self.entry]);
    }
}

fn symbol_table(symbols: &[TestSymbol]) -> (Vec<u8>, Vec<u8>) {
    let (mut table, mut strings) = (vec![0; 24], b"\0".to_vec());
    for symbol in symbols {
        word(&mut table, &[u32::try_from(add(&mut strings, symbol.name.as_bytes())).unwrap()]);
        table.push(symbol.bind.0 << 4 | symbol.kind.0);
        table.push(if symbol.hidden { 2 } else { 0 });
        half(&mut table, &[symbol.section]);
        long(&mut table, &[symbol.address, symbol.size]);
    }
    (table, strings)
}

fn append(bytes: &mut Vec<u8>, names: &mut Vec<u8>, name: &str, kind: elf::SectionType, contents: &[u8]) -> Header {
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    let header = Header {
        name: add(names, name.as_bytes()),
        kind: kind.0,
        offset: bytes.len(),
        size: contents.len(),
        ..Header::default()
    };
    bytes.extend(contents);
    header
}

/// Appends a string and returns its offset: 0, which means no name, if it is empty.
fn add(strings: &mut Vec<u8>, text: &[u8]) -> usize {
    if text.is_empty() {
        return 0;
    }
    let at = strings.len();
    strings.extend(text);
    strings.push(0);
    at
}

fn half(bytes: &mut Vec<u8>, values: &[u16]) {
    values.iter().for_each(|value| bytes.extend(value.to_le_bytes()));
}

fn word(bytes: &mut Vec<u8>, values: &[u32]) {
    values.iter().for_each(|value| bytes.extend(value.to_le_bytes()));
}

fn long(bytes: &mut Vec<u8>, values: &[u64]) {
    values.iter().for_each(|value| bytes.extend(value.to_le_bytes()));
}

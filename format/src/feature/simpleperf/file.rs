//! FILE and FILE2: files with the symbols that samples hit.

use std::borrow::Cow;

use super::protobuf::{Item, field, put_bytes, put_number, put_varint, varint};
use crate::bytes::{Cursor, Encoder};
use crate::endian::Endian;
use crate::error::{Error, Result};
use crate::fields::{Value, named, shown};
use crate::wire::Wire;

/// Kind of a file with symbols: by which address its symbols are looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SimpleperfFileKind(pub u32);

shown! {
    SimpleperfFileKind: |kind| kind.0.value();
}

impl SimpleperfFileKind {
    /// The kernel: addresses at run time.
    pub const KERNEL: Self = Self(0);
    /// A kernel module: addresses as linked.
    pub const KERNEL_MODULE: Self = Self(1);
    /// An ELF file: addresses as linked.
    pub const ELF: Self = Self(2);
    /// A file with dex code, such as a vdex file: offsets in the file.
    pub const DEX: Self = Self(3);
    /// A map of a JIT's code (`perf-PID.map`): addresses at run time.
    pub const SYMBOL_MAP: Self = Self(4);
}

named! {
    /// A file with the symbols that samples hit.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct SimpleperfFile<'a> {
        /// Path, as in the records of its mappings.
        pub path: &'a [u8] => text,
        /// Kind of the file.
        pub kind: SimpleperfFileKind => "file_type",
        /// Linked address of the first executable byte.
        pub min_vaddr: u64 => hex,
        /// Symbols, by address.
        pub symbols: Vec<SimpleperfSymbol<'a>> => count,
        /// Offsets of the dex files in a file with dex code.
        pub dex_file_offsets: Vec<u64> => hidden,
        /// Place of the byte at `min_vaddr`: offset in an ELF file, or in the memory of a kernel
        /// module; all ones if unknown. `None` in older recordings.
        pub offset_of_min_vaddr: Option<u64> => hidden,
        /// Bytes after the fields known here, as found.
        pub rest: &'a [u8] => hidden,
    }
}

named! {
    /// A symbol.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct SimpleperfSymbol<'a> {
        /// First address, of the file's kind.
        pub start: u64 => hex,
        /// Length in bytes.
        pub len: u32,
        /// Name, perhaps mangled.
        pub name: &'a [u8] => text,
    }
}

/// Offset that stands for an unknown one.
const UNKNOWN: u64 = u64::MAX;

impl<'a> SimpleperfFile<'a> {
    const WHAT: &'static str = "a file with symbols of simpleperf";

    fn has_offset(&self) -> bool {
        matches!(self.kind, SimpleperfFileKind::ELF | SimpleperfFileKind::KERNEL_MODULE)
    }

    /// Returns the place of the byte at `min_vaddr`, if it is known.
    pub fn known_offset(&self) -> Option<u64> {
        self.offset_of_min_vaddr.filter(|offset| *offset != UNKNOWN)
    }

    /// Returns the file in a protocol buffer.
    ///
    /// # Errors
    /// Returns an error if it is damaged.
    pub fn of_message(message: &'a [u8]) -> Result<Self> {
        Self::decode_message(&mut Cursor::new(message, 0, Endian::Little))
    }

    /// Returns the file as a protocol buffer, without what is not known here.
    pub fn message(&self) -> Vec<u8> {
        let mut e = Encoder::new(Endian::Little);
        self.encode_message(&mut e);
        e.into_bytes()
    }

    fn decode_plain(c: &mut Cursor<'a>) -> Result<Self> {
        let (path, kind) = (until_nul(c, Self::WHAT)?, SimpleperfFileKind(c.u32(Self::WHAT)?));
        let (min_vaddr, count) = (c.u64(Self::WHAT)?, c.u32(Self::WHAT)?);
        let mut symbols = Vec::new();
        for _ in 0..count {
            let (start, len) = (c.u64(Self::WHAT)?, c.u32(Self::WHAT)?);
            symbols.push(SimpleperfSymbol { start, len, name: until_nul(c, Self::WHAT)? });
        }
        let mut file = Self { path, kind, min_vaddr, symbols, ..Self::empty() };
        if kind == SimpleperfFileKind::DEX {
            let count = c.u32(Self::WHAT)?;
            file.dex_file_offsets = c.take_u64s(count.into(), Self::WHAT)?.iter().collect();
        } else if file.has_offset() && !c.is_empty() {
            file.offset_of_min_vaddr = Some(c.u64(Self::WHAT)?);
        }
        file.rest = c.rest();
        Ok(file)
    }

    fn encode_plain(&self, e: &mut Encoder) -> Result<()> {
        put_text(e, self.path);
        e.u32(self.kind.0);
        e.u64(self.min_vaddr);
        e.length(self.symbols.len(), "the number of symbols")?;
        for symbol in &self.symbols {
            e.u64(symbol.start);
            e.u32(symbol.len);
            put_text(e, symbol.name);
        }
        if self.kind == SimpleperfFileKind::DEX {
            e.length(self.dex_file_offsets.len(), "the number of dex files")?;
            self.dex_file_offsets.iter().for_each(|offset| e.u64(*offset));
        } else if let Some(offset) = self.offset_of_min_vaddr.filter(|_| self.has_offset()) {
            e.u64(offset);
        }
        e.bytes(self.rest);
        Ok(())
    }

    fn empty() -> Self {
        Self {
            path: &[],
            kind: SimpleperfFileKind::KERNEL,
            min_vaddr: 0,
            symbols: Vec::new(),
            dex_file_offsets: Vec::new(),
            offset_of_min_vaddr: None,
            rest: &[],
        }
    }

    fn decode_message(c: &mut Cursor<'a>) -> Result<Self> {
        let mut file = Self::empty();
        while let Some((number, value)) = field(c)? {
            match (number, value.message()) {
                (1, _) => file.path = value.bytes(),
                (2, _) => {
                    file.kind =
                        SimpleperfFileKind(u32::try_from(value.number()).unwrap_or(u32::MAX));
                }
                (3, _) => file.min_vaddr = value.number(),
                (4, Some(mut c)) => file.symbols.push(SimpleperfSymbol::decode_message(&mut c)?),
                (5, Some(mut c)) => dex_files(&mut c, &mut file.dex_file_offsets)?,
                (6 | 7, Some(mut c)) => {
                    let mut offset = 0;
                    while let Some((number, value)) = field(&mut c)? {
                        offset = if number == 1 { value.number() } else { offset };
                    }
                    file.offset_of_min_vaddr = Some(offset);
                }
                _ => {}
            }
        }
        Ok(file)
    }

    fn encode_message(&self, e: &mut Encoder) {
        put_bytes(e, 1, self.path);
        put_number(e, 2, self.kind.0.into());
        put_number(e, 3, self.min_vaddr);
        let mut inner = Encoder::new(e.endian());
        for symbol in &self.symbols {
            put_number(&mut inner, 1, symbol.start);
            put_number(&mut inner, 2, symbol.len.into());
            put_bytes(&mut inner, 3, symbol.name);
            put_bytes(e, 4, inner.as_bytes());
            inner.clear();
        }
        match self.kind {
            SimpleperfFileKind::DEX => {
                let mut packed = Encoder::new(e.endian());
                self.dex_file_offsets.iter().for_each(|offset| put_varint(&mut packed, *offset));
                put_bytes(&mut inner, 1, packed.as_bytes());
                put_bytes(e, 5, inner.as_bytes());
            }
            _ if self.has_offset() => {
                put_number(&mut inner, 1, self.offset_of_min_vaddr.unwrap_or(UNKNOWN));
                put_bytes(
                    e,
                    if self.kind == SimpleperfFileKind::ELF { 6 } else { 7 },
                    inner.as_bytes(),
                );
            }
            _ => {}
        }
    }
}

impl<'a> SimpleperfSymbol<'a> {
    fn decode_message(c: &mut Cursor<'a>) -> Result<Self> {
        let mut symbol = Self { start: 0, len: 0, name: &[] };
        while let Some((number, value)) = field(c)? {
            match number {
                1 => symbol.start = value.number(),
                2 => symbol.len = u32::try_from(value.number()).unwrap_or(u32::MAX),
                3 => symbol.name = value.bytes(),
                _ => {}
            }
        }
        Ok(symbol)
    }
}

/// Reads the offsets of dex files: one a field, or many in a row.
fn dex_files(c: &mut Cursor<'_>, offsets: &mut Vec<u64>) -> Result<()> {
    while let Some((number, value)) = field(c)? {
        match value {
            Item::Number(offset) if number == 1 => offsets.push(offset),
            Item::Bytes(mut packed) if number == 1 => {
                while !packed.is_empty() {
                    offsets.push(varint(&mut packed)?);
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Reads the bytes up to a NUL, which is consumed too.
pub(super) fn until_nul<'a>(c: &mut Cursor<'a>, what: &'static str) -> Result<&'a [u8]> {
    let mut ahead = *c;
    let rest = ahead.rest();
    // Without a NUL there is a byte too few.
    let len = rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len());
    let (text, _) = c.take(len + 1, what)?.split_at_checked(len).unwrap_or_default();
    Ok(text)
}

pub(super) fn put_text(e: &mut Encoder, text: &[u8]) {
    e.bytes(text.split(|byte| *byte == 0).next().unwrap_or_default());
    e.u8(0);
}

named! {
    /// Files with their symbols (`FILE`, up to Android 13).
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct SimpleperfFiles<'a> {
        /// The files.
        pub files: Vec<SimpleperfFile<'a>>,
    }
}

/// Files with their symbols, as protocol buffers (`FILE2`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimpleperfFiles2<'a> {
    /// A protocol buffer for each file: [`SimpleperfFile::of_message`].
    pub messages: Vec<Cow<'a, [u8]>>,
}

impl<'a> SimpleperfFiles<'a> {
    /// Reads files until the section ends or cannot be read further; returns that error, too.
    pub fn readable(c: &mut Cursor<'a>) -> (Vec<SimpleperfFile<'a>>, Option<Error>) {
        readable(c, SimpleperfFile::decode_plain)
    }
}

shown! {
    SimpleperfFiles2<'_>: |files| Value::Number(files.messages.len() as i128);
}

impl<'a> SimpleperfFiles2<'a> {
    /// Reads files until the section ends or cannot be read further; returns that error, too.
    pub fn readable(c: &mut Cursor<'a>) -> (Vec<SimpleperfFile<'a>>, Option<Error>) {
        readable(c, SimpleperfFile::decode_message)
    }
}

impl<'a> Wire<'a> for SimpleperfFiles<'a> {
    fn decode(c: &mut Cursor<'a>, _: &'static str) -> Result<Self> {
        let (files, error) = Self::readable(c);
        error.map_or(Ok(Self { files }), Err)
    }

    fn encode(&self, e: &mut Encoder) -> Result<()> {
        for file in &self.files {
            let mut own = Encoder::new(e.endian());
            file.encode_plain(&mut own)?;
            put_sized(e, own.as_bytes())?;
        }
        Ok(())
    }
}

impl<'a> Wire<'a> for SimpleperfFiles2<'a> {
    fn decode(c: &mut Cursor<'a>, _: &'static str) -> Result<Self> {
        let (messages, error) = readable(c, |c| Ok(Cow::Borrowed(c.rest())));
        error.map_or(Ok(Self { messages }), Err)
    }

    fn encode(&self, e: &mut Encoder) -> Result<()> {
        self.messages.iter().try_for_each(|message| put_sized(e, message))
    }
}

/// Reads items, each after its length, until the end or an error.
fn readable<'a, T>(
    c: &mut Cursor<'a>,
    decode: fn(&mut Cursor<'a>) -> Result<T>,
) -> (Vec<T>, Option<Error>) {
    let mut items = Vec::new();
    while !c.is_empty() {
        match sized(c, decode) {
            Ok(item) => items.push(item),
            Err(error) => return (items, Some(error)),
        }
    }
    (items, None)
}

/// Reads a length and the item of that length.
fn sized<'a, T>(c: &mut Cursor<'a>, decode: fn(&mut Cursor<'a>) -> Result<T>) -> Result<T> {
    let len = c.u32(SimpleperfFile::WHAT)? as usize;
    let at = c.offset();
    let mut own = Cursor::new(c.take(len, SimpleperfFile::WHAT)?, at, c.endian());
    decode(&mut own)
}

fn put_sized(e: &mut Encoder, item: &[u8]) -> Result<()> {
    e.length(item.len(), "the length of a file with symbols")?;
    e.bytes(item);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files() -> Vec<SimpleperfFile<'static>> {
        let symbol = |start, name| SimpleperfSymbol { start, len: 16, name };
        let file = |path, kind, offset_of_min_vaddr| SimpleperfFile {
            path,
            kind,
            min_vaddr: 0x1000,
            symbols: vec![symbol(0x1010, &b"_Z1fv"[..]), symbol(0x1020, b"main")],
            dex_file_offsets: if kind == SimpleperfFileKind::DEX {
                vec![0x28, 1 << 40]
            } else {
                Vec::new()
            },
            offset_of_min_vaddr,
            rest: &[],
        };
        vec![
            file(&b"[kernel.kallsyms]"[..], SimpleperfFileKind::KERNEL, None),
            file(b"/vendor/a.ko", SimpleperfFileKind::KERNEL_MODULE, Some(0x20)),
            file(b"/data/app/lib.so", SimpleperfFileKind::ELF, Some(0)),
            file(b"/data/app/old.so", SimpleperfFileKind::ELF, None),
            file(b"/data/app/base.vdex", SimpleperfFileKind::DEX, None),
            file(b"perf-7.map", SimpleperfFileKind::SYMBOL_MAP, None),
        ]
    }

    #[test]
    fn files_come_back_in_both_layouts() {
        for endian in [Endian::Little, Endian::Big] {
            let (mut plain, mut message) = (Encoder::new(endian), Encoder::new(endian));
            SimpleperfFiles { files: files() }.encode(&mut plain).unwrap();
            let messages = files().iter().map(|file| file.message().into()).collect();
            SimpleperfFiles2 { messages }.encode(&mut message).unwrap();
            let back = SimpleperfFiles::from_bytes(plain.as_bytes(), endian).unwrap();
            assert_eq!(back.files, files());
            let (back, error) =
                SimpleperfFiles2::readable(&mut Cursor::new(message.as_bytes(), 0, endian));
            // A protocol buffer always has the offset of an ELF file.
            let known = |files: &[SimpleperfFile<'_>]| {
                files.iter().map(SimpleperfFile::known_offset).collect::<Vec<_>>()
            };
            assert_eq!((known(&back), error), (known(&files()), None));
            assert!(
                back.iter()
                    .zip(files())
                    .all(|(back, file)| back.symbols == file.symbols && back.path == file.path)
            );
        }
    }

    #[test]
    fn files_before_damage_are_read() {
        let mut e = Encoder::new(Endian::Little);
        SimpleperfFiles { files: files() }.encode(&mut e).unwrap();
        for cut in 0..e.len() {
            let (read, error) = SimpleperfFiles::readable(&mut Cursor::new(
                &e.as_bytes()[..cut],
                500,
                Endian::Little,
            ));
            assert_eq!(read, files()[..read.len()]);
            assert!(
                error.is_none_or(|error| (500..=500 + cut as u64).contains(&error.offset)),
                "cut at {cut}"
            );
        }
        let mut lying = Encoder::new(Endian::Little);
        lying.u32(17);
        lying.bytes(&[0; 13]);
        lying.u32(u32::MAX);
        let (read, error) =
            SimpleperfFiles::readable(&mut Cursor::new(lying.as_bytes(), 0, Endian::Little));
        assert!(read.is_empty() && error.is_some());
    }
}

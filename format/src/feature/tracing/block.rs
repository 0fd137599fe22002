//! The block: where each of its parts is.

use super::event::EventFormat;
use crate::bytes::{Cursor, Encoder};
use crate::endian::Endian;
use crate::error::{Error, Result};
use crate::feature::{Feature, FeatureId};
use crate::wire::Wire;

const MAGIC: [u8; 10] = *b"\x17\x08\x44tracing";
const HEADER_PAGE: [u8; 12] = *b"header_page\0";
const HEADER_EVENT: [u8; 13] = *b"header_event\0";

/// A piece of text, and where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part<'a> {
    /// The byte of the file where it begins.
    pub offset: u64,
    /// Its bytes.
    pub bytes: &'a [u8],
}

/// A subsystem of the kernel with the formats of its events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct System<'a> {
    /// Its name, such as `sched`.
    pub name: &'a [u8],
    /// The `format` texts of its events.
    pub formats: Vec<Part<'a>>,
}

/// The contents of TRACING_DATA.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tracing<'a> {
    /// The version, such as `0.6`.
    pub version: &'a [u8],
    /// The byte order of the numbers in the block, and of the machine that recorded.
    pub endian: Endian,
    /// The byte that names the order, as it stands.
    pub order: u8,
    /// Size of a `long` in bytes.
    pub long_size: u8,
    /// Size of a page in bytes.
    pub page_size: u32,
    /// Format of the header of a page of ftrace's buffer.
    pub header_page: Part<'a>,
    /// Format of the header of an event in ftrace's buffer.
    pub header_event: Part<'a>,
    /// The formats of ftrace's own events.
    pub ftrace: Vec<Part<'a>>,
    /// The formats of tracepoints.
    pub systems: Vec<System<'a>>,
    /// `/proc/kallsyms`, where the recorder wrote it.
    pub kallsyms: Part<'a>,
    /// Addresses of strings in the kernel, with their text.
    pub printk_formats: Part<'a>,
    /// Names of threads; there since version 0.6.
    pub saved_cmdlines: Option<Part<'a>>,
    /// The bytes behind it: usually padding.
    pub rest: &'a [u8],
}

impl<'a> Feature<'a> for Tracing<'a> {
    const ID: FeatureId = FeatureId::TRACING_DATA;
}

impl<'a> Wire<'a> for Tracing<'a> {
    fn decode(c: &mut Cursor<'a>, _: &'static str) -> Result<Self> {
        expect(c, &MAGIC, "the mark of tracing data")?;
        let version_at = c.offset();
        let version = c_string(c, "the version of tracing data")?;
        let has_cmdlines = has_cmdlines(version_at, version)?;
        let order_at = c.offset();
        let order = c.u8("the byte order of tracing data")?;
        let endian = match order {
            0 => Endian::Little,
            1 => Endian::Big,
            other => {
                let detail = format!("{other} is neither 0 (little) nor 1 (big)");
                return Err(Error::invalid(order_at, "the byte order of tracing data", detail));
            }
        };
        let offset = c.offset();
        let block = &mut Cursor::new(c.rest(), offset, endian);
        let long_size = block.u8("the size of a long")?;
        let page_size = block.u32("the size of a page")?;
        expect(block, &HEADER_PAGE, "header_page")?;
        let header_page = long_part(block, "header_page")?;
        expect(block, &HEADER_EVENT, "header_event")?;
        let header_event = long_part(block, "header_event")?;
        let ftrace = formats(block, "the formats of ftrace")?;
        let mut systems = Vec::new();
        for _ in 0..block.u32("the number of systems")? {
            let name = c_string(block, "the name of a system")?;
            systems.push(System { name, formats: formats(block, "the formats of a system")? });
        }
        let kallsyms = short_part(block, "kallsyms")?;
        let printk_formats = short_part(block, "printk_formats")?;
        let saved_cmdlines =
            has_cmdlines.then(|| long_part(block, "saved_cmdlines")).transpose()?;
        let rest = block.rest();
        Ok(Self {
            version,
            endian,
            order,
            long_size,
            page_size,
            header_page,
            header_event,
            ftrace,
            systems,
            kallsyms,
            printk_formats,
            saved_cmdlines,
            rest,
        })
    }

    fn encode(&self, into: &mut Encoder) -> Result<()> {
        let mut e = Encoder::new(self.endian);
        e.bytes(&MAGIC);
        put_string(&mut e, self.version)?;
        e.u8(self.order);
        e.u8(self.long_size);
        e.u32(self.page_size);
        e.bytes(&HEADER_PAGE);
        put_long(&mut e, self.header_page);
        e.bytes(&HEADER_EVENT);
        put_long(&mut e, self.header_event);
        put_formats(&mut e, &self.ftrace)?;
        e.length(self.systems.len(), "the number of systems")?;
        for system in &self.systems {
            put_string(&mut e, system.name)?;
            put_formats(&mut e, &system.formats)?;
        }
        for part in [self.kallsyms, self.printk_formats] {
            e.length(part.bytes.len(), "the length of kallsyms or printk_formats")?;
            e.bytes(part.bytes);
        }
        if let Some(part) = self.saved_cmdlines {
            put_long(&mut e, part);
        }
        e.bytes(self.rest);
        into.bytes(e.as_bytes());
        Ok(())
    }
}

impl<'a> Tracing<'a> {
    /// Returns the formats of all tracepoints, read one after another.
    pub fn events(&self) -> impl Iterator<Item = Result<EventFormat>> + use<'_, 'a> {
        self.systems.iter().flat_map(|system| {
            let name = String::from_utf8_lossy(system.name);
            system
                .formats
                .iter()
                .map(move |part| EventFormat::parse(&name, part.bytes, part.offset))
        })
    }

    /// Addresses of strings in the kernel, with their text: lines such as
    /// `0xffffffff8281972f : "rcu_sched"`.
    pub fn strings(&self) -> impl Iterator<Item = (u64, &'a [u8])> + use<'a> {
        self.printk_formats.bytes.split(|byte| *byte == b'\n').filter_map(|line| {
            let colon = line.iter().position(|byte| *byte == b':')?;
            let (address, text) = line.split_at_checked(colon)?;
            let address = std::str::from_utf8(address).ok()?.trim();
            let address =
                u64::from_str_radix(address.strip_prefix("0x").unwrap_or(address), 16).ok()?;
            let text = text.get(1..)?.trim_ascii();
            Some((
                address,
                text.strip_prefix(b"\"").and_then(|text| text.strip_suffix(b"\"")).unwrap_or(text),
            ))
        })
    }
}

/// Returns whether the names of threads are there, by the version.
fn has_cmdlines(offset: u64, version: &[u8]) -> Result<bool> {
    let number = std::str::from_utf8(version).ok().and_then(|text| text.parse::<f64>().ok());
    match number {
        // Since 7, which perf never wrote, parts are compressed.
        Some(number) if (0.0..7.0).contains(&number) => Ok(number >= 0.6),
        _ => {
            let detail = format!("`{}` is none that is known (0.5, 0.6)", version.escape_ascii());
            Err(Error::invalid(offset, "the version of tracing data", detail))
        }
    }
}

fn expect<const N: usize>(c: &mut Cursor<'_>, mark: &[u8; N], what: &'static str) -> Result<()> {
    let offset = c.offset();
    let found = c.array::<N>(what)?;
    if found == *mark {
        return Ok(());
    }
    let detail =
        format!("`{}` stands where `{}` should", found.escape_ascii(), mark.escape_ascii());
    Err(Error::invalid(offset, what, detail))
}

fn c_string<'a>(c: &mut Cursor<'a>, what: &'static str) -> Result<&'a [u8]> {
    let mut ahead = *c;
    let left = ahead.rest();
    match left.iter().position(|byte| *byte == 0) {
        Some(len) => {
            let text = c.take(len, what)?;
            c.u8(what)?;
            Ok(text)
        }
        None => Err(Error::truncated(c.offset(), what, left.len() as u64 + 1, left.len() as u64)),
    }
}

fn long_part<'a>(c: &mut Cursor<'a>, what: &'static str) -> Result<Part<'a>> {
    let size = c.u64(what)?;
    part(c, size, what)
}

fn short_part<'a>(c: &mut Cursor<'a>, what: &'static str) -> Result<Part<'a>> {
    let size = c.u32(what)?;
    part(c, u64::from(size), what)
}

fn part<'a>(c: &mut Cursor<'a>, size: u64, what: &'static str) -> Result<Part<'a>> {
    let offset = c.offset();
    let len =
        usize::try_from(size).map_err(|_| Error::truncated(offset, what, size, c.left() as u64))?;
    Ok(Part { offset, bytes: c.take(len, what)? })
}

/// Each takes at least the bytes of its size, so a count that cannot be ends where the bytes do.
fn formats<'a>(c: &mut Cursor<'a>, what: &'static str) -> Result<Vec<Part<'a>>> {
    let count = c.u32(what)?;
    (0..count).map(|_| long_part(c, what)).collect()
}

fn put_string(e: &mut Encoder, text: &[u8]) -> Result<()> {
    if text.contains(&0) {
        let detail = format!("`{}` has a NUL in it", text.escape_ascii());
        return Err(Error::invalid(e.len() as u64, "a string of tracing data", detail));
    }
    e.bytes(text);
    e.u8(0);
    Ok(())
}

fn put_long(e: &mut Encoder, part: Part<'_>) {
    e.u64(part.bytes.len() as u64);
    e.bytes(part.bytes);
}

fn put_formats(e: &mut Encoder, formats: &[Part<'_>]) -> Result<()> {
    e.length(formats.len(), "the number of formats")?;
    formats.iter().for_each(|format| put_long(e, *format));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn part(bytes: &[u8]) -> Part<'_> {
        Part { offset: 0, bytes }
    }

    fn example(version: &[u8], order: u8) -> Vec<u8> {
        let endian = if order == 1 { Endian::Big } else { Endian::Little };
        let formats = vec![part(b"name: y\nID: 7\nformat:\n"), part(b"name: z\nID: 8\nformat:\n")];
        let block = Tracing {
            version,
            endian,
            order,
            long_size: 8,
            page_size: 4096,
            header_page: part(b"page"),
            header_event: part(b"event"),
            ftrace: vec![part(b"name: f\n")],
            systems: vec![
                System { name: b"a", formats },
                System { name: b"b", formats: Vec::new() },
            ],
            kallsyms: part(b""),
            printk_formats: part(b"0xff10 : \"one\"\n0xff20 : \"two\"\n"),
            saved_cmdlines: (version == b"0.6").then_some(part(b"1 init\n")),
            rest: &[0; 3],
        };

        block.to_bytes(Endian::NATIVE).unwrap()
    }

    #[test]
    fn every_version_and_order_is_read_and_written_back() {
        for (version, order) in [(b"0.5", 0), (b"0.5", 1), (b"0.6", 0), (b"0.6", 1)] {
            let bytes = example(version, order);
            // The order of the file is not that of the block.
            let block = Tracing::decode(&mut Cursor::new(&bytes, 1000, Endian::Big), "").unwrap();
            assert_eq!((block.page_size, block.long_size, block.systems.len()), (4096, 8, 2));
            assert_eq!(block.saved_cmdlines.is_some(), version == b"0.6");
            let names: Vec<_> = block.events().map(|event| event.unwrap().name).collect();
            assert_eq!(names, ["y", "z"]);
            assert_eq!(
                block.strings().collect::<Vec<_>>(),
                [(0xff10, &b"one"[..]), (0xff20, b"two")]
            );
            let first = block.systems[0].formats[0];
            assert_eq!(
                &bytes[usize::try_from(first.offset).unwrap() - 1000..][..first.bytes.len()],
                first.bytes
            );
            assert_eq!(block.to_bytes(Endian::Little).unwrap(), bytes);
        }
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        let bytes = example(b"0.6", 0);
        let error = |bytes: &[u8]| {
            Tracing::decode(&mut Cursor::new(bytes, 100, Endian::NATIVE), "").unwrap_err()
        };
        let mut other = bytes.clone();
        other[10..13].copy_from_slice(b"7.1");
        assert_eq!(error(&other).offset, 110);
        assert!(error(&other).to_string().contains("`7.1`"));
        other.clone_from(&bytes);
        other[14] = 9;
        assert_eq!(
            error(&other).to_string(),
            "the byte order of tracing data: 9 is neither 0 (little) nor 1 (big), at byte 114"
        );
        for len in 0..bytes.len() - 3 {
            assert!(error(&bytes[..len]).offset <= 100 + len as u64);
        }
    }

    proptest! {
        #[test]
        fn damage_is_told_or_read_and_written_back(at in 0usize..200, byte: u8, len in 0usize..300) {
            let mut bytes = example(b"0.6", 0);
            if let Some(old) = bytes.get_mut(at) {
                *old = byte;
            }
            bytes.truncate(len);
            if let Ok(block) = Tracing::from_bytes(&bytes, Endian::NATIVE) {
                let e = block.to_bytes(Endian::NATIVE).unwrap();
                prop_assert_eq!(e, &bytes[..]);
                let _ = (block.events().count(), block.strings().count());
            }
        }
    }
}

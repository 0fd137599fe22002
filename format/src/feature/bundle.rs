//! What a bundle has besides the recording: the names, inlined frames and lines of its addresses,
//! and what unwinding its copied stacks needs. A reader of a bundle needs neither the recorded
//! machine nor its files.
//!
//! The feature is recrep's own; perf passes over it. Its number is far from perf's, which grow from
//! 1, and from those of simpleperf, which begin at 128.
//!
//! ```text
//!   section    version   compression   size         body
//!              1         0 or 1        of the body  List<BundledModule>, List<BundledVersion>; compressed
//!   module     identity  functions, by address   places, by address   image for unwinding
//!                                                └ frames, innermost first
//! ```
//!
//! The second list is left out where it is empty. The body is one zstd frame, or not compressed.
//! All numbers are in the file's byte order.

use std::borrow::Cow;

use crate::abi::constants;
use crate::bytes::{Cursor, Encoder};
use crate::endian::Endian;
use crate::error::{Error, Result};
use crate::fields::{Value, shown};
use crate::wire::{List, Wire, wire};

wire! {
    /// Names of the recorded addresses (`BUNDLE`).
    pub struct Bundle<'a> {
        /// Version of the feature: 1.
        pub version: u32,
        /// Compression of the body.
        pub compression: BodyCompression,
        /// Length of the unpacked body in bytes.
        pub size: u64,
        /// The body, packed: a list of modules ([`BundledModule`]).
        pub body: &'a [u8],
    }
}

/// Bytes of any length, with a 32-bit count before them: a name, a path, the contents of a section.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Counted<'a>(pub &'a [u8]);

impl Counted<'_> {
    /// Returns the bytes as text; what is not UTF-8 is replaced.
    pub fn to_text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(self.0)
    }
}

shown! {
    Counted<'_>: |bytes| Value::Text(bytes.0);
}

impl<'a> Wire<'a> for Counted<'a> {
    fn decode(c: &mut Cursor<'a>, what: &'static str) -> Result<Self> {
        let length = c.u32(what)? as usize;
        c.take(length, what).map(Self)
    }

    fn encode(&self, e: &mut Encoder) -> Result<()> {
        e.length(self.0.len(), "a length in a bundle")?;
        e.bytes(self.0);
        Ok(())
    }
}

wire! {
    /// Module of a bundle: a file, a kernel, a JIT's code, as the recording names it.
    pub owned struct BundledModule<'a> {
        /// Path or name in its mapping record.
        pub path: Counted<'a>,
        /// Kind of module.
        pub kind: BundledKind,
        /// Process whose JIT code this is; 0 for other kinds.
        pub pid: i32,
        /// First address of a kernel module, of a symbol of the kernel, or of one version of a
        /// JIT's code; else 0.
        pub start: u64,
        /// Address after the last of a symbol of the kernel; else 0.
        pub end: u64,
        /// Build ID; empty if none was recorded.
        pub build_id: Counted<'a>,
        /// Major number of the device of its file.
        pub major: u32,
        /// Minor number of the device.
        pub minor: u32,
        /// Inode of its file; 0 if it was not recorded.
        pub inode: u64,
        /// What the names were taken from, for people.
        pub source: Counted<'a>,
        /// Functions that have recorded addresses, by their first address.
        pub functions: List<BundledFunction<'a>>,
        /// Paths of source files, and names of functions, that places refer to.
        pub texts: List<Counted<'a>>,
        /// Recorded addresses with source lines, ascending.
        pub places: List<BundledPlace>,
        /// Parts of the file for unwinding; none if the recording has no copied stacks of it.
        pub images: List<BundledImage<'a>>,
    }
}

wire! {
    /// Function of a module.
    pub struct BundledFunction<'a> {
        /// First address: the offset in a file or in the vDSO, or an address of the kernel or a
        /// JIT's code.
        pub start: u64,
        /// Address after the last.
        pub end: u64,
        /// Name in the symbol table, not demangled.
        pub name: Counted<'a>,
    }

    /// Frame of a place: an inlined function, or the one that contains it.
    pub struct BundledFrame {
        /// Number of the function's name plus one, in the module's texts; 0 if it is unknown.
        pub function: u32,
        /// Number of the path of the source file plus one, in the module's texts; 0 if it is
        /// unknown.
        pub file: u32,
        /// Line in the source file; 0 if it is unknown.
        pub line: u32,
    }

    /// Segment of a file (`PT_LOAD`).
    pub struct BundledSegment {
        /// Linked address.
        pub address: u64,
        /// Size in memory, in bytes.
        pub memory_size: u64,
        /// Size in the file, in bytes.
        pub file_size: u64,
        /// Offset in the file.
        pub offset: u64,
    }

    /// Section of a file, with its contents.
    pub struct BundledSection<'a> {
        /// Name, such as `.eh_frame`.
        pub name: Counted<'a>,
        /// Linked address.
        pub address: u64,
        /// Size in memory; the contents may be left out.
        pub size: u64,
        /// Contents; may be empty.
        pub contents: Counted<'a>,
    }
}

wire! {
    /// Code of a JIT that was at some addresses for a time: other code was there before or after
    /// it.
    pub struct BundledVersion {
        /// Number of its module in the bundle.
        pub module: u32,
        /// Process whose code it is: a child may have its code in its parent's dump.
        pub pid: i32,
        /// Time from which it was there.
        pub time: u64,
        /// First address.
        pub start: u64,
        /// Address after the last.
        pub end: u64,
        /// Address of the module's functions that stands for the first address: no process has code
        /// there.
        pub first: u64,
        /// 1 if other code was at some of the addresses at another time, else 0.
        pub is_replaced: u32,
    }
}

wire! {
    /// Address with its frames.
    pub owned struct BundledPlace {
        /// Address, as those of the functions.
        pub address: u64,
        /// Frames, innermost first.
        pub frames: List<BundledFrame>,
    }
}

wire! {
    /// What unwinding needs of an ELF file.
    pub owned struct BundledImage<'a> {
        /// Class of the file: 1 has 32-bit, 2 has 64-bit words (`EI_CLASS`).
        pub class: u32,
        /// Byte order of the file: 1 is little-, 2 is big-endian (`EI_DATA`).
        pub data: u32,
        /// Machine (`e_machine`).
        pub machine: u32,
        /// Loadable segments.
        pub segments: List<BundledSegment>,
        /// Sections with call frame information, and those that it refers to.
        pub sections: List<BundledSection<'a>>,
    }
}

constants! {
    /// Kind of a module in a bundle.
    pub struct BundledKind(u32) {
        /// File that processes map.
        FILE = 1;
        /// The vDSO.
        VDSO = 2;
        /// The kernel.
        KERNEL = 3;
        /// Module of the kernel.
        KERNEL_MODULE = 4;
        /// Code of a JIT.
        JIT = 5;
        /// Symbol of the kernel with a record of its own (KSYMBOL).
        KERNEL_SYMBOL = 6;
    }

    /// Compression of a bundle's body.
    pub struct BodyCompression(u32) {
        /// None.
        STORED = 0;
        /// One zstd frame.
        ZSTD = 1;
    }
}

impl Bundle<'_> {
    /// Version that this library reads and writes.
    pub const VERSION: u32 = 1;

    /// Most bytes that one byte of a packed body may unpack to: no reader takes memory that its
    /// input does not justify. What would be packed closer is stored.
    pub const MOST_GROWTH: u64 = 64;
}

fn invalid(detail: String) -> Error {
    Error::invalid(0, "BUNDLE", detail)
}

impl<'a> Bundle<'a> {
    /// Returns the body, unpacked.
    ///
    /// # Errors
    /// Returns an error for another version, an unknown compression, and a body that does not
    /// unpack to its size.
    pub fn unpack(&self) -> Result<Cow<'a, [u8]>> {
        if self.version != Self::VERSION {
            let (version, known) = (self.version, Self::VERSION);
            return Err(invalid(format!("its version is {version}, this reader knows {known}")));
        }
        match self.compression {
            BodyCompression::STORED if self.body.len() as u64 == self.size => {
                Ok(Cow::Borrowed(self.body))
            }
            BodyCompression::STORED => {
                Err(invalid(format!("{} bytes instead of {}", self.body.len(), self.size)))
            }
            BodyCompression::ZSTD if self.size > Self::MOST_GROWTH * self.body.len() as u64 => {
                Err(invalid(format!("{} bytes cannot unpack to {}", self.body.len(), self.size)))
            }
            BodyCompression::ZSTD => unpacked(self.body, self.size).map(Cow::Owned),
            other => Err(invalid(format!("its compression {other} is unknown"))),
        }
    }

    /// Returns the feature with a body of `size` bytes that is packed as `packed`; `stored` is the
    /// same, not packed.
    pub fn of(packed: &'a [u8], stored: &'a [u8]) -> Self {
        let size = stored.len() as u64;
        let is_packed =
            packed.len() < stored.len() && size <= Self::MOST_GROWTH * packed.len() as u64;
        let (compression, body) = if is_packed {
            (BodyCompression::ZSTD, packed)
        } else {
            (BodyCompression::STORED, stored)
        };
        Self { version: Self::VERSION, compression, size, body }
    }
}

#[cfg(feature = "zstd")]
fn unpacked(body: &[u8], size: u64) -> Result<Vec<u8>> {
    let capacity = usize::try_from(size).map_err(|error| invalid(error.to_string()))?;
    let bytes = zstd::bulk::decompress(body, capacity)
        .map_err(|error| invalid(format!("zstd: {error}")))?;
    if bytes.len() == capacity {
        Ok(bytes)
    } else {
        Err(invalid(format!("{} bytes instead of {size}", bytes.len())))
    }
}

#[cfg(not(feature = "zstd"))]
fn unpacked(_: &[u8], _: u64) -> Result<Vec<u8>> {
    Err(Error::invalid(0, "BUNDLE", "compressed, and this program was built without zstd"))
}

/// Decodes the modules of an unpacked body.
///
/// # Errors
/// Returns an error if the body is too short for what it announces; its offsets are those in the
/// body.
pub fn bundled_modules(body: &[u8], endian: Endian) -> Result<Vec<BundledModule<'_>>> {
    List::decode(&mut Cursor::new(body, 0, endian), "modules of a bundle").map(|list| list.0)
}

/// Decodes the versions of JITs' code in an unpacked body.
///
/// # Errors
/// Returns an error if the body is too short for what it announces; its offsets are those in the
/// body.
pub fn bundled_versions(body: &[u8], endian: Endian) -> Result<Vec<BundledVersion>> {
    let mut c = Cursor::new(body, 0, endian);
    List::<BundledModule<'_>>::decode(&mut c, "modules of a bundle")?;
    if c.is_empty() {
        return Ok(Vec::new());
    }
    List::decode(&mut c, "versions of code in a bundle").map(|list| list.0)
}

/// Encodes modules, and versions of JITs' code in them, as the body of a bundle, not compressed.
///
/// # Errors
/// Returns an error if a list or a name is longer than 32 bits can say.
pub fn bundle_body_with(
    modules: Vec<BundledModule<'_>>,
    versions: Vec<BundledVersion>,
    endian: Endian,
) -> Result<Vec<u8>> {
    let mut e = Encoder::new(endian);
    List(modules).encode(&mut e)?;
    if !versions.is_empty() {
        List(versions).encode(&mut e)?;
    }
    Ok(e.into_bytes())
}

/// Encodes modules as the body of a bundle, not compressed.
///
/// # Errors
/// Returns an error if a list or a name is longer than 32 bits can say.
pub fn bundle_body(modules: Vec<BundledModule<'_>>, endian: Endian) -> Result<Vec<u8>> {
    bundle_body_with(modules, Vec::new(), endian)
}

#[cfg(all(test, feature = "zstd"))]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_packed_only_as_close_as_readers_allow() {
        let names: Vec<u8> =
            (0..2000u32).flat_map(|n| format!("function_{n}").into_bytes()).collect();
        let packed = zstd::bulk::compress(&names, 3).unwrap();
        let bundle = Bundle::of(&packed, &names);
        assert_eq!(bundle.compression, BodyCompression::ZSTD);
        assert_eq!(bundle.unpack().unwrap(), names);
        let zeroes = vec![0; 1 << 20];
        let packed = zstd::bulk::compress(&zeroes, 3).unwrap();
        let bundle = Bundle::of(&packed, &zeroes);
        assert_eq!(bundle.compression, BodyCompression::STORED);
        assert_eq!(bundle.unpack().unwrap(), zeroes);
    }

    #[test]
    fn a_body_that_does_not_unpack_to_its_size_is_refused() {
        let packed = zstd::bulk::compress(b"some names", 3).unwrap();
        let bundle =
            Bundle { version: 1, compression: BodyCompression::ZSTD, size: 10, body: &packed };
        assert_eq!(bundle.unpack().unwrap(), &b"some names"[..]);
        for bad in [
            Bundle { size: 11, ..bundle },
            Bundle { size: 9, ..bundle },
            Bundle { size: u64::MAX, ..bundle },
            Bundle { version: 2, ..bundle },
            Bundle { compression: BodyCompression(7), ..bundle },
            Bundle { compression: BodyCompression::STORED, ..bundle },
            Bundle { body: &packed[1..], ..bundle },
        ] {
            assert!(bad.unpack().is_err(), "{bad:?}");
        }
    }
}

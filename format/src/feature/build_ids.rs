//! BUILD_ID: the build IDs of the files that were mapped.

use crate::abi::{CpuMode, Pid, RecordType, misc};
use crate::build_id::BuildId;
use crate::bytes::{Cursor, Encoder};
use crate::error::{Error, Result};
use crate::fields::named;
use crate::record::{HEADER_SIZE, HeaderBuildId, RecordHeader};
use crate::wire::{Text, Wire, wire};

named! {
    /// A file and its build ID (`struct build_id_event`): a BUILD_ID record in all but its type.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct BuildIdEvent<'a> {
        /// Type in the record header, as found: perf writes 0 in files.
        pub kind: RecordType,
        /// The record header's `misc`: the CPU mode, and [`misc::BUILD_ID_SIZE`] if the entry has
        /// the length of the build ID.
        pub misc: u16 => hex,
        /// Process, build ID and file name, as in pipe mode.
        pub body: HeaderBuildId<'a>,
    }
}

impl<'a> BuildIdEvent<'a> {
    /// perf pads names to a multiple of this many bytes.
    const NAME_ALIGN: usize = 64;

    /// Makes an entry, with the length of the build ID and no process.
    pub fn new(mode: CpuMode, id: &BuildId, filename: &'a [u8]) -> Self {
        let mut raw = [0; 24];
        let len = u8::try_from(id.as_bytes().len()).unwrap_or(0);
        raw.iter_mut().zip(id.padded().iter().chain([&len])).for_each(|(to, from)| *to = *from);
        let filename = Text::padded(filename, Self::NAME_ALIGN);
        let body = HeaderBuildId { pid: Pid::ANY, raw, filename };
        Self { kind: RecordType(0), misc: mode.bits() | misc::BUILD_ID_SIZE, body }
    }

    /// Returns the build ID: as long as the entry says; where it does not say, 20 bytes.
    pub fn build_id(&self) -> Option<BuildId> {
        self.body.build_id(self.misc)
    }

    /// Returns the file's name, without NUL and padding.
    pub fn name(&self) -> &'a [u8] {
        self.body.filename.as_bytes()
    }

    /// Returns the part of the system that maps the file: kernel, user, guest.
    pub fn cpu_mode(&self) -> CpuMode {
        CpuMode::of(self.misc)
    }
}

impl<'a> Wire<'a> for BuildIdEvent<'a> {
    fn decode(c: &mut Cursor<'a>, what: &'static str) -> Result<Self> {
        let start = c.offset();
        let header = RecordHeader::read(c.array(what)?, c.endian());
        let short = || Error::invalid(start, what, format!("an entry of {} bytes", header.size));
        let len = usize::from(header.size).checked_sub(HEADER_SIZE).ok_or_else(short)?;
        let at = c.offset();
        let mut entry = Cursor::new(c.take(len, what)?, at, c.endian());
        Ok(Self {
            kind: header.kind,
            misc: header.misc,
            body: HeaderBuildId::decode(&mut entry, what)?,
        })
    }

    fn encode(&self, e: &mut Encoder) -> Result<()> {
        let start = e.len();
        RecordHeader { kind: self.kind, misc: self.misc, size: 0 }.encode(e);
        self.body.encode(e)?;
        let len = e.len() - start;
        let size = u16::try_from(len).map_err(|_| {
            let detail = format!("an entry of {len} bytes, more than its header can say (65535)");
            Error::invalid(start as u64, "BUILD_ID", detail)
        })?;
        e.patch_u16(start + 6, size);
        Ok(())
    }
}

named! {
    /// The build IDs of the files that were mapped (`BUILD_ID`).
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct BuildIds<'a> {
        /// Files with their build IDs.
        pub entries: Vec<BuildIdEvent<'a>>,
    }
}

impl<'a> Wire<'a> for BuildIds<'a> {
    fn decode(c: &mut Cursor<'a>, what: &'static str) -> Result<Self> {
        let mut entries = Vec::new();
        while !c.is_empty() {
            entries.push(BuildIdEvent::decode(c, what)?);
        }
        Ok(Self { entries })
    }

    fn encode(&self, e: &mut Encoder) -> Result<()> {
        self.entries.iter().try_for_each(|entry| entry.encode(e))
    }
}

wire! {
    /// Build IDs of Go programs (`GO_BUILD_ID`, not perf's): perf refuses the symbols of a file whose
    /// build ID it does not find in a GNU note.
    pub owned struct GoBuildIds<'a> {
        /// Files with their build IDs.
        pub files: BuildIds<'a>,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endian::Endian;

    #[test]
    fn entries_come_back_with_the_length_of_their_id() {
        let id = BuildId::new(&[7; 16]).unwrap();
        let all = BuildIds {
            entries: vec![
                BuildIdEvent::new(CpuMode::User, &id, b"/usr/bin/ls"),
                BuildIdEvent::new(CpuMode::Kernel, &id, b"[kernel.kallsyms]"),
            ],
        };
        let e = all.to_bytes(Endian::Little).unwrap();
        assert_eq!(e.len(), 2 * (36 + 64));
        let back = BuildIds::from_bytes(&e, Endian::Little).unwrap();
        assert_eq!(back.entries[0].build_id(), Some(id));
        assert_eq!(back.entries[1].name(), b"[kernel.kallsyms]");
        assert_eq!(back.entries[1].cpu_mode(), CpuMode::Kernel);
        assert_eq!(back.to_bytes(Endian::Little).unwrap(), e);
    }

    #[test]
    fn a_name_without_an_end_comes_back_as_it_was() {
        let mut bytes = vec![0u8; 36];
        bytes[6] = 40;
        bytes.extend_from_slice(b"/bin");
        let found = BuildIds::from_bytes(&bytes, Endian::Little).unwrap();
        assert_eq!(found.to_bytes(Endian::Little).unwrap(), bytes);
        assert_eq!(found.entries[0].name(), b"/bin");
    }

    #[test]
    fn a_name_too_long_for_an_entry_is_refused() {
        let id = BuildId::new(&[7; 20]).unwrap();
        let encode = |name: &[u8]| {
            let entries = vec![BuildIdEvent::new(CpuMode::User, &id, name)];
            BuildIds { entries }.encode(&mut Encoder::new(Endian::Little))
        };
        assert!(encode(&[b'a'; 65_471]).is_ok());
        assert!(encode(&[b'a'; 65_472]).is_err());
    }

    #[test]
    fn an_entry_too_small_is_an_error() {
        let bytes = [0u8; 36];
        assert!(BuildIds::from_bytes(&bytes, Endian::Little).is_err());
    }
}

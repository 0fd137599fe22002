//! BUILD_ID: which build of each file was mapped.

use super::strings::unpadded;
use super::{Feature, FeatureId};
use crate::abi::{CpuMode, RecordType, misc};
use crate::build_id::BuildId;
use crate::bytes::{Cursor, Encoder};
use crate::error::{Error, Result};
use crate::record::{HEADER_SIZE, RecordHeader};
use crate::wire::Wire;

/// A file and its build ID (`struct build_id_event`); in pipe mode a record of type BUILD_ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuildIdEvent<'a> {
    /// The record header's type as found: 0 in files, BUILD_ID in pipe mode.
    pub kind: RecordType,
    /// The record header's `misc`: the CPU mode, and whether the length of the build ID is told.
    pub misc: u16,
    /// The process for guests; -1 (all ones) or 0 else.
    pub pid: u32,
    /// The build ID's 20 bytes, its length (where `misc` says so), 3 reserved bytes.
    pub raw: [u8; 24],
    /// The file's name, and what follows its NUL but zeroes.
    filename: &'a [u8],
    /// How many bytes the name takes with its padding.
    padded: usize,
}

impl<'a> BuildIdEvent<'a> {
    /// perf pads names to a multiple of this many bytes.
    pub const NAME_ALIGN: usize = 64;
    const FIXED: usize = HEADER_SIZE + 4 + 24;

    /// An entry to write; the length of the build ID is told.
    #[must_use]
    pub fn new(mode: CpuMode, id: &BuildId, filename: &'a [u8]) -> Self {
        let padded = (filename.len() + 1).next_multiple_of(Self::NAME_ALIGN);
        let mut raw = [0; 24];
        let len = u8::try_from(id.as_bytes().len()).unwrap_or(0);
        raw.iter_mut().zip(id.padded().iter().chain([&len])).for_each(|(to, from)| *to = *from);
        Self { kind: RecordType(0), misc: mode.bits() | misc::BUILD_ID_SIZE, pid: u32::MAX, raw, filename, padded }
    }

    /// The build ID: as long as the entry says; where it does not say, 20 bytes.
    #[must_use]
    pub fn build_id(&self) -> Option<BuildId> {
        let told = self.misc & misc::BUILD_ID_SIZE != 0;
        let len = if told { self.raw.get(BuildId::MAX).map_or(0, |l| usize::from(*l)) } else { BuildId::MAX };
        BuildId::new(self.raw.get(..len.min(BuildId::MAX))?)
    }

    /// The file's name, without NUL and padding.
    #[must_use]
    pub fn name(&self) -> &'a [u8] {
        self.filename.split(|b| *b == 0).next().unwrap_or_default()
    }

    /// Where the file is mapped: kernel, user, guest.
    #[must_use]
    pub fn cpu_mode(&self) -> CpuMode {
        CpuMode::of(self.misc)
    }

    fn decode_one(c: &mut Cursor<'a>) -> Result<Self> {
        const WHAT: &str = "BUILD_ID";
        let start = c.offset();
        let header = RecordHeader::read(c.array(WHAT)?, c.endian());
        let (pid, raw) = (u32::decode(c, WHAT)?, c.array(WHAT)?);
        let len = usize::from(header.size)
            .checked_sub(Self::FIXED)
            .ok_or_else(|| Error::invalid(start, WHAT, format!("an entry of {} bytes", header.size)))?;
        let filename = unpadded(c.take(len, WHAT)?);
        Ok(Self { kind: header.kind, misc: header.misc, pid, raw, filename, padded: len })
    }

    fn encode_one(&self, e: &mut Encoder) -> Result<()> {
        let len = Self::FIXED + self.padded;
        let size = u16::try_from(len).map_err(|_| {
            let detail = format!("an entry of {len} bytes, more than its header can say (65535)");
            Error::invalid(e.len() as u64, "BUILD_ID", detail)
        })?;
        RecordHeader { kind: self.kind, misc: self.misc, size }.encode(e);
        e.u32(self.pid);
        e.bytes(&self.raw);
        e.padded(self.filename, self.padded);
        Ok(())
    }
}

/// The build IDs of the files that were mapped (`BUILD_ID`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildIds<'a> {
    /// The files.
    pub entries: Vec<BuildIdEvent<'a>>,
}

impl<'a> Feature<'a> for BuildIds<'a> {
    const ID: FeatureId = FeatureId::BUILD_ID;

    fn decode(c: &mut Cursor<'a>) -> Result<Self> {
        let mut entries = Vec::new();
        while !c.is_empty() {
            entries.push(BuildIdEvent::decode_one(c)?);
        }
        Ok(Self { entries })
    }

    fn encode(&self, e: &mut Encoder) -> Result<()> {
        self.entries.iter().try_for_each(|entry| entry.encode_one(e))
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
        let mut e = Encoder::new(Endian::Little);
        all.encode(&mut e).unwrap();
        assert_eq!(e.len(), 2 * (36 + 64));
        let back = BuildIds::decode(&mut Cursor::new(e.as_bytes(), 0, Endian::Little)).unwrap();
        assert_eq!(back.entries[0].build_id(), Some(id));
        assert_eq!(back.entries[1].name(), b"[kernel.kallsyms]");
        assert_eq!(back.entries[1].cpu_mode(), CpuMode::Kernel);
        let mut again = Encoder::new(Endian::Little);
        back.encode(&mut again).unwrap();
        assert_eq!(again.as_bytes(), e.as_bytes());
    }

    #[test]
    fn a_name_without_an_end_comes_back_as_it_was() {
        let mut bytes = vec![0u8; 36];
        bytes[6] = 40;
        bytes.extend_from_slice(b"/bin");
        let found = BuildIds::decode(&mut Cursor::new(&bytes, 0, Endian::Little)).unwrap();
        let mut e = Encoder::new(Endian::Little);
        found.encode(&mut e).unwrap();
        assert_eq!(e.as_bytes(), bytes);
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
        assert!(BuildIds::decode(&mut Cursor::new(&bytes, 0, Endian::Little)).is_err());
    }
}

//! The files that were mapped as code, and their build IDs.

use std::time::Duration;

use recrep_format::build_id::BuildId;
use rustc_hash::{FxHashMap, FxHashSet};

use super::mapped::{FileIdentity, MappedFile};
use super::reader::{BuildIdReader, ToKeep};
use crate::output::keep::{Kept, is_dump, is_memory};

/// Maximum number of files at one path. With more of them the path identifies none, so they are not
/// kept.
const MOST_OF_A_PATH: usize = 64;

/// A process in a container that lives longer than this leaves its files.
const ROUND: Duration = Duration::from_millis(100);

/// Files mapped as code, by path: those of a container, or of an upgrade meanwhile, may share one.
#[derive(Debug, Default)]
pub struct Modules {
    files: FxHashMap<Vec<u8>, Vec<FileIdentity>>,
    /// Processes with code in anonymous memory.
    jits: FxHashSet<u32>,
    reader: Option<BuildIdReader>,
}

impl Modules {
    /// Returns none yet; build IDs that the kernel does not give are read by `reader`. The default
    /// keeps nothing.
    pub fn read_by(reader: BuildIdReader) -> Self {
        Self { reader: Some(reader), ..Self::default() }
    }

    /// Returns none yet, read by the same reader.
    pub fn renewed(&self) -> Self {
        Self { reader: self.reader.clone(), ..Self::default() }
    }

    /// Returns how often rings are to be drained, for files that are kept while their processes
    /// live; `None` if none are.
    pub fn round(&self) -> Option<Duration> {
        self.reader.as_ref().filter(|reader| reader.has_keeper()).map(|_| ROUND)
    }

    /// Reads the build ID of a mapped file now, unless it is known already.
    pub fn build_id(&self, path: &[u8], mapped: &MappedFile) -> Option<BuildId> {
        self.reader.as_ref().filter(|_| has_notes(path))?.now(path, mapped)
    }

    /// Adds a mapped file, whose build ID is read soon, while it is there.
    pub fn add_file(&mut self, path: &[u8], mapped: MappedFile) {
        self.note_jit(path, &mapped);
        if self.add(path, FileIdentity::File(mapped.file))
            && let Some(reader) = &self.reader
        {
            reader.later(path, mapped);
        }
    }

    /// Adds a mapped file whose build ID is known. It may have to be kept, unless it was read
    /// (`None`).
    pub fn add_identified(&mut self, path: &[u8], id: BuildId, mapped: Option<MappedFile>) {
        if self.add(path, FileIdentity::BuildId(id))
            && let (Some(reader), Some(mapped)) = (&self.reader, mapped)
        {
            reader.keep_later(ToKeep::File { path: path.to_vec(), id, mapped });
        }
    }

    /// Queues the lists of a JIT's code to be kept, if this is a mapping of such code or of its
    /// dump.
    fn note_jit(&mut self, path: &[u8], mapped: &MappedFile) {
        let Some(reader) = &self.reader else { return };
        if is_memory(path) && self.jits.insert(mapped.pid) {
            reader.keep_later(ToKeep::Jit(mapped.pid));
        } else if is_dump(path) {
            self.jits.insert(mapped.pid);
            reader.keep_later(ToKeep::Dump { path: path.to_vec(), mapped: mapped.clone() });
        }
    }

    /// Queues the lists of a JIT's code to be kept, as its process has ended.
    pub fn end_process(&mut self, pid: u32) {
        self.jits.remove(&pid);
        if let Some(reader) = &self.reader {
            reader.end_process(pid);
        }
    }

    /// Stores the lists of JITs' code for a file whose samples are from `first` to `last`.
    pub fn keep_jits(&self, first: u64, last: u64) {
        if let Some(reader) = &self.reader {
            reader.keep_jits(first, last);
        }
    }

    /// Stores the files that are to be kept; `None` if none are.
    pub fn keep(&self) -> Option<Kept> {
        self.reader.as_ref()?.keep()
    }

    /// Adds those of another part of the recording.
    pub fn absorb(&mut self, other: Self) {
        self.jits.extend(other.jits);
        for (path, identities) in other.files {
            for identity in identities {
                self.add(&path, identity);
            }
        }
    }

    /// Returns the build IDs by path, sorted. A path with several files is left out unless all have
    /// one and the same: no identity is better than a wrong one.
    pub fn identified(&self) -> Vec<(&[u8], BuildId)> {
        let Some(reader) = &self.reader else { return Vec::new() };
        reader.settle();
        let one_id = |path: &[u8], identities: &[FileIdentity]| {
            let mut ids = identities.iter().map(|identity| match identity {
                FileIdentity::File(file) => reader.known(path, *file),
                FileIdentity::BuildId(id) => Some(*id),
            });
            let first = ids.next()??;
            (identities.len() < MOST_OF_A_PATH && ids.all(|id| id == Some(first))).then_some(first)
        };
        let known = self
            .files
            .iter()
            .filter_map(|(path, files)| Some((path.as_slice(), one_id(path, files)?)));
        let mut all: Vec<_> = known.collect();
        all.sort_unstable();
        all
    }

    /// Adds an identity, and returns whether it is new.
    fn add(&mut self, path: &[u8], identity: FileIdentity) -> bool {
        if self.reader.is_none() || !has_notes(path) {
            return false;
        }
        if let Some(known) = self.files.get_mut(path) {
            let new = known.len() < MOST_OF_A_PATH && !known.contains(&identity);
            known.extend(new.then_some(identity));
            new
        } else {
            self.files.insert(path.to_vec(), vec![identity]);
            true
        }
    }
}

/// Returns whether something mapped under this name can have a build ID: a file, or the vDSO; not
/// memory (`//anon`).
fn has_notes(name: &[u8]) -> bool {
    name == b"[vdso]" || (name.starts_with(b"/") && !name.starts_with(b"//"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::build_ids::FileId;

    fn id(byte: u8) -> BuildId {
        BuildId::new(&[byte; 20]).unwrap()
    }

    /// A mapping by no process that lives.
    fn mapped(ino: u64) -> MappedFile {
        MappedFile { pid: u32::MAX, range: 0..1, file: FileId { ino, ..FileId::default() } }
    }

    fn modules() -> Modules {
        Modules::read_by(BuildIdReader::default())
    }

    #[test]
    fn paths_have_one_build_id_or_none() {
        let mut modules = modules();
        modules.add_identified(b"/lib/b", id(2), None);
        modules.add_identified(b"/lib/a", id(1), None);
        modules.add_identified(b"/lib/b", id(2), None);
        assert_eq!(modules.identified(), [(&b"/lib/a"[..], id(1)), (b"/lib/b", id(2))]);
        // Upgraded meanwhile, or of another container.
        modules.add_identified(b"/lib/b", id(3), None);
        assert_eq!(modules.identified(), [(&b"/lib/a"[..], id(1))]);
        // A file with an unknown build ID.
        modules.add_file(b"/lib/a", mapped(5));
        assert_eq!(modules.identified(), []);
    }

    #[test]
    fn memory_is_no_module() {
        let mut modules = modules();
        for name in [&b"//anon"[..], b"[heap]", b"anon_inode:x", b""] {
            modules.add_identified(name, id(1), None);
        }
        assert_eq!(modules.identified(), []);
    }

    #[test]
    fn without_a_reader_nothing_is_kept() {
        let mut modules = Modules::default();
        modules.add_identified(b"/lib/a", id(1), None);
        assert_eq!((modules.identified(), modules.files.len()), (vec![], 0));
    }

    #[test]
    fn a_path_of_endlessly_many_files_is_left_out() {
        let mut modules = modules();
        for ino in 1..1000 {
            modules.add_file(b"/no/such/file", mapped(ino));
        }
        assert_eq!(modules.files.values().map(Vec::len).max(), Some(MOST_OF_A_PATH));
        assert_eq!(modules.identified(), []);
    }

    #[test]
    fn what_several_added_is_what_one_adds() {
        let (mut all, mut other) = (modules(), modules());
        all.add_identified(b"/a", id(1), None);
        other.add_identified(b"/a", id(1), None);
        other.add_identified(b"/b", id(2), None);
        all.absorb(other);
        assert_eq!(all.identified(), [(&b"/a"[..], id(1)), (b"/b", id(2))]);
    }
}

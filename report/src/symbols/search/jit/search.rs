//! The search for the names of a JIT's code.
//!
//! ```text
//!   map: in the container of the living process, or at the recorded path ─► proven (jit::proof) ┐
//!        kept by rec: by the recording's times and the pid                                       ├─► names
//!   dump: kept by rec, in the container, or at the recorded path ─► device and inode ────────────┘
//!   (the longest one)
//! ```
//!
//! A kept map describes the time of the recording, and a map that is written on the time after it,
//! too; so kept names come first, and code that the kept map lacks (the JIT had not yet written it
//! down) has the names of the other one.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::input::map::Bytes;
use crate::symbols::file::{self, Refusal};
use crate::symbols::module::{JitDump, Module, ModuleKind};
use crate::symbols::names::table::{SymbolTable, TableBuilder};
use crate::symbols::outcome::{Outcome, Source};
use crate::symbols::search::candidates;
use crate::symbols::search::jit::frames::JitFrames;
use crate::symbols::search::jit::{self, Version};
use crate::symbols::search::mapped::Search;
use crate::symbols::search::processes::LivingProcess;
use crate::symbols::search::proof::check_recorded;

/// Text of a map, and a note on its proof.
struct MapText {
    text: Vec<u8>,
    note: Option<&'static str>,
}

impl Search {
    /// Returns the symbols of a JIT's code.
    pub(crate) fn jit_symbols(
        &self,
        module: &Module,
        outcome: &mut Outcome,
    ) -> Option<SymbolTable> {
        let ModuleKind::PerfMap { pid, dump } = &module.kind else { return None };
        let living = self.living_process(module, *pid);
        let found = self.symbols_of_maps(module, *pid, living.as_ref(), outcome);
        let Some(dump) = dump.as_ref().filter(|dump| found.is_none() || dump.is_timed) else {
            return found;
        };
        let (source, path, file) = self.read_dump(module, dump, *pid, living.as_ref());
        let read = file.and_then(|bytes| {
            let (parsed, mut table) = (jit::Dump::parse(&bytes)?, TableBuilder::new(false));
            parsed.add_to(&mut table, dump, *pid);
            let is_timed = parsed.versions(dump, *pid).is_some();
            if is_timed {
                parsed.add_versions_to(&mut table, *pid);
            }
            let table = table.finish();
            if !is_timed && parsed.has_replaced() {
                (outcome.note, outcome.judged) =
                    (Some(jit::UNTIMED.into()), Some(parsed.replaced_in(&table)));
            }
            Ok(table)
        });
        // The dump has times, and a map only the last state.
        outcome.keep(source, &path, read).or(found)
    }

    /// Returns the versions of a JIT's code, if its dump is proven and has the times of the
    /// recording.
    pub(crate) fn jit_versions(&self, module: &Module) -> Option<Vec<Version>> {
        let ModuleKind::PerfMap { pid, dump: Some(dump) } = &module.kind else { return None };
        if !dump.is_timed {
            return None;
        }
        let living = self.living_process(module, *pid);
        let (_, _, file) = self.read_dump(module, dump, *pid, living.as_ref());
        jit::Dump::parse(&file.ok()?).ok()?.versions(dump, *pid)
    }

    /// Returns what unwinding needs of a JIT's code, if its dump is proven.
    pub(crate) fn jit_frames(&self, module: &Module) -> Option<JitFrames> {
        let ModuleKind::PerfMap { pid, dump: Some(dump) } = &module.kind else { return None };
        let living = self.living_process(module, *pid);
        let (_, _, file) = self.read_dump(module, dump, *pid, living.as_ref());
        JitFrames::of(&file.ok()?, dump, *pid).ok()
    }

    fn symbols_of_maps(
        &self,
        module: &Module,
        pid: i32,
        living: Option<&LivingProcess>,
        outcome: &mut Outcome,
    ) -> Option<SymbolTable> {
        let inner = living.filter(|process| process.is_elsewhere || process.inner != pid);
        let inner = inner.map(|process| {
            self.processes.root(pid).join("tmp").join(format!("perf-{}.map", process.inner))
        });
        let (mut text, mut found) = (MapText { text: Vec::new(), note: None }, None);
        for path in inner.into_iter().chain([candidates::below(&self.options, module.as_path())]) {
            let read = self.read_map(&path, module, living);
            let (read, table) = read.map_or_else(
                |refusal| (None, Err(refusal)),
                |map| {
                    let table = jit::of_map(&map.text);
                    (Some(map), Ok(table))
                },
            );
            found = outcome.keep(Source::PerfMap, &path, table);
            if let (Some(_), Some(map)) = (&found, read) {
                text = map;
                break;
            }
        }
        if let Some(path) = self.kept_list(module, pid, "map") {
            let kept = file::read_all(&path);
            if let Ok(kept) = &kept {
                text.text.push(b'\n');
                text.text.extend(kept);
                text.note = None;
            }
            if outcome.keep(Source::Kept, &path, kept.map(|kept| jit::of_map(&kept))).is_some() {
                found = Some(jit::of_map(&text.text));
            }
        }
        if let Some(note) = text.note.filter(|_| found.is_some()) {
            outcome.note = Some(note.into());
        }
        found
    }

    /// Reads a map if it is proven to be the recorded process's, or trusted.
    fn read_map(
        &self,
        path: &Path,
        module: &Module,
        living: Option<&LivingProcess>,
    ) -> Result<MapText, Refusal> {
        if self.processes.is_below(path) && fs::symlink_metadata(path)?.is_symlink() {
            // It would lead to a file of ours.
            return Err(Refusal::NotRegular);
        }
        let map = file::open(path)?;
        let note = if self.options.trusts_paths() {
            None
        } else {
            self.host.made(&module.origin)?;
            module.life.check_map(&map.metadata()?, living)?
        };
        Ok(MapText { text: file::bytes_of(map)?.to_vec(), note })
    }

    /// Returns the process of a JIT's code, if it still lives.
    fn living_process(&self, module: &Module, pid: i32) -> Option<LivingProcess> {
        if self.options.symfs.is_some() || self.host.made(&module.origin).is_err() {
            return None;
        }
        let process = self.processes.process(pid)?;
        let is_there = module.mounts.is_none_or(|mounts| process.mounts == Some(mounts));
        (is_there && module.life.is_living(process.started)).then_some(process)
    }

    /// Returns the path at which rec kept a list of the process's code.
    fn kept_list(&self, module: &Module, pid: i32, suffix: &str) -> Option<PathBuf> {
        let kept = self.options.cache.as_ref()?.join("kept/jit");
        Some(kept.join(module.life.kept_name(pid, suffix)?))
    }

    /// Reads the jitdump of a JIT's module if it is proven to be the recorded one; also returns
    /// where it is. The JIT may write to it after the recording what it had held back.
    fn read_dump(
        &self,
        module: &Module,
        dump: &JitDump,
        pid: i32,
        living: Option<&LivingProcess>,
    ) -> (Source, PathBuf, Result<Bytes, Refusal>) {
        let (path, found) = self.read_recorded_dump(module, dump, pid, living);
        let kept = self.kept_list(module, pid, "dump").filter(|path| path.is_file());
        if let Some(kept) = kept
            && let Ok(bytes) = file::open(&kept).and_then(file::bytes_of)
            && found.as_ref().map_or(true, |found| found.len() <= bytes.len())
        {
            return (Source::Kept, kept, Ok(bytes));
        }
        (Source::JitDump, path, found)
    }

    /// Reads the jitdump where it was recorded.
    fn read_recorded_dump(
        &self,
        module: &Module,
        dump: &JitDump,
        pid: i32,
        living: Option<&LivingProcess>,
    ) -> (PathBuf, Result<Bytes, Refusal>) {
        let proof =
            if self.options.trusts_paths() { Ok(()) } else { self.host.made(&module.origin) };
        let recorded = Path::new(OsStr::from_bytes(&dump.path));
        let mounts = module.mounts.filter(|_| self.options.symfs.is_none() && proof.is_ok());
        let root = mounts.and_then(|mounts| self.processes.root_of(mounts)).map(Path::to_owned);
        let root = root.or_else(|| {
            living.filter(|process| process.is_elsewhere).map(|_| self.processes.root(pid))
        });
        let path = match root {
            Some(root) => root.join(recorded.strip_prefix("/").unwrap_or(recorded)),
            None => candidates::below(&self.options, recorded),
        };
        let found = file::open(&path).and_then(|file| {
            proof?;
            if !self.options.trusts_paths() {
                // Without the time of the recording: the JIT may write to the file after it.
                check_recorded(&file, dump.file, None)?;
                module.life.check_created(&file.metadata()?)?;
            }
            file::bytes_of(file)
        });
        (path, found)
    }
}

//! Where the symbols of a mapped file may be.
//!
//! Distributions strip what they ship and keep the symbols elsewhere. In this order, below `--symfs` where it says so:
//!
//! | source            | place                                                              |
//! |-------------------|--------------------------------------------------------------------|
//! | recorded path     | symfs + path; without ` (deleted)` if a build ID can vouch for it  |
//! | debuglink         | the named file in symfs + directory, in its `.debug`, in symfs + `/usr/lib/debug` + directory |
//! | build ID cache    | `CACHE/.build-id/xx/yy…/elf`, `…/debug`, or that name itself a file |
//! | debug directory   | symfs + `/usr/lib/debug` + path + `.debug`, or without `.debug`    |
//! | debuginfod's cache | `DIR/xxyy…/executable`, `…/debuginfo`: what its clients and [`super::fetch`] fetched |
//! | debug by build ID | symfs + `/usr/lib/debug/.build-id/xx/yy….debug`                    |
//!
//! A build ID directory is a promise by name only, so what is found there is checked like everything else.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use recrep_format::build_id::BuildId;

use super::module::Module;
use super::outcome::Source;
use crate::query::SymbolOptions;

/// The names that debuginfod has for a debug file and for the file that was mapped, in its cache and in its addresses.
pub(super) const DEBUG_INFO: &str = "debuginfo";
pub(super) const EXECUTABLE: &str = "executable";

/// Where distributions keep separate debug files.
const DEBUG_DIRECTORY: &str = "/usr/lib/debug";

/// The places where the mapped file itself may be, by its recorded path.
pub(super) fn recorded(module: &Module, options: &SymbolOptions) -> Vec<PathBuf> {
    let path = &*module.path;
    let mut places = vec![below(options, module.as_path())];
    if let (Some(live), true) = (path.strip_suffix(b" (deleted)"), module.build_id.is_some()) {
        places.push(below(options, Path::new(OsStr::from_bytes(live))));
    }
    places
}

/// The places of the file that `link` names.
pub(super) fn debug_link(module: &Module, link: &[u8], options: &SymbolOptions) -> Vec<(Source, PathBuf)> {
    let Some(directory) = module.as_path().parent() else { return Vec::new() };
    let link = Path::new(OsStr::from_bytes(link));
    let near = below(options, directory);
    let far = below(options, &append(Path::new(DEBUG_DIRECTORY), directory));
    [near.join(link), near.join(".debug").join(link), far.join(link)].map(|path| (Source::DebugLink, path)).into()
}

/// The places that are known without the mapped file.
pub(super) fn elsewhere(module: &Module, options: &SymbolOptions) -> Vec<(Source, PathBuf)> {
    let mut places = Vec::new();
    if let Some(entry) = module.build_id.as_ref().and_then(|id| cache_entry(id, options)) {
        places.extend(["elf", "debug"].map(|name| (Source::BuildIdCache, entry.join(name))));
        places.push((Source::BuildIdCache, entry));
    }
    let debug = append(Path::new(DEBUG_DIRECTORY), module.as_path());
    let mut with_suffix = debug.clone().into_os_string();
    with_suffix.push(".debug");
    places.push((Source::DebugDirectory, below(options, Path::new(&with_suffix))));
    places.push((Source::DebugDirectory, below(options, &debug)));
    if let Some(by_id) = module.build_id.as_ref().and_then(build_id_path) {
        let mut path = Path::new(DEBUG_DIRECTORY).join(".build-id").join(by_id).into_os_string();
        path.push(".debug");
        places.push((Source::DebugBuildId, below(options, Path::new(&path))));
    }
    if let (Some(cache), Some(id)) = (&options.debuginfod_cache, &module.build_id) {
        let entry = cache.join(id.to_string());
        // Debug files do not always say where things were in the file that was mapped.
        places.extend([EXECUTABLE, DEBUG_INFO].map(|name| (Source::Debuginfod, entry.join(name))));
    }
    places
}

/// The places of a file that is known by its build ID alone.
pub(super) fn by_build_id(module: &Module, options: &SymbolOptions) -> Vec<(Source, PathBuf)> {
    let only = |(source, _): &(Source, PathBuf)| {
        matches!(source, Source::BuildIdCache | Source::DebugBuildId | Source::Debuginfod)
    };
    elsewhere(module, options).into_iter().filter(only).collect()
}

/// What the build ID cache holds for `id`: a directory, or (written by older recorders) a file.
pub(super) fn cache_entry(id: &BuildId, options: &SymbolOptions) -> Option<PathBuf> {
    Some(options.build_id_dir.as_ref()?.join(".build-id").join(build_id_path(id)?))
}

/// `xx/yy…`: the first byte of the ID names a directory, the others what is in it.
fn build_id_path(id: &BuildId) -> Option<PathBuf> {
    let digits = id.to_string();
    let (directory, name) = digits.split_at_checked(2)?;
    (!name.is_empty()).then(|| Path::new(directory).join(name))
}

/// `path` below the root that holds the recorded machine's files.
pub(super) fn below(options: &SymbolOptions, path: &Path) -> PathBuf {
    options.symfs.as_ref().map_or_else(|| path.to_owned(), |root| append(root, path))
}

/// `path` below `root`, be it absolute or not.
fn append(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(places: Vec<(Source, PathBuf)>) -> Vec<String> {
        places.into_iter().map(|(_, path)| path.display().to_string()).collect()
    }

    #[test]
    fn places_of_a_stripped_file() {
        let id = BuildId::new(&[0xab, 0xcd, 0xef]).unwrap();
        let module = Module::file(b"/usr/bin/x", Some(id));
        let options = SymbolOptions { build_id_dir: Some("/home/u/.debug".into()), ..SymbolOptions::default() };
        assert_eq!(
            paths(elsewhere(&module, &options)),
            [
                "/home/u/.debug/.build-id/ab/cdef/elf",
                "/home/u/.debug/.build-id/ab/cdef/debug",
                "/home/u/.debug/.build-id/ab/cdef",
                "/usr/lib/debug/usr/bin/x.debug",
                "/usr/lib/debug/usr/bin/x",
                "/usr/lib/debug/.build-id/ab/cdef.debug",
            ]
        );
        assert_eq!(
            paths(debug_link(&module, b"x.dbg", &options)),
            ["/usr/bin/x.dbg", "/usr/bin/.debug/x.dbg", "/usr/lib/debug/usr/bin/x.dbg"]
        );
    }

    #[test]
    fn symfs_is_the_root_of_all_but_the_cache() {
        let options = SymbolOptions { symfs: Some("/sys root".into()), ..SymbolOptions::default() };
        let module = Module::file(b"/bin/x", None);
        assert_eq!(recorded(&module, &options), [Path::new("/sys root/bin/x")]);
        assert_eq!(
            paths(elsewhere(&module, &options)),
            ["/sys root/usr/lib/debug/bin/x.debug", "/sys root/usr/lib/debug/bin/x"]
        );
    }

    #[test]
    fn a_deleted_file_may_be_back_if_its_build_id_vouches_for_it() {
        let options = SymbolOptions::default();
        let id = BuildId::new(&[1]);
        assert_eq!(recorded(&Module::file(b"/b/x (deleted)", None), &options).len(), 1);
        assert_eq!(recorded(&Module::file(b"/b/x (deleted)", id), &options)[1], Path::new("/b/x"));
    }
}

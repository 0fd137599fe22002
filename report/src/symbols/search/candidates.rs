//! Paths at which the symbols of a mapped file may be found; [`super`] opens the files and checks
//! them.
//!
//! Distributions strip their binaries and ship the symbols separately. The search tries these
//! places in this order (`symfs` is the directory given with `--symfs`, if any):
//!
//! | source             | place                                                               |
//! |--------------------|---------------------------------------------------------------------|
//! | recorded path      | symfs + path; if the build ID is known, also without ` (deleted)`   |
//! | debuglink          | the linked file in symfs + directory, its `.debug`, symfs + `/usr/lib/debug` + directory |
//! | build ID cache     | `CACHE/.build-id/xx/yy…/elf`, `…/debug`, or a file of that name     |
//! | kept by rec        | `~/.cache/recrep/kept/xx/yy….elf`                                   |
//! | debug directory    | symfs + `/usr/lib/debug` + path + `.debug`, or without `.debug`     |
//! | debug by build ID  | symfs + `/usr/lib/debug/.build-id/xx/yy….debug`                     |
//! | debuginfod's cache | `DIR/xxyy…/executable`, `…/debuginfo`: fetched by its clients or [`super::fetch`] |
//!
//! A recorder may have appended zeros to a build ID ([`BuildId::spellings`]): a path has it without
//! them or with them.
//!
//! A build ID in a path proves nothing, so files found there are verified like all others.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use recrep_format::build_id::BuildId;

use crate::query::SymbolOptions;
use crate::symbols::module::Module;
use crate::symbols::outcome::Source;

/// Debuginfod's name for a debug file, in its cache and in its URLs.
pub(crate) const DEBUG_INFO: &str = "debuginfo";
/// Debuginfod's name for the file that was mapped.
pub(crate) const EXECUTABLE: &str = "executable";

/// Directory in which distributions install separate debug files.
const DEBUG_DIRECTORY: &str = "/usr/lib/debug";

/// Returns the paths at which the mapped file itself may be.
pub(crate) fn recorded(module: &Module, options: &SymbolOptions) -> Vec<PathBuf> {
    let path = &*module.path;
    let mut places = vec![below(options, module.as_path())];
    if let (Some(live), true) = (path.strip_suffix(b" (deleted)"), module.build_id.is_some()) {
        places.push(below(options, Path::new(OsStr::from_bytes(live))));
    }
    places
}

/// Returns the paths at which the file named by the debuglink `link` may be.
pub(crate) fn debug_link(
    module: &Module,
    link: &[u8],
    options: &SymbolOptions,
) -> Vec<(Source, PathBuf)> {
    let Some(directory) = module.as_path().parent() else { return Vec::new() };
    let link = Path::new(OsStr::from_bytes(link));
    let near = below(options, directory);
    let far = below(options, &append(Path::new(DEBUG_DIRECTORY), directory));
    [near.join(link), near.join(".debug").join(link), far.join(link)]
        .map(|path| (Source::DebugLink, path))
        .into()
}

/// Returns the places that follow from the module's path and build ID alone.
pub(crate) fn elsewhere(module: &Module, options: &SymbolOptions) -> Vec<(Source, PathBuf)> {
    let mut places = Vec::new();
    let entries = module.build_id.map(|id| cache_entries(&id, options)).unwrap_or_default();
    for entry in entries {
        places.extend(["elf", "debug"].map(|name| (Source::BuildIdCache, entry.join(name))));
        places.push((Source::BuildIdCache, entry));
    }
    if let (Some(cache), Some(by_id)) =
        (&options.cache, module.build_id.as_ref().and_then(build_id_path))
    {
        places.push((Source::Kept, suffixed(&cache.join("kept").join(by_id), ".elf")));
    }
    let debug = append(Path::new(DEBUG_DIRECTORY), module.as_path());
    places.push((Source::DebugDirectory, below(options, &suffixed(&debug, ".debug"))));
    places.push((Source::DebugDirectory, below(options, &debug)));
    let spellings = module.build_id.map(|id| id.spellings()).unwrap_or_default();
    for by_id in spellings.iter().filter_map(build_id_path) {
        let path = Path::new(DEBUG_DIRECTORY).join(".build-id").join(by_id);
        places.push((Source::DebugBuildId, below(options, &suffixed(&path, ".debug"))));
    }
    for name in [EXECUTABLE, DEBUG_INFO] {
        // The executable first: a debug file alone does not always give the offsets in the mapped
        // file.
        places.extend(module.build_id.iter().flat_map(|id| fetched(id, name, options)));
    }
    places
}

/// Returns the paths in debuginfod's cache of the file `name` with this build ID.
pub(crate) fn fetched(
    id: &BuildId,
    name: &'static str,
    options: &SymbolOptions,
) -> Vec<(Source, PathBuf)> {
    let Some(cache) = &options.debuginfod_cache else { return Vec::new() };
    let spellings = id.spellings().into_iter();
    spellings.map(|id| (Source::Debuginfod, cache.join(id.to_string()).join(name))).collect()
}

/// Returns the places that follow from the module's build ID alone.
pub(crate) fn by_build_id(module: &Module, options: &SymbolOptions) -> Vec<(Source, PathBuf)> {
    use Source::{BuildIdCache, DebugBuildId, Debuginfod, Kept};
    let mut places = elsewhere(module, options);
    places.retain(|(source, _)| matches!(source, BuildIdCache | Kept | DebugBuildId | Debuginfod));
    places
}

/// Returns the paths that `id` may have in the build ID cache, each of a directory or (written by
/// older recorders) a file.
pub(crate) fn cache_entries(id: &BuildId, options: &SymbolOptions) -> Vec<PathBuf> {
    let Some(cache) = &options.build_id_dir else { return Vec::new() };
    let paths = id.spellings().into_iter().filter_map(|id| build_id_path(&id));
    paths.map(|path| cache.join(".build-id").join(path)).collect()
}

/// Returns `xx/yy…`: the first byte of the ID is a directory, the others are the name in it.
fn build_id_path(id: &BuildId) -> Option<PathBuf> {
    let digits = id.to_string();
    let (directory, name) = digits.split_at_checked(2)?;
    (!name.is_empty()).then(|| Path::new(directory).join(name))
}

/// Returns `path` below `--symfs`, if given.
pub(crate) fn below(options: &SymbolOptions, path: &Path) -> PathBuf {
    options.symfs.as_ref().map_or_else(|| path.to_owned(), |root| append(root, path))
}

/// Appends a suffix to the file name of a path.
pub(crate) fn suffixed(path: &Path, suffix: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}

/// Joins `path` to `root`, even if `path` is absolute.
fn append(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbols::module::ModuleKind;

    fn paths(places: Vec<(Source, PathBuf)>) -> Vec<String> {
        places.into_iter().map(|(_, path)| path.display().to_string()).collect()
    }

    #[test]
    fn places_of_a_stripped_file() {
        let id = BuildId::new(&[0xab, 0xcd, 0xef]).unwrap();
        let module = Module::new(b"/usr/bin/x", Some(id), ModuleKind::File);
        let options = SymbolOptions {
            build_id_dir: Some("/home/u/.debug".into()),
            ..SymbolOptions::default()
        };
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
    fn a_padded_build_id_is_searched_without_its_padding_too() {
        let md5: Vec<u8> = (1..=16).chain([0; 4]).collect();
        let module = Module::new(b"/x", BuildId::new(&md5), ModuleKind::File);
        let options = SymbolOptions {
            build_id_dir: Some("/b".into()),
            debuginfod_cache: Some("/d".into()),
            ..SymbolOptions::default()
        };
        let places = paths(elsewhere(&module, &options));
        for padding in ["", "00000000"] {
            let name = format!("02030405060708090a0b0c0d0e0f10{padding}");
            for path in [
                format!("/b/.build-id/01/{name}/elf"),
                format!("/usr/lib/debug/.build-id/01/{name}.debug"),
                format!("/d/01{name}/executable"),
            ] {
                assert!(places.contains(&path), "{path} in {places:#?}");
            }
        }
    }

    #[test]
    fn symfs_is_the_root_of_all_but_the_cache() {
        let options = SymbolOptions { symfs: Some("/sys root".into()), ..SymbolOptions::default() };
        let module = Module::new(b"/bin/x", None, ModuleKind::File);
        assert_eq!(recorded(&module, &options), [Path::new("/sys root/bin/x")]);
        assert_eq!(
            paths(elsewhere(&module, &options)),
            ["/sys root/usr/lib/debug/bin/x.debug", "/sys root/usr/lib/debug/bin/x"]
        );
    }

    #[test]
    fn a_deleted_file_with_a_build_id_is_also_searched_without_the_suffix() {
        let options = SymbolOptions::default();
        let id = BuildId::new(&[1]);
        let places = |id| recorded(&Module::new(b"/b/x (deleted)", id, ModuleKind::File), &options);
        assert_eq!(places(None).len(), 1);
        assert_eq!(places(id)[1], Path::new("/b/x"));
    }
}

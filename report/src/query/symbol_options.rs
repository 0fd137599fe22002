//! Options for finding and showing symbols.

use std::path::PathBuf;

use super::servers::Servers;

/// Options for finding and showing symbols.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SymbolOptions {
    /// Directory that holds the recorded machine's files, instead of `/`. This machine's kernel is not used then.
    pub symfs: Option<PathBuf>,
    /// Copy of the recorded kernel's `/proc/kallsyms`.
    pub kallsyms: Option<PathBuf>,
    /// The recorded kernel's image, with symbols.
    pub vmlinux: Option<PathBuf>,
    /// Directory in which recorders keep copies of files by build ID, by default `~/.debug`.
    pub build_id_dir: Option<PathBuf>,
    /// Directory in which rep keeps copies of `/proc/kallsyms`, by default `~/.cache/recrep`.
    pub cache: Option<PathBuf>,
    /// `true` if C++ and Rust symbols are shown as recorded.
    pub mangled: bool,
    /// `true` if kernel symbols are demangled too.
    pub demangle_kernel: bool,
    /// Cache directory of debuginfod's clients, which rep shares.
    pub debuginfod_cache: Option<PathBuf>,
    /// Servers from which missing files are fetched, if the user wants that.
    pub servers: Option<Servers>,
    /// `true` if no vmlinux is searched for in the usual places.
    pub ignore_vmlinux: bool,
    /// `true` if files at the recorded paths are used without proof that they are the recorded ones.
    pub trust_paths: bool,
    /// `true` if source files are shown with their directories.
    pub source_paths: bool,
}

impl SymbolOptions {
    /// Returns whether the files at the recorded paths (below `--symfs`) are taken for the recorded ones without proof.
    pub fn trusts_paths(&self) -> bool {
        self.trust_paths || self.symfs.is_some()
    }
}

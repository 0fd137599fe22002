//! What the user may say about where symbols come from.

use std::path::{Path, PathBuf};

use super::servers::Servers;

/// What the user asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SymbolOptions {
    /// The directory that holds the recorded machine's files, in place of `/`. This machine's kernel is not used then.
    pub symfs: Option<PathBuf>,
    /// A copy of the recorded kernel's `/proc/kallsyms`.
    pub kallsyms: Option<PathBuf>,
    /// The recorded kernel's image with its symbols.
    pub vmlinux: Option<PathBuf>,
    /// The directory in which recorders keep copies by build ID; `~/.debug` by habit.
    pub build_id_dir: Option<PathBuf>,
    /// Whether names are shown as people write them.
    pub demangle: bool,
    /// Whether that is so of the kernel's names, too.
    pub demangle_kernel: bool,
    /// Where debuginfod's clients keep what they fetched, and so does rep.
    pub debuginfod_cache: Option<PathBuf>,
    /// The servers that are asked for what is missing, if the user wants that.
    pub servers: Option<Servers>,
    /// Whether kernel images are left alone that nobody named.
    pub ignore_vmlinux: bool,
    /// Whether files at the recorded paths are used without proof that they are the recorded ones.
    pub trust_paths: bool,
    /// Whether source files are shown with their directories.
    pub source_paths: bool,
}

impl Default for SymbolOptions {
    fn default() -> Self {
        Self {
            symfs: None,
            kallsyms: None,
            vmlinux: None,
            build_id_dir: None,
            demangle: true,
            debuginfod_cache: None,
            servers: None,
            ignore_vmlinux: false,
            trust_paths: false,
            source_paths: false,
            demangle_kernel: false,
        }
    }
}

impl SymbolOptions {
    /// Whether the user says that the files at the recorded paths (below `--symfs`) are the recorded ones.
    #[must_use]
    pub fn trusts_paths(&self) -> bool {
        self.trust_paths || self.symfs.is_some()
    }

    /// The defaults, with the build ID directory of the user whose home this is.
    #[must_use]
    pub fn of_home(home: Option<&Path>) -> Self {
        Self { build_id_dir: home.map(|home| home.join(".debug")), ..Self::default() }
    }
}

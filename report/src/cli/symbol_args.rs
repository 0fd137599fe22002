//! Options for the sources of symbols, shared by all commands that print function names.

use std::path::PathBuf;

use clap::Args;

use crate::query::{Servers, SymbolOptions};

/// Options for the sources of symbols.
#[derive(Clone, Debug, Default, Args)]
pub struct SymbolArgs {
    /// Look for the recorded machine's files below DIR instead of /
    #[arg(long, value_name = "DIR")]
    symfs: Option<PathBuf>,

    /// Read kernel symbols from FILE, a copy of the recorded kernel's /proc/kallsyms
    #[arg(long, value_name = "FILE")]
    kallsyms: Option<PathBuf>,

    /// Read kernel symbols from FILE, the recorded kernel's vmlinux
    #[arg(short = 'k', long, value_name = "FILE")]
    vmlinux: Option<PathBuf>,

    /// Do not search the usual places for a vmlinux
    #[arg(long, conflicts_with = "vmlinux")]
    ignore_vmlinux: bool,

    /// Use the files at recorded paths without checking their build IDs or inodes
    #[arg(long)]
    trust_paths: bool,

    /// Show source files with their full paths
    #[arg(long)]
    full_source_path: bool,

    /// Demangle kernel symbols too
    #[arg(long, conflicts_with = "no_demangle")]
    demangle_kernel: bool,

    /// Directory of the build ID cache [default: $PERF_BUILDID_DIR, else ~/.debug]
    #[arg(long, value_name = "DIR")]
    buildid_dir: Option<PathBuf>,

    /// Fetch a module's debug file from the servers in DEBUGINFOD_URLS if at least PERCENT (if omitted: 1) of all
    /// samples are in it and have no function (if lines are shown: no line) [without this option: fetch nothing]
    #[arg(long, value_name = "PERCENT", num_args = 0..=1, require_equals = true, default_missing_value = "1",
          value_parser = Servers::share)]
    debuginfod: Option<u32>,

    /// Do not demangle symbols
    #[arg(long)]
    no_demangle: bool,

    /// Demangle C++ and Rust symbols (default)
    #[arg(long, overrides_with = "no_demangle")]
    demangle: bool,
}

impl SymbolArgs {
    /// Adds the settings in environment variables to these options.
    ///
    /// # Errors
    /// Returns an error if `--debuginfod` is given and its environment variables are missing or malformed.
    pub fn options(self) -> Result<SymbolOptions, String> {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let default_dir = || set("PERF_BUILDID_DIR").or_else(|| Some(set("HOME")?.join(".debug")));
        let debuginfod_cache = debuginfod_cache(set);
        let text = |name: &str| set(name).map(|value| value.to_string_lossy().into_owned());
        let servers = self.debuginfod.map(|least| Servers::of(text, least, debuginfod_cache.clone())).transpose()?;
        Ok(SymbolOptions {
            symfs: self.symfs,
            kallsyms: self.kallsyms,
            vmlinux: self.vmlinux,
            build_id_dir: self.buildid_dir.or_else(default_dir),
            cache: user_cache(set).map(|cache| cache.join("recrep")),
            mangled: self.no_demangle,
            debuginfod_cache,
            servers,
            ignore_vmlinux: self.ignore_vmlinux,
            trust_paths: self.trust_paths,
            source_paths: self.full_source_path,
            demangle_kernel: self.demangle_kernel,
        })
    }
}

/// Returns the cache directory of debuginfod's clients: debuginfod-client-config(7), "CACHE".
fn debuginfod_cache(set: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    if let Some(path) = set("DEBUGINFOD_CACHE_PATH") {
        return Some(path);
    }
    // The cache of the first versions is still used if it exists.
    let old = set("HOME").map(|home| home.join(".debuginfod_client_cache")).filter(|path| path.is_dir());
    old.or_else(|| Some(user_cache(set)?.join("debuginfod_client")))
}

/// Returns the user's directory for caches (XDG Base Directory Specification).
fn user_cache(set: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))
}

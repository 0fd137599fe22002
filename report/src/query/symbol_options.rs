//! Options for finding and showing symbols, shared by all commands that print function names.

use std::path::PathBuf;

use clap::Args;

use super::servers::Servers;

/// Options for finding and showing symbols.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct SymbolOptions {
    // This machine's kernel is not used then.
    /// Look for the recorded programs and libraries below DIR, not below /; implies --trust-paths
    #[arg(long, value_name = "DIR")]
    pub symfs: Option<PathBuf>,

    /// Read kernel symbols from FILE, a copy of the recorded kernel's /proc/kallsyms
    #[arg(long, value_name = "FILE")]
    pub kallsyms: Option<PathBuf>,

    /// Read kernel symbols from FILE, the recorded kernel's vmlinux
    #[arg(short = 'k', long, value_name = "FILE")]
    pub vmlinux: Option<PathBuf>,

    /// Do not search the usual places for a vmlinux
    #[arg(long, conflicts_with = "vmlinux")]
    pub ignore_vmlinux: bool,

    /// If no file is proven to be the recorded program or library, use the one at the recorded path
    #[arg(long)]
    pub trust_paths: bool,

    /// Show source files with their full paths
    #[arg(long = "full-source-path")]
    pub source_paths: bool,

    /// Demangle kernel symbols too
    #[arg(long, conflicts_with = "mangled")]
    pub demangle_kernel: bool,

    /// Directory of the build ID cache [default: $PERF_BUILDID_DIR, else ~/.debug]
    #[arg(long = "buildid-dir", value_name = "DIR")]
    pub build_id_dir: Option<PathBuf>,

    /// Fetch debug files from the servers in DEBUGINFOD_URLS, for modules whose samples without a known function (or
    /// line, if shown) are at least PERCENT [default: 1] of all samples. If this option is not given, fetch nothing
    #[arg(long, value_name = "PERCENT", num_args = 0..=1, require_equals = true, default_missing_value = "1",
          value_parser = Servers::share)]
    pub debuginfod: Option<u32>,

    /// Do not demangle symbols
    #[arg(long = "no-demangle")]
    pub mangled: bool,

    /// Demangle C++ and Rust symbols (default)
    #[arg(long, overrides_with = "mangled")]
    pub demangle: bool,

    /// Servers from which missing files are fetched, if the user wants that.
    #[arg(skip)]
    pub servers: Option<Servers>,

    /// Cache directory of debuginfod's clients, which rep shares.
    #[arg(skip)]
    pub debuginfod_cache: Option<PathBuf>,

    /// Directory in which rep keeps copies of `/proc/kallsyms`, by default `~/.cache/recrep`.
    #[arg(skip)]
    pub cache: Option<PathBuf>,
}

impl SymbolOptions {
    /// Adds the settings in environment variables to these options.
    ///
    /// # Errors
    /// Returns an error if `--debuginfod` is given and its environment variables are missing or malformed.
    pub fn with_environment(self) -> Result<Self, String> {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let default_dir = || set("PERF_BUILDID_DIR").or_else(|| Some(set("HOME")?.join(".debug")));
        let debuginfod_cache = debuginfod_cache(set);
        let text = |name: &str| set(name).map(|value| value.to_string_lossy().into_owned());
        let servers = self.debuginfod.map(|least| Servers::of(text, least, debuginfod_cache.clone())).transpose()?;
        let build_id_dir = self.build_id_dir.or_else(default_dir);
        let cache = user_cache(set).map(|cache| cache.join("recrep"));
        Ok(Self { build_id_dir, servers, debuginfod_cache, cache, ..self })
    }

    /// Returns whether the files at the recorded paths (below `--symfs`) are taken for the recorded ones without proof.
    pub fn trusts_paths(&self) -> bool {
        self.trust_paths || self.symfs.is_some()
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

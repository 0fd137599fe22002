//! Arguments for finding and showing symbols, shared by all commands that print function names.

use std::path::PathBuf;

use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};

use crate::query::{Demangle, Servers, SymbolOptions};

/// Options for finding and showing symbols.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Symbols")]
pub(crate) struct SymbolArgs {
    /// Look for the recorded programs and libraries below DIR, not below /; implies --trust-paths
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

    /// If no file is proven to be the recorded program or library, use the one at the recorded path
    #[arg(long)]
    trust_paths: bool,

    /// Show source files with their full paths
    #[arg(long = "full-source-path")]
    source_paths: bool,

    /// Demangle kernel symbols too
    #[arg(long, conflicts_with = "mangled")]
    demangle_kernel: bool,

    /// Where a stripped file has no symbol, show the function that its unwind tables tell of, as
    /// module+0xSTART [default: but in script and diff, with -t and with -U]
    #[arg(long, overrides_with = "no_inferred")]
    inferred: bool,

    /// Show addresses without a symbol as they are
    #[arg(long, overrides_with = "inferred")]
    no_inferred: bool,

    /// Directory of the build ID cache [default: $PERF_BUILDID_DIR, else ~/.debug]
    #[arg(long = "buildid-dir", value_name = "DIR")]
    build_id_dir: Option<PathBuf>,

    /// Fetch debug files from the servers in DEBUGINFOD_URLS, for modules with unresolved addresses
    /// in at least PERCENT [default: 1] of all samples (and those that lack source lines)
    ///
    /// Without this option nothing is fetched
    #[arg(
        long, value_name = "PERCENT", num_args = 0..=1, require_equals = true,
        default_missing_value = "1", value_parser = Servers::share
    )]
    debuginfod: Option<u32>,

    /// Do not demangle symbols, same as --demangle no
    #[arg(long = "no-demangle")]
    mangled: bool,

    /// Demangle C++ and Rust symbols: `no`; `normal` (default), without parameters unless functions
    /// would read alike; `full`, with parameters, return types and hashes
    #[arg(
        long, overrides_with = "mangled", value_name = "WHICH", num_args = 0..=1,
        require_equals = true, default_missing_value = "normal"
    )]
    demangle: Option<Demangle>,
}

impl SymbolArgs {
    /// Returns the options, with the settings in environment variables. `infers` says whether
    /// functions without a symbol are inferred by default.
    ///
    /// # Errors
    /// Returns an error if `--debuginfod` is given and its environment variables are missing or
    /// malformed.
    pub(crate) fn options(self, infers: bool) -> Result<SymbolOptions, String> {
        let set = |name: &str| {
            std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
        };
        let default_dir = || set("PERF_BUILDID_DIR").or_else(|| Some(set("HOME")?.join(".debug")));
        let debuginfod_cache = debuginfod_cache(set);
        let text = |name: &str| set(name).map(|value| value.to_string_lossy().into_owned());
        let servers = self
            .debuginfod
            .map(|least| Servers::of(text, least, debuginfod_cache.clone()))
            .transpose()?;
        let demangle = if self.mangled { Some(Demangle::No) } else { self.demangle };
        Ok(SymbolOptions {
            symfs: self.symfs,
            kallsyms: self.kallsyms,
            vmlinux: self.vmlinux,
            ignore_vmlinux: self.ignore_vmlinux,
            trust_paths: self.trust_paths,
            source_paths: self.source_paths,
            start_lines: false,
            demangle_kernel: self.demangle_kernel,
            demangle: demangle.unwrap_or_default(),
            inferred: self.inferred || infers && !self.no_inferred,
            build_id_dir: self.build_id_dir.or_else(default_dir),
            servers,
            debuginfod_cache,
            cache: user_cache(set).map(|cache| cache.join("recrep")),
        })
    }
}

/// Returns the cache directory of debuginfod's clients: debuginfod-client-config(7), "CACHE".
fn debuginfod_cache(set: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    if let Some(path) = set("DEBUGINFOD_CACHE_PATH") {
        return Some(path);
    }
    // The cache of the first versions is still used if it exists.
    let old =
        set("HOME").map(|home| home.join(".debuginfod_client_cache")).filter(|path| path.is_dir());
    old.or_else(|| Some(user_cache(set)?.join("debuginfod_client")))
}

/// Returns the user's directory for caches (XDG Base Directory Specification).
fn user_cache(set: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))
}

impl ValueEnum for Demangle {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self::No, Self::Normal, Self::Full]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let (name, help) = match self {
            Self::No => ("no", "As the file spells them"),
            Self::Normal => ("normal", "Without parameters, unless two would read alike"),
            Self::Full => ("full", "With parameters"),
        };
        Some(PossibleValue::new(name).help(help))
    }
}

//! The options that say where symbols come from: the same for every command that names functions.

use std::path::PathBuf;

use clap::Args;

use crate::query::{Servers, SymbolOptions};

/// Where symbols come from.
#[derive(Clone, Debug, Default, Args)]
pub struct SymbolArgs {
    /// The directory that holds the recorded machine's files, in place of `/`
    #[arg(long, value_name = "DIR")]
    symfs: Option<PathBuf>,

    /// A copy of the recorded kernel's /proc/kallsyms
    #[arg(long, value_name = "FILE")]
    kallsyms: Option<PathBuf>,

    /// The recorded kernel's image with its symbols
    #[arg(short = 'k', long, value_name = "FILE")]
    vmlinux: Option<PathBuf>,

    /// Look for no kernel image where such files are kept
    #[arg(long, conflicts_with = "vmlinux")]
    ignore_vmlinux: bool,

    /// Use the files at the recorded paths even if nothing shows that they are the recorded ones
    #[arg(long)]
    trust_paths: bool,

    /// Show source files with their directories
    #[arg(long)]
    full_source_path: bool,

    /// Show the kernel's names, too, as people write them
    #[arg(long, conflicts_with = "no_demangle")]
    demangle_kernel: bool,

    /// Where copies of files are kept by build ID [default: $PERF_BUILDID_DIR, else ~/.debug]
    #[arg(long, value_name = "DIR")]
    buildid_dir: Option<PathBuf>,

    /// Ask the debuginfod servers in DEBUGINFOD_URLS for the debug files of modules in which at least PERCENT of the samples have
    /// an address without a function [default: 1]
    #[arg(long, value_name = "PERCENT", num_args = 0..=1, require_equals = true, default_missing_value = "1",
          value_parser = Servers::share)]
    debuginfod: Option<u32>,

    /// Show names of C++ and Rust as their files spell them
    #[arg(long)]
    no_demangle: bool,

    /// Show names of C++ and Rust as people write them (what rep does anyway)
    #[arg(long, overrides_with = "no_demangle")]
    demangle: bool,
}

impl SymbolArgs {
    /// What they mean, on this machine.
    ///
    /// # Errors
    /// What the user must be told: servers are to be asked, and the environment does not name them.
    pub fn options(self) -> Result<SymbolOptions, String> {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let by_habit = || set("PERF_BUILDID_DIR").or_else(|| Some(set("HOME")?.join(".debug")));
        let debuginfod_cache = debuginfod_cache(set);
        let text = |name: &str| set(name).map(|value| value.to_string_lossy().into_owned());
        let servers = self.debuginfod.map(|least| Servers::of(text, least, debuginfod_cache.clone())).transpose()?;
        Ok(SymbolOptions {
            symfs: self.symfs,
            kallsyms: self.kallsyms,
            vmlinux: self.vmlinux,
            build_id_dir: self.buildid_dir.or_else(by_habit),
            demangle: !self.no_demangle,
            debuginfod_cache,
            servers,
            ignore_vmlinux: self.ignore_vmlinux,
            trust_paths: self.trust_paths,
            source_paths: self.full_source_path,
            demangle_kernel: self.demangle_kernel,
        })
    }
}

/// Where debuginfod's clients keep what they fetched: debuginfod-client-config(7), "CACHE".
fn debuginfod_cache(set: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    if let Some(path) = set("DEBUGINFOD_CACHE_PATH") {
        return Some(path);
    }
    let home = set("HOME");
    // Where their first versions kept it, which still counts if it is there.
    let old = home.as_ref().map(|home| home.join(".debuginfod_client_cache")).filter(|path| path.is_dir());
    let usual = || set("XDG_CACHE_HOME").or_else(|| Some(home?.join(".cache")));
    old.or_else(|| Some(usual()?.join("debuginfod_client")))
}

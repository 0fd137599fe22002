//! The options that say where symbols come from: the same for every command that names functions.

use std::path::PathBuf;

use clap::Args;

use crate::resolve::SymbolOptions;

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

    /// Show source files with their directories
    #[arg(long)]
    full_source_path: bool,

    /// Show the kernel's names, too, as people write them
    #[arg(long, conflicts_with = "no_demangle")]
    demangle_kernel: bool,

    /// Where copies of files are kept by build ID [default: $PERF_BUILDID_DIR, else ~/.debug]
    #[arg(long, value_name = "DIR")]
    buildid_dir: Option<PathBuf>,

    /// Show names of C++ and Rust as their files spell them
    #[arg(long)]
    no_demangle: bool,

    /// Show names of C++ and Rust as people write them (what rep does anyway)
    #[arg(long, overrides_with = "no_demangle")]
    demangle: bool,
}

impl SymbolArgs {
    /// What they mean, on this machine.
    #[must_use]
    pub fn options(self) -> SymbolOptions {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let by_habit = || set("PERF_BUILDID_DIR").or_else(|| Some(set("HOME")?.join(".debug")));
        SymbolOptions {
            symfs: self.symfs,
            kallsyms: self.kallsyms,
            vmlinux: self.vmlinux,
            build_id_dir: self.buildid_dir.or_else(by_habit),
            demangle: !self.no_demangle,
            debuginfod_cache: debuginfod_cache(set),
            ignore_vmlinux: self.ignore_vmlinux,
            source_paths: self.full_source_path,
            demangle_kernel: self.demangle_kernel,
        }
    }
}

/// Where debuginfod's clients keep what they fetched: debuginfod-find(1), "CACHE".
fn debuginfod_cache(set: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let below = |base: PathBuf| base.join("debuginfod_client");
    let in_home = || Some(set("HOME")?.join(".cache"));
    set("DEBUGINFOD_CACHE_PATH").or_else(|| set("XDG_CACHE_HOME").or_else(in_home).map(below))
}

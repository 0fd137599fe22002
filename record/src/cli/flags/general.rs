//! `rec --help`, General: plans without recording, and messages.

use std::path::PathBuf;

use clap::{ArgAction, Args};

use crate::cli::values;
use crate::machine::Machine;
use crate::plan::config::Config;

/// General flags.
#[derive(Debug, Args)]
#[command(next_help_heading = "General")]
#[allow(clippy::struct_excessive_bools, reason = "each is an independent flag")]
pub(in crate::cli) struct GeneralFlags {
    /// Print the recording plan without opening events
    #[arg(long)]
    dry_run: bool,
    /// Print the plan of --dry-run as JSON
    #[arg(long, requires = "dry_run")]
    json: bool,
    /// Plan for the machine that FILE describes, instead of this one
    #[arg(long, value_name = "FILE", requires = "dry_run")]
    pub(in crate::cli) machine: Option<PathBuf>,
    /// Print only errors and losses
    #[arg(short, long)]
    quiet: bool,
    /// Print details of the recording plan
    #[arg(short, long, action = ArgAction::Count)]
    verbose: u8,
}

impl GeneralFlags {
    pub(super) fn configure(self, config: &mut Config, machine: &Machine) {
        config.dry_run = self.dry_run;
        config.json = self.json;
        config.machine = self.machine.is_some().then(|| machine.clone());
        config.verbosity = values::verbosity(self.quiet, self.verbose);
    }
}

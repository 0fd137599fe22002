//! `rec --help`, Output: the file, and what is kept beside it.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgMatches, Args};

use crate::cli::values;
use crate::cli::words::{is_negated, refuse_negated};
use crate::event::sampling::Callchain;
use crate::plan::config::{BuildIds, Config, OutputOptions, Switch};

/// Flags that are always on, with the message for an attempt to turn them off.
const ALWAYS: [(&str, &str); 3] = [
    (
        "timestamp_boundary",
        "--no-timestamp-boundary: files of rec always have the times of the first and the last \
         sample",
    ),
    (
        "no_buildid_cache",
        "--buildid-cache: rec has no build-ID cache; perf buildid-cache adds files to that of perf",
    ),
    (
        "buildid_all",
        "--no-buildid-all: rec cannot limit build IDs to files with samples, without reading its \
         file again; use -B",
    ),
];

/// Default of `--keep-size`.
const KEPT: u64 = 1 << 30;

/// Level of compression of copied stacks, unless another was asked for: they repeat, so that the
/// file is 11 to 150 times smaller, for less than writing them costs.
const STACKS_LEVEL: i32 = 1;

/// Flags of the output.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
#[allow(clippy::struct_excessive_bools, reason = "each is an independent flag")]
pub(in crate::cli) struct OutputFlags {
    /// Write to FILE, or to standard output if '-'; an existing FILE is renamed to FILE.old
    #[arg(short, long, value_name = "FILE", default_value = "out.data")]
    output: PathBuf,
    /// Compress records with zstd, at level 1 to 22 [default: 1]; --call-graph dwarf implies it, unless
    /// --no-compression-level
    #[arg(
        short = 'z', long, value_name = "LEVEL", num_args = 0..=1, require_equals = true,
        default_missing_value = "", value_parser = level
    )]
    compression_level: Option<i32>,
    /// End the recording and the command when the file has SIZE (B, K, M or G); a little more is
    /// written
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    max_size: Option<u64>,
    /// End the recording and the command after N samples; a few more are written
    #[arg(
        long, value_name = "N", conflicts_with_all = ["threads", "overwrite", "switch_output"],
        value_parser = samples
    )]
    max_samples: Option<u64>,
    /// Start a new file on SIGUSR2 ('signal'), at a size (B, K, M, G) or at an interval (s, m, h,
    /// d) [default: signal]
    #[arg(
        long, value_name = "WHEN", num_args = 0..=1, require_equals = true,
        default_missing_value = "signal", value_parser = switch
    )]
    switch_output: Option<Switch>,
    /// Keep only the newest N files of --switch-output
    #[arg(long, value_name = "N", value_parser = files)]
    switch_max_files: Option<usize>,
    /// Append a timestamp to the file name
    #[arg(long)]
    timestamp_filename: bool,
    /// When the recording has ended, make a page of it, to be opened in any browser (rep html)
    #[arg(
        long, value_name = "FILE",
        conflicts_with_all = ["switch_output", "timestamp_filename", "dry_run"]
    )]
    html: Option<PathBuf>,
    /// Write the times of the first and last sample (always on)
    #[arg(long)]
    timestamp_boundary: bool,
    /// Do not write build IDs
    #[arg(short = 'B', long)]
    no_buildid: bool,
    /// Keep no copies of recorded programs and libraries in ~/.cache/recrep/kept
    #[arg(long)]
    no_keep: bool,
    /// Let kept copies take at most SIZE (B, K, M or G); those used longest ago are removed
    /// [default: 1G]
    #[arg(long, value_name = "SIZE", conflicts_with = "no_keep", value_parser = values::size)]
    keep_size: Option<u64>,
    /// Do not update perf's build-ID cache (always on); for rec's own copies: --no-keep
    #[arg(short = 'N', long)]
    no_buildid_cache: bool,
    /// Write build IDs of all mapped files, even those without samples (always on)
    #[arg(long)]
    buildid_all: bool,
    /// Put build IDs into the records of mappings [default]; --no-buildid-mmap keeps device and
    /// inode there
    #[arg(long)]
    buildid_mmap: bool,
}

impl OutputFlags {
    /// Sets the output; `config` has the events and the contents of samples already.
    pub(super) fn configure(self, config: &mut Config, matches: &ArgMatches) -> Result<(), String> {
        refuse_negated(matches, &ALWAYS)?;
        config.build_ids = match (self.buildid_mmap, self.no_buildid) {
            (true, _) => BuildIds::InMmap,
            (false, true) => BuildIds::None,
            (false, false) if is_negated(matches, "buildid_mmap") => BuildIds::Table,
            (false, false) => BuildIds::InMmap,
        };
        config.keep = (!self.no_keep).then_some(self.keep_size.unwrap_or(KEPT));
        let may_imply = copies_stacks(config) && !is_negated(matches, "compression_level");
        config.output = OutputOptions {
            path: self.output,
            compression: self.compression_level.or(may_imply.then_some(STACKS_LEVEL)),
            max_size: self.max_size,
            max_samples: self.max_samples,
            switch: self.switch_output,
            max_files: self.switch_max_files,
            timestamp_name: self.timestamp_filename,
            html: self.html,
            ..OutputOptions::default()
        };
        check(&config.output)
    }
}

/// Returns whether copies of stacks are to be in the file.
fn copies_stacks(config: &Config) -> bool {
    let own = config.events.iter().filter_map(|spec| spec.terms.callchain.flatten());
    let mut chains = config.sample.callchain.into_iter().chain(own);
    chains.any(|chain| matches!(chain, Callchain::Dwarf { .. }))
}

/// Refuses options that the output cannot have.
fn check(output: &OutputOptions) -> Result<(), String> {
    if output.is_stdout() && (output.switch.is_some() || output.timestamp_name) {
        let flag = if output.switch.is_some() { "--switch-output" } else { "--timestamp-filename" };
        return Err(format!(
            "-o -: standard output has no name that {flag} could change; name a file with -o"
        ));
    }
    if output.is_stdout() && output.html.is_some() {
        return Err("--html needs the recording in a file: name one with -o".to_owned());
    }
    if output.max_files.is_some() && output.switch.is_none() {
        return Err(
            "--switch-max-files: there is only one file to keep; add --switch-output".to_owned()
        );
    }
    Ok(())
}

fn level(text: &str) -> Result<i32, String> {
    values::number_in(if text.is_empty() { "1" } else { text }, 1..=22)
        .ok_or_else(|| format!("'{text}' is not a compression level from 1 to 22"))
}

fn samples(text: &str) -> Result<u64, String> {
    values::positive(text).ok_or_else(|| format!("'{text}' is not a number of samples"))
}

fn files(text: &str) -> Result<usize, String> {
    values::number_in(text, 1..=usize::MAX)
        .ok_or_else(|| format!("'{text}' is not a number of files"))
}

fn switch(text: &str) -> Result<Switch, String> {
    if text == "signal" {
        return Ok(Switch::Signal);
    }
    // Sizes have upper-case units: 1M is a size, 1m is a minute.
    let size = values::bytes(text).filter(|_| text.ends_with(|c: char| c.is_ascii_uppercase()));
    size.map(Switch::Size).or_else(|| interval(text).map(Switch::Time)).ok_or_else(|| {
        format!("'{text}' is not 'signal', a size with B, K, M or G, or a time with s, m, h or d")
    })
}

/// Parses a number with s, m, h or d.
fn interval(text: &str) -> Option<Duration> {
    let unit = match text.as_bytes().last()? {
        b's' => 1,
        b'm' => 60,
        b'h' => 60 * 60,
        b'd' => 24 * 60 * 60,
        _ => return None,
    };
    let number: u64 = text.get(..text.len() - 1)?.parse().ok()?;
    number.checked_mul(unit).filter(|n| *n > 0).map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn when_to_switch() {
        assert_eq!(switch("signal"), Ok(Switch::Signal));
        assert_eq!(switch("1M"), Ok(Switch::Size(1 << 20)));
        assert_eq!(switch("1m"), Ok(Switch::Time(Duration::from_secs(60))));
        assert_eq!(switch("2d"), Ok(Switch::Time(Duration::from_secs(172_800))));
        for wrong in ["", "0s", "1", "M", "1k", "1x"] {
            assert!(switch(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn levels() {
        assert_eq!((level(""), level("22")), (Ok(1), Ok(22)));
        assert!(level("0").is_err() && level("23").is_err());
    }
}

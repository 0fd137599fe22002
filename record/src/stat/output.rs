//! Destinations of counts: standard error, a file, an open descriptor.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsFd as _;

use jiff::Zoned;
use recrep_counts::{Format, Printer, Report};

use super::{Destination, Settings};
use crate::kernel::sys;
use crate::messages::error::{Error, Result};

/// Clears a terminal's screen.
const CLEAR: &[u8] = b"\x1b[H\x1b[2J";

pub(super) struct CountOutput<'a> {
    settings: &'a Settings,
    printer: Printer,
    /// `None` if nothing is printed.
    to: Option<File>,
}

impl<'a> CountOutput<'a> {
    /// Opens the destination. A file begins with the time.
    pub(super) fn open(settings: &'a Settings) -> Result<Self> {
        let mut to = match &settings.destination {
            Destination::StandardError => {
                let stderr = io::stderr().as_fd().try_clone_to_owned();
                File::from(stderr.map_err(|why| Error::io("cannot print to standard error", why))?)
            }
            Destination::File { path, append } => {
                let mut options = OpenOptions::new();
                options.write(true).create(true).append(*append).truncate(!*append);
                options.open(path).map_err(|why| {
                    Error::io(format!("cannot write '{}' (-o)", path.display()), why)
                })?
            }
            Destination::Descriptor(number) => {
                File::from(sys::duplicate(*number).map_err(|why| {
                    Error::io(format!("cannot write to descriptor {number} (--log-fd)"), why)
                })?)
            }
        };
        if matches!(settings.destination, Destination::File { .. })
            && settings.format != Format::Json
        {
            let now = Zoned::now().strftime("%a %b %e %H:%M:%S %Y");
            let blank =
                if settings.format == (Format::Text { big_numbers: true }) { "" } else { "\n" };
            write!(to, "# started on {now}\n{blank}").map_err(failed)?;
        }
        let printer = match settings.metric_only {
            true => Printer::of_metrics(settings.format.clone()),
            false => Printer::new(settings.format.clone()),
        };
        Ok(Self { settings, printer, to: (!settings.quiet).then_some(to) })
    }

    /// Prints a report; of several runs, with the seconds of each if they are asked for.
    pub(super) fn print(&mut self, report: &Report, times: &[f64]) -> Result<()> {
        let Some(to) = &mut self.to else { return Ok(()) };
        // One write, as a command may write to the same terminal.
        let mut text = Vec::new();
        if report.interval_end.is_some() && self.settings.interval_clear {
            text.extend(CLEAR);
        }
        if matches!(self.settings.format, Format::Text { .. }) && times.len() > 1 {
            table(report.elapsed.mean(), times, &mut text);
        }
        self.printer.print(report, &mut text).map_err(failed)?;
        to.write_all(&text).map_err(failed)
    }
}

/// Writes the time of each run, and how far it is from the mean.
fn table(mean: f64, times: &[f64], out: &mut Vec<u8>) {
    out.extend(b"\n Table of individual runs:\n");
    for time in times {
        let percent = if *time == 0.0 { 0.0 } else { (100.0 * (time - mean) / time).abs() };
        #[expect(clippy::cast_possible_truncation, reason = "one mark for each 5 %, up to 20")]
        let marks = 1 + (percent / 5.0).min(20.0) as usize;
        let line = format!(" {time:>17.9} ({:+.9}) {}\n", time - mean, "#".repeat(marks));
        out.extend(line.bytes());
    }
}

fn failed(why: io::Error) -> Error {
    Error::unwritable("cannot print the counts", why)
}

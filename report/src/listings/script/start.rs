//! Beginning of each line: task, CPU and time.

use std::borrow::Cow;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use recrep_format::abi::{RecordType, misc};
use recrep_format::feature::ClockData;

use super::fields::{Fields, OutputField};
use super::style::ScriptStyle;
use crate::terminal::digits;
use crate::terminal::escape::escape;

/// Task, CPU and time of a line.
pub(super) struct LineStart<'a> {
    pub(super) comm: Cow<'a, str>,
    /// Process ID and thread ID.
    pub(super) tid: [i32; 2],
    pub(super) cpu: Option<u32>,
    pub(super) time: Option<u64>,
    pub(super) misc: u16,
    pub(super) kind: RecordType,
}

/// Prints the beginnings; times may count from those before.
#[derive(Clone)]
pub(super) struct StartPrinter<'q> {
    look: &'q ScriptStyle,
    /// Times of the first and the previous line; 0 if there is none, or if that record was
    /// synthesized without a time.
    first: u64,
    previous: u64,
    /// Wall clock and perf clock at the same instant.
    clock: Option<ClockData>,
    zone: TimeZone,
}

/// Prints the ids that are selected of a process and a thread.
fn ids([pid, tid]: [i32; 2], fields: &Fields, out: &mut Vec<u8>) {
    match (fields.has(OutputField::Pid), fields.has(OutputField::Tid)) {
        (true, true) => {
            digits::decimal(out, pid, 7);
            out.push(b'/');
            let end = out.len() + 7;
            digits::decimal(out, tid, 0);
            out.resize(out.len().max(end), b' ');
            out.push(b' ');
        }
        (true, false) | (false, true) => {
            digits::decimal(out, if fields.has(OutputField::Pid) { pid } else { tid }, 7);
            out.push(b' ');
        }
        (false, false) => {}
    }
}

impl<'q> StartPrinter<'q> {
    pub(super) fn new(look: &'q ScriptStyle, clock: Option<ClockData>) -> Self {
        Self { look, first: 0, previous: 0, clock, zone: TimeZone::system() }
    }

    /// Prints the beginning of a line; `frames_follow` if frames are printed below it.
    pub(super) fn print(
        &mut self,
        who: &LineStart<'_>,
        fields: &Fields,
        frames_follow: bool,
        out: &mut Vec<u8>,
    ) {
        if fields.has(OutputField::Comm) {
            let comm = escape(&who.comm);
            match (self.look.latency, frames_follow) {
                (true, _) => padded(out, comm.chars().take(8), 8),
                (_, true) => out.extend_from_slice(comm.as_bytes()),
                _ => padded(out, comm.chars(), 16),
            }
            out.push(b' ');
        }
        ids(who.tid, fields, out);
        if fields.has(OutputField::Cpu) {
            self.cpu(who.cpu, out);
        }
        if fields.has(OutputField::Misc) {
            out.extend_from_slice(format!("{:<5} ", letters(who.misc, who.kind)).as_bytes());
        }
        let Some(time) = who.time else { return };
        if fields.has(OutputField::Tod) {
            out.extend_from_slice(self.time_of_day(time).as_bytes());
            out.push(b' ');
        }
        if fields.has(OutputField::Time) {
            let time = self.relative(time);
            let (seconds, nanoseconds) = (time / 1_000_000_000, time % 1_000_000_000);
            digits::decimal(out, seconds, 5);
            out.push(b'.');
            if self.look.ns {
                digits::zeros(out, nanoseconds, 9);
            } else {
                digits::zeros(out, nanoseconds / 1000, 6);
            }
            out.extend_from_slice(b": ");
        }
    }

    fn cpu(&self, cpu: Option<u32>, out: &mut Vec<u8>) {
        let cpu = cpu.map_or(-1, u32::cast_signed);
        match u64::try_from(cpu) {
            Ok(cpu) if !self.look.latency => {
                out.push(b'[');
                digits::zeros(out, cpu, 3);
                out.extend_from_slice(b"] ");
            }
            _ if !self.look.latency => out.extend_from_slice(format!("[{cpu:03}] ").as_bytes()),
            _ => {
                digits::decimal(out, cpu, 3);
                out.push(b' ');
            }
        }
    }

    /// Returns a time relative to the reference point.
    pub(super) fn relative(&mut self, time: u64) -> u64 {
        if self.first == 0 {
            self.first = time;
        }
        let from = match std::mem::replace(&mut self.previous, time) {
            _ if self.look.reltime => self.first,
            _ if !self.look.deltatime => 0,
            0 => time,
            previous => previous,
        };
        time.wrapping_sub(from)
    }

    pub(super) fn time_of_day(&self, time: u64) -> String {
        let Some(clock) = self.clock else { return "unknown".into() };
        let wall = i128::from(clock.wall_clock) + i128::from(time) - i128::from(clock.clock);
        let Ok(stamp) = Timestamp::from_nanosecond(wall) else { return "unknown".into() };
        let decimals = if self.look.ns { "%F %H:%M:%S.%9f" } else { "%F %H:%M:%S.%6f" };
        stamp.to_zoned(self.zone.clone()).strftime(decimals).to_string()
    }
}

/// Appends characters, right-aligned in `width` columns.
fn padded(out: &mut Vec<u8>, text: impl Iterator<Item = char> + Clone, width: usize) {
    out.resize(out.len() + width.saturating_sub(text.clone().count()), b' ');
    out.extend_from_slice(text.collect::<String>().as_bytes());
}

/// The bits of a record's header as letters: CPU mode, then what its type has of its own.
pub(super) fn letters(bits: u16, kind: RecordType) -> String {
    // As in perf, a mode is also printed if its bits are part of another mode's.
    let modes = [(1, 'K'), (2, 'U'), (3, 'H'), (4, 'G'), (5, 'g')];
    let mut letters: String =
        modes.iter().filter(|(mode, _)| bits & mode == *mode).map(|(_, letter)| *letter).collect();
    let own: &[(u16, char)] = match kind {
        RecordType::MMAP | RecordType::MMAP2 => &[(misc::MMAP_DATA, 'M')],
        RecordType::COMM => &[(misc::COMM_EXEC, 'E')],
        RecordType::SWITCH | RecordType::SWITCH_CPU_WIDE if bits & misc::SWITCH_OUT != 0 => {
            &[(misc::SWITCH_OUT, 'S'), (misc::SWITCH_OUT_PREEMPT, 'p')]
        }
        _ => &[],
    };
    letters.extend(own.iter().filter(|(bit, _)| bits & bit != 0).map(|(_, letter)| *letter));
    letters
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listings::script::fields::{Rule, fields_of};
    use recrep_format::attr::Attr;

    fn printed(fields: &str, start: &mut StartPrinter<'_>, times: &[u64]) -> Vec<String> {
        let attr = Attr::default();
        let fields = fields_of(&[Rule::parse(fields).unwrap()], &attr);
        let line = |time: &u64| {
            let mut out = Vec::new();
            let (comm, tid, misc) = ("a-long-command".into(), [7, -1], 2);
            let (cpu, time, kind) = (Some(3), Some(*time), RecordType::SAMPLE);
            start.print(&LineStart { comm, tid, cpu, time, misc, kind }, &fields, false, &mut out);
            String::from_utf8(out).unwrap()
        };
        times.iter().map(line).collect()
    }

    #[test]
    fn times_are_relative_to_the_reference_point() {
        let (clock, first, previous) = ([false, false], [true, false], [false, true]);
        let (some, from_zero) =
            ([5_000_001_000, 5_000_003_500, 6_000_003_500], [0, 5_000_000_000, 6_000_000_000]);
        for ([reltime, deltatime], ns, times, printed_as) in [
            (clock, false, some, ["    5.000001: ", "    5.000003: ", "    6.000003: "]),
            (first, true, some, ["    0.000000000: ", "    0.000002500: ", "    1.000002500: "]),
            (previous, true, some, ["    0.000000000: ", "    0.000002500: ", "    1.000000000: "]),
            // Time zero is no reference point.
            (first, false, from_zero, ["    0.000000: ", "    0.000000: ", "    1.000000: "]),
            (previous, false, from_zero, ["    0.000000: ", "    0.000000: ", "    1.000000: "]),
        ] {
            let look = ScriptStyle { reltime, deltatime, ns, ..ScriptStyle::default() };
            assert_eq!(printed("time", &mut StartPrinter::new(&look, None), &times), printed_as);
        }
    }

    #[test]
    fn latency_columns_are_short() {
        let look = ScriptStyle { latency: true, ..ScriptStyle::default() };
        let line = printed("comm,pid,tid,cpu,misc", &mut StartPrinter::new(&look, None), &[1]);
        assert_eq!(line, ["a-long-c       7/-1        3 U     "]);
    }

    #[test]
    fn the_wall_clock_goes_with_the_perf_clock() {
        let clock =
            ClockData { version: 1, clockid: 1, wall_clock: 86_400_000_000_000, clock: 1_000 };
        let look = ScriptStyle::default();
        let mut start = StartPrinter::new(&look, Some(clock));
        start.zone = TimeZone::UTC;
        let lines = printed("tod", &mut start, &[2_000, 0]);
        assert_eq!(lines, ["1970-01-02 00:00:00.000001 ", "1970-01-01 23:59:59.999999 "]);
    }

    #[test]
    fn letters_match_perf() {
        assert_eq!(letters(3, RecordType::SAMPLE), "KUH");
        assert_eq!(letters(2 | misc::COMM_EXEC, RecordType::COMM), "UE");
        assert_eq!(letters(misc::SWITCH_OUT | misc::SWITCH_OUT_PREEMPT, RecordType::SWITCH), "Sp");
        assert_eq!(letters(2 | misc::MMAP_DATA, RecordType::MMAP2), "UM");
    }
}

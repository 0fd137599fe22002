//! What a file lacks: whether it is complete, and warnings about its defects.

use recrep_console::units;
use recrep_format::read;

use super::session::Session;
use crate::input::unpack::RecordSource;
use crate::query::Warning;

impl Session<'_> {
    /// Returns whether the file is complete: its recorder finished it, and it was not truncated
    /// since.
    pub(crate) fn is_complete(&self) -> bool {
        let file = self.file;
        let mended = file.warnings.iter().any(|w| matches!(w.code, "truncated" | "no-data-size"));
        // A recorder writes the data's size and the features last.
        let ended =
            file.mode == read::Mode::Pipe || file.header.data.size > 0 || !file.features.is_empty();
        let torn = self.input.torn().is_some();
        ended
            && !mended
            && !torn
            && self.split.damage.is_empty()
            && self.streams.unpacking().next().is_none()
    }

    /// Returns warnings about the file's defects.
    pub(crate) fn warnings(&self) -> Vec<Warning> {
        let mut all: Vec<Warning> = self.file.warnings.iter().cloned().map(Warning::from).collect();
        let damage = self.split.damage.iter().map(|error| self.streams.located(error.into()));
        let ends = self.streams.unpacking().chain(damage);
        all.extend(ends.map(|w| Warning {
            message: format!("{}; records before it are reported", w.message),
            ..w
        }));
        if let Some((count, first)) = &self.side_band.malformed {
            let what = match count {
                1 => "record does not match its type's layout and is left out",
                _ => "records do not match their type's layout and are left out; the first",
            };
            let message = format!("{count} {what}: {}", first.kind);
            let offset = Some(first.offset);
            let warning = Warning { offset, ..Warning::about(*count, "bad-record", message) };
            all.push(self.streams.located(warning));
        }
        let unknown_targets = self.waits.as_ref().map_or(0, |waits| waits.unknown_targets);
        let without_target = [
            "wake of a thread whose number in the recorder's namespace is not known is left out",
            "wakes of threads whose numbers in the recorder's namespace are not known are left out",
        ];
        all.extend(Warning::counted(unknown_targets, "unknown-targets", without_target));
        if let Some(reason) = self.input.torn() {
            all.push(Warning::new("truncated", reason));
        }
        if let Some(error) = &self.side_band.torn_symbols {
            let message =
                format!("the names of functions in the file are not all used: {}", error.kind);
            let offset = Some(error.offset);
            all.push(Warning { offset, ..Warning::new(error.kind.code(), message) });
        }
        if self.streams.decoded().next().is_none() && self.side_band.aux_bytes > 0 {
            let size = units::bytes(self.side_band.aux_bytes);
            let message =
                format!("{size} of AUX trace is not decoded here (rep dump shows the records)");
            all.push(Warning::new("aux-not-decoded", message));
        }
        all.extend(self.streams.decoded().flat_map(RecordSource::warnings));
        let truncated = [
            "record of AUX trace is truncated: the trace lacks what came after (larger AUX buffers \
             may help)",
            "records of AUX trace are truncated: the trace lacks what came after (larger AUX \
             buffers may help)",
        ];
        all.extend(Warning::counted(self.side_band.aux_truncated, "aux-truncated", truncated));
        if self.file.attrs.entries().is_empty() {
            all.push(Warning::new(
                "no-events",
                "the file describes no events, so its samples cannot be read",
            ));
        }
        all
    }
}

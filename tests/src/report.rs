//! `rep --json` as data.
//!
//! Only what the tests read is declared; that the rest may be added to is part of the promise of
//! `recrep-report/1`.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use crate::programs::rep;
use crate::run::{Outcome, run};
use crate::table::Table;

/// The whole answer.
#[derive(Debug, Deserialize)]
pub struct Report {
    /// `recrep-report/1`.
    pub schema: String,
    /// The files.
    pub inputs: Vec<Input>,
    /// One for each attr.
    pub events: Vec<Event>,
    /// Problems of the input.
    pub warnings: Vec<Warning>,
}

/// One file.
#[derive(Debug, Deserialize)]
pub struct Input {
    /// Its size.
    pub bytes: u64,
    /// Records by name.
    pub records: BTreeMap<String, u64>,
    /// Number of lost records, by LOST records.
    pub lost_events: u64,
    /// Number of lost samples, by LOST_SAMPLES records.
    pub lost_samples: u64,
    /// `true` if the recorder finished it.
    pub complete: bool,
}

/// One event's histogram.
#[derive(Debug, Deserialize)]
pub struct Event {
    /// Its name.
    pub name: String,
    /// Its samples.
    pub samples: u64,
    /// The sum of their periods.
    pub period: u64,
    /// Number of its lost samples, by LOST_SAMPLES records.
    pub lost_samples: u64,
    /// The sort keys.
    pub sort: Vec<String>,
    /// The histogram.
    pub rows: Vec<Row>,
}

/// One row.
#[derive(Debug, Deserialize)]
pub struct Row {
    /// Sort key to value.
    pub key: BTreeMap<String, String>,
    /// Samples.
    pub samples: u64,
    /// The sum of their periods.
    pub period: u64,
    /// Its share of the event's period.
    pub percent: f64,
}

/// One warning.
#[derive(Debug, Deserialize)]
pub struct Warning {
    /// Kind, as a short code.
    pub code: String,
    /// In words.
    pub message: String,
    /// At which byte of the file.
    pub offset: Option<u64>,
}

/// Checks the exit status of a run of rep that prints JSON: 1 exactly where its warnings say that
/// nothing passed.
#[track_caller]
pub fn answered(outcome: Outcome) -> Outcome {
    #[derive(Deserialize)]
    struct Warned {
        warnings: Vec<Warning>,
    }
    let Ok(Warned { warnings }) = serde_json::from_slice(&outcome.stdout) else {
        return outcome.expect(0);
    };
    outcome.expect(warnings.iter().any(|warning| warning.code == "no-match").into())
}

/// Checks the exit status of a run of rep that prints text: 1 exactly where there are no samples to
/// show.
#[track_caller]
pub fn listed(outcome: Outcome) -> Outcome {
    let has_none = outcome.stdout.is_empty()
        && outcome.last_line() == "rep: there are no samples in the recording";
    outcome.expect(has_none.into())
}

/// Returns rep's report of a file, sorted by keys separated by commas.
#[track_caller]
pub fn report(file: &Path, sort: &str) -> Report {
    report_of(file, &[], sort)
}

/// The same of what some flags make rep count: `-b`, `--mem-mode`. Addresses without a symbol are
/// rows of their own, as in perf.
#[track_caller]
pub fn report_of(file: &Path, flags: &[&str], sort: &str) -> Report {
    let outcome =
        run(rep().args(["--json", "--no-inferred"]).args(flags).args(["--sort", sort]).arg(file));
    let outcome = answered(outcome);
    let report: Report = serde_json::from_slice(&outcome.stdout).unwrap_or_else(|error| {
        panic!("{}: {error}: {}", outcome.command, String::from_utf8_lossy(&outcome.stdout))
    });
    assert_eq!(report.schema, "recrep-report/1");
    for event in &report.events {
        assert_eq!(event.sort.join(","), sort);
        assert_eq!(
            event.rows.iter().map(|row| row.samples).sum::<u64>(),
            event.samples,
            "rows are whole: {}",
            event.name
        );
        assert_eq!(
            event.rows.iter().map(|row| row.period).sum::<u64>(),
            event.period,
            "rows are whole: {}",
            event.name
        );
    }
    report
}

impl Report {
    /// The histograms of the events that have samples.
    #[track_caller]
    pub fn tables(&self) -> Vec<Table> {
        let events = self.events.iter().filter(|event| event.samples > 0);
        events.map(Event::table).collect()
    }

    /// The only input.
    #[track_caller]
    pub fn input(&self) -> &Input {
        let [input] = &self.inputs[..] else { panic!("one input was given: {:?}", self.inputs) };
        input
    }

    /// The records of the only input that there are any of.
    #[track_caller]
    pub fn records(&self) -> BTreeMap<String, u64> {
        self.input()
            .records
            .iter()
            .filter(|&(_, &count)| count > 0)
            .map(|(name, &count)| (name.clone(), count))
            .collect()
    }
}

impl Event {
    /// The histogram in the shape that perf's has.
    #[track_caller]
    pub fn table(&self) -> Table {
        let mut table = Table::new(&self.name);
        for row in &self.rows {
            table.add(
                self.sort.iter().map(|key| row.as_perf(key)).collect(),
                row.samples,
                row.period,
            );
        }
        table
    }
}

/// A name without that by which rep tells functions of Rust apart that would read alike, and perf
/// does not: hashes (`f::h0123456789abcdef`, `alloc[0123456789abcdef]::f`), and behind them the
/// mangled name.
#[must_use]
pub fn without_hash(name: &str) -> String {
    let is_hash =
        |hash: &str| hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_mangled = |text: &str| text.ends_with(')') && !text.contains(' ');
    let name = name.split_once(" (_R").filter(|(_, rest)| is_mangled(rest)).map_or(name, |of| of.0);
    let name = name.rsplit_once("::h").filter(|(_, hash)| is_hash(hash)).map_or(name, |of| of.0);
    let mut parts = name.split('[');
    let mut bare = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once(']') {
            // Leading zeros of a hash are left out.
            Some((hash, rest)) if is_hash(&format!("{hash:0>16}")) && hash.len() > 12 => {
                bare.push_str(rest);
            }
            _ => bare.extend(["[", part]),
        }
    }
    bare
}

impl Row {
    /// The value of a key as perf spells it: the letter of the CPU mode before a name, and
    /// addresses alone.
    #[track_caller]
    pub fn as_perf(&self, key: &str) -> String {
        let get = |key: &str| {
            self.key
                .get(key)
                .unwrap_or_else(|| panic!("a row without the key {key}: {self:?}"))
                .trim()
        };
        let text = get(key);
        let (mode, is_function) = match key {
            "symbol" | "sym" => ("cpumode", true),
            "symbol_from" | "sym_from" => ("cpumode_from", true),
            "symbol_to" | "sym_to" => ("cpumode_to", true),
            "symoff" | "symbol_daddr" | "phys_daddr" | "dcacheline" => ("cpumode", false),
            _ => return text.to_owned(),
        };
        let letter = match (
            get(mode),
            self.key.get("mapping").map(String::as_str).filter(|_| key == "dcacheline"),
        ) {
            (_, Some("none")) => 'X',
            ("kernel", _) => 'k',
            (_, Some("shared")) => 's',
            ("user", _) => '.',
            ("guest_kernel", _) => 'g',
            ("guest_user", _) => 'u',
            _ => 'H',
        };
        let offset = text.rsplit_once("+0x").map(|(_, offset)| offset).filter(|_| is_function);
        let address = offset
            .or_else(|| text.strip_prefix("0x"))
            .and_then(|hex| u64::from_str_radix(hex, 16).ok());
        match address {
            Some(0) => format!("[{letter}] {:016x}", 0),
            Some(address) => format!("[{letter}] {address:#018x}"),
            None => format!("[{letter}] {}", without_hash(text)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::without_hash;

    #[test]
    fn names_are_as_perf_spells_them() {
        let v0 = "<alloc[fdfd2bd8633a6659]::raw_vec::RawVecInner>::finish_grow (_RNvMs4_Cs_5gimli)";
        assert_eq!(without_hash(v0), "<alloc::raw_vec::RawVecInner>::finish_grow");
        assert_eq!(without_hash("a::f::h0123456789abcdef"), "a::f");
        for name in ["f[abi:cxx11](int)", "<[u8] as a::B>::c", "operator[]", "g (inlined)"] {
            assert_eq!(without_hash(name), name);
        }
    }
}

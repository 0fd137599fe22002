//! Options of data sets.

use clap::Args;

use super::columns::Constant;
use super::keys::{DATE, DataSetKeys, HOST, RECORDING};
use super::recordings::RECORDINGS;
use super::samples::{EVENT, SAMPLES};

/// Options of `rep export --format parquet`.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Data sets (--format parquet)")]
pub(crate) struct DataSetArgs {
    /// Write a folder for each value of these keys: host, event, date (UTC), or a label
    #[arg(long, value_name = "KEY[,KEY…]", value_delimiter = ',')]
    partition: Vec<String>,

    /// Add a column with this value to all rows; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = label)]
    label: Vec<Constant>,

    /// Look up source files and lines (needs debug information)
    #[arg(long)]
    pub(super) lines: bool,
}

impl DataSetArgs {
    /// Returns the name of an option that was given.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let all = [
            (!self.partition.is_empty(), "--partition"),
            (!self.label.is_empty(), "--label"),
            (self.lines, "--lines"),
        ];
        all.into_iter().find(|(is_given, _)| *is_given).map(|(_, name)| name)
    }

    /// Returns the keys.
    ///
    /// # Errors
    /// Returns an error if a key is unknown, or a label is a column already.
    pub(super) fn keys(&self) -> Result<DataSetKeys, String> {
        let Self { partition, label: labels, .. } = self;
        let columns = SAMPLES.iter().map(|column| column.name);
        let columns = columns.chain(RECORDINGS.iter().map(|column| column.name));
        let columns = columns.chain([HOST, RECORDING, DATE, "stack", "depth", "frames", "frame"]);
        let columns: Vec<&str> = columns.chain(["path", "inlined"]).collect();
        for (place, label) in labels.iter().enumerate() {
            let earlier = labels.iter().take(place).any(|other| other.name == label.name);
            if earlier || columns.contains(&label.name.as_str()) {
                return Err(format!("--label {}: there is such a column already", label.name));
            }
        }
        for (place, key) in partition.iter().enumerate() {
            let is_label = labels.iter().any(|label| label.name == *key);
            if !is_label && ![HOST, EVENT, DATE].contains(&key.as_str()) {
                return Err(format!("--partition {key}: not host, event, date or a --label"));
            }
            if partition.iter().take(place).any(|other| other == key) {
                return Err(format!("--partition: {key} is given twice"));
            }
        }
        Ok(DataSetKeys { partition: partition.clone(), labels: labels.clone() })
    }
}

fn label(text: &str) -> Result<Constant, String> {
    let (name, value) = text.split_once('=').ok_or("not NAME=VALUE")?;
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    match is_name {
        true => Ok(Constant { name: name.to_owned(), value: Some(value.to_owned()) }),
        false => Err(format!("`{name}` is no name of letters, digits and _")),
    }
}

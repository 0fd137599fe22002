//! What a shared recording lacks.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use recrep_format::abi::RecordType;
use recrep_format::feature::FeatureId;

use super::texts;

/// A kind of data that a shared recording lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RemovedData {
    HostName,
    CommandLine,
    Directories,
    Addresses,
    DataAddresses,
    Registers,
    Stacks,
    Raw,
    Traces,
}

impl fmt::Display for RemovedData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::HostName => "the host's name",
            Self::CommandLine => "the command line",
            Self::Directories => "directories",
            Self::Addresses => "addresses of code (replaced)",
            Self::DataAddresses => "addresses of data",
            Self::Registers => "registers",
            Self::Stacks => "copies of stacks (unwound)",
            Self::Raw => "fields of tracepoints",
            Self::Traces => "AUX traces",
        })
    }
}

/// What a shared recording lacks.
#[derive(Debug, Default)]
pub(in crate::listings::bundle) struct Removed {
    data: BTreeSet<RemovedData>,
    /// Number of records that were left out, by type.
    records: BTreeMap<RecordType, u64>,
    /// Parts of the header that were left out.
    pub(super) features: Vec<FeatureId>,
    /// Name of the host.
    pub(super) host: Option<String>,
}

impl Removed {
    /// Returns a file's name without that of the host: recordings are named after hosts.
    pub(in crate::listings::bundle) fn without_host(&self, name: &str) -> String {
        self.host.as_ref().map_or_else(|| name.to_owned(), |host| texts::without_host(name, host))
    }

    pub(super) fn note(&mut self, data: RemovedData) {
        self.data.insert(data);
    }

    pub(super) fn leave_out(&mut self, kind: RecordType) {
        *self.records.entry(kind).or_default() += 1;
    }

    pub(super) fn add(&mut self, other: Self) {
        self.data.extend(other.data);
        for (kind, count) in other.records {
            *self.records.entry(kind).or_default() += count;
        }
        self.features.extend(other.features);
    }
}

impl fmt::Display for Removed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let data: Vec<String> = self.data.iter().map(RemovedData::to_string).collect();
        write!(f, "taken out: {}", data.join(", "))?;
        if !self.records.is_empty() {
            let records: Vec<String> =
                self.records.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
            write!(f, "; records: {}", records.join(", "))?;
        }
        if !self.features.is_empty() {
            let names = self.features.iter().map(FeatureId::to_string);
            write!(f, "; of the header: {}", names.collect::<Vec<_>>().join(", "))?;
        }
        Ok(())
    }
}

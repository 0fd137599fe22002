//! Command line and query of `rep dump`.

use std::collections::BTreeSet;

use clap::{Args, Parser};
use recrep_console::nearest::did_you_mean;
use recrep_format::abi::RecordType;

use crate::cli::SourceArgs;
use crate::query::UsageError;

/// Print every record with its offset, its bytes and its fields
///
/// Each record begins with a line that has its offset, its size and its type; below are its bytes,
/// then its fields under their ABI names. Records inside a compressed record follow it; their
/// offsets (`unpacked:0x…`) are those in the unpacked stream.
#[derive(Debug, Parser)]
#[command(name = "rep dump", version)]
pub(crate) struct DumpQuery {
    #[command(flatten)]
    pub(super) source: SourceArgs,

    #[command(flatten)]
    pub(super) options: DumpOptions,
}

/// What is printed of a file; by default all records, with their bytes.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct DumpOptions {
    /// Do not print the bytes of records
    #[arg(long)]
    pub no_raw: bool,

    /// Print at most N bytes of the data that follows AUXTRACE and TRACING_DATA records
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub payload: usize,

    /// Print the packets of traces (Intel PT, Intel BTS, Arm SPE), below AUXTRACE records
    #[arg(long)]
    pub packets: bool,

    /// Only records of these types, by name or number: MMAP2,SAMPLE or 10,9
    #[arg(long = "type", value_name = "TYPE[,TYPE…]", value_parser = types)]
    pub types: Option<BTreeSet<RecordType>>,

    /// Print at most N records
    #[arg(long, value_name = "N")]
    pub limit: Option<u64>,
}

impl DumpOptions {
    pub(crate) fn prints(&self, kind: RecordType) -> bool {
        self.types.as_ref().is_none_or(|types| types.contains(&kind))
    }
}

/// Parses a list of record types, each a name (with or without `PERF_RECORD_`) or a number.
fn types(list: &str) -> Result<BTreeSet<RecordType>, UsageError> {
    list.split(',').map(record_type).collect()
}

fn record_type(name: &str) -> Result<RecordType, UsageError> {
    let upper = name.trim().to_ascii_uppercase();
    let short = upper.strip_prefix("PERF_RECORD_").unwrap_or(&upper);
    let named = RecordType::NAMED.iter().copied().find(|kind| kind.name() == Some(short));
    named.or_else(|| short.parse().ok().map(RecordType)).ok_or_else(|| {
        let near = did_you_mean(short, RecordType::NAMED.iter().filter_map(|kind| kind.name()));
        let mark = if near.is_empty() { ";" } else { "" };
        UsageError(format!(
            "--type: unknown record type `{name}`{near}{mark} `rep --stats` \
                                lists a file's types"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_parsed_by_name_and_number() {
        let found: Vec<u32> = types("PERF_RECORD_SAMPLE,mmap2,84,999")
            .unwrap()
            .into_iter()
            .map(|kind| kind.0)
            .collect();
        assert_eq!(found, [9, 10, 84, 999]);
        assert!(types("nope").unwrap_err().0.contains("`nope`"));
    }
}

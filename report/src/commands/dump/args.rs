//! Command line and query of `rep dump`.

use std::collections::BTreeSet;
use std::ffi::OsString;

use clap::Parser;
use recrep_format::abi::RecordType;

use crate::cli;
use crate::cli::SourceArgs;
use crate::query::Source;

/// Print every record with its offset, its bytes and its fields
///
/// Each record begins with a line that has its offset, its size and its type; below are its bytes, then its fields
/// under their ABI names. Records inside a compressed record follow it; their offsets (`unpacked:0x…`) are those in the
/// unpacked stream.
#[derive(Debug, Parser)]
#[command(name = "rep dump", version)]
struct DumpArgs {
    #[command(flatten)]
    source: SourceArgs,

    /// Do not print the bytes of records
    #[arg(long)]
    no_raw: bool,

    /// Print at most N bytes of the data that follows AUXTRACE and TRACING_DATA records
    #[arg(long, value_name = "N", default_value_t = 0)]
    payload: usize,

    /// Only records of these types, by name or number: MMAP2,SAMPLE or 10,9
    #[arg(long = "type", value_name = "TYPE[,TYPE…]")]
    types: Option<String>,

    /// Print at most N records
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DumpQuery {
    pub source: Source,
    /// `true` if the bytes of records are printed.
    pub raw: bool,
    /// Maximum number of bytes to print of the data that follows a record.
    pub payload: usize,
    /// Types of records to print; `None` for all.
    pub types: Option<BTreeSet<RecordType>>,
    pub limit: u64,
}

impl DumpQuery {
    pub(crate) fn prints(&self, kind: RecordType) -> bool {
        self.types.as_ref().is_none_or(|types| types.contains(&kind))
    }
}

/// Parses a command line whose first word is `rep dump`.
pub(crate) fn parse(words: Vec<OsString>) -> Result<DumpQuery, clap::Error> {
    cli::parse(words, |args: DumpArgs| {
        Ok(DumpQuery {
            source: args.source.source(),
            raw: !args.no_raw,
            payload: args.payload,
            types: args.types.as_deref().map(types).transpose()?,
            limit: args.limit.unwrap_or(u64::MAX),
        })
    })
}

/// Parses a list of record types, each a name (with or without `PERF_RECORD_`) or a number.
fn types(list: &str) -> Result<BTreeSet<RecordType>, String> {
    let one = |name: &str| {
        let upper = name.trim().to_ascii_uppercase();
        let short = upper.strip_prefix("PERF_RECORD_").unwrap_or(&upper);
        let named = RecordType::NAMED.iter().copied().find(|kind| kind.name() == Some(short));
        named
            .or_else(|| short.parse().ok().map(RecordType))
            .ok_or_else(|| format!("--type: unknown record type `{name}`; `rep report --stats` lists a file's types"))
    };
    list.split(',').map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_parsed_by_name_and_number() {
        let found: Vec<u32> =
            types("PERF_RECORD_SAMPLE,mmap2,84,999").unwrap().into_iter().map(|kind| kind.0).collect();
        assert_eq!(found, [9, 10, 84, 999]);
        assert!(types("nope").unwrap_err().contains("`nope`"));
    }
}

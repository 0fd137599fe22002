//! The command line of `rep dump`.

use std::collections::BTreeSet;
use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use recrep_format::abi::RecordType;

use super::query::DumpQuery;
use crate::cli::source_args::SourceArgs;

/// Prints every record with its place, its bytes and its fields
///
/// A line for each record tells where it begins, how long it is and its type; below it are its bytes, then its fields under
/// their names in the ABI. The records inside compressed ones follow these, and their places (`unpacked:0x…`) count
/// in the stream that the compressed ones unpack to.
#[derive(Debug, Parser)]
#[command(name = "rep dump", version, about)]
struct DumpArgs {
    #[command(flatten)]
    source: SourceArgs,

    /// Leave out the bytes
    #[arg(long)]
    no_raw: bool,

    /// Show at most N bytes of the data that follows AUXTRACE and TRACING_DATA records
    #[arg(long, value_name = "N", default_value_t = 0)]
    payload: usize,

    /// Only records of these types, such as MMAP2,SAMPLE or 10,9
    #[arg(long = "type", value_name = "TYPE[,TYPE…]")]
    types: Option<String>,

    /// At most N records
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
}

/// Reads a command line (with `rep dump` first, as one word).
///
/// # Errors
/// What the user must be told.
pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<DumpQuery, clap::Error> {
    let args = DumpArgs::try_parse_from(args)?;
    let types = args.types.as_deref().map(types).transpose();
    let types = types.map_err(|message| DumpArgs::command().error(ErrorKind::InvalidValue, message))?;
    Ok(DumpQuery {
        source: args.source.source(),
        raw: !args.no_raw,
        payload: args.payload,
        types,
        limit: args.limit.unwrap_or(u64::MAX),
    })
}

/// A list of types, by name (with or without `PERF_RECORD_`) or number.
fn types(list: &str) -> Result<BTreeSet<RecordType>, String> {
    let one = |name: &str| {
        let upper = name.trim().to_ascii_uppercase();
        let short = upper.strip_prefix("PERF_RECORD_").unwrap_or(&upper);
        let named = RecordType::NAMED.iter().copied().find(|kind| kind.name() == Some(short));
        named.or_else(|| short.parse().ok().map(RecordType)).ok_or_else(|| {
            format!("--type: no record type is called `{name}`; `rep report --stats` lists a file's types")
        })
    };
    list.split(',').map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_go_by_name_and_number() {
        let found: Vec<u32> =
            types("PERF_RECORD_SAMPLE,mmap2,84,999").unwrap().into_iter().map(|kind| kind.0).collect();
        assert_eq!(found, [9, 10, 84, 999]);
        assert!(types("nope").unwrap_err().contains("`nope`"));
    }
}

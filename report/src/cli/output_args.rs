//! Values of `--format`: those outputs that a command offers.

use clap::builder::{PossibleValuesParser, TypedValueParser};

use crate::exports::outputs::{Output, named, names};

/// Returns the parser of `--format` for the outputs that a command offers.
pub(crate) fn output_parser(
    is_offered: fn(&Output) -> bool,
) -> impl TypedValueParser<Value = &'static Output> {
    PossibleValuesParser::new(names(is_offered)).map(|name| named(&name))
}

/// Returns the parser of `--format` for analyses.
pub(crate) fn tables_parser() -> impl TypedValueParser<Value = &'static Output> {
    output_parser(|output| output.tables.is_some())
}

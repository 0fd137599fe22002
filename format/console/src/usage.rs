//! Errors of clap, as the words of a message.

use std::error::Error as _;
use std::num::{ParseFloatError, ParseIntError};

use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Returns an error's text without its prefix and without the usage that follows.
pub fn reason(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let ends = ["\n\nUsage:", "\n\nFor more information"];
    let end = ends.iter().filter_map(|end| text.find(end)).min();
    text.get(..end.unwrap_or(text.len())).unwrap_or(text).to_owned()
}

/// Returns an option and its value, if that is the error.
pub fn invalid_value(error: &clap::Error) -> Option<(&str, &str)> {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let option = text(ContextKind::InvalidArg)?;
    let value = text(ContextKind::InvalidValue)?;
    Some((option.split([' ', '[', '=']).next().unwrap_or(option), value))
}

/// Returns a sentence about a value that is no number, if that is the error.
pub fn number_reason(error: &clap::Error) -> Option<String> {
    let (option, value) = invalid_value(error)?;
    let source = error.source()?;
    let number = if source.is::<ParseFloatError>() {
        "a number"
    } else if source.is::<ParseIntError>() {
        "a whole number from 0 on"
    } else {
        return None;
    };
    Some(format!("{option} takes {number}, not `{value}`"))
}

/// Returns the same options, where words such as `-3` are values, not unknown options.
#[must_use]
pub fn with_negative_values(command: Command) -> Command {
    command.mut_args(|arg| match arg.get_action().takes_values() && !arg.is_positional() {
        true => arg.allow_negative_numbers(true),
        false => arg,
    })
}

/// Returns the option that does not exist, without its value, if that is the error.
pub fn unknown_option(error: &clap::Error) -> Option<&str> {
    match (error.kind(), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::UnknownArgument, Some(ContextValue::String(option))) => {
            Some(option.split('=').next().unwrap_or(option))
        }
        _ => None,
    }
}

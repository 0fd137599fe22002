//! Errors of clap, as the words of a message.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Returns an error's text without its prefix and without the usage that follows.
pub fn reason(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let ends = ["\n\nUsage:", "\n\nFor more information"];
    let end = ends.iter().filter_map(|end| text.find(end)).min();
    text.get(..end.unwrap_or(text.len())).unwrap_or(text).to_owned()
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

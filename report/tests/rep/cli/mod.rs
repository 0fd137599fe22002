//! The `rep` command as a whole: from files and pipes to output, messages and exit statuses.

mod answers;
mod common;
mod corpus;
mod inputs;
mod names;
mod several;
mod short_way;
mod style;

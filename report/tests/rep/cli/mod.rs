//! The `rep` command as a whole: from files and pipes to output, messages and exit statuses.

mod answers;
mod branches;
mod common;
mod compressed;
mod corpus;
mod inputs;
mod names;
mod several;
mod short_way;
mod style;

//! The `rep` command as its users meet it: streams and files in, answers, messages and exit statuses out.

mod answers;
mod common;
mod compressed;
mod corpus;
mod inputs;
mod names;
mod several;
mod stats;
mod style;

//! Writing: a perf.data file through any [`Write`](std::io::Write), records through an [`Encoder`](crate::bytes::Encoder).

mod file;

pub use file::{FeatureWriter, FileWriter};

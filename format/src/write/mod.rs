//! Writing: a perf.data file through any [`Write`](std::io::Write), records through an [`Encoder`](crate::bytes::Encoder).

mod copy;
mod file;
mod pipe;

pub use copy::copy;
pub use file::{FeatureWriter, FileWriter};
pub use pipe::PipeWriter;

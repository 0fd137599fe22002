//! Writing recordings: anew, by [`FileWriter`] or [`PipeWriter`], or from another one, by [`copy`]
//! and [`copy_with`].
//!
//! Records are encoded by [`Record::encode`](crate::record::Record::encode) into an
//! [`Encoder`](crate::bytes::Encoder). A writer takes bytes, so records that are encoded already,
//! such as those of a kernel ring, go through as they are.

mod copy;
mod file;
mod pipe;
mod writer;

pub use copy::{copy, copy_unseekable, copy_with};
pub use file::{FeatureWriter, FileMode, FileWriter};
pub use pipe::{PipeMode, PipeWriter};
pub use writer::Writer;

//! The pass over the samples: every worker takes the next piece until there is none.
//!
//! What is asked of a sample costs a few loads at known places; its callchain is only hashed, and only where
//! it is asked for. Lookups in the timeline are
//! remembered per worker, since samples come in runs of one thread at few addresses. Only what lies behind the fields of
//! variable size (branches, weights, data sources) makes a sample be walked, and no further than needed.

mod chains;
mod extras;
mod filter;
mod naming;
mod run;
mod task;
mod worker;

pub use chains::Chaining;
pub use filter::{Compiled, SampleFilter};
pub use naming::Naming;
pub use run::Scanned;
pub use task::{Dropped, Scan};

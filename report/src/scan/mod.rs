//! The pass over the samples: each worker takes the next piece until none is left.
//!
//! Most fields of a sample cost a few loads at fixed offsets. A callchain is walked only if the query needs it. Each
//! worker remembers recent lookups in the timeline, since samples come in runs of few threads at few addresses. Fields
//! that follow one of variable size have no fixed offset (branches, weights, data sources): only for these is the
//! sample parsed from its start, and no further than needed.

mod branches;
mod chains;
mod extras;
mod filter;
mod naming;
mod off_cpu;
mod recent;
mod run;
mod task;
mod worker;

pub use chains::ChainSettings;
pub use filter::{FileFilters, SampleFilter};
pub use naming::Naming;
pub use run::Scanned;
pub use task::{Dropped, Scan};

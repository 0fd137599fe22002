//! What is wrong with a profile.

use recrep_format::error::Error;

use crate::pprof::DamagedField;

/// Reason for which a profile cannot be read.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ProfileError {
    #[error("a pprof profile that is damaged or cut at byte {0}")]
    Damaged(usize),
    #[error("a pprof profile in which {0} {1}")]
    Invalid(&'static str, String),
    #[error(
        "a pprof profile with negative values: the difference of two profiles; name both, or make \
         it without -diff_base and -base"
    )]
    Negative,
    #[error(
        "a pprof profile that unpacks to {0} bytes, which is unlike one; unpack it with gzip -dk"
    )]
    Bomb(usize),
    #[error("a pprof profile whose values are too large to be added up")]
    TooLarge,
    #[error("a pprof profile whose stacks unfold to more than {0} bytes")]
    TooLong(usize),
    #[error("a pprof profile that cannot be made a recording: {0}")]
    Record(#[from] Error),
    #[error("a pprof profile that cannot be made a recording: {0}")]
    Write(#[from] std::io::Error),
}

impl ProfileError {
    pub(super) fn at(damaged: DamagedField, profile: &[u8]) -> Self {
        Self::Damaged(profile.len() - damaged.left.min(profile.len()))
    }
}

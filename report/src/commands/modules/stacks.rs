//! Stacks that were truncated when they were recorded, so that outer callers are missing.

use rayon::prelude::*;
use recrep_format::abi::SampleType;
use recrep_format::layout::UpTo;
use recrep_format::record::{RawRecord, SampleFields};
use serde::Serialize;

use crate::input::split::Piece;
use crate::input::unpack::UnpackBuffer;
use crate::pipeline::counted::samples_have;
use crate::pipeline::session::Session;
use crate::query::MAX_STACK;

/// Numbers of recorded and of truncated stacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct StackSummary {
    /// Number of samples with a callchain.
    pub callchains: u64,
    /// Number of callchains of the kernel's maximum depth.
    pub callchains_at_limit: u64,
    /// Number of samples with a copy of the user stack.
    pub copies: u64,
    /// Number of copies that are full, so that the rest of the stack is missing.
    pub copies_truncated: u64,
    /// Size of the largest copy in bytes.
    pub copy_bytes: u64,
}

impl StackSummary {
    /// Counts the stacks of an input.
    pub(super) fn of(session: &Session<'_>) -> Self {
        let wanted = SampleType::CALLCHAIN | SampleType::STACK_USER;
        if !samples_have(session, wanted) {
            return Self::default();
        }
        let of_piece = |buffer: &mut UnpackBuffer, piece: &Piece<'_>| Self::of_records(session, piece.records(buffer));
        session.split.pieces.par_iter().map_init(UnpackBuffer::default, of_piece).reduce(Self::default, Self::and)
    }

    fn of_records<'r>(session: &Session<'_>, records: impl Iterator<Item = RawRecord<'r>>) -> Self {
        let attrs = &session.file.attrs;
        let mut all = Self::default();
        for (event, sample) in records.filter_map(|raw| attrs.sample(raw)) {
            let mut fields = SampleFields::default();
            if sample.walk(const { UpTo::field(SampleType::STACK_USER) }, &mut fields).is_err() {
                continue;
            }
            if let Some(chain) = &fields.callchain {
                let asked = attrs.entries().get(event.0).map_or(0, |entry| usize::from(entry.attr.sample_max_stack));
                let most = if asked == 0 { MAX_STACK } else { asked };
                all.callchains += 1;
                all.callchains_at_limit += u64::from(chain.len() >= most);
            }
            if let Some(stack) = fields.stack_user.filter(|stack| !stack.bytes.is_empty()) {
                let size = stack.bytes.len() as u64;
                all.copies += 1;
                all.copies_truncated += u64::from(stack.dyn_size.is_some_and(|filled| filled >= size));
                all.copy_bytes = all.copy_bytes.max(size);
            }
        }
        all
    }

    /// Returns the sum of two summaries.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            callchains: self.callchains + other.callchains,
            callchains_at_limit: self.callchains_at_limit + other.callchains_at_limit,
            copies: self.copies + other.copies,
            copies_truncated: self.copies_truncated + other.copies_truncated,
            copy_bytes: self.copy_bytes.max(other.copy_bytes),
        }
    }
}

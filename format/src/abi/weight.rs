//! `union perf_sample_weight`: the cost of a sample.

use crate::fields::{Value, named, shown};

/// The cost of a sample: one number (`PERF_SAMPLE_WEIGHT`), or three (`PERF_SAMPLE_WEIGHT_STRUCT`).
///
/// For loads the cost is usually the latency in cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Weight {
    /// One number.
    Whole(u64),
    /// Three numbers.
    Parts(WeightParts),
}

named! {
    /// The three numbers of a weight. The kernel declares them once for each byte order, so that
    /// the word has the same value in both.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct WeightParts {
        /// The cost (`var1_dw`): on x86 and PowerPC the latency of the access in cycles.
        pub var1: u32 => "var1_dw",
        /// On x86 the latency of the instruction, on PowerPC the cycles until dispatch (`var2_w`).
        pub var2: u16 => "var2_w",
        /// On x86 the cycles until retirement, on PowerPC those in a pipeline stage (`var3_w`).
        pub var3: u16 => "var3_w",
    }
}

impl WeightParts {
    /// Returns the parts of a 64-bit word.
    #[inline]
    pub const fn from_word(word: u64) -> Self {
        Self {
            var1: (word & 0xffff_ffff) as u32,
            var2: (word >> 32 & 0xffff) as u16,
            var3: (word >> 48) as u16,
        }
    }

    /// Returns the word that holds the parts.
    #[inline]
    pub const fn to_word(self) -> u64 {
        self.var1 as u64 | (self.var2 as u64) << 32 | (self.var3 as u64) << 48
    }
}

shown! {
    Weight: |weight| match weight {
        Weight::Whole(weight) => Value::Number((*weight).into()),
        Weight::Parts(parts) => parts.value(),
    };
}

impl Weight {
    /// Returns the cost: the one number, or the first of the three.
    #[inline]
    pub const fn cost(self) -> u64 {
        match self {
            Self::Whole(cost) => cost,
            Self::Parts(parts) => parts.var1 as u64,
        }
    }

    /// Returns the three numbers; `None` if there is one.
    #[inline]
    pub const fn parts(self) -> Option<WeightParts> {
        match self {
            Self::Whole(_) => None,
            Self::Parts(parts) => Some(parts),
        }
    }

    /// Returns the word in the record.
    #[inline]
    pub const fn to_word(self) -> u64 {
        match self {
            Self::Whole(cost) => cost,
            Self::Parts(parts) => parts.to_word(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_parts_share_a_word() {
        let parts = WeightParts::from_word(0x0003_0005_8000_0007);
        assert_eq!(parts, WeightParts { var1: 0x8000_0007, var2: 5, var3: 3 });
        let weight = Weight::Parts(parts);
        assert_eq!(weight.cost(), 0x8000_0007);
        assert_eq!(weight.parts(), Some(parts));
        assert_eq!(weight.to_word(), 0x0003_0005_8000_0007);
        let whole = Weight::Whole(u64::MAX);
        assert_eq!((whole.cost(), whole.parts(), whole.to_word()), (u64::MAX, None, u64::MAX));
    }
}

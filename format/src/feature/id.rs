//! The numbers of the features.

use std::fmt;

/// A header feature's number: its bit in the header's bitmap. It prints perf's name in capitals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FeatureId(pub u8);

impl FeatureId {
    /// Returns the features whose bits are set, in bit order.
    pub(crate) fn in_bitmap(words: [u64; 4]) -> impl Iterator<Item = Self> {
        (0..=u8::MAX)
            .filter(move |bit| {
                words.get(usize::from(bit / 64)).is_some_and(|word| word >> (bit % 64) & 1 == 1)
            })
            .map(Self)
    }

    /// Returns whether only Android's simpleperf writes the feature.
    pub fn is_of_simpleperf(self) -> bool {
        (Self::SIMPLEPERF_FILE..=Self::SIMPLEPERF_INIT_MAP).contains(&self)
    }

    /// Sets the feature's bit.
    pub(crate) fn set_in(self, words: &mut [u64; 4]) {
        if let Some(word) = words.get_mut(usize::from(self.0 / 64)) {
            *word |= 1 << (self.0 % 64);
        }
    }
}

impl fmt::Display for FeatureId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.pad(name),
            None => f.pad(&format!("FEATURE_{}", self.0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_and_numbers() {
        let mut words = [0; 4];
        for id in [FeatureId::BUILD_ID, FeatureId::PMU_CAPS, FeatureId(64), FeatureId(255)] {
            id.set_in(&mut words);
        }
        let found: Vec<_> = FeatureId::in_bitmap(words).map(|id| id.to_string()).collect();
        assert_eq!(found, ["BUILD_ID", "PMU_CAPS", "FEATURE_64", "FEATURE_255"]);
    }
}

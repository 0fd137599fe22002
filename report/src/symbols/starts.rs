//! Sorted start addresses with a coarse index: a lookup touches one place of each, where a plain binary search in a
//! large library touches a dozen.
//!
//! ```text
//!   coarse  [ 0 | 2 | 2 | 3 | … ]       number of starts before each bucket; all buckets have the same size
//!             │   └─────┐
//!   starts  [ 0x1000 0x1010 | 0x5200 | … ]
//! ```

/// Distinct addresses in ascending order.
#[derive(Debug, Default)]
pub(super) struct Starts {
    starts: Vec<u64>,
    coarse: Vec<u32>,
    /// Log2 of the number of addresses in a bucket.
    shift: u32,
}

impl Starts {
    /// Builds the index of addresses that are sorted and distinct.
    pub(super) fn new(starts: Vec<u64>) -> Self {
        let (Some(first), Some(last)) = (starts.first().copied(), starts.last().copied()) else {
            return Self::default();
        };
        // About one start per bucket; the bucket size is rounded up to a power of two.
        let shift = ((last - first) / starts.len() as u64).checked_ilog2().map_or(0, |log| log + 1);
        let buckets = (last - first) >> shift;
        let mut coarse = Vec::with_capacity(usize::try_from(buckets).unwrap_or(0) + 2);
        for (index, start) in (0u32..).zip(&starts) {
            let bucket = usize::try_from((start - first) >> shift).unwrap_or(usize::MAX);
            while coarse.len() <= bucket {
                coarse.push(index);
            }
        }
        coarse.push(u32::try_from(starts.len()).unwrap_or(u32::MAX));
        Self { starts, coarse, shift }
    }

    /// Returns the index of the last start that is not after `address`.
    #[inline]
    pub(super) fn find(&self, address: u64) -> Option<usize> {
        let bucket = usize::try_from(address.checked_sub(*self.starts.first()?)? >> self.shift).ok()?;
        let (Some(from), Some(to)) = (self.coarse.get(bucket), self.coarse.get(bucket.saturating_add(1))) else {
            // After the last bucket.
            return self.starts.len().checked_sub(1);
        };
        let from = *from as usize;
        let near = self.starts.get(from..*to as usize)?;
        (from + near.partition_point(|start| *start <= address)).checked_sub(1)
    }

    pub(super) fn get(&self, index: usize) -> Option<u64> {
        self.starts.get(index).copied()
    }

    pub(super) fn len(&self) -> usize {
        self.starts.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = u64> {
        self.starts.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn assert_found(all: &[u64], address: u64) {
        let plain = all.partition_point(|start| *start <= address).checked_sub(1);
        assert_eq!(Starts::new(all.to_vec()).find(address), plain, "{address:#x} in {all:x?}");
    }

    #[test]
    fn lookups_work_at_both_ends_of_the_address_space() {
        for all in [&[][..], &[0], &[u64::MAX], &[0, u64::MAX], &[5, 6, 7, u64::MAX - 1]] {
            for address in [0, 1, 5, 7, u64::MAX - 1, u64::MAX] {
                assert_found(all, address);
            }
        }
    }

    proptest! {
        #[test]
        fn the_index_agrees_with_a_binary_search(
            all in prop::collection::btree_set(prop_oneof![0u64..64, 0x1000u64..0x9000, any::<u64>()], 0..60),
            more in prop::collection::vec(any::<u64>(), 10),
        ) {
            let all: Vec<u64> = all.into_iter().collect();
            for start in all.clone() {
                let near = [start, start.wrapping_add(1), start.wrapping_sub(1)];
                near.into_iter().for_each(|address| assert_found(&all, address));
            }
            more.into_iter().for_each(|address| assert_found(&all, address));
        }
    }
}

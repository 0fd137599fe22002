//! Coarse index of items that are sorted by address: a lookup touches one place of the index and
//! one of the items, where a plain binary search in a large library touches a dozen.
//!
//! ```text
//!   coarse  [ 0 | 2 | 2 | 3 | … ]       number of items before each bucket, all of one size
//!             │   └─────┐
//!   items   [ 0x1000 0x1010 | 0x5200 | … ]
//! ```

/// Coarse index of items with distinct addresses in ascending order.
#[derive(Debug, Default)]
pub(crate) struct Coarse {
    coarse: Vec<u32>,
    /// Address of the first item.
    first: u64,
    /// Log2 of the number of addresses in a bucket.
    shift: u32,
}

impl Coarse {
    /// Builds the index of items with these addresses.
    pub(crate) fn new<T>(items: &[T], address: impl Fn(&T) -> u64) -> Self {
        let (Some(first), Some(last)) = (items.first().map(&address), items.last().map(&address))
        else {
            return Self::default();
        };
        // About one item per bucket; the bucket size is rounded up to a power of two.
        let shift = ((last - first) / items.len() as u64).checked_ilog2().map_or(0, |log| log + 1);
        let buckets = (last - first) >> shift;
        let mut coarse = Vec::with_capacity(usize::try_from(buckets).unwrap_or(0) + 2);
        for (index, item) in (0u32..).zip(items) {
            let bucket = usize::try_from((address(item) - first) >> shift).unwrap_or(usize::MAX);
            while coarse.len() <= bucket {
                coarse.push(index);
            }
        }
        coarse.push(u32::try_from(items.len()).unwrap_or(u32::MAX));
        Self { coarse, first, shift }
    }

    /// Returns the index of the last of the same items that is not after `wanted`.
    #[inline]
    pub(crate) fn find<T>(
        &self,
        items: &[T],
        address: impl Fn(&T) -> u64,
        wanted: u64,
    ) -> Option<usize> {
        let bucket = usize::try_from(wanted.checked_sub(self.first)? >> self.shift).ok()?;
        let (Some(from), Some(to)) =
            (self.coarse.get(bucket), self.coarse.get(bucket.saturating_add(1)))
        else {
            // After the last bucket.
            return items.len().checked_sub(1);
        };
        let from = *from as usize;
        let near = items.get(from..*to as usize)?;
        (from + near.partition_point(|item| address(item) <= wanted)).checked_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn assert_found(all: &[u64], address: u64) {
        let plain = all.partition_point(|start| *start <= address).checked_sub(1);
        let found = Coarse::new(all, |start| *start).find(all, |start| *start, address);
        assert_eq!(found, plain, "{address:#x} in {all:x?}");
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
            all in prop::collection::btree_set(
                prop_oneof![0u64..64, 0x1000u64..0x9000, any::<u64>()],
                0..60,
            ),
            more in prop::collection::vec(any::<u64>(), 10),
        ) {
            let all: Vec<u64> = all.into_iter().collect();
            for start in all.clone() {
                for address in [start, start.wrapping_add(1), start.wrapping_sub(1)] {
                    assert_found(&all, address);
                }
            }
            for address in more {
                assert_found(&all, address);
            }
        }
    }
}

//! Sorted starts, and a coarse index of them: a lookup touches one place of each, where a plain binary search in a large library
//! touches a dozen.
//!
//! ```text
//!   coarse  [ 0 | 2 | 2 | 3 | … ]       for each stretch of addresses, all equally long: how many starts lie before it
//!             │   └─────┐
//!   starts  [ 0x1000 0x1010 | 0x5200 | … ]
//! ```

/// Addresses in ascending order, none twice.
#[derive(Debug, Default)]
pub(super) struct Starts {
    starts: Vec<u64>,
    coarse: Vec<u32>,
    /// A stretch has `1 << shift` addresses.
    shift: u32,
}

impl Starts {
    /// Of addresses that are in order.
    pub(super) fn new(starts: Vec<u64>) -> Self {
        let (Some(first), Some(last)) = (starts.first().copied(), starts.last().copied()) else {
            return Self::default();
        };
        // About one start for each stretch: as many stretches as starts, but for the rounding to a power of two.
        let shift = ((last - first) / starts.len() as u64).checked_ilog2().map_or(0, |log| log + 1);
        let stretches = (last - first) >> shift;
        let mut coarse = Vec::with_capacity(usize::try_from(stretches).unwrap_or(0) + 2);
        for (index, start) in (0u32..).zip(&starts) {
            let stretch = usize::try_from((start - first) >> shift).unwrap_or(usize::MAX);
            while coarse.len() <= stretch {
                coarse.push(index);
            }
        }
        coarse.push(u32::try_from(starts.len()).unwrap_or(u32::MAX));
        Self { starts, coarse, shift }
    }

    /// The place of the last start that is not after `address`.
    #[inline]
    pub(super) fn find(&self, address: u64) -> Option<usize> {
        let stretch = usize::try_from(address.checked_sub(*self.starts.first()?)? >> self.shift).ok()?;
        let (Some(from), Some(to)) = (self.coarse.get(stretch), self.coarse.get(stretch.saturating_add(1))) else {
            // Behind the last start's stretch.
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
    fn the_ends_of_the_address_space_are_found() {
        for all in [&[][..], &[0], &[u64::MAX], &[0, u64::MAX], &[5, 6, 7, u64::MAX - 1]] {
            for address in [0, 1, 5, 7, u64::MAX - 1, u64::MAX] {
                assert_found(all, address);
            }
        }
    }

    proptest! {
        #[test]
        fn the_index_says_what_a_search_says(
            all in prop::collection::btree_set(prop_oneof![0u64..64, 0x1000u64..0x9000, any::<u64>()], 0..60),
            more in prop::collection::vec(any::<u64>(), 10),
        ) {
            let all: Vec<u64> = all.into_iter().collect();
            for start in all.clone() {
                [start, start.wrapping_add(1), start.wrapping_sub(1)].into_iter().for_each(|near| assert_found(&all, near));
            }
            more.into_iter().for_each(|address| assert_found(&all, address));
        }
    }
}

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

impl Sum for u64 {
    fn add(&mut self, other: &Self) {
        *self += other;
    }
}

/// Returns the entries of partitions in order.
fn entries(parts: &[Partition<u64>]) -> Vec<([u64; 2], u64)> {
    parts.iter().flat_map(Partition::iter).map(|(key, value)| ([key[0], key[1]], *value)).collect()
}

proptest! {
    #[test]
    fn merged_tables_have_each_key_once_with_its_sum(
        adds in prop::collection::vec((0u64..20, 0u64..3, 1u64..9), 0..300),
        cuts in prop::collection::vec(0usize..300, 0..3),
        settled_after in 0usize..300,
    ) {
        let mut expected = BTreeMap::<[u64; 2], u64>::new();
        let mut tables = vec![Partition::<u64>::table(2)];
        for (number, (a, b, value)) in adds.iter().enumerate() {
            *expected.entry([*a, *b]).or_default() += value;
            if cuts.contains(&number) {
                tables.push(Partition::table(2));
            }
            let partition = &mut tables.last_mut().unwrap()[of_place(place(hash(&[*a, *b])))];
            partition.push(&[*a, *b], *value);
            if number == settled_after {
                partition.settle();
            }
        }
        let found = entries(&merged(tables));
        prop_assert_eq!(found.len(), expected.len());
        prop_assert_eq!(found.into_iter().collect::<BTreeMap<_, _>>(), expected);
    }

    #[test]
    fn a_table_has_the_sums_of_all_entries_added(
        batches in prop::collection::vec(prop::collection::vec((0u64..40, 0u64..9), 0..200), 1..4),
        size in 1usize..100,
    ) {
        let (mut expected, mut table) = (BTreeMap::<[u64; 2], u64>::new(), Vec::new());
        for batch in batches {
            batch.iter().for_each(|(a, b)| *expected.entry([*a, *b]).or_default() += a + b);
            let new = |keys: &[(u64, u64)]| {
                let words = keys.iter().flat_map(|(a, b)| [*a, *b]).collect();
                Partition::of_distinct(2, words, keys.iter().map(|(a, b)| a + b).collect())
            };
            add_all(&mut table, &batch.chunks(size).map(new).collect::<Vec<_>>());
        }
        let found = entries(&table);
        prop_assert_eq!(found.len(), expected.len());
        prop_assert_eq!(found.into_iter().collect::<BTreeMap<_, _>>(), expected);
    }

    #[test]
    fn distinct_keys_have_their_sums(keys in prop::collection::vec((0u64..40, 0u64..9), 0..300)) {
        let words = keys.iter().flat_map(|(a, b)| [*a, *b]).collect();
        let (table, indexes) = distinct(2, words, (0..keys.len() as u64).collect());
        let mut expected = indexmap::IndexMap::<[u64; 2], u64>::new();
        for (number, (a, b)) in keys.iter().enumerate() {
            *expected.entry([*a, *b]).or_default() += number as u64;
            prop_assert_eq!(table.key(indexes[number]), [*a, *b]);
        }
        prop_assert_eq!(entries(&[table]), expected.into_iter().collect::<Vec<_>>());
    }
}

#[test]
fn keys_are_added_to_those_known_to_be_different() {
    let mut partition = Partition::of_distinct(1, vec![5, 6], vec![10, 20]);
    assert_eq!(
        (partition.add(&[6], &1), partition.add(&[7], &2), partition.add(&[5], &3)),
        (1, 2, 0)
    );
    assert!(partition.iter().map(|(_, value)| *value).eq([13, 21, 2]));
}

#[test]
fn partitions_settle_when_many_entries_wait() {
    let mut partition = Partition::<u64>::new(1);
    (0..200_000).for_each(|n| partition.push(&[n % 3], 1));
    assert!(partition.values.capacity() * 16 <= 4 * MAX_WAITING, "{}", partition.values.capacity());
    assert_eq!(partition.add(&[7], &1), partition.len() - 1);
    partition.settle();
    assert_eq!(partition.len(), 4);
}

//! The kernel's two text forms of bitmaps: hexadecimal words (`%*pb`) and ranges of set bits (`%*pbl`).

/// Returns 32-bit words separated by commas, from the highest nonzero one down.
pub(super) fn words(longs: &[u64]) -> String {
    let halves: Vec<u64> = longs.iter().flat_map(|long| [long & 0xffff_ffff, long >> 32]).collect();
    let used = halves.iter().rposition(|word| *word != 0).map_or(1, |last| last + 1);
    let words = halves.iter().take(used).rev().enumerate();
    words.map(|(place, word)| if place == 0 { format!("{word:x}") } else { format!(",{word:08x}") }).collect()
}

/// Returns the set bits as a list of ranges, such as `0,2-4`.
pub(super) fn list(longs: &[u64]) -> String {
    let bits = longs
        .iter()
        .enumerate()
        .flat_map(|(place, long)| (0..64).filter(move |bit| long >> bit & 1 == 1).map(move |bit| place * 64 + bit));
    let bits: Vec<usize> = bits.collect();
    let ranges = bits.chunk_by(|bit, next| bit + 1 == *next).map(|range| match range {
        [first, .., last] => format!("{first}-{last}"),
        [only] => only.to_string(),
        [] => String::new(),
    });
    ranges.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_words_and_ranges() {
        assert_eq!(words(&[0x1_0000_000f, 0]), "1,0000000f");
        assert_eq!(words(&[0]), "0");
        assert_eq!(list(&[0b1_1101, 1]), "0,2-4,64");
        assert_eq!(list(&[1 << 63, 1]), "63-64");
        assert_eq!(list(&[]), "");
    }
}

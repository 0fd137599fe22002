//! Bitmaps as the kernel writes them: as words, or as ranges of the bits that are set.

/// Words of 32 bits from the highest that is not zero down, apart by commas.
pub(super) fn words(longs: &[u64], out: &mut Vec<u8>) {
    let halves: Vec<u64> = longs.iter().flat_map(|long| [long & 0xffff_ffff, long >> 32]).collect();
    let used = halves.iter().rposition(|word| *word != 0).map_or(1, |last| last + 1);
    for (place, word) in halves.iter().take(used).rev().enumerate() {
        let text = if place == 0 { format!("{word:x}") } else { format!(",{word:08x}") };
        out.extend_from_slice(text.as_bytes());
    }
}

/// Bits and ranges of bits, such as `0,2-4`.
pub(super) fn list(longs: &[u64], out: &mut Vec<u8>) {
    let bits = longs
        .iter()
        .enumerate()
        .flat_map(|(place, long)| (0..64).filter(move |bit| long >> bit & 1 == 1).map(move |bit| place * 64 + bit));
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for bit in bits {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == bit => *last = bit,
            _ => ranges.push((bit, bit)),
        }
    }
    let text =
        |(first, last): &(usize, usize)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    out.extend_from_slice(ranges.iter().map(text).collect::<Vec<_>>().join(",").as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms() {
        let told = |write: fn(&[u64], &mut Vec<u8>), longs: &[u64]| {
            let mut out = Vec::new();
            write(longs, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(told(words, &[0x1_0000_000f, 0]), "1,0000000f");
        assert_eq!(told(words, &[0]), "0");
        assert_eq!(told(list, &[0b1_1101, 1]), "0,2-4,64");
        assert_eq!(told(list, &[1 << 63, 1]), "63-64");
        assert_eq!(told(list, &[]), "");
    }
}

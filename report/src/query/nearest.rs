//! Suggestions for mistyped words.

use std::cmp::Ordering;

/// Least likeness of a word that is suggested, from 0 to 1.
const LEAST: f64 = 0.6;

/// Returns the known words that are similar to a mistyped one, at most `most`, the most similar
/// first.
pub(crate) fn near<'k>(
    word: &str,
    known: impl IntoIterator<Item = &'k str>,
    most: usize,
) -> Vec<&'k str> {
    let lower = word.to_lowercase();
    let likeness = |known: &'k str| {
        (strsim::normalized_damerau_levenshtein(&known.to_lowercase(), &lower), known)
    };
    let mut found: Vec<(f64, &str)> =
        known.into_iter().map(likeness).filter(|(like, _)| *like >= LEAST).collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| Ord::cmp(a.1, b.1)));
    found.dedup_by(|a, b| Ord::cmp(a.1, b.1) == Ordering::Equal);
    found.into_iter().take(most).map(|(_, known)| known).collect()
}

/// Returns the end of an error message: `; did you mean 'symbol'?`, or nothing if no known word is
/// similar.
pub(crate) fn did_you_mean<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> String {
    near(word, known, 1)
        .first()
        .map(|known| format!("; did you mean '{known}'?"))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_words_are_suggested_the_most_similar_first() {
        let known = ["script", "symbol", "symbol_from", "comm"];
        assert_eq!(near("scirpt", known, 3), ["script"]);
        assert_eq!(near("SYMBOL_FORM", known, 3), ["symbol_from"]);
        assert_eq!(near("symbols", known, 3), ["symbol"]);
        assert_eq!(did_you_mean("sybmol", known), "; did you mean 'symbol'?");
        assert_eq!(did_you_mean("zzz", known), "");
    }
}

//! Suggestions for mistyped names.

use std::cmp::Ordering;

/// Minimum likeness of a name that is suggested, from 0 to 1.
const LEAST: f64 = 0.6;

/// Returns how similar two names are, from 0 to 1.
pub fn likeness(a: &str, b: &str) -> f64 {
    strsim::normalized_damerau_levenshtein(a, b)
}

/// Returns the known names that are similar to a mistyped one, at most `most`, the most similar
/// first.
pub fn near<'k>(name: &str, known: impl IntoIterator<Item = &'k str>, most: usize) -> Vec<&'k str> {
    let lower = name.to_lowercase();
    let mut found: Vec<(f64, &str)> = known
        .into_iter()
        .map(|known| (likeness(&known.to_lowercase(), &lower), known))
        .filter(|(like, _)| *like >= LEAST)
        .collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| Ord::cmp(a.1, b.1)));
    found.dedup_by(|a, b| Ord::cmp(a.1, b.1) == Ordering::Equal);
    found.into_iter().take(most).map(|(_, known)| known).collect()
}

/// Returns the known name that is most similar to a mistyped one, if any is similar.
pub fn nearest<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> Option<String> {
    near(name, known, 1).first().map(|known| (*known).to_owned())
}

/// Returns the end of an error message: `; did you mean 'symbol'?`, or nothing if no known name is
/// similar.
pub fn did_you_mean<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> String {
    nearest(name, known).map(|known| format!("; did you mean '{known}'?")).unwrap_or_default()
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

    #[test]
    fn near_names() {
        let known = ["page-faults", "instructions"];
        assert_eq!(nearest("page-fault", known).as_deref(), Some("page-faults"));
        assert_eq!(nearest("instuctions", known).as_deref(), Some("instructions"));
        assert_eq!(nearest("sched", known), None);
    }
}

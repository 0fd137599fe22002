//! Suggestions for mistyped names.

/// Returns the known name that is most similar to a mistyped one, if any is similar.
pub(crate) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    known
        .into_iter()
        .map(|known| (strsim::normalized_damerau_levenshtein(known, name), known))
        .filter(|(likeness, _)| *likeness >= 0.6)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, known)| known.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names() {
        let known = ["page-faults", "instructions"];
        assert_eq!(nearest("page-fault", known).as_deref(), Some("page-faults"));
        assert_eq!(nearest("instuctions", known).as_deref(), Some("instructions"));
        assert_eq!(nearest("sched", known), None);
    }
}

//! Forms of fixtures that a test tries.

use recrep_fixtures::manifest::{Case, Form};

/// Returns whether tests do all that they can, at the cost of minutes: with `RECREP_FULL=1`.
pub fn is_full() -> bool {
    std::env::var_os("RECREP_FULL").is_some_and(|value| value == "1")
}

/// One of the wanted forms of a case, or all if [`is_full`]. It differs from case to case, so that
/// all forms are there. For tests of what does not depend on the form; `dump` and `fixtures` read all
/// forms.
pub fn forms(case: &Case, is_wanted: impl Fn(&Form) -> bool) -> Vec<Form> {
    let mut forms: Vec<Form> = case.forms().filter(is_wanted).collect();
    if !is_full() && !forms.is_empty() {
        forms = vec![forms.swap_remove(case.name.len() % forms.len())];
    }
    forms
}

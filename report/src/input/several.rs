//! Commands with several inputs: unreadable ones are left out, and ones that change while they are read are read again.

use crate::input::{Changed, Input, OpenError};
use crate::query::Source;
use crate::query::warning::Warning;

/// Number of attempts to answer while inputs change.
const ATTEMPTS: u32 = 3;

/// Calls `act` with each input of `sources`, in order; returns a warning for each input that cannot be read.
///
/// # Errors
/// Returns an error if no input can be read, and any error of `act` that is not an [`OpenError`].
pub fn each(sources: &[Source], mut act: impl FnMut(&Source) -> anyhow::Result<()>) -> anyhow::Result<Vec<Warning>> {
    let (mut answered, mut unreadable) = (false, Vec::new());
    for source in sources {
        let inputs = Input::sources(source).unwrap_or_else(|error| {
            unreadable.push(error);
            Vec::new()
        });
        for input in inputs {
            match act(&input) {
                Ok(()) => answered = true,
                Err(error) => unreadable.push(error.downcast::<OpenError>()?),
            }
        }
    }
    if !answered && !unreadable.is_empty() {
        return Err(if unreadable.len() > 1 { OpenError::All(unreadable) } else { unreadable.remove(0) }.into());
    }
    let warning = |error: OpenError| Warning::new("unreadable", format!("{error}; it is left out"));
    Ok(unreadable.into_iter().map(warning).collect())
}

/// Calls `answer` again if an input was truncated or rewritten while it was read: the next attempt opens it at its new
/// size. Standard input cannot be read again.
///
/// # Errors
/// Returns the error of the last attempt.
pub fn settled<R>(sources: &[Source], mut answer: impl FnMut() -> anyhow::Result<R>) -> anyhow::Result<R> {
    for _ in 1..ATTEMPTS {
        match answer() {
            Err(error) if error.is::<Changed>() && !sources.contains(&Source::Stdin) => {}
            outcome => return outcome,
        }
    }
    answer()
}

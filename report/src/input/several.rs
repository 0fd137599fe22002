//! The inputs of a command that takes several: those that cannot be read are left out.

use crate::input::{Changed, Input, OpenError};
use crate::query::Source;
use crate::query::warning::Warning;

/// How often an answer is begun again because an input was written to while it was read.
const ATTEMPTS: u32 = 3;

/// Acts on each input of `sources`, in their order; returns what is wrong with those that cannot be read.
///
/// # Errors
/// No input can be read; what `act` returns, unless that is an [`OpenError`].
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

/// Answers once more where an input was cut short or rewritten while it was read: by then it is known how far it goes.
/// Standard input cannot be read again.
///
/// # Errors
/// What `answer` returns, at last.
pub fn settled<R>(sources: &[Source], mut answer: impl FnMut() -> anyhow::Result<R>) -> anyhow::Result<R> {
    for _ in 1..ATTEMPTS {
        match answer() {
            Err(error) if error.is::<Changed>() && !sources.contains(&Source::Stdin) => {}
            outcome => return outcome,
        }
    }
    answer()
}

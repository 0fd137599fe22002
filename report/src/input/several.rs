//! Commands with several inputs: unreadable ones are left out, small ones are read side by side, and ones that change
//! while they are read are read again.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::input::{Changed, Input, OpenError};
use crate::query::Source;
use crate::query::warning::Warning;

/// An input and its number.
type Numbered = (usize, Source);

/// Number of attempts to answer while inputs change.
const ATTEMPTS: u32 = 3;

/// Bytes of a file below which one core reads it alone, while others read other files.
const SMALL: u64 = 32 << 20;

/// Number of small files that a core reads and merges at a time.
const GROUP: usize = 8;

/// Number of groups for each core whose results are in memory at once.
const AHEAD: usize = 4;

/// Calls `act` with each input of `sources`, in order; returns a warning for each input that cannot be read.
///
/// # Errors
/// Returns an error if no input can be read, and any error of `act` that is not an [`OpenError`].
pub fn each(sources: &[Source], mut act: impl FnMut(&Source) -> anyhow::Result<()>) -> anyhow::Result<Vec<Warning>> {
    let (inputs, mut outcomes) = inputs(sources);
    inputs.iter().try_for_each(|(number, input)| outcomes.add(*number, act(input)))?;
    outcomes.finish()
}

/// Like [`each`], but merges what `make` returns for the inputs, in order. With `side_by_side`, each core reads groups
/// of small files; until one input was read, and without it, `make` is called in order, too.
///
/// # Errors
/// Returns the errors of [`each`].
pub fn each_merged<T: Send>(
    sources: &[Source],
    side_by_side: bool,
    make: &(dyn Fn(&Source) -> anyhow::Result<T> + Sync),
    merge: &(dyn Fn(&mut T, T) + Sync),
) -> anyhow::Result<(Option<T>, Vec<Warning>)> {
    let (inputs, mut outcomes) = inputs(sources);
    let add = |all: &mut Option<T>, one| match all {
        None => *all = Some(one),
        Some(all) => merge(all, one),
    };
    let mut whole = None;
    let mut rest = &inputs[..];
    while let Some(((number, input), others)) = rest.split_first() {
        let most = if side_by_side && outcomes.answered { AHEAD * GROUP * rayon::current_num_threads() } else { 0 };
        let small = rest.iter().take(most).take_while(|(_, input)| is_small(input)).count();
        if small < 2 {
            outcomes.add(*number, make(input).map(|one| add(&mut whole, one)))?;
            rest = others;
            continue;
        }
        let (batch, others) = rest.split_at(small);
        rest = others;
        let of_group = |group: &[Numbered]| {
            let mut merged = None;
            let one = |(_, input): &Numbered| make(input).map(|one| add(&mut merged, one));
            let results: Vec<anyhow::Result<()>> = group.iter().map(one).collect();
            (merged, group.iter().map(|(number, _)| *number).zip(results).collect::<Vec<_>>())
        };
        for (merged, results) in on_one_core_each(batch, &of_group)? {
            results.into_iter().try_for_each(|(number, result)| outcomes.add(number, result))?;
            merged.into_iter().for_each(|one| add(&mut whole, one));
        }
    }
    Ok((whole, outcomes.finish()?))
}

/// Returns the inputs of `sources`, and the errors of those that cannot be listed.
fn inputs(sources: &[Source]) -> (Vec<Numbered>, Outcomes) {
    let (mut inputs, mut outcomes, mut numbers) = (Vec::new(), Outcomes::default(), 0..);
    for source in sources {
        match Input::sources(source) {
            Ok(found) => inputs.extend(numbers.by_ref().zip(found)),
            Err(error) => outcomes.unreadable.extend(numbers.next().map(|number| (number, error))),
        }
    }
    (inputs, outcomes)
}

fn is_small(source: &Source) -> bool {
    let Source::Path(path) = source else { return false };
    path.metadata().is_ok_and(|file| file.is_file() && file.len() < SMALL)
}

/// Calls `make` with groups of these inputs, and returns the results in their order. What elsewhere is done on all
/// cores is done by one core here.
fn on_one_core_each<T: Send>(inputs: &[Numbered], make: &(dyn Fn(&[Numbered]) -> T + Sync)) -> anyhow::Result<Vec<T>> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut made = Vec::new();
        loop {
            let group = next.fetch_add(1, Ordering::Relaxed);
            let Some(inputs) = inputs.chunks(GROUP).nth(group) else { return made };
            made.push((group, make(inputs)));
        }
    };
    let pool = |_| rayon::ThreadPoolBuilder::new().num_threads(1).build();
    let pools = (0..rayon::current_num_threads()).map(pool).collect::<Result<Vec<_>, _>>()?;
    let mut made: Vec<(usize, T)> = std::thread::scope(|scope| {
        let threads: Vec<_> = pools.iter().map(|pool| scope.spawn(|| pool.install(work))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    });
    made.sort_unstable_by_key(|(group, _)| *group);
    Ok(made.into_iter().map(|(_, made)| made).collect())
}

/// Outcomes of the inputs so far.
#[derive(Debug, Default)]
struct Outcomes {
    /// `true` if any was read.
    answered: bool,
    unreadable: Vec<(usize, OpenError)>,
}

impl Outcomes {
    /// Adds the outcome of the input with this number; returns its error unless that is an [`OpenError`].
    fn add(&mut self, number: usize, outcome: anyhow::Result<()>) -> anyhow::Result<()> {
        match outcome {
            Ok(()) => self.answered = true,
            Err(error) => self.unreadable.push((number, error.downcast::<OpenError>()?)),
        }
        Ok(())
    }

    /// Returns a warning for each input that could not be read; an error if none could.
    fn finish(mut self) -> anyhow::Result<Vec<Warning>> {
        self.unreadable.sort_by_key(|(number, _)| *number);
        let mut unreadable: Vec<OpenError> = self.unreadable.into_iter().map(|(_, error)| error).collect();
        if !self.answered && !unreadable.is_empty() {
            return Err(if unreadable.len() > 1 { OpenError::All(unreadable) } else { unreadable.remove(0) }.into());
        }
        let warning = |error: OpenError| Warning::new("unreadable", format!("{error}; it is left out"));
        Ok(unreadable.into_iter().map(warning).collect())
    }
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

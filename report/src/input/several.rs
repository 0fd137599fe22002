//! Commands with several inputs: unreadable ones are left out, small ones are read side by side,
//! and ones that change while they are read are read again.

use std::sync::mpsc::{Receiver, sync_channel};

use crate::input::{Changed, Input, OpenError};
use crate::query::{Source, Warning};

type NumberedSource = (usize, Source);

/// Number of attempts to answer while inputs change.
const ATTEMPTS: u32 = 3;

/// Bytes of a file below which one core reads it alone, while others read other files.
const SMALL: u64 = 32 << 20;

/// Number of small files that a core reads and merges at a time.
const GROUP: usize = 8;

/// Number of groups of each core whose results may wait to be merged.
const AHEAD: usize = 4;

/// Calls `act` with each input of `sources`, in order; returns its warnings, and one for each input
/// that cannot be read. Fails if no input can be read, and with any error of `act` that is not an
/// [`OpenError`].
pub(crate) fn each(
    sources: &[Source],
    mut act: impl FnMut(&Source) -> anyhow::Result<Vec<Warning>>,
) -> anyhow::Result<Vec<Warning>> {
    let ((inputs, mut outcomes), mut warnings) = (inputs(sources), Vec::new());
    for (number, input) in &inputs {
        outcomes.add(*number, act(input).map(|of_input| warnings.extend(of_input)))?;
    }
    warnings.extend(outcomes.finish()?);
    Ok(warnings)
}

/// Like [`each`], but merges what `make` returns for the inputs, in order. With `side_by_side`,
/// each core reads groups of small files; until one input was read, and without it, `make` is
/// called in order, too.
pub(crate) fn each_merged<T: Send>(
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
        let may_be = side_by_side && outcomes.answered;
        let small = rest.iter().take_while(|(_, input)| may_be && is_small(input)).count();
        if small < 2 {
            outcomes.add(*number, make(input).map(|one| add(&mut whole, one)))?;
            rest = others;
            continue;
        }
        let (batch, others) = rest.split_at(small);
        rest = others;
        let of_group = |group: &[NumberedSource]| {
            let (mut merged, mut results) = (None, Vec::with_capacity(group.len()));
            for (number, input) in group {
                results.push((*number, make(input).map(|one| add(&mut merged, one))));
            }
            (merged, results)
        };
        on_one_core_each(batch, &of_group, |(merged, results)| {
            results.into_iter().try_for_each(|(number, result)| outcomes.add(number, result))?;
            if let Some(one) = merged {
                add(&mut whole, one);
            }
            Ok(())
        })?;
    }
    Ok((whole, outcomes.finish()?))
}

/// Returns the inputs of `sources`, and the errors of those that cannot be listed.
fn inputs(sources: &[Source]) -> (Vec<NumberedSource>, Outcomes) {
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

/// Calls `make` with groups of these inputs, and `merge` with the results, in their order. What
/// elsewhere is done on all cores is done by one core here. The groups are dealt to the cores in
/// turn, and each may be [`AHEAD`] of the merging:
///
/// ```text
///   core 0   groups 0, 2, 4, …  ─► queue ─┐
///   core 1   groups 1, 3, 5, …  ─► queue ─┴─► merged in turn: 0, 1, 2, …
/// ```
fn on_one_core_each<T: Send>(
    inputs: &[NumberedSource],
    make: &(dyn Fn(&[NumberedSource]) -> T + Sync),
    mut merge: impl FnMut(T) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let cores = rayon::current_num_threads();
    let pools = (0..cores).map(|_| rayon::ThreadPoolBuilder::new().num_threads(1).build());
    let pools = pools.collect::<Result<Vec<_>, _>>()?;
    std::thread::scope(|scope| {
        let mut queues: Vec<Receiver<T>> = Vec::with_capacity(cores);
        for (core, pool) in pools.iter().enumerate() {
            let (sender, results) = sync_channel(AHEAD);
            let groups = inputs.chunks(GROUP).skip(core).step_by(cores);
            // Nobody receives after an error, which ends all.
            scope.spawn(move || {
                pool.install(move || groups.map(make).try_for_each(|made| sender.send(made).ok()))
            });
            queues.push(results);
        }
        let mut in_turn = queues.iter().cycle();
        // A queue ends early only if its thread panics, which the scope passes on.
        let made = std::iter::from_fn(|| in_turn.next()?.recv().ok());
        made.take(inputs.len().div_ceil(GROUP)).try_for_each(&mut merge)
    })
}

/// Outcomes of the inputs so far.
#[derive(Debug, Default)]
struct Outcomes {
    /// `true` if any was read.
    answered: bool,
    unreadable: Vec<(usize, OpenError)>,
}

impl Outcomes {
    /// Adds the outcome of the input with this number; returns its error unless that is an
    /// [`OpenError`].
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
        let mut unreadable: Vec<OpenError> =
            self.unreadable.into_iter().map(|(_, error)| error).collect();
        if !self.answered && !unreadable.is_empty() {
            let only = if unreadable.len() == 1 { unreadable.pop() } else { None };
            return Err(only.unwrap_or(OpenError::All(unreadable)).into());
        }
        let messages = unreadable.iter().map(|error| format!("{error}; it is left out"));
        Ok(messages.map(|message| Warning::new(Warning::UNREADABLE, message)).collect())
    }
}

/// Calls `answer` again if an input was truncated or rewritten while it was read: the next attempt
/// opens it at its new size. The error of the last attempt counts. Standard input cannot be read
/// again.
pub(crate) fn retry_if_changed<R>(
    sources: &[Source],
    mut answer: impl FnMut() -> anyhow::Result<R>,
) -> anyhow::Result<R> {
    for _ in 1..ATTEMPTS {
        match answer() {
            Err(error) if error.is::<Changed>() && !sources.contains(&Source::Stdin) => {}
            outcome => return outcome,
        }
    }
    answer()
}

//! Text made on all cores and written in order.
//!
//! ```text
//!   chunks ─► batch ─► all cores: a result for each chunk ─► passed on in order
//!                                                             │ meanwhile the next batch is made
//! ```

use std::io::{self, Write};
use std::ops::{ControlFlow, Range};
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

/// Error context for a failed write of the output.
pub(crate) const CANNOT_WRITE: &str = "cannot write the answer";

/// Number of chunks of a batch for each thread.
const AHEAD: usize = 16;

/// Number of lines that a core makes at a time.
pub(crate) const PART: usize = 4096;

/// States of workers: each thread takes one while it makes a result.
#[derive(Debug)]
pub(crate) struct Workers<S>(Mutex<Vec<S>>);

impl<S> Default for Workers<S> {
    fn default() -> Self {
        Self(Mutex::new(Vec::new()))
    }
}

impl<S> Workers<S> {
    /// Acts with a state that nobody uses, or else with a `new` one.
    pub(crate) fn with<R>(&self, new: impl FnOnce() -> S, act: impl FnOnce(&mut S) -> R) -> R {
        let mut state = self.take(new);
        let result = act(&mut state);
        self.put(state);
        result
    }

    /// Takes a state that nobody uses, or else a `new` one.
    pub(crate) fn take(&self, new: impl FnOnce() -> S) -> S {
        let idle = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        idle.unwrap_or_else(new)
    }

    /// Gives a state back.
    pub(crate) fn put(&self, state: S) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(state);
    }

    /// Returns all states.
    pub(crate) fn finish(self) -> Vec<S> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the number of chunks in a batch of short results (`one_by_one`: made on one core, in
/// order).
pub(crate) fn batch(one_by_one: bool) -> usize {
    if one_by_one { 1 } else { AHEAD * rayon::current_num_threads() }
}

/// Makes a result for each chunk on all cores, `size` chunks in a batch, and passes the results on in
/// the order of the chunks, until `pass` breaks or fails. At most two batches of results are in
/// memory.
pub(crate) fn in_order<C: Send, R: Send, E>(
    chunks: impl IntoIterator<Item = C>,
    size: usize,
    make: impl Fn(C) -> R + Sync,
    mut pass: impl FnMut(R) -> Result<ControlFlow<()>, E>,
) -> Result<(), E> {
    let mut chunks = chunks.into_iter();
    let mut todo: Vec<C> = chunks.by_ref().take(size).collect();
    let mut ready: Vec<R> = Vec::new();
    loop {
        let mut made = Vec::new();
        let batch = std::mem::take(&mut todo);
        let is_last = batch.is_empty();
        let flow = rayon::in_place_scope(|scope| {
            scope.spawn(|_| made = batch.into_par_iter().map(&make).collect());
            for result in ready.drain(..) {
                if pass(result)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            todo = chunks.by_ref().take(size).collect();
            Ok(ControlFlow::Continue(()))
        })?;
        if is_last || flow.is_break() {
            return Ok(());
        }
        ready = made;
    }
}

/// Writes this many lines; `part` makes the text of a range of them.
pub(crate) fn in_parts<T: AsRef<[u8]> + Send>(
    lines: usize,
    part: impl Fn(Range<usize>) -> io::Result<T> + Sync,
    out: &mut dyn Write,
) -> io::Result<()> {
    let parts = (0..lines).step_by(PART).map(|start| start..(start + PART).min(lines));
    in_order(parts, batch(false), part, |text| {
        out.write_all(text?.as_ref())?;
        Ok(ControlFlow::Continue(()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_chunks() {
        for one_by_one in [false, true] {
            let (workers, mut passed) = (Workers::<usize>::default(), Vec::new());
            let add = |count: &mut usize| *count += 1;
            let make = |number: usize| {
                workers.with(|| 0, add);
                number * 10
            };
            let outcome: Result<(), ()> = in_order(0..1000, batch(one_by_one), make, |result| {
                passed.push(result);
                Ok(if result == 9000 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
            });
            assert_eq!(outcome, Ok(()));
            assert_eq!(passed, (0..=900).map(|number| number * 10).collect::<Vec<_>>());
            let made: usize = workers.finish().into_iter().sum();
            assert!((901..=1000).contains(&made), "{made}");
        }
    }

    #[test]
    fn the_first_error_ends_it() {
        let pass = |number| if number == 7 { Err(number) } else { Ok(ControlFlow::Continue(())) };
        let outcome = in_order(0..100, batch(false), |number| number, pass);
        assert_eq!(outcome, Err(7));
    }
}

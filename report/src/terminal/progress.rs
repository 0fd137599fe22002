//! Progress of reading: a bar on standard error, if that is a terminal and reading takes more than
//! a second. While files are fetched from a server, their progress replaces the bar. Without a
//! terminal, each fetched file is a line, so that the user knows the reason for the wait.
//!
//! Readers add to two counters, once per piece of about a megabyte, at no measurable cost. A
//! separate thread displays them.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use indicatif::{HumanBytes, ProgressBar, ProgressStyle, WeakProgressBar};

use crate::terminal::escape::escape;

/// Number of bytes to read. Bytes that are read twice count twice.
static TOTAL: AtomicU64 = AtomicU64::new(0);
/// Number of bytes read.
static DONE: AtomicU64 = AtomicU64::new(0);
/// Whether a bar exists.
static IS_SHOWN: AtomicBool = AtomicBool::new(false);
/// Files being fetched, until their bars are dropped.
static FETCHES: Mutex<Vec<WeakProgressBar>> = Mutex::new(Vec::new());

/// Adds `bytes` to the number of bytes to read.
pub(crate) fn expect(bytes: u64) {
    TOTAL.fetch_add(bytes, Ordering::Relaxed);
}

/// Adds `bytes` to the number of bytes read.
#[inline]
pub(crate) fn advance(bytes: usize) {
    DONE.fetch_add(bytes as u64, Ordering::Relaxed);
}

/// Announces that the file `name` is being fetched from `url`. Its progress is shown until the
/// returned bar is dropped, which has the file's name as its message and only counts: it is not
/// shown itself.
#[must_use]
pub(crate) fn fetching(name: &str, url: &str) -> ProgressBar {
    if !io::stderr().is_terminal() {
        let line = format!("rep: fetching {name}: {url}");
        // If standard error is closed, the line is lost.
        let _ignored = writeln!(io::stderr(), "{}", escape(&line));
    }
    let name = escape(&format!("{name} from {url}")).into_owned();
    let bar = ProgressBar::hidden().with_message(name);
    let mut fetches = fetches();
    fetches.retain(|bar| bar.upgrade().is_some());
    fetches.push(bar.downgrade());
    bar
}

fn fetches() -> MutexGuard<'static, Vec<WeakProgressBar>> {
    FETCHES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the progress of all fetches in one line, or `None` if there are none.
fn fetch_status() -> Option<String> {
    let mut all = Vec::new();
    for file in fetches().iter().filter_map(WeakProgressBar::upgrade) {
        let total = file.length().filter(|total| *total > 0);
        let of = total.map(|total| format!(" of {}", HumanBytes(total))).unwrap_or_default();
        all.push(format!("{}{of} of {}", HumanBytes(file.position()), file.message()));
    }
    (!all.is_empty()).then(|| format!("fetching {}", all.join("; ")))
}

/// The progress bar. Dropping this removes it.
#[derive(Debug)]
pub(crate) struct Bar {
    shown: Option<(mpsc::Sender<()>, JoinHandle<()>)>,
}

impl Bar {
    /// Shows a bar after one second, unless it is dropped before. Does nothing if standard error is
    /// not a terminal or already has a bar.
    pub(crate) fn start() -> Self {
        if !io::stderr().is_terminal() || IS_SHOWN.swap(true, Ordering::Relaxed) {
            return Self { shown: None };
        }
        let (end, ended) = mpsc::channel();
        let thread = thread::Builder::new().name("progress".into()).spawn(move || show(&ended));
        Self { shown: thread.ok().map(|thread| (end, thread)) }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some((end, thread)) = self.shown.take() {
            drop(end);
            let _ended = thread.join();
            IS_SHOWN.store(false, Ordering::Relaxed);
        }
    }
}

fn show(ended: &mpsc::Receiver<()>) {
    if ended.recv_timeout(Duration::from_secs(1)) != Err(RecvTimeoutError::Timeout) {
        return;
    }
    let bar = ProgressBar::new(TOTAL.load(Ordering::Relaxed));
    let [reading, fetching] = ["reading {wide_bar} {percent:>3}% {eta}", "{wide_msg}"]
        .map(ProgressStyle::with_template)
        .map(|style| style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.set_style(reading.clone());
    let mut was_fetching = false;
    while ended.recv_timeout(Duration::from_millis(100)) == Err(RecvTimeoutError::Timeout) {
        let status = fetch_status();
        if status.is_some() != was_fetching {
            was_fetching = status.is_some();
            bar.set_style(if was_fetching { fetching.clone() } else { reading.clone() });
        }
        bar.set_message(status.unwrap_or_default());
        let (total, done) = (TOTAL.load(Ordering::Relaxed), DONE.load(Ordering::Relaxed));
        bar.set_length(total);
        bar.set_position(done.min(total));
    }
    bar.finish_and_clear();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_shows_a_fetch_until_it_is_dropped() {
        let fetch = fetching("debuginfo of x", "http://h/y");
        fetch.set_length(2048);
        fetch.inc(1024);
        assert_eq!(
            fetch_status().as_deref(),
            Some("fetching 1.00 KiB of 2.00 KiB of debuginfo of x from http://h/y")
        );
        drop(fetch);
        assert_eq!(fetch_status(), None);
    }
}

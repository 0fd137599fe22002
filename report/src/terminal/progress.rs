//! How far reading has come: a bar on standard error for what takes more than a second, where that is a terminal.
//! What is fetched from a server stands there in its place; where there is no terminal, each such file is a line, so that
//! nobody waits without knowing for what.
//!
//! Readers add to two counters, once for each piece of about a megabyte: that costs nothing that could be measured. Whoever
//! shows them style at them from a thread of its own.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use indicatif::{HumanBytes, ProgressBar, ProgressStyle};

use crate::terminal::escape::escape;

/// Bytes that are to be read, and that have been; those that are read twice count twice.
static TOTAL: AtomicU64 = AtomicU64::new(0);
static DONE: AtomicU64 = AtomicU64::new(0);
/// Whether there is a bar.
static IS_SHOWN: AtomicBool = AtomicBool::new(false);
/// What is being fetched.
static FETCHES: Mutex<Vec<Arc<Bytes>>> = Mutex::new(Vec::new());

/// How much of a file has come.
#[derive(Debug)]
struct Bytes {
    name: String,
    done: AtomicU64,
    /// 0 where nobody knows.
    total: AtomicU64,
}

/// A file that is being fetched, for as long as this lives.
#[derive(Debug)]
pub struct Fetch(Arc<Bytes>);

/// Says that so many bytes are to be read.
pub fn expect(bytes: u64) {
    TOTAL.fetch_add(bytes, Ordering::Relaxed);
}

/// Says that so many bytes have been read.
#[inline]
pub fn advance(bytes: usize) {
    DONE.fetch_add(bytes as u64, Ordering::Relaxed);
}

/// Says that a file is being fetched from there.
#[must_use]
pub fn fetching(name: &str, url: &str) -> Fetch {
    if !io::stderr().is_terminal() {
        let line = format!("rep: fetching {name}: {url}");
        // Where nobody listens there is nobody to tell.
        let _unheard = writeln!(io::stderr(), "{}", escape(&line));
    }
    let name = escape(&format!("{name} from {url}")).into_owned();
    let bytes = Arc::new(Bytes { name, done: AtomicU64::new(0), total: AtomicU64::new(0) });
    fetches().push(bytes.clone());
    Fetch(bytes)
}

impl Fetch {
    /// Says how many bytes it has, if that is known.
    pub fn expect(&self, total: Option<u64>) {
        self.0.total.store(total.unwrap_or(0), Ordering::Relaxed);
    }

    /// Says that so many bytes have come.
    pub fn advance(&self, bytes: u64) {
        self.0.done.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl Drop for Fetch {
    fn drop(&mut self) {
        fetches().retain(|other| !Arc::ptr_eq(other, &self.0));
    }
}

fn fetches() -> MutexGuard<'static, Vec<Arc<Bytes>>> {
    FETCHES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is being fetched, and how far, on a line.
fn fetches_told() -> Option<String> {
    let told = |bytes: &Arc<Bytes>| {
        let (done, total) = (bytes.done.load(Ordering::Relaxed), bytes.total.load(Ordering::Relaxed));
        let of = if total > 0 { format!(" of {}", HumanBytes(total)) } else { String::new() };
        format!("{}{of} of {}", HumanBytes(done), bytes.name)
    };
    let all: Vec<String> = fetches().iter().map(told).collect();
    (!all.is_empty()).then(|| format!("fetching {}", all.join("; ")))
}

/// The bar; it goes away when this is dropped.
#[derive(Debug)]
pub struct Bar {
    shown: Option<(mpsc::Sender<()>, JoinHandle<()>)>,
}

impl Bar {
    /// Shows one in a second, if nobody has dropped it then and standard error is a terminal that has none.
    #[must_use]
    pub fn start() -> Self {
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
    let style = |template| ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    let (reading, fetching) = (style("reading {wide_bar} {percent:>3}% {eta}"), style("{wide_msg}"));
    bar.set_style(reading.clone());
    let mut was_fetching = false;
    while ended.recv_timeout(Duration::from_millis(100)) == Err(RecvTimeoutError::Timeout) {
        let told = fetches_told();
        if told.is_some() != was_fetching {
            was_fetching = told.is_some();
            bar.set_style(if was_fetching { fetching.clone() } else { reading.clone() });
        }
        bar.set_message(told.unwrap_or_default());
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
    fn what_is_fetched_is_told_for_as_long_as_it_is() {
        let fetch = fetching("debuginfo of x", "http://h/y");
        fetch.expect(Some(2048));
        fetch.advance(1024);
        assert_eq!(fetches_told().as_deref(), Some("fetching 1.00 KiB of 2.00 KiB of debuginfo of x from http://h/y"));
        drop(fetch);
        assert_eq!(fetches_told(), None);
    }
}

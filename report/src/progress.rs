//! How far reading has come: a bar on standard error for what takes more than a second, where that is a terminal.
//!
//! Readers add to two counters, once for each piece of about a megabyte: that costs nothing that could be measured. Whoever
//! shows them looks at them from a thread of its own.

use std::io::{self, IsTerminal};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// Bytes that are to be read, and that have been; those that are read twice count twice.
static TOTAL: AtomicU64 = AtomicU64::new(0);
static DONE: AtomicU64 = AtomicU64::new(0);

/// Says that so many bytes are to be read.
pub fn expect(bytes: u64) {
    TOTAL.fetch_add(bytes, Ordering::Relaxed);
}

/// Says that so many bytes have been read.
#[inline]
pub fn advance(bytes: usize) {
    DONE.fetch_add(bytes as u64, Ordering::Relaxed);
}

/// The bar; it goes away when this is dropped.
#[derive(Debug)]
pub struct Bar {
    shown: Option<(mpsc::Sender<()>, JoinHandle<()>)>,
}

impl Bar {
    /// Shows one in a second, if nobody has dropped it then and standard error is a terminal.
    #[must_use]
    pub fn start() -> Self {
        if !io::stderr().is_terminal() {
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
        }
    }
}

fn show(ended: &mpsc::Receiver<()>) {
    if ended.recv_timeout(Duration::from_secs(1)) != Err(RecvTimeoutError::Timeout) {
        return;
    }
    let bar = ProgressBar::new(TOTAL.load(Ordering::Relaxed));
    if let Ok(style) = ProgressStyle::with_template("reading {wide_bar} {percent:>3}% {eta}") {
        bar.set_style(style);
    }
    while ended.recv_timeout(Duration::from_millis(100)) == Err(RecvTimeoutError::Timeout) {
        let (total, done) = (TOTAL.load(Ordering::Relaxed), DONE.load(Ordering::Relaxed));
        bar.set_length(total);
        bar.set_position(done.min(total));
    }
    bar.finish_and_clear();
}

//! Fetching files by build ID from debuginfod servers.
//!
//! ```text
//!   what is wanted ─► a few threads ─► each server in turn: GET URL/buildid/HEX/debuginfo (or executable)
//!                                        200 ─► temporary file in the cache ─► build ID checked ─► renamed
//!                                        else ─► an attempt with what the server said
//! ```
//!
//! A file lies where debuginfod's other clients look for it and keep it (`DIR/HEX/debuginfo`), and is there whole or not at all. That
//! a server has nothing is remembered for this run only: where its files are renewed, the next run asks again.
//!
//! Nothing takes for ever: a connection has five seconds, a silent server what DEBUGINFOD_TIMEOUT says, a file what
//! DEBUGINFOD_MAXTIME says, and all files together [`TOTAL`].
//!
//! Source: debuginfod(8), "WEBAPI"; debuginfod-client-config(7).

mod http;

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use recrep_format::build_id::BuildId;

use super::locate::{DEBUG_INFO, EXECUTABLE};
use super::origin::Origin;
use super::outcome::{Attempt, Refusal, Source};
use super::search::{Proof, open_image};
use crate::query::Servers;
use crate::terminal::progress;
use http::Client;

/// How long all files may take.
const TOTAL: Duration = Duration::from_secs(600);
/// How many files are fetched at one time.
const AT_ONCE: usize = 4;

/// A file that is missing.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Wanted {
    /// Its build ID.
    pub(super) build_id: BuildId,
    /// Whether it is the file that was mapped, and not its debug file.
    pub(super) executable: bool,
    /// What people call it.
    pub(super) name: String,
}

impl Wanted {
    /// Which file it is, whatever it is called.
    pub(super) fn file(&self) -> (BuildId, bool) {
        (self.build_id, self.executable)
    }

    /// What debuginfod calls it.
    fn kind(&self) -> &'static str {
        if self.executable { EXECUTABLE } else { DEBUG_INFO }
    }
}

/// Fetches the files; of each, what came of every server that was asked. Nothing is said of those that were fetched: they are
/// in the cache now.
pub(super) fn all(servers: &Servers, wanted: &[Wanted]) -> Vec<Vec<Attempt>> {
    let deadline = Instant::now() + TOTAL;
    let client = Client::new(servers);
    let _bar = progress::Bar::start();
    let next = AtomicUsize::new(0);
    let done = Mutex::new(vec![Vec::new(); wanted.len()]);
    let work = || {
        while let Some((index, file)) = take(&next, wanted) {
            let attempts = fetch(servers, &client, file, deadline);
            let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(place) = done.get_mut(index) {
                *place = attempts;
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..wanted.len().min(AT_ONCE) {
            scope.spawn(work);
        }
    });
    done.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn take<'w>(next: &AtomicUsize, wanted: &'w [Wanted]) -> Option<(usize, &'w Wanted)> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    Some((index, wanted.get(index)?))
}

/// Asks one server after the other, until one has it.
fn fetch(servers: &Servers, client: &Client, file: &Wanted, deadline: Instant) -> Vec<Attempt> {
    let mut attempts = Vec::new();
    for server in &servers.urls {
        let url = format!("{server}/buildid/{}/{}", file.build_id, file.kind());
        match fetch_from(&url, servers, client, file, deadline) {
            Ok(()) => return Vec::new(),
            Err(refusal) => {
                attempts.push(Attempt { source: Source::DebuginfodServer, path: url.into(), result: Err(refusal) });
            }
        }
    }
    attempts
}

fn fetch_from(url: &str, servers: &Servers, client: &Client, file: &Wanted, deadline: Instant) -> Result<(), Refusal> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        let total = TOTAL.as_secs();
        return Err(Refusal::NotFetched(format!("not asked, for all files together may take {total} s")));
    }
    let shown = progress::fetching(&format!("{} of {}", file.kind(), file.name), url);
    let limit = servers.most_time.map_or(left, |most| most.min(left));
    let answer = client.ask(url, limit)?;
    shown.expect(answer.size());
    let entry = Entry::new(servers, file).map_err(|error| cannot_keep(&servers.cache, &error))?;
    let mut temporary = tempfile::Builder::new()
        .prefix(&format!("{}.", file.kind()))
        .tempfile_in(&entry.directory)
        .map_err(|error| cannot_keep(&entry.directory, &error))?;
    answer.read_into(temporary.as_file_mut(), |bytes| shown.advance(bytes), limit)?;
    open_image(temporary.path(), Proof::BuildId(file.build_id), &Origin::default())?;
    // As debuginfod's own clients leave them.
    let kept = temporary.as_file().set_permissions(Permissions::from_mode(0o400));
    let kept = kept.and_then(|()| Ok(temporary.persist(entry.directory.join(file.kind()))?));
    kept.map(drop).map_err(|error| cannot_keep(&entry.directory, &error))
}

fn cannot_keep(place: &Path, error: &io::Error) -> Refusal {
    Refusal::NotFetched(format!("cannot keep it below {}: {error}", place.display()))
}

/// The directory of a build ID in the cache; it goes away again if nothing is in it.
struct Entry {
    directory: PathBuf,
}

impl Entry {
    fn new(servers: &Servers, file: &Wanted) -> io::Result<Self> {
        let directory = servers.cache.join(file.build_id.to_string());
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&directory)?;
        sweep(&directory);
        Ok(Self { directory })
    }
}

/// Removes what runs have left that were ended while they fetched.
fn sweep(directory: &Path) {
    let is_partial = |name: &str| [DEBUG_INFO, EXECUTABLE].iter().any(|kind| name.starts_with(&format!("{kind}.")));
    for file in fs::read_dir(directory).into_iter().flatten().flatten() {
        let age = file.metadata().and_then(|about| about.modified()).ok().and_then(|when| when.elapsed().ok());
        // No run fetches for longer.
        if file.file_name().to_str().is_some_and(is_partial) && age.is_some_and(|age| age > 2 * TOTAL) {
            // Another run may have been faster.
            let _is_gone = fs::remove_file(file.path());
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        // Fails where it holds anything, which is what it is for.
        let _is_used = fs::remove_dir(&self.directory);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_old_leavings_are_swept() {
        let directory = tempfile::tempdir().unwrap();
        let put = |name: &str, age: Duration| {
            let file = fs::File::create(directory.path().join(name)).unwrap();
            file.set_modified(std::time::SystemTime::now() - age).unwrap();
        };
        put("debuginfo", 3 * TOTAL);
        put("debuginfo.abc", 3 * TOTAL);
        put("executable.def", 3 * TOTAL);
        put("debuginfo.new", TOTAL);
        sweep(directory.path());
        let mut left: Vec<_> = fs::read_dir(directory.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["debuginfo", "debuginfo.new"]);
    }
}

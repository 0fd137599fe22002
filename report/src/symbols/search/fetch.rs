//! Fetching files by build ID from debuginfod servers.
//!
//! ```text
//!   wanted files ─► a few threads ─► each server: GET URL/buildid/HEX/debuginfo (or executable)
//!                                    200 ─► temporary file in the cache ─► build ID checked ─► renamed
//!                                      else ─► the error is kept as a failed attempt
//! ```
//!
//! Files are stored where debuginfod's own clients store and look for them (`DIR/HEX/debuginfo`),
//! and only when they are complete. That a server lacks a file is remembered for this run only: the
//! server may have it in the next one.
//!
//! All times are limited: five seconds to connect, `DEBUGINFOD_TIMEOUT` without data,
//! `DEBUGINFOD_MAXTIME` for a file, and [`TOTAL`] for all files together.
//!
//! Source: debuginfod(8), "WEBAPI"; debuginfod-client-config(7).

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use recrep_format::build_id::BuildId;
use ureq::http::{Response, StatusCode};
use ureq::{Agent, Body, Error, Timeout};

use crate::query::Servers;
use crate::symbols::file::Refusal;
use crate::symbols::module::origin::Origin;
use crate::symbols::outcome::{Attempt, Source};
use crate::symbols::search::candidates::{DEBUG_INFO, EXECUTABLE};
use crate::symbols::search::proof::{Proof, open_image};
use crate::terminal::progress;

/// Maximum time for all files together.
const TOTAL: Duration = Duration::from_secs(600);
/// Maximum time to look up the host name, and to connect.
const CONNECT: Duration = Duration::from_secs(5);
/// Number of bytes read at a time.
const CHUNK: usize = 64 << 10;
/// Maximum number of files fetched at the same time.
const MAX_THREADS: usize = 4;

/// Missing file to fetch: its build ID, and debuginfod's name for this kind of file.
pub(crate) type Wanted = (BuildId, &'static str);

/// Fetches files of the modules with these names into the cache. Returns the failed attempts for
/// each file, one per server; none if it was fetched.
pub(crate) fn all(servers: &Servers, wanted: &BTreeMap<Wanted, String>) -> Vec<Vec<Attempt>> {
    let client = Client::new(servers);
    let _bar = progress::Bar::start();
    let mut all = vec![Vec::new(); wanted.len()];
    let left = Mutex::new(wanted.iter().zip(&mut all));
    let next = || left.lock().unwrap_or_else(PoisonError::into_inner).next();
    thread::scope(|scope| {
        for _ in 0..wanted.len().min(MAX_THREADS) {
            scope.spawn(|| {
                while let Some(((file, module), attempts)) = next() {
                    *attempts = client.fetch(*file, module);
                }
            });
        }
    });
    all
}

fn cannot_store(directory: &Path, error: &io::Error) -> Refusal {
    Refusal::NotFetched(format!("cannot store it below {}: {error}", directory.display()))
}

/// Removes old temporary files of runs that were killed while fetching.
fn remove_stale(directory: &Path) {
    for file in fs::read_dir(directory).into_iter().flatten().flatten() {
        let written = file.metadata().and_then(|metadata| metadata.modified());
        let age = written.ok().and_then(|when| when.elapsed().ok());
        let name = file.file_name();
        let kind = name.to_str().and_then(|name| name.split_once('.')).map(|(kind, _)| kind);
        // No run fetches for longer than `TOTAL`.
        if matches!(kind, Some(DEBUG_INFO | EXECUTABLE)) && age.is_some_and(|age| age > 2 * TOTAL) {
            // Another run may have removed it already.
            let _is_gone = fs::remove_file(file.path());
        }
    }
}

/// HTTP client; keeps connections for the next file.
struct Client<'s> {
    agent: Agent,
    servers: &'s Servers,
    /// End of the time for all files.
    deadline: Instant,
}

impl<'s> Client<'s> {
    fn new(servers: &'s Servers) -> Self {
        let config = Agent::config_builder()
            .user_agent(concat!("rep/", env!("CARGO_PKG_VERSION")))
            .http_status_as_error(false)
            .timeout_resolve(Some(CONNECT))
            .timeout_connect(Some(CONNECT))
            .timeout_per_read(Some(servers.patience))
            .timeout_per_write(Some(servers.patience));
        // Trust the same certificates as the rest of this machine.
        #[cfg(feature = "https")]
        let config = {
            let tls =
                ureq::tls::TlsConfig::builder().root_certs(ureq::tls::RootCerts::PlatformVerifier);
            config.tls_config(tls.build())
        };
        Self { agent: config.build().into(), servers, deadline: Instant::now() + TOTAL }
    }

    /// Asks one server after the other until one has the file. Returns the failed attempts; none if
    /// it was fetched.
    fn fetch(&self, file: Wanted, module: &str) -> Vec<Attempt> {
        let mut attempts = Vec::new();
        for server in &self.servers.urls {
            for build_id in file.0.spellings() {
                let url = format!("{server}/buildid/{build_id}/{}", file.1);
                let Err(refusal) = self.fetch_from(&url, (build_id, file.1), module) else {
                    return Vec::new();
                };
                attempts.push(Attempt {
                    source: Source::DebuginfodServer,
                    path: url.into(),
                    result: Err(refusal),
                });
            }
        }
        attempts
    }

    fn fetch_from(&self, url: &str, file: Wanted, module: &str) -> Result<(), Refusal> {
        let (build_id, kind) = file;
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            let total = TOTAL.as_secs();
            return Err(Refusal::NotFetched(format!(
                "not requested: the limit of {total} s for all files has passed"
            )));
        }
        let shown = progress::fetching(&format!("{kind} of {module}"), url);
        let limit = self.servers.max_time.map_or(left, |most| most.min(left));
        let response = self.ask(url, limit)?;
        shown.set_length(size(&response).unwrap_or(0));
        let cache = &self.servers.cache;
        let directory = cache.join(build_id.to_string());
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&directory);
        made.map_err(|error| cannot_store(cache, &error))?;
        remove_stale(&directory);
        let temporary =
            tempfile::Builder::new().prefix(&format!("{kind}.")).tempfile_in(&directory);
        let temporary = temporary.map_err(|error| cannot_store(&directory, &error));
        let stored = temporary.and_then(|mut temporary| {
            self.store(response, shown.wrap_write(temporary.as_file_mut()), limit)?;
            open_image(temporary.path(), Proof::BuildId(build_id), &Origin::default())?;
            // Same permissions as by debuginfod's own clients.
            let kept = temporary.as_file().set_permissions(Permissions::from_mode(0o400));
            let kept = kept.and_then(|()| Ok(temporary.persist(directory.join(kind))?));
            kept.map(drop).map_err(|error| cannot_store(&directory, &error))
        });
        // Fails if the directory has files, which is intended.
        let _if_empty = fs::remove_dir(&directory);
        stored
    }

    /// Requests a file; the whole transfer may take up to `limit`.
    fn ask(&self, url: &str, limit: Duration) -> Result<Response<Body>, Refusal> {
        let mut request = self.agent.get(url).config().timeout_global(Some(limit)).build();
        if let Some(max) = self.servers.max_bytes {
            request = request.header("X-DEBUGINFOD-MAXSIZE", max);
        }
        let response = request.call().map_err(|error| self.refusal(&error, limit))?;
        let status = response.status();
        if status != StatusCode::OK {
            return Err(Refusal::NotFetched(status.to_string()));
        }
        self.check_size(size(&response).unwrap_or(0))?;
        Ok(response)
    }

    fn check_size(&self, size: u64) -> Result<(), Refusal> {
        match self.servers.max_bytes {
            Some(max) if size > max => Err(Refusal::NotFetched(format!(
                "it is larger than DEBUGINFOD_MAXSIZE allows ({max} bytes)"
            ))),
            _ => Ok(()),
        }
    }

    fn refusal(&self, error: &Error, limit: Duration) -> Refusal {
        Refusal::NotFetched(match error {
            Error::Timeout(Timeout::Resolve | Timeout::Connect) => {
                format!("no connection within {} s", CONNECT.as_secs())
            }
            Error::Timeout(Timeout::Global) => format!("it took longer than {} s", limit.as_secs()),
            Error::Timeout(_) => {
                let patience = self.servers.patience.as_secs();
                format!("no data for {patience} s (DEBUGINFOD_TIMEOUT)")
            }
            Error::Io(error) => error.to_string(),
            #[cfg(not(feature = "https"))]
            Error::TlsRequired | Error::Tls(_) => {
                "this rep was built without https: build it with \
                                                   `--features https`, or use an http server"
                    .into()
            }
            error => error.to_string(),
        })
    }

    /// Writes the whole response into `file`.
    fn store(
        &self,
        response: Response<Body>,
        mut file: impl Write,
        limit: Duration,
    ) -> Result<(), Refusal> {
        let mut body = response.into_body().into_with_config().limit(u64::MAX).reader();
        let mut chunk = vec![0; CHUNK];
        let mut sum = 0;
        loop {
            let read = match body.read(&mut chunk) {
                Ok(0) => return Ok(()),
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(self.refusal(&error.into(), limit)),
            };
            sum += read as u64;
            self.check_size(sum)?;
            let bytes = chunk.get(..read).unwrap_or_default();
            file.write_all(bytes)
                .map_err(|error| Refusal::NotFetched(format!("cannot write it: {error}")))?;
        }
    }
}

/// Returns the size of the file in bytes, if the server sends it.
fn size(response: &Response<Body>) -> Option<u64> {
    ["x-debuginfod-size", "content-length"]
        .into_iter()
        .find_map(|name| response.headers().get(name)?.to_str().ok()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn only_old_temporary_files_are_removed() {
        let directory = tempfile::tempdir().unwrap();
        let put = |name: &str, age: Duration| {
            let file = File::create(directory.path().join(name)).unwrap();
            file.set_modified(std::time::SystemTime::now() - age).unwrap();
        };
        put("debuginfo", 3 * TOTAL);
        put("debuginfo.abc", 3 * TOTAL);
        put("executable.def", 3 * TOTAL);
        put("debuginfo.new", TOTAL);
        remove_stale(directory.path());
        let mut left: Vec<_> =
            fs::read_dir(directory.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["debuginfo", "debuginfo.new"]);
    }
}

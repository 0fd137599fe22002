//! HTTP requests to debuginfod servers, and their errors as text.

use std::fs::File;
use std::io::{self, Read, Write};
use std::time::Duration;

use ureq::http::{Response, StatusCode};
use ureq::{Agent, Body, Error, Timeout};

use crate::query::Servers;
use crate::symbols::outcome::Refusal;

/// Maximum time to look up the host name, and to connect.
pub(super) const CONNECT: Duration = Duration::from_secs(5);
/// Number of bytes read at a time.
const CHUNK: usize = 64 << 10;

/// HTTP client; keeps connections for the next file.
pub(super) struct Client<'s> {
    agent: Agent,
    pub(super) servers: &'s Servers,
}

impl<'s> Client<'s> {
    pub(super) fn new(servers: &'s Servers) -> Self {
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
            let tls = ureq::tls::TlsConfig::builder().root_certs(ureq::tls::RootCerts::PlatformVerifier);
            config.tls_config(tls.build())
        };
        Self { agent: config.build().into(), servers }
    }

    /// Requests a file; the whole transfer may take up to `limit`.
    pub(super) fn ask(&self, url: &str, limit: Duration) -> Result<Response<Body>, Refusal> {
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
            Some(max) if size > max => {
                Err(Refusal::NotFetched(format!("it is larger than DEBUGINFOD_MAXSIZE allows ({max} bytes)")))
            }
            _ => Ok(()),
        }
    }

    fn refusal(&self, error: &Error, limit: Duration) -> Refusal {
        Refusal::NotFetched(match error {
            Error::Timeout(Timeout::Resolve | Timeout::Connect) => {
                format!("no connection within {} s", CONNECT.as_secs())
            }
            Error::Timeout(Timeout::Global) => format!("it took longer than {} s", limit.as_secs()),
            Error::Timeout(_) => format!("no data for {} s (DEBUGINFOD_TIMEOUT)", self.servers.patience.as_secs()),
            Error::Io(error) => error.to_string(),
            #[cfg(not(feature = "https"))]
            Error::TlsRequired | Error::Tls(_) => {
                "this rep was built without https: build it with `--features https`, or use an http server".into()
            }
            error => error.to_string(),
        })
    }

    /// Writes the whole response into `file`; calls `on_bytes` with the size of each piece.
    pub(super) fn store(
        &self,
        response: Response<Body>,
        file: &mut File,
        on_bytes: impl Fn(u64),
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
            file.write_all(bytes).map_err(|error| Refusal::NotFetched(format!("cannot write it: {error}")))?;
            on_bytes(read as u64);
        }
    }
}

/// Returns the size of the file in bytes, if the server sends it.
pub(super) fn size(response: &Response<Body>) -> Option<u64> {
    let number = |name: &str| response.headers().get(name)?.to_str().ok()?.parse().ok();
    number("x-debuginfod-size").or_else(|| number("content-length"))
}

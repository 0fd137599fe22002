//! One request: what is asked, and what came of it in words.

use std::fs::File;
use std::io::{self, Read, Write};
use std::time::Duration;

use ureq::http::{HeaderMap, Response, StatusCode};
use ureq::{Agent, Body, Error, Timeout};

use crate::query::Servers;
use crate::symbols::outcome::Refusal;

/// How long a connection may take.
pub(super) const CONNECT: Duration = Duration::from_secs(5);
/// How many bytes are read at a time.
const CHUNK: usize = 64 << 10;

/// Asks servers; connections are kept for the next file.
pub(super) struct Client {
    agent: Agent,
    patience: Duration,
    most_bytes: Option<u64>,
}

/// What a server gives.
pub(super) struct Answer<'c> {
    client: &'c Client,
    response: Response<Body>,
}

impl Client {
    pub(super) fn new(servers: &Servers) -> Self {
        let config = Agent::config_builder()
            .user_agent(concat!("rep/", env!("CARGO_PKG_VERSION")))
            .http_status_as_error(false)
            .timeout_resolve(Some(CONNECT))
            .timeout_connect(Some(CONNECT))
            .timeout_per_read(Some(servers.patience))
            .timeout_per_write(Some(servers.patience));
        // The certificates that this machine trusts, which are its owner's choice.
        #[cfg(feature = "https")]
        let config = {
            let tls = ureq::tls::TlsConfig::builder().root_certs(ureq::tls::RootCerts::PlatformVerifier);
            config.tls_config(tls.build())
        };
        Self { agent: config.build().into(), patience: servers.patience, most_bytes: servers.most_bytes }
    }

    /// Asks for a file, which may take so long.
    pub(super) fn ask(&self, url: &str, limit: Duration) -> Result<Answer<'_>, Refusal> {
        let mut request = self.agent.get(url).config().timeout_global(Some(limit)).build();
        if let Some(most) = self.most_bytes {
            request = request.header("X-DEBUGINFOD-MAXSIZE", most);
        }
        let response = request.call().map_err(|error| self.refusal(&error, limit))?;
        let status = response.status();
        if status != StatusCode::OK {
            return Err(Refusal::NotFetched(status.to_string()));
        }
        let answer = Answer { client: self, response };
        self.check_size(answer.size().unwrap_or(0))?;
        Ok(answer)
    }

    fn check_size(&self, size: u64) -> Result<(), Refusal> {
        match self.most_bytes {
            Some(most) if size > most => {
                Err(Refusal::NotFetched(format!("it is larger than DEBUGINFOD_MAXSIZE allows ({most} bytes)")))
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
            Error::Timeout(_) => format!("nothing came for {} s (DEBUGINFOD_TIMEOUT)", self.patience.as_secs()),
            Error::Io(error) => error.to_string(),
            #[cfg(not(feature = "https"))]
            Error::TlsRequired | Error::Tls(_) => {
                "this rep was built without https: build it with `--features https`, or name a server by http".into()
            }
            error => error.to_string(),
        })
    }
}

impl Answer<'_> {
    /// How many bytes the file has, if the server says.
    pub(super) fn size(&self) -> Option<u64> {
        let headers: &HeaderMap = self.response.headers();
        let number = |name: &str| headers.get(name)?.to_str().ok()?.parse().ok();
        number("x-debuginfod-size").or_else(|| number("content-length"))
    }

    /// Writes it all into a file; `told` hears of the bytes as they come.
    pub(super) fn read_into(self, file: &mut File, told: impl Fn(u64), limit: Duration) -> Result<(), Refusal> {
        let Self { client, response } = self;
        let mut body = response.into_body().into_with_config().limit(u64::MAX).reader();
        let mut chunk = vec![0; CHUNK];
        let mut sum = 0;
        loop {
            let read = match body.read(&mut chunk) {
                Ok(0) => return Ok(()),
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(client.refusal(&error.into(), limit)),
            };
            sum += read as u64;
            client.check_size(sum)?;
            let bytes = chunk.get(..read).unwrap_or_default();
            file.write_all(bytes).map_err(|error| Refusal::NotFetched(format!("cannot write it: {error}")))?;
            told(read as u64);
        }
    }
}

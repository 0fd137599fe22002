//! Options for finding and showing symbols, shared by all commands that print function names.

use std::borrow::Cow;
use std::path::PathBuf;
use std::time::Duration;

use recrep_console::demangle::{demangled, demangled_fully};

/// How names of functions are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Demangle {
    /// As the file spells them.
    No,
    /// Without parameters, unless two would read alike.
    #[default]
    Normal,
    /// With parameters.
    Full,
}

impl Demangle {
    /// Returns the text of a name in a symbol table.
    pub(crate) fn spelt(self, name: &[u8]) -> Cow<'_, str> {
        match self {
            Self::No => String::from_utf8_lossy(name),
            Self::Normal => demangled(name),
            Self::Full => demangled_fully(name),
        }
    }
}

/// Options for finding and showing symbols.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SymbolOptions {
    /// Directory below which the recorded files are, in place of `/`. This machine's kernel is not
    /// used then.
    pub symfs: Option<PathBuf>,
    /// Copy of the recorded kernel's `/proc/kallsyms`.
    pub kallsyms: Option<PathBuf>,
    /// The recorded kernel's vmlinux.
    pub vmlinux: Option<PathBuf>,
    /// `true` if no vmlinux is searched for.
    pub ignore_vmlinux: bool,
    /// `true` if files at the recorded paths need no proof.
    pub trust_paths: bool,
    /// `true` if source files are shown with their full paths.
    pub source_paths: bool,
    /// `true` if source lines have the lines at which their functions begin.
    pub start_lines: bool,
    /// `true` if kernel symbols are demangled too.
    pub demangle_kernel: bool,
    /// How names of functions are printed.
    pub demangle: Demangle,
    /// `true` if addresses without a symbol get the function that the file's call frame information
    /// tells of.
    pub inferred: bool,
    /// Directory of the build ID cache.
    pub build_id_dir: Option<PathBuf>,
    /// Servers from which missing files are fetched, if the user wants that.
    pub servers: Option<Servers>,
    /// Cache directory of debuginfod's clients, which rep shares.
    pub debuginfod_cache: Option<PathBuf>,
    /// Directory in which rep keeps copies of `/proc/kallsyms`, by default `~/.cache/recrep`.
    pub cache: Option<PathBuf>,
}

impl SymbolOptions {
    /// Returns whether the files at the recorded paths (below `--symfs`) are taken for the recorded
    /// ones without proof.
    pub fn trusts_paths(&self) -> bool {
        self.trust_paths || self.symfs.is_some()
    }
}

/// The debuginfod servers, their timeouts and limits, from the environment variables of
/// debuginfod's own clients (debuginfod-client-config(7)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Servers {
    /// Server addresses in the order of use, without trailing slashes.
    pub urls: Vec<String>,
    /// Minimum share of samples without a function in a module for fetching its files, in
    /// hundredths of a percent.
    pub least: u32,
    /// Maximum time without any data.
    pub patience: Duration,
    /// Maximum time per file.
    pub max_time: Option<Duration>,
    pub max_bytes: Option<u64>,
    pub cache: PathBuf,
    /// `true` if the user wants signatures checked (`ima:enforcing`). They are not checked, as in
    /// debuginfod's clients that were built without support.
    pub ignores_signatures: bool,
}

/// Default of `DEBUGINFOD_TIMEOUT`, as in debuginfod's clients.
const PATIENCE: Duration = Duration::from_secs(90);

impl Servers {
    /// Reads the settings from the environment; `set` returns the value of a variable unless it is
    /// empty.
    ///
    /// # Errors
    /// Returns a message if no server is named, if there is no cache directory, or if a variable is
    /// invalid.
    pub fn of(
        set: impl Fn(&str) -> Option<String>,
        least: u32,
        cache: Option<PathBuf>,
    ) -> Result<Self, String> {
        let list = set("DEBUGINFOD_URLS").unwrap_or_default();
        let words = || list.split_whitespace();
        let is_policy = |word: &&str| word.starts_with("ima:");
        let urls =
            words().filter(|word| !is_policy(word)).map(address).collect::<Result<Vec<_>, _>>()?;
        if urls.is_empty() {
            return Err(
                "--debuginfod: DEBUGINFOD_URLS names no server; set it to a space-separated list \
                 of addresses, such as DEBUGINFOD_URLS=http://localhost:8002"
                    .into(),
            );
        }
        let cache = cache.ok_or(
            "--debuginfod: no directory for the fetched files; set DEBUGINFOD_CACHE_PATH, \
             XDG_CACHE_HOME or HOME",
        )?;
        let number = |name: &str, unit: &str| {
            let Some(text) = set(name) else { return Ok(None) };
            let wrong =
                |_| format!("--debuginfod: {name} is `{text}`, which is not a number of {unit}");
            text.trim()
                .parse::<u64>()
                .map(|number| Some(number).filter(|number| *number > 0))
                .map_err(wrong)
        };
        Ok(Self {
            least,
            patience: number("DEBUGINFOD_TIMEOUT", "seconds")?
                .map_or(PATIENCE, Duration::from_secs),
            max_time: number("DEBUGINFOD_MAXTIME", "seconds")?.map(Duration::from_secs),
            max_bytes: number("DEBUGINFOD_MAXSIZE", "bytes")?,
            cache,
            ignores_signatures: words().any(|word| word == "ima:enforcing"),
            urls,
        })
    }

    /// Parses a percentage of the samples. Returns hundredths of a percent.
    ///
    /// # Errors
    /// Returns a message if it is not a percentage.
    pub fn share(text: &str) -> Result<u32, String> {
        let wrong =
            || format!("`{text}` is not a percentage; servers are set with DEBUGINFOD_URLS");
        let percent: f64 = text.trim_end_matches('%').parse().map_err(|_| wrong())?;
        if !(0.0..=100.0).contains(&percent) {
            return Err(wrong());
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 10,000")]
        Ok((percent * 100.0).round() as u32)
    }
}

/// Returns the address of a server; without a scheme, it is http.
fn address(word: &str) -> Result<String, String> {
    let word = word.trim_end_matches('/');
    match word.split_once("://") {
        None => Ok(format!("http://{word}")),
        Some(("http" | "https", _)) => Ok(word.to_owned()),
        Some(_) => Err(format!(
            "--debuginfod: DEBUGINFOD_URLS has `{word}`; only http and https are supported"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Result<Servers, String> {
        let set = |name: &str| {
            variables.iter().find(|(is, _)| *is == name).map(|(_, value)| (*value).to_owned())
        };
        Servers::of(set, 100, Some("/cache".into()))
    }

    #[test]
    fn reads_servers_from_the_variable() {
        let servers =
            of(&[("DEBUGINFOD_URLS", " http://a:8002/  ima:enforcing https://b/x localhost:1 ")])
                .unwrap();
        assert_eq!(servers.urls, ["http://a:8002", "https://b/x", "http://localhost:1"]);
        assert!(servers.ignores_signatures);
        assert_eq!((servers.patience, servers.max_time, servers.max_bytes), (PATIENCE, None, None));
        assert!(of(&[]).unwrap_err().contains("DEBUGINFOD_URLS names no server"));
        assert!(of(&[("DEBUGINFOD_URLS", "file:///x")]).unwrap_err().contains("`file:///x`"));
    }

    #[test]
    fn reads_limits_as_numbers() {
        let with = |name, value| of(&[("DEBUGINFOD_URLS", "a"), (name, value)]);
        assert_eq!(with("DEBUGINFOD_TIMEOUT", "7").unwrap().patience, Duration::from_secs(7));
        assert_eq!(with("DEBUGINFOD_MAXTIME", "8").unwrap().max_time, Some(Duration::from_secs(8)));
        assert_eq!(with("DEBUGINFOD_MAXSIZE", "0").unwrap().max_bytes, None);
        assert!(
            with("DEBUGINFOD_MAXSIZE", "1G")
                .unwrap_err()
                .contains("`1G`, which is not a number of bytes")
        );
    }

    #[test]
    fn a_share_is_a_percentage() {
        assert_eq!(
            ["1", "0.5", "100", "2%", "0"].map(|text| Servers::share(text).ok()),
            [100, 50, 10_000, 200, 0].map(Some)
        );
        assert!(Servers::share("http://localhost").unwrap_err().contains("DEBUGINFOD_URLS"));
        assert!(
            Servers::share("101").is_err()
                && Servers::share("-1").is_err()
                && Servers::share("nan").is_err()
        );
    }
}

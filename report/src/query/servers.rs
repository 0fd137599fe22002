//! Which debuginfod servers may be asked, and how patient we are: the environment variables of debuginfod's own clients
//! (debuginfod-client-config(7)).

use std::path::PathBuf;
use std::time::Duration;

/// What the user says about debuginfod servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Servers {
    /// Their addresses, in the order in which they are asked; none ends in a slash.
    pub urls: Vec<String>,
    /// A module is asked for if at least so many hundredths of a percent of the samples lack a function in it.
    pub least: u32,
    /// How long nothing may come.
    pub patience: Duration,
    /// How long a file may take.
    pub most_time: Option<Duration>,
    /// How many bytes a file may have.
    pub most_bytes: Option<u64>,
    /// The directory in which files are kept.
    pub cache: PathBuf,
    /// Whether the user wants signatures checked, which is not done: as by debuginfod's clients that were built without that.
    pub ignores_signatures: bool,
}

/// How long debuginfod's clients wait for anything to come.
const PATIENCE: Duration = Duration::from_secs(90);

impl Servers {
    /// Those of the environment, whose variables `set` gives where they are not empty.
    ///
    /// # Errors
    /// What the user must be told: there are none, or a variable makes no sense.
    pub fn of(set: impl Fn(&str) -> Option<String>, least: u32, cache: Option<PathBuf>) -> Result<Self, String> {
        let list = set("DEBUGINFOD_URLS").unwrap_or_default();
        let words = || list.split_whitespace();
        let is_policy = |word: &&str| word.starts_with("ima:");
        let urls = words().filter(|word| !is_policy(word)).map(address).collect::<Result<Vec<_>, _>>()?;
        if urls.is_empty() {
            return Err(
                "--debuginfod: DEBUGINFOD_URLS names no server; set it to their addresses, with spaces between \
                        them, such as DEBUGINFOD_URLS=http://localhost:8002"
                    .into(),
            );
        }
        let cache = cache.ok_or(
            "--debuginfod: there is no directory to keep files in; set DEBUGINFOD_CACHE_PATH, XDG_CACHE_HOME or HOME",
        )?;
        let number = |name: &str, unit: &str| match set(name) {
            None => Ok(None),
            Some(text) => match text.trim().parse::<u64>() {
                Ok(number) => Ok(Some(number).filter(|number| *number > 0)),
                Err(_) => Err(format!("--debuginfod: {name} is `{text}`, which is no number of {unit}")),
            },
        };
        Ok(Self {
            least,
            patience: number("DEBUGINFOD_TIMEOUT", "seconds")?.map_or(PATIENCE, Duration::from_secs),
            most_time: number("DEBUGINFOD_MAXTIME", "seconds")?.map(Duration::from_secs),
            most_bytes: number("DEBUGINFOD_MAXSIZE", "bytes")?,
            cache,
            ignores_signatures: words().any(|word| word == "ima:enforcing"),
            urls,
        })
    }

    /// A share of the samples as it is typed, in hundredths of a percent.
    ///
    /// # Errors
    /// It is none.
    pub fn share(text: &str) -> Result<u32, String> {
        let wrong = || format!("`{text}` is no percentage; servers are named by DEBUGINFOD_URLS");
        let percent: f64 = text.trim_end_matches('%').parse().map_err(|_| wrong())?;
        if !(0.0..=100.0).contains(&percent) {
            return Err(wrong());
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 10,000")]
        Ok((percent * 100.0).round() as u32)
    }
}

/// A server's address: http where it does not say.
fn address(word: &str) -> Result<String, String> {
    let word = word.trim_end_matches('/');
    match word.split_once("://") {
        None => Ok(format!("http://{word}")),
        Some(("http" | "https", _)) => Ok(word.to_owned()),
        Some(_) => Err(format!("--debuginfod: DEBUGINFOD_URLS has `{word}`; servers are asked by http and https only")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Result<Servers, String> {
        let set = |name: &str| variables.iter().find(|(is, _)| *is == name).map(|(_, value)| (*value).to_owned());
        Servers::of(set, 100, Some("/cache".into()))
    }

    #[test]
    fn servers_are_words_of_a_variable() {
        let servers = of(&[("DEBUGINFOD_URLS", " http://a:8002/  ima:enforcing https://b/x localhost:1 ")]).unwrap();
        assert_eq!(servers.urls, ["http://a:8002", "https://b/x", "http://localhost:1"]);
        assert!(servers.ignores_signatures);
        assert_eq!((servers.patience, servers.most_time, servers.most_bytes), (PATIENCE, None, None));
        assert!(of(&[]).unwrap_err().contains("DEBUGINFOD_URLS names no server"));
        assert!(of(&[("DEBUGINFOD_URLS", "file:///x")]).unwrap_err().contains("`file:///x`"));
    }

    #[test]
    fn limits_are_numbers() {
        let with = |name, value| of(&[("DEBUGINFOD_URLS", "a"), (name, value)]);
        assert_eq!(with("DEBUGINFOD_TIMEOUT", "7").unwrap().patience, Duration::from_secs(7));
        assert_eq!(with("DEBUGINFOD_MAXTIME", "8").unwrap().most_time, Some(Duration::from_secs(8)));
        assert_eq!(with("DEBUGINFOD_MAXSIZE", "0").unwrap().most_bytes, None);
        assert!(with("DEBUGINFOD_MAXSIZE", "1G").unwrap_err().contains("`1G`, which is no number of bytes"));
    }

    #[test]
    fn a_share_is_a_percentage() {
        assert_eq!(
            ["1", "0.5", "100", "2%", "0"].map(|text| Servers::share(text).ok()),
            [100, 50, 10_000, 200, 0].map(Some)
        );
        assert!(Servers::share("http://localhost").unwrap_err().contains("DEBUGINFOD_URLS"));
        assert!(Servers::share("101").is_err() && Servers::share("-1").is_err() && Servers::share("nan").is_err());
    }
}

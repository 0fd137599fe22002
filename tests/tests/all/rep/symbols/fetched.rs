//! Fetching from debuginfod servers, and the warnings if it fails.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use recrep_format::build_id::BuildId;

use super::*;

/// A stripped program, its debug file, its build ID and the offsets of its functions.
struct Stripped {
    place: Place,
    program: PathBuf,
    whole: Vec<u8>,
    debug: Vec<u8>,
    id: BuildId,
    inner: u64,
    outer: u64,
}

impl Stripped {
    fn new() -> Option<Self> {
        let place = Place::with("gcc objcopy strip")?;
        let program = place.program("program", "");
        let ((inner, _), (outer, _)) = (function(&program, "inner"), function(&program, "outer"));
        let debug = place.at("debug");
        tool("objcopy --only-keep-debug", &[&program, &debug]);
        tool("strip", &[&program]);
        let (whole, debug) = (fs::read(&program).unwrap(), fs::read(debug).unwrap());
        let id = BuildId::new(&build_id_in(&whole)).unwrap();
        Some(Self { place, program, whole, debug, id, inner, outer })
    }

    /// Returns a stream with one sample in the function that only the debug file names.
    fn stream(&self) -> Stream {
        sampled(stream(), &self.program, self.inner)
    }

    fn path(&self, kind: &str) -> String {
        format!("/buildid/{}/{kind}", self.id)
    }

    /// Returns the path of a file in the cache.
    fn cached(&self, kind: &str) -> PathBuf {
        self.place.at("cache").join(self.id.to_string()).join(kind)
    }

    fn rep(
        &self,
        words: &[&str],
        urls: &[&str],
        limits: &[(&str, &str)],
        stream: &Stream,
    ) -> Output {
        let file = self.place.put("t.data", stream.file());
        let mut command = crate::rep::rep();
        for name in [
            "PERF_BUILDID_DIR",
            "XDG_CACHE_HOME",
            "http_proxy",
            "HTTP_PROXY",
            "ALL_PROXY",
            "all_proxy",
        ] {
            command.env_remove(name);
        }
        command
            .env("HOME", self.place.at("home"))
            .env("DEBUGINFOD_CACHE_PATH", self.place.at("cache"));
        command.env("DEBUGINFOD_URLS", urls.join(" ")).envs(limits.iter().copied());
        command.args(words).arg(file).output().unwrap()
    }

    /// Returns the functions that are found with these servers, and standard error.
    fn symbols(
        &self,
        words: &[&str],
        urls: &[&str],
        limits: &[(&str, &str)],
    ) -> (Vec<String>, String) {
        let output =
            self.rep(&[&["--json", "-s", "sym"], words].concat(), urls, limits, &self.stream());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        (functions(&parsed(output.stdout)), said)
    }

    /// Asserts that nothing is fetched from these servers, that a warning says why, and that the
    /// cache is empty.
    #[track_caller]
    fn refused(&self, urls: &[&str], limits: &[(&str, &str)], why: &str) {
        let (symbols, said) = self.symbols(&["--debuginfod"], urls, limits);
        assert_ne!(symbols, ["inner"]);
        let warned = said
            .lines()
            .any(|line| line.starts_with("rep: warning: program: http://") && line.contains(why));
        assert!(warned, "{why} in {said}");
        assert!(!self.cached("debuginfo").exists());
        assert!(
            fs::read_dir(self.place.at("cache")).map_or(true, |mut all| all.next().is_none()),
            "cache empty"
        );
    }

    fn server(&self) -> Server {
        let (executable, debug) = (self.path("executable"), self.path("debuginfo"));
        let (whole, bytes) = (self.whole.clone(), self.debug.clone());
        Server::new(move |path| match path {
            _ if path == debug => Answer::File(bytes.clone(), true),
            _ if path == executable => Answer::File(whole.clone(), false),
            _ => Answer::Status("404 Not Found"),
        })
    }
}

fn none() -> Server {
    Server::new(|_| Answer::Status("404 Not Found"))
}

#[test]
fn a_debug_file_is_fetched_once_and_cached() {
    let Some(it) = Stripped::new() else { return };
    let (empty, full) = (none(), it.server());
    let urls = [empty.url.as_str(), &format!("{}/", full.url)];
    let (symbols, said) = it.symbols(&["--debuginfod"], &urls, &[]);
    assert_eq!(symbols, ["inner"]);
    assert!(
        said.contains(&format!(
            "rep: fetching debuginfo of program: {}{}",
            full.url,
            it.path("debuginfo")
        )),
        "{said}"
    );
    assert!(!said.contains("warning"), "{said}");
    assert_eq!(
        (empty.asked(), full.asked()),
        (vec![it.path("debuginfo")], vec![it.path("debuginfo")])
    );
    assert_eq!(fs::read(it.cached("debuginfo")).unwrap(), it.debug);
    assert_eq!(it.symbols(&["--debuginfod"], &urls, &[]).0, ["inner"]);
    assert_eq!(it.symbols(&[], &[], &[]).0, ["inner"], "the cache is used without --debuginfod");
    assert_eq!((empty.asked().len(), full.asked().len()), (1, 1));
}

#[test]
fn two_copies_of_a_file_are_one_request() {
    let Some(it) = Stripped::new() else { return };
    let copy = it.place.at("copy");
    fs::copy(&it.program, &copy).unwrap();
    let empty = none();
    let both = sampled(it.stream(), &copy, it.outer);
    let output = it.rep(&["--debuginfod", "-s", "sym"], &[&empty.url], &[], &both);
    assert!(output.status.success());
    assert_eq!(empty.asked(), [it.path("debuginfo")]);
}

#[test]
fn servers_are_asked_only_on_request_and_above_the_percentage() {
    let Some(it) = Stripped::new() else { return };
    let server = it.server();
    assert_ne!(it.symbols(&[], &[&server.url], &[]).0, ["inner"]);
    // One sample of two.
    let half = sampled(it.stream(), &it.program, it.outer);
    let with = |words: &[&str]| it.rep(words, &[&server.url], &[], &half);
    for words in [&["--debuginfod=50.1", "-s", "sym"][..], &["--debuginfod", "-s", "dso"]] {
        assert!(with(words).status.success());
        assert_eq!(server.asked(), [""; 0]);
    }
    assert!(with(&["--debuginfod=50", "-s", "sym"]).status.success());
    assert_eq!(server.asked(), [it.path("debuginfo")]);
}

#[test]
fn debuginfod_without_servers_is_a_usage_error() {
    let Some(it) = Stripped::new() else { return };
    for view in [&["report"][..], &["script"], &["modules"], &["mem"]] {
        let output = it.rep(&[view, &["--debuginfod"]].concat(), &[], &[], &it.stream());
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("DEBUGINFOD_URLS names no server"), "{said}");
    }
    let output = it.rep(&["--debuginfod=http://x"], &["http://x"], &[], &it.stream());
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_missing_executable_is_fetched() {
    let Some(it) = Stripped::new() else { return };
    let stream = map_with_id(stream(), &it.program, &it.id.padded());
    let stream = stream.at(2).sample(SampleSpec::at(BASE + it.inner));
    fs::remove_file(&it.program).unwrap();
    let server = it.server();
    let output = it.rep(&["script", "-F", "ip,sym", "--debuginfod"], &[&server.url], &[], &stream);
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        format!("{:>17x} inner\n", BASE + it.inner)
    );
    assert_eq!(server.asked(), [it.path("debuginfo"), it.path("executable")]);
    assert_eq!(fs::read(it.cached("executable")).unwrap(), it.whole);
}

#[test]
fn debug_files_are_fetched_for_callers_too() {
    let Some(it) = Stripped::new() else { return };
    let server = it.server();
    let chain = [context::USER, BASE + it.outer, BASE + it.inner];
    let stream =
        mapped(stream_with(Event::new("cycles:u").sampling(SampleType::CALLCHAIN)), &it.program)
            .at(2);
    let stream = stream.sample(SampleSpec::at(BASE + it.outer).callchain(&chain));
    // The chain is made up: no rule leads from one function to the other.
    let args = ["--format", "folded", "--debuginfod", "--no-check-callchains"];
    let output = it.rep(&args, &[&server.url], &[], &stream);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "test;inner;outer 1\n");
}

#[test]
fn refusals_of_servers_are_reported() {
    let Some(it) = Stripped::new() else { return };
    let empty = none();
    it.refused(&[&empty.url], &[], "not fetched: 404 Not Found");
    let modules = it.rep(&["modules", "--debuginfod"], &[&empty.url], &[], &it.stream());
    let modules = String::from_utf8_lossy(&modules.stdout).into_owned();
    let tried = format!(
        "{}{} (debuginfod server): not fetched: 404 Not Found",
        empty.url,
        it.path("debuginfo")
    );
    assert!(modules.contains(&tried), "{modules}");
    let report = it.rep(&["-s", "sym", "--debuginfod"], &[&empty.url], &[], &it.stream());
    let report = String::from_utf8_lossy(&report.stdout).into_owned();
    assert!(report.contains("program 100.0% (stripped; not fetched: 404 Not Found)"), "{report}");
    // Nothing listens there any more.
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    it.refused(&[&format!("http://{closed}")], &[], "refused");
}

#[test]
fn wrong_and_too_large_files_are_not_kept() {
    let Some(it) = Stripped::new() else { return };
    let other = it.place.program("other", "-DOTHER -O2");
    let other = fs::read(other).unwrap();
    let wrong = Server::new(move |_| Answer::File(other.clone(), true));
    it.refused(&[&wrong.url], &[], "another version of the file");
    let page = Server::new(|_| Answer::File(b"<html>sign in</html>".to_vec(), true));
    it.refused(&[&page.url], &[], "of the wrong format");
    let size = (it.debug.len() - 1).to_string();
    let too_large = format!("larger than DEBUGINFOD_MAXSIZE allows ({size} bytes)");
    for is_size_said in [true, false] {
        let bytes = it.debug.clone();
        let server = Server::new(move |_| Answer::File(bytes.clone(), is_size_said));
        it.refused(&[&server.url], &[("DEBUGINFOD_MAXSIZE", &size)], &too_large);
    }
}

#[test]
fn a_silent_server_times_out() {
    let Some(it) = Stripped::new() else { return };
    let bytes = it.debug.clone();
    let silent = Server::new(move |_| Answer::Stall(bytes.clone(), Duration::from_secs(60)));
    let full = it.server();
    let begin = Instant::now();
    it.refused(&[&silent.url], &[("DEBUGINFOD_TIMEOUT", "1")], "no data for 1 s");
    it.refused(&[&silent.url], &[("DEBUGINFOD_MAXTIME", "1")], "it took longer than 1 s");
    let both = [silent.url.as_str(), &full.url];
    assert_eq!(it.symbols(&["--debuginfod"], &both, &[("DEBUGINFOD_TIMEOUT", "1")]).0, ["inner"]);
    assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", begin.elapsed());
}

#[test]
fn debug_files_are_fetched_for_source_lines() {
    let Some(it) = Stripped::new() else { return };
    // All symbols, but no source lines.
    tool("objcopy --strip-debug", &[&it.place.program("again", ""), &it.program]);
    let server = it.server();
    let with = |words: &[&str]| {
        it.rep(&[words, &["--debuginfod"]].concat(), &[&server.url], &[], &it.stream())
    };
    assert!(with(&["-s", "sym"]).status.success());
    assert_eq!(server.asked(), [""; 0]);
    let lines = with(&["-s", "srcline"]);
    assert!(String::from_utf8_lossy(&lines.stdout).contains("p.c:1"), "{lines:?}");
    assert_eq!(server.asked(), [it.path("debuginfo")]);
}

/// Answer to a request.
enum Answer {
    /// A file; with `Content-Length` if the flag is set.
    File(Vec<u8>, bool),
    /// A status such as `404 Not Found`.
    Status(&'static str),
    /// Half of the file, then nothing for this time.
    Stall(Vec<u8>, Duration),
}

/// The server; its threads end with the test's process.
struct Server {
    /// URL of the server.
    url: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Starts a server that gives these answers to paths.
    fn new(answer: impl Fn(&str) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (noted, answer) = (asked.clone(), Arc::new(answer));
        thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                let (noted, answer) = (noted.clone(), answer.clone());
                // Clients may close the connection early.
                thread::spawn(move || serve(connection, &noted, &*answer).unwrap_or_default());
            }
        });
        Self { url, asked }
    }

    /// Returns the requested paths, sorted.
    fn asked(&self) -> Vec<String> {
        let mut asked = self.asked.lock().unwrap().clone();
        asked.sort();
        asked
    }
}

fn serve(
    mut to: TcpStream,
    noted: &Mutex<Vec<String>>,
    answer: &dyn Fn(&str) -> Answer,
) -> std::io::Result<()> {
    let mut head = BufReader::new(to.try_clone()?)
        .lines()
        .map_while(Result::ok)
        .take_while(|line| !line.is_empty());
    let path = head.next().unwrap_or_default().split(' ').nth(1).unwrap_or_default().to_owned();
    head.for_each(drop);
    noted.lock().unwrap().push(path.clone());
    let begin = |size: Option<usize>| {
        let size = size.map(|size| format!("Content-Length: {size}\r\n")).unwrap_or_default();
        format!("HTTP/1.1 200 OK\r\n{size}Connection: close\r\n\r\n")
    };
    match answer(&path) {
        Answer::Status(status) => {
            write!(to, "HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        }
        Answer::File(bytes, is_size_said) => {
            to.write_all(begin(is_size_said.then_some(bytes.len())).as_bytes())?;
            to.write_all(&bytes)
        }
        Answer::Stall(bytes, long) => {
            to.write_all(begin(Some(bytes.len())).as_bytes())?;
            to.write_all(&bytes[..bytes.len() / 2])?;
            thread::sleep(long);
            Ok(())
        }
    }
}

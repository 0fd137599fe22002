//! A debuginfod server for tests: it gives fixed answers and records the requests.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// Answer to a request.
pub(crate) enum Answer {
    /// A file; with `Content-Length` if the flag is set.
    File(Vec<u8>, bool),
    /// A status such as `404 Not Found`.
    Status(&'static str),
    /// Half of the file, then nothing for this time.
    Stall(Vec<u8>, Duration),
}

/// The server; its threads end with the test's process.
pub(crate) struct Server {
    /// URL of the server.
    pub(crate) url: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Starts a server that gives these answers to paths.
    pub(crate) fn new(answer: impl Fn(&str) -> Answer + Send + Sync + 'static) -> Self {
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
    pub(crate) fn asked(&self) -> Vec<String> {
        let mut asked = self.asked.lock().unwrap().clone();
        asked.sort();
        asked
    }
}

fn serve(mut to: TcpStream, noted: &Mutex<Vec<String>>, answer: &dyn Fn(&str) -> Answer) -> std::io::Result<()> {
    let mut head = BufReader::new(to.try_clone()?).lines().map_while(Result::ok).take_while(|line| !line.is_empty());
    let path = head.next().unwrap_or_default().split(' ').nth(1).unwrap_or_default().to_owned();
    head.for_each(drop);
    noted.lock().unwrap().push(path.clone());
    let begin = |size: Option<usize>| {
        let size = size.map(|size| format!("Content-Length: {size}\r\n")).unwrap_or_default();
        format!("HTTP/1.1 200 OK\r\n{size}Connection: close\r\n\r\n")
    };
    match answer(&path) {
        Answer::Status(status) => write!(to, "HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"),
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

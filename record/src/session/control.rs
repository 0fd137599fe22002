//! Control of a running recording (`--control`): commands, one per line, from a descriptor or a
//! named pipe. Each executed command is acknowledged with `ack`.
//!
//! ```text
//! enable [EVENT]   disable [EVENT]   snapshot   evlist [-v|-g|-F]   ping   stop
//! ```

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::kernel::sys;
use crate::messages::error::{Error, Result};
use crate::plan::config::Control;

/// Maximum length of a command line. Longer ones are invalid.
const LONGEST: usize = 4096;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Start counting all events, or the event of this name.
    Enable(Option<String>),
    /// Stop counting all events, or the event of this name.
    Disable(Option<String>),
    /// Write a snapshot of AUX areas and overwritten rings.
    Snapshot,
    /// List the events.
    Evlist(Detail),
    /// Acknowledge only, to show that rec is running.
    Ping,
    Stop,
}

/// Details of each event that `evlist` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    Name,
    /// Every field of its attr (`-v`).
    Attr,
    /// Its group (`-g`).
    Group,
    /// Its frequency or period (`-F`).
    Rate,
}

impl Command {
    pub fn parse(line: &str) -> Result<Self, String> {
        let (word, rest) = line.trim().split_once(char::is_whitespace).unwrap_or((line.trim(), ""));
        let rest = rest.trim();
        let event = || (!rest.is_empty()).then(|| rest.to_owned());
        match (word, rest) {
            ("enable", _) => Ok(Self::Enable(event())),
            ("disable", _) => Ok(Self::Disable(event())),
            ("snapshot", "") => Ok(Self::Snapshot),
            ("ping", "") => Ok(Self::Ping),
            ("stop", "") => Ok(Self::Stop),
            ("evlist", "") => Ok(Self::Evlist(Detail::Name)),
            ("evlist", "-v") => Ok(Self::Evlist(Detail::Attr)),
            ("evlist", "-g") => Ok(Self::Evlist(Detail::Group)),
            ("evlist", "-F") => Ok(Self::Evlist(Detail::Rate)),
            _ => Err(format!(
                "unknown command '{line}'; use enable [EVENT], disable [EVENT], snapshot, evlist \
                 [-v|-g|-F], ping, stop"
            )),
        }
    }
}

/// Source of commands and destination of acknowledgements.
#[derive(Debug)]
pub struct Channel {
    commands: File,
    acks: Option<File>,
    begun: Vec<u8>,
}

impl Channel {
    /// Opens the channel. Reading from it never blocks.
    pub fn open(control: &Control) -> Result<Self> {
        let (commands, acks) = match control {
            Control::Fd { commands, acks } => {
                (descriptor(*commands)?, acks.map(descriptor).transpose()?)
            }
            Control::Fifo { commands, acks } => {
                (fifo(commands)?, acks.as_deref().map(fifo).transpose()?)
            }
        };
        Ok(Self { commands, acks, begun: Vec::new() })
    }

    /// Reads the lines that have arrived. Also returns whether more can follow.
    pub fn read(&mut self) -> Result<(Vec<String>, bool)> {
        let mut bytes = [0; 1024];
        let more = loop {
            if !self.is_readable() {
                break true;
            }
            match self.commands.read(&mut bytes) {
                Ok(0) => break false,
                Ok(found) => self.begun.extend(bytes.iter().take(found)),
                Err(e) if e.kind() == ErrorKind::WouldBlock => break true,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                // The peer closed its socket without reading all acknowledgements.
                Err(e) if e.kind() == ErrorKind::ConnectionReset => break false,
                Err(e) => return Err(Error::io("cannot read commands (--control)", e)),
            }
        };
        let mut lines = Vec::new();
        while let Some(end) = self.begun.iter().position(|byte| matches!(byte, b'\n' | 0)) {
            let line: Vec<u8> = self.begun.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line).trim_matches(['\n', '\0', ' ']).to_owned();
            lines.extend(Some(line).filter(|line| !line.is_empty()));
        }
        if self.begun.len() > LONGEST {
            self.begun.clear();
        }
        Ok((lines, more))
    }

    /// Returns whether reading would not block. `O_NONBLOCK` is not used, as it would affect all
    /// processes that share the descriptor.
    fn is_readable(&self) -> bool {
        let mut fds = [PollFd::new(&self.commands, PollFlags::IN)];
        rustix::io::retry_on_intr(|| poll(&mut fds, Some(&Timespec::default())))
            .is_ok_and(|ready| ready > 0)
    }

    /// Acknowledges an executed command.
    pub fn acknowledge(&mut self) {
        if let Some(acks) = &mut self.acks {
            // The peer may have closed its end; that is no reason to stop recording.
            let _ = acks.write_all(b"ack\n");
        }
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.commands.as_fd()
    }
}

/// Duplicates a descriptor that rec inherited.
fn descriptor(number: i32) -> Result<File> {
    let tried = || {
        format!(
            "cannot use descriptor {number} (--control=fd:{number}): give an open pipe or socket"
        )
    };
    sys::duplicate(number).map(File::from).map_err(|e| Error::io(tried(), e))
}

/// Opens a named pipe for reading and writing, so that it stays open when the process at the other
/// end closes it.
fn fifo(path: &Path) -> Result<File> {
    let tried = || format!("cannot use '{}' (--control=fifo:…)", path.display());
    let is_fifo = std::fs::metadata(path).map_err(|e| Error::io(tried(), e))?.file_type().is_fifo();
    if !is_fifo {
        return Err(Error::Failed(format!(
            "{}: it is not a named pipe; create one with mkfifo",
            tried()
        )));
    }
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(nonblocking)
        .open(path)
        .map_err(|e| Error::io(tried(), e))
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn lines_are_commands() {
        assert_eq!(Command::parse("enable"), Ok(Command::Enable(None)));
        assert_eq!(
            Command::parse(" disable  sched:sched_switch "),
            Ok(Command::Disable(Some("sched:sched_switch".into())))
        );
        assert_eq!(Command::parse("evlist -v"), Ok(Command::Evlist(Detail::Attr)));
        assert_eq!(Command::parse("stop"), Ok(Command::Stop));
        assert!(Command::parse("halt").unwrap_err().contains("unknown command 'halt'"));
        assert!(Command::parse("ping pong").is_err());
    }

    #[test]
    fn commands_come_in_pieces_and_are_acknowledged() {
        let (commands, mut user) = std::io::pipe().unwrap();
        let (mut heard, acks) = std::io::pipe().unwrap();
        let fds = Control::Fd { commands: commands.as_raw_fd(), acks: Some(acks.as_raw_fd()) };
        let mut channel = Channel::open(&fds).unwrap();
        assert_eq!(channel.read().unwrap(), (vec![], true));
        user.write_all(b"ping\nena").unwrap();
        assert_eq!(channel.read().unwrap().0, ["ping"]);
        user.write_all(b"ble x\0\nstop").unwrap();
        assert_eq!(channel.read().unwrap().0, ["enable x"]);
        channel.acknowledge();
        let mut ack = [0; 4];
        heard.read_exact(&mut ack).unwrap();
        assert_eq!(&ack, b"ack\n");
    }

    #[test]
    fn commands_come_through_sockets_too() {
        let (commands, mut user) = UnixStream::pair().unwrap();
        let fds = Control::Fd { commands: commands.as_raw_fd(), acks: Some(commands.as_raw_fd()) };
        let mut channel = Channel::open(&fds).unwrap();
        assert_eq!(channel.read().unwrap(), (vec![], true));
        user.write_all(b"ping\n").unwrap();
        assert_eq!(channel.read().unwrap(), (vec!["ping".to_owned()], true));
        channel.acknowledge();
        let mut ack = [0; 4];
        user.read_exact(&mut ack).unwrap();
        assert_eq!(&ack, b"ack\n");
        user.write_all(b"stop\n").unwrap();
        channel.acknowledge();
        drop(user);
        assert_eq!(channel.read().unwrap(), (vec!["stop".to_owned()], false));
    }

    #[test]
    fn what_cannot_be_used_is_told() {
        let none = Control::Fd { commands: 999, acks: None };
        assert!(Channel::open(&none).unwrap_err().to_string().contains("descriptor 999"));
        let file = tempfile::NamedTempFile::new().unwrap();
        let file = Control::Fifo { commands: file.path().to_owned(), acks: None };
        assert!(Channel::open(&file).unwrap_err().to_string().contains("it is not a named pipe"));
    }
}

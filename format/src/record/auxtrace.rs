//! perf's records around the AUX area: its kind, its data, errors of its decoding.

use super::Guest;
use crate::abi::{AuxtraceErrorKind, AuxtraceKind, Cpu, Pid, Tid};
use crate::bytes::{Cursor, Encoder, U64s};
use crate::error::{Error, Result};
use crate::fields::named;
use crate::wire::{Text, Wire, wire};

wire! {
    /// The kind of AUX data (`PERF_RECORD_AUXTRACE_INFO`).
    pub struct AuxtraceInfo<'a> {
        /// The kind.
        pub kind: AuxtraceKind => "type",
        /// Kept as found.
        pub reserved: u32,
        /// Words that the kind defines.
        pub private: U64s<'a> => "priv_words",
    }

    /// AUX data, which follows the record (`PERF_RECORD_AUXTRACE`).
    pub struct Auxtrace {
        /// Number of bytes that follow the record: the data and its padding to 8 bytes. `size` of
        /// the header leaves them out.
        pub size: u64 => hex,
        /// Their offset in the AUX area, in bytes.
        pub offset: u64 => hex,
        /// A number that the kind defines.
        pub reference: u64 => hex,
        /// The ring: the place of its CPU or thread among those recorded.
        pub idx: u32,
        /// The thread.
        pub tid: Tid,
        /// The CPU.
        pub cpu: Cpu,
        /// Kept as found.
        pub reserved: u32,
    }
}

named! {
    /// An error in hardware tracing (`PERF_RECORD_AUXTRACE_ERROR`).
    ///
    /// ```text
    ///   fmt 0   type code cpu pid tid fmt ip        message
    ///   fmt 1   type code cpu pid tid fmt ip  time  message
    ///   fmt 2   type code cpu pid tid fmt ip  time  message, 64 bytes  machine_pid vcpu
    /// ```
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct AuxtraceError<'a> {
        /// The kind.
        pub kind: AuxtraceErrorKind => "type",
        /// A number that the kind defines.
        pub code: u32,
        /// The CPU.
        pub cpu: Cpu,
        /// The process.
        pub pid: Pid,
        /// The thread.
        pub tid: Tid,
        /// The version of the layout.
        pub fmt: u32,
        /// The address of the instruction.
        pub ip: u64 => hex,
        /// The time, in nanoseconds of the perf clock; `None` in layout 0.
        pub time: Option<u64>,
        /// The message.
        pub message: Text<'a> => "msg",
        /// The guest; `None` before layout 2, and if the record ends before it.
        pub guest: Option<Guest> => hidden,
    }
}

/// Size of the message in layout 2 (`MAX_AUXTRACE_ERROR_MSG`).
const MESSAGE: usize = 64;

impl<'a> Wire<'a> for AuxtraceError<'a> {
    fn decode(c: &mut Cursor<'a>, what: &'static str) -> Result<Self> {
        let (kind, code) = (Wire::decode(c, what)?, c.u32(what)?);
        let (cpu, pid, tid) =
            (Wire::decode(c, what)?, Wire::decode(c, what)?, Wire::decode(c, what)?);
        let (fmt, ip) = (c.u32(what)?, c.u64(what)?);
        let time = (fmt > 0).then(|| c.u64(what)).transpose()?;
        let (message, guest) = if fmt > 1 && c.left() >= MESSAGE + 8 {
            let message = Text::found(c.take(MESSAGE, what)?);
            (
                message,
                Some(Guest { machine_pid: Wire::decode(c, what)?, vcpu: Wire::decode(c, what)? }),
            )
        } else {
            (Wire::decode(c, what)?, None)
        };
        Ok(Self { kind, code, cpu, pid, tid, fmt, ip, time, message, guest })
    }

    fn encode(&self, e: &mut Encoder) -> Result<()> {
        let len = self.message.padded_len();
        // From layout 2 on a guest follows the message, which would be read out of a longer one.
        let fits = if self.guest.is_some() {
            self.fmt > 1 && len <= MESSAGE
        } else {
            self.fmt < 2 || len < MESSAGE + 8
        };
        if self.time.is_some() != (self.fmt > 0) || !fits {
            let detail = format!(
                "the layout {} with {:?}, {:?}, {len} bytes",
                self.fmt, self.time, self.guest
            );
            return Err(Error::invalid(e.len() as u64, "AUXTRACE_ERROR", detail));
        }
        self.kind.encode(e)?;
        e.u32(self.code);
        self.cpu.encode(e)?;
        self.pid.encode(e)?;
        self.tid.encode(e)?;
        e.u32(self.fmt);
        e.u64(self.ip);
        self.time.encode(e)?;
        self.message.encode(e)?;
        if let Some(guest) = self.guest {
            e.padded(&[], MESSAGE.saturating_sub(len));
            guest.machine_pid.encode(e)?;
            guest.vcpu.encode(e)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endian::Endian;

    #[test]
    fn a_guest_follows_a_message_of_64_bytes() {
        let head =
            [0, 0, 0, 1, 0, 0, 0, 5, 255, 255, 255, 255, 0, 0, 0, 70, 0, 0, 0, 71, 0, 0, 0, 2];
        let ip_and_time = [0, 0, 0, 0, 0, 0, 0x40, 0, 0, 0, 0, 0, 0, 0, 0, 9];
        let guest = [0, 0, 0, 80, 255, 255, 255, 255];
        let bytes = [&head[..], &ip_and_time, b"bad", &[0; 61], &guest].concat();
        let mut c = Cursor::new(&bytes, 0, Endian::Big);
        let error = AuxtraceError::decode(&mut c, "error").unwrap();
        assert_eq!(
            (error.kind, error.code, error.cpu, error.ip),
            (AuxtraceErrorKind::ITRACE, 5, Cpu::ANY, 0x4000)
        );
        assert_eq!(
            (error.pid, error.tid, error.time, error.message.as_bytes()),
            (Pid(70), Tid(71), Some(9), &b"bad"[..])
        );
        assert_eq!(error.guest, Some(Guest { machine_pid: Pid(80), vcpu: Cpu::ANY }));
        let encoded = |error: AuxtraceError<'_>| {
            let mut e = Encoder::new(Endian::Big);
            error.encode(&mut e).map(|()| e.into_bytes())
        };
        assert_eq!(encoded(error).unwrap(), bytes);
        assert_eq!(encoded(AuxtraceError { message: Text::new(b"bad"), ..error }).unwrap(), bytes);
        assert!(encoded(AuxtraceError { fmt: 1, ..error }).is_err());
        assert!(encoded(AuxtraceError { message: Text::new(&[b'x'; 64]), ..error }).is_err());
        let short = &bytes[..bytes.len() - 8];
        let cut = AuxtraceError::from_bytes(short, Endian::Big).unwrap();
        assert_eq!((cut.guest, encoded(cut).unwrap().as_slice()), (None, short));
    }

    #[test]
    fn a_long_message_is_not_taken_for_a_guest() {
        let error = |fmt| AuxtraceError {
            kind: AuxtraceErrorKind(1),
            code: 0,
            cpu: Cpu(0),
            pid: Pid(1),
            tid: Tid(1),
            fmt,
            ip: 0,
            time: Some(1),
            message: Text::new(&[b'x'; 100]),
            guest: None,
        };
        assert!(error(1).encode(&mut Encoder::new(Endian::Little)).is_ok());
        assert!(error(2).encode(&mut Encoder::new(Endian::Little)).is_err());
    }
}

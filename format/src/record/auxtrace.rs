//! perf's records around the AUX area: what it is, the data, errors of its decoding.

use crate::bytes::{Cursor, Encoder, U64s};
use crate::error::{Error, Result};
use crate::wire;
use crate::wire::{Text, Wire};

wire! {
    /// What kind of AUX data there is (`PERF_RECORD_AUXTRACE_INFO`).
    pub struct AuxtraceInfo<'a> {
        /// 1 Intel PT, 2 Intel BTS, 3 CoreSight ETM, 4 Arm SPE, 5 S390 CPUMSF, 6 HiSilicon PTT, 7 PowerPC VPA DTL.
        pub kind: u32,
        /// Kept as found.
        pub reserved: u32,
        /// Words that the kind defines.
        pub private: U64s<'a>,
    }

    /// AUX data, which follows the record (`PERF_RECORD_AUXTRACE`).
    pub struct Auxtrace {
        /// Number of bytes that follow the record: the data and its padding to 8 bytes. `size` of the header leaves them out.
        pub size: u64,
        /// Where in the AUX area they begin.
        pub offset: u64,
        /// A number that the kind defines.
        pub reference: u64,
        /// The ring.
        pub idx: u32,
        /// The thread; all ones for any.
        pub tid: u32,
        /// The CPU; all ones for any.
        pub cpu: u32,
        /// Kept as found.
        pub reserved: u32,
    }
}

/// An error in hardware tracing (`PERF_RECORD_AUXTRACE_ERROR`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuxtraceError<'a> {
    /// 1: instruction tracing.
    pub kind: u32,
    /// A number that the kind defines.
    pub code: u32,
    /// The CPU.
    pub cpu: u32,
    /// The process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// Which fields there are: from 1 on `time`.
    pub fmt: u32,
    /// Where.
    pub ip: u64,
    /// When, in nanoseconds of the perf clock.
    pub time: Option<u64>,
    /// The message, and what newer formats put after it.
    pub message: Text<'a>,
}

impl<'a> Wire<'a> for AuxtraceError<'a> {
    fn decode(c: &mut Cursor<'a>, what: &'static str) -> Result<Self> {
        let (kind, code, cpu) = (c.u32(what)?, c.u32(what)?, c.u32(what)?);
        let (pid, tid, fmt, ip) = (c.u32(what)?, c.u32(what)?, c.u32(what)?, c.u64(what)?);
        let time = (fmt > 0).then(|| c.u64(what)).transpose()?;
        Ok(Self { kind, code, cpu, pid, tid, fmt, ip, time, message: Wire::decode(c, what)? })
    }

    fn encode(&self, e: &mut Encoder) -> Result<()> {
        if self.time.is_some() != (self.fmt > 0) {
            let detail = format!("the format {} with the time {:?}", self.fmt, self.time);
            return Err(Error::invalid(e.len() as u64, "AUXTRACE_ERROR", detail));
        }
        for word in [self.kind, self.code, self.cpu, self.pid, self.tid, self.fmt] {
            e.u32(word);
        }
        e.u64(self.ip);
        self.time.iter().for_each(|time| e.u64(*time));
        self.message.encode(e)
    }
}

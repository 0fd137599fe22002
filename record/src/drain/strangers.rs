//! Names of wakers that are not recorded (`--waits`).

use std::fs;
use std::mem;

use recrep_format::attr::Attr;
use recrep_format::bytes::Encoder;
use recrep_format::endian::Endian;
use recrep_format::layout::SampleIdLayout;
use recrep_format::record::{Body, Comm, Record, SampleId};
use recrep_format::wire::Text;
use rustc_hash::FxHashSet;

/// Wakers that are not recorded. Each has a COMM record in the file, as its wakes name it.
#[derive(Debug)]
pub(crate) struct Strangers {
    layout: SampleIdLayout,
    id: u64,
    /// Threads that have a record.
    named: FxHashSet<u32>,
    /// Records that are not written yet.
    records: Encoder,
}

impl Strangers {
    /// Creates the list. The records get the fields of the tracking event and the ID of one of its
    /// counters.
    pub(super) fn new(attr: &Attr, id: u64) -> Self {
        Self {
            layout: SampleIdLayout::of(attr),
            id,
            named: FxHashSet::default(),
            records: Encoder::new(Endian::NATIVE),
        }
    }

    /// Forgets who has a record, at the beginning of a file.
    pub(super) fn forget(&mut self) {
        self.named.clear();
    }

    /// Returns the records of those that were added.
    pub(super) fn take(&mut self) -> Vec<u8> {
        if self.records.is_empty() {
            return Vec::new();
        }
        mem::replace(&mut self.records, Encoder::new(Endian::NATIVE)).into_bytes()
    }

    /// Adds a waker, unless it has a record.
    pub(super) fn add(&mut self, task: [u32; 2]) {
        let [pid, tid] = task;
        // Neither the idle task nor one that has ended has a name.
        if tid == 0 || tid == u32::MAX || !self.named.insert(tid) {
            return;
        }
        let Ok(name) = fs::read(format!("/proc/{pid}/task/{tid}/comm")) else { return };
        let comm = Text::new(name.trim_ascii_end());
        let trailer =
            SampleId { tid: Some(task), identifier: Some(self.id), ..SampleId::default() };
        // A name of 15 bytes cannot exceed the size limit.
        let _ = Record::new(0, Body::Comm(Comm { pid, tid, comm }))
            .with_trailer(trailer.shaped(&self.layout))
            .encode(&mut self.records);
    }
}

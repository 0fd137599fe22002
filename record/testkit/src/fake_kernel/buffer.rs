//! A ring and its AUX area, written in the order of `kernel/events/ring_buffer.c`.

use std::os::fd::{AsFd, OwnedFd};

use recrep_format::abi::AuxFlags;
use recrep_format::bytes::Encoder;
use recrep_format::endian::Endian;
use recrep_format::record::{Aux, Body, Lost, Record, SampleId};
use recrep_record::parts::{AuxRing, Clock, Ring};
use rustix::io::Errno;

use super::super::kernel_side::{KernelSide, RingPart};
use super::super::ring_writer::RingWriter;
use super::step::Traced;

/// The kernel's side of a ring.
pub(super) struct Buffer {
    memory: OwnedFd,
    data_size: usize,
    side: KernelSide,
    data: RingWriter,
    aux: Option<AuxArea>,
    /// Number of lost records since the last one that fitted.
    lost: u64,
    /// Everything that was written.
    pub(super) traced: Traced,
}

struct AuxArea {
    writer: RingWriter,
    size: u64,
    overwrite: bool,
}

impl Buffer {
    /// Creates a ring. Returns it as mapped by its reader, and this side of it.
    pub(super) fn new(pages: usize, backward: bool) -> Result<(Ring, Self), Errno> {
        let page = rustix::param::page_size();
        let data_size = pages * page;
        let memory = rustix::fs::memfd_create("ring", rustix::fs::MemfdFlags::CLOEXEC)?;
        rustix::fs::ftruncate(&memory, (page + data_size) as u64)?;
        let ring = if backward {
            Ring::map_backward(memory.as_fd(), pages)
        } else {
            Ring::map(memory.as_fd(), pages)
        }?;
        let side = KernelSide::map(memory.as_fd(), data_size, 0)?;
        let data = side.writer(RingPart::Data);
        Ok((
            ring,
            Self { memory, data_size, side, data, aux: None, lost: 0, traced: Traced::default() },
        ))
    }

    /// Returns whether there is an AUX area.
    pub(super) fn has_aux(&self) -> bool {
        self.aux.is_some()
    }

    /// Maps the AUX area for its reader, if the control page asks for what is mapped (`perf_mmap`).
    pub(super) fn map_aux(
        &mut self,
        ring: &Ring,
        pages: usize,
        overwrite: bool,
    ) -> Result<AuxRing, Errno> {
        let page = rustix::param::page_size();
        let size = pages * page;
        let offset = page + self.data_size;
        rustix::fs::ftruncate(&self.memory, (offset + size) as u64)?;
        let area = ring.map_aux(self.memory.as_fd(), pages, overwrite)?;
        if self.side.aux_place() != (offset as u64, size as u64) {
            return Err(Errno::INVAL);
        }
        self.side = KernelSide::map(self.memory.as_fd(), self.data_size, size)?;
        let writer = self.side.writer(RingPart::Aux);
        self.aux = Some(AuxArea { writer, size: size as u64, overwrite });
        Ok(area)
    }

    /// Sets the clock fields of the control page.
    pub(super) fn set_clock(&self, clock: Clock) {
        self.side.set_clock(clock);
    }

    /// Stores a head that cannot be.
    pub(super) fn break_head(&self) {
        self.side.head(RingPart::Data).store(u64::MAX, std::sync::atomic::Ordering::Release);
    }

    /// Returns the bytes of trace that fit; unlimited in an overwritten area.
    pub(super) fn aux_room(&self) -> usize {
        let Some(aux) = &self.aux else { return 0 };
        if aux.overwrite {
            return usize::MAX;
        }
        usize::try_from(aux.writer.room(self.side.tail(RingPart::Aux))).unwrap_or(usize::MAX)
    }

    /// Returns the position up to which the reader has read the AUX area.
    pub(super) fn aux_read(&self) -> u64 {
        self.side.tail(RingPart::Aux).load(std::sync::atomic::Ordering::Acquire)
    }

    /// Writes trace that must fit, then its AUX record, and then moves `aux_head`.
    pub(super) fn trace(
        &mut self,
        bytes: &[u8],
        mut flags: AuxFlags,
        places: bool,
        trailer: SampleId,
    ) {
        let Some(aux) = &mut self.aux else { return };
        let (from, length) = (aux.writer.head(), bytes.len() as u64);
        // Of trace longer than an overwritten area, only the end remains.
        let skipped = bytes.len().saturating_sub(usize::try_from(aux.size).unwrap_or(usize::MAX));
        let mut ahead = aux.writer;
        ahead.skip(skipped as u64);
        self.side.write(RingPart::Aux, &ahead, bytes.get(skipped..).unwrap_or_default());
        let (overwrite, size) = (aux.overwrite, aux.size);
        flags.set(AuxFlags::OVERWRITE, flags.contains(AuxFlags::OVERWRITE) || overwrite);
        self.record(
            Body::Aux(Aux {
                aux_offset: if places { from % size } else { from },
                aux_size: length,
                flags,
            }),
            trailer,
        );
        self.traced.records += 1;
        self.traced.trace.extend(bytes);
        let Some(aux) = &mut self.aux else { return };
        aux.writer.publish(self.side.head(RingPart::Aux), length);
        if overwrite && places {
            self.side
                .head(RingPart::Aux)
                .store(aux.writer.head() % size, std::sync::atomic::Ordering::Release);
        }
    }

    /// Writes a record. Without space the record is lost, and a LOST record precedes the next one.
    pub(super) fn record(&mut self, body: Body<'_>, trailer: SampleId) {
        let mut e = Encoder::new(Endian::NATIVE);
        if self.lost > 0 {
            let lost = Body::Lost(Lost { id: trailer.identifier.unwrap_or(0), lost: self.lost });
            let _ = Record::new(0, lost).with_trailer(trailer).encode(&mut e);
        }
        let _ = Record::new(0, body).with_trailer(trailer).encode(&mut e);
        let length = e.len() as u64;
        if self.data.room(self.side.tail(RingPart::Data)) < length {
            self.lost += 1;
            self.traced.lost_records += 1;
            return;
        }
        self.lost = 0;
        self.side.write(RingPart::Data, &self.data, e.as_bytes());
        self.data.publish(self.side.head(RingPart::Data), length);
    }
}

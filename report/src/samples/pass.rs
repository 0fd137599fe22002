//! The pass over the samples: each worker takes the next piece until none is left.
//!
//! ```text
//!   pieces     0  1  2  3  4  5  6
//!   worker 0   0     2  3     5          a piece that takes long delays no other worker
//!   worker 1      1        4     6
//! ```

use std::sync::atomic::{AtomicUsize, Ordering};

use recrep_format::abi::RecordType;
use recrep_format::record::RawRecord;

use crate::input::split::Piece;
use crate::input::unpack::UnpackBuffer;
use crate::terminal::progress;

/// One worker of a pass.
pub(crate) trait PieceWorker: Send {
    /// Reads a piece; `number` is its place among all pieces. The buffer is for its records if they
    /// are packed.
    fn read(&mut self, number: usize, piece: &Piece<'_>, buffer: &mut UnpackBuffer);

    /// Does what is left to do after the last piece, still beside the other workers.
    fn finish(&mut self) {}
}

/// Reads pieces on all cores, and returns the workers. `new` makes the worker with a number.
pub(crate) fn by_piece<W: PieceWorker>(
    pieces: &[Piece<'_>],
    new: impl Fn(usize) -> W + Sync,
) -> Vec<W> {
    let next = AtomicUsize::new(0);
    rayon::broadcast(|context| {
        let (mut worker, mut buffer) = (new(context.index()), UnpackBuffer::default());
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(piece) = pieces.get(number) else { break };
            worker.read(number, piece, &mut buffer);
            progress::advance(piece.size);
        }
        worker.finish();
        worker
    })
}

/// Calls `act` with each sample of a piece.
#[inline(always)]
pub(crate) fn for_each_sample(
    piece: &Piece<'_>,
    buffer: &mut UnpackBuffer,
    mut act: impl FnMut(RawRecord<'_>),
) {
    let mut frames = piece.frames(buffer);
    // Records stay in registers: an adapter of the iterator would pass them through memory.
    while let Some(Ok(raw)) = frames.next() {
        if raw.header.kind == RecordType::SAMPLE {
            act(raw);
        }
    }
}

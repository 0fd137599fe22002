//! The critical path of a file as a part of its profile.

use crate::profile::critical_path::{PathOfInput, PathPiece, WokenBy};
use crate::samples::{CriticalPath, Session, TaskFinder};
use crate::timeline::{
    CriticalPiece, PieceKind, Stretch, StretchKind, WaitingThread, Waits, Wake, Waker,
};

/// Returns the critical path of a file for its profile.
pub(super) fn path_of_input(path: &CriticalPath<'_>, session: &Session<'_>) -> PathOfInput {
    let CriticalPath { waits, span, pieces } = path;
    let comm = |pid: i32, tid: i32, time: u64| {
        let at = session.clock.moment(Some(time), u64::MAX);
        let task = TaskFinder::new(&session.timeline, None).span(pid, tid, at).0.task;
        session.timeline.comm(task.comm).into_owned()
    };
    let last = waits.thread(span.thread);
    let (pid, tid) = last.map_or((-1, -1), |thread| (thread.pid, thread.tid));
    let pieces: Vec<PathPiece> = pieces.iter().filter_map(|piece| shown(waits, piece)).collect();
    let mut of_input = PathOfInput { tid, comm: comm(pid, tid, span.to), ..PathOfInput::default() };
    for piece in &pieces {
        if let WokenBy::Stranger(tid) = piece.woken_by {
            of_input.strangers.entry(tid).or_insert_with(|| comm(-1, tid, piece.from));
        }
    }
    PathOfInput { pieces, ..of_input }
}

fn shown(waits: &Waits, piece: &CriticalPiece) -> Option<PathPiece> {
    let thread = waits.thread(piece.thread)?;
    let stretch = piece.stretch().and_then(|at| thread.stretches.get(at));
    let at = stretch.and_then(Stretch::sample).unwrap_or(piece.from);
    Some(PathPiece {
        pid: thread.pid,
        tid: thread.tid,
        from: piece.from,
        to: piece.to,
        at,
        kind: piece.kind.activity(),
        woken_by: woken_by(waits, thread, piece).unwrap_or(WokenBy::Nobody),
    })
}

/// Returns who made the thread of a piece able to run, if that is its beginning.
fn woken_by(waits: &Waits, thread: &WaitingThread, piece: &CriticalPiece) -> Option<WokenBy> {
    let place = piece.stretch().filter(|_| piece.kind == PieceKind::Runnable)?;
    let stretch = thread.stretches.get(place)?;
    let tid = |index: u32| Some(waits.thread(index)?.tid);
    if let Some(handover) = thread.handover(place).filter(|one| one.time == piece.from) {
        return tid(handover.owner).map(WokenBy::Cpu);
    }
    let wake = thread.wake(stretch);
    match wake.map(|wake| (wake.is(Wake::INTERRUPT), wake.waker())) {
        Some((true, _)) => Some(WokenBy::Interrupt),
        Some((false, Waker::Stranger(tid))) => Some(WokenBy::Stranger(tid.cast_signed())),
        Some((false, Waker::Thread(waker))) if waker == piece.thread => Some(WokenBy::Itself),
        Some((false, Waker::Thread(waker))) => tid(waker).map(WokenBy::Thread),
        None if stretch.kind == StretchKind::Starting => {
            thread.parent().and_then(tid).map(WokenBy::Thread)
        }
        None => None,
    }
}

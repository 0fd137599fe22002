//! Timer descriptor (timerfd_create(2)) on the monotonic clock.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::Timespec;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

use crate::messages::error::{Error, Result};

/// Timer whose descriptor becomes readable when it expires.
#[derive(Debug)]
pub(crate) struct Timer(OwnedFd);

impl Timer {
    /// Creates a timer that is not running.
    pub(crate) fn new() -> Result<Self> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let fd = timerfd_create(TimerfdClockId::Monotonic, flags)
            .map_err(|e| Error::io("cannot make a timer", e))?;
        Ok(Self(fd))
    }

    /// Starts the timer: it expires after this time (at once if zero), and then periodically if
    /// `every` is given.
    pub(crate) fn set(&self, after: Duration, every: Option<Duration>) -> Result<()> {
        // A zero time would stop the timer instead.
        let after = after.max(Duration::from_nanos(1));
        let value =
            Itimerspec { it_interval: spec(every.unwrap_or_default()), it_value: spec(after) };
        timerfd_settime(&self.0, TimerfdTimerFlags::empty(), &value)
            .map(drop)
            .map_err(|e| Error::io("cannot set a timer", e))
    }

    /// Resets the timer's descriptor after it expired.
    pub(crate) fn clear(&self) {
        // Reads eight bytes, or fails with EAGAIN if the timer did not expire.
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }
}

impl AsFd for Timer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Converts a duration, limited to the kernel's range.
fn spec(time: Duration) -> Timespec {
    let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    Timespec { tv_sec: seconds, tv_nsec: time.subsec_nanos().into() }
}

#[cfg(test)]
mod tests {
    use rustix::event::{PollFd, PollFlags, poll};

    use super::*;

    fn goes_off(timer: &Timer, within: Duration) -> bool {
        poll(&mut [PollFd::new(timer, PollFlags::IN)], Some(&spec(within))).unwrap() > 0
    }

    #[test]
    fn it_goes_off_once_or_again_and_again() {
        let timer = Timer::new().unwrap();
        assert!(!goes_off(&timer, Duration::ZERO));
        timer.set(Duration::ZERO, None).unwrap();
        assert!(goes_off(&timer, Duration::from_secs(60)));
        timer.clear();
        assert!(!goes_off(&timer, Duration::ZERO));
        timer.set(Duration::from_millis(1), Some(Duration::from_millis(1))).unwrap();
        for _ in 0..3 {
            assert!(goes_off(&timer, Duration::from_secs(60)));
            timer.clear();
        }
    }
}

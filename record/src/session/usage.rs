//! The share of the CPUs that rec itself uses.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// The time, and rec's CPU time, when a recording began.
#[derive(Debug)]
pub(super) struct Usage {
    start: Instant,
    before: Duration,
}

impl Usage {
    pub(super) fn begin() -> Self {
        Self { start: Instant::now(), before: cpu_time() }
    }

    /// Returns what the summary line says of the time since then.
    pub(super) fn summary(&self, cpus: usize) -> String {
        summary(cpu_time().saturating_sub(self.before), self.start.elapsed(), cpus)
    }
}

fn summary(used: Duration, elapsed: Duration, cpus: usize) -> String {
    let all = elapsed.as_micros().saturating_mul(cpus as u128).max(1);
    let tenths = (used.as_micros().saturating_mul(1000) / all).min(1000);
    let of = if cpus == 1 { "of the CPU".to_owned() } else { format!("of {cpus} CPUs") };
    match tenths {
        0 => format!("rec used under 0.1 % {of}"),
        _ => format!("rec used {}.{} % {of}", tenths / 10, tenths % 10),
    }
}

/// Returns the CPU time of all threads of this process.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_is_of_all_cpus() {
        let second = Duration::from_secs(1);
        let of = |milliseconds, cpus| summary(Duration::from_millis(milliseconds), second, cpus);
        assert_eq!(of(50, 2), "rec used 2.5 % of 2 CPUs");
        assert_eq!(of(1, 8), "rec used under 0.1 % of 8 CPUs");
        assert_eq!(of(1000, 1), "rec used 100.0 % of the CPU");
        assert_eq!(summary(second, Duration::ZERO, 4), "rec used 100.0 % of 4 CPUs");
    }
}

//! Times of day, as people read them.

use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Returns a time as date and time of day in the user's time zone; `None` if no calendar has it.
pub(crate) fn date(time: SystemTime) -> Option<String> {
    let stamp = Timestamp::try_from(time).ok()?;
    Some(stamp.to_zoned(TimeZone::system()).strftime("%F %H:%M").to_string())
}

/// Returns how long ago a time was, such as `2 days ago`.
pub(crate) fn ago(time: SystemTime, now: SystemTime) -> String {
    let seconds = now.duration_since(time).as_ref().map_or(0, Duration::as_secs);
    let (count, unit) = match seconds {
        0..60 => return "just now".into(),
        60..3600 => (seconds / 60, "minute"),
        3600..86_400 => (seconds / 3600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    format!("{count} {unit}{} ago", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_in_the_largest_unit() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        let of = |seconds| ago(now - Duration::from_secs(seconds), now);
        assert_eq!(
            [of(7), of(60), of(7300), of(90_000)],
            ["just now", "1 minute ago", "2 hours ago", "1 day ago"]
        );
        assert_eq!(ago(now, SystemTime::UNIX_EPOCH), "just now");
    }
}

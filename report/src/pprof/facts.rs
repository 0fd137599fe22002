//! Facts about a recording in a profile, for comparing profiles as recordings, as JSON:
//!
//! ```text
//!   {"recrep":1,"host":"build-7","command":["rec","-g","--","app"],…}
//! ```

use serde::{Deserialize, Serialize};

/// Facts about a recording; of a profile that rep did not write, there are none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Facts {
    /// Version of these facts: 1.
    pub(crate) recrep: u32,
    /// Command line of the recorder.
    pub(crate) command: Vec<String>,
    /// Name and version of the recorder.
    pub(crate) recorder: Option<String>,
    pub(crate) host: Option<String>,
    /// Release of the kernel.
    pub(crate) kernel: Option<String>,
    pub(crate) arch: Option<String>,
    /// Description of the CPU, and its exact type.
    pub(crate) cpu: Option<String>,
    pub(crate) cpu_id: Option<String>,
    /// Numbers of CPUs: available, online.
    pub(crate) cpus: Option<[u32; 2]>,
    /// Times of the first and the last sample, by the clock of the recording.
    pub(crate) sample_times: Option<[u64; 2]>,
    /// Time at which the recording was last written, in nanoseconds since 1970, if it does not say
    /// when it was made.
    pub(crate) written: Option<u64>,
    pub(crate) lost_events: u64,
    /// `true` if inlined functions are frames unless the user asks otherwise.
    pub(crate) inlined: bool,
    /// `true` if the recording was damaged or cut.
    pub(crate) incomplete: bool,
    /// Each event; it has two values of each sample: number of samples, and period.
    pub(crate) events: Vec<EventFacts>,
}

/// Facts about an event.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct EventFacts {
    pub(crate) name: String,
    /// `type` and `config` of its attr.
    #[serde(rename = "type")]
    pub(crate) kind: u32,
    pub(crate) config: u64,
    /// Frequency in Hz, else period.
    pub(crate) frequency: Option<u64>,
    pub(crate) period: u64,
    /// `true` if callchains were recorded.
    pub(crate) callchains: bool,
    pub(crate) lost_samples: u64,
}

impl Facts {
    /// Version that is read and written.
    pub(crate) const VERSION: u32 = 1;

    /// Returns the facts as a text.
    pub(crate) fn to_text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Returns the facts in a text; `None` if rep did not write it.
    pub(crate) fn from_text(text: &str) -> Option<Self> {
        let facts: Self = serde_json::from_str(text).ok()?;
        (facts.recrep == Self::VERSION).then_some(facts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_come_back() {
        let event = EventFacts { name: "cycles:u".into(), period: 7, ..EventFacts::default() };
        let facts = Facts {
            recrep: Facts::VERSION,
            command: vec!["rec".into(), "a: b".into()],
            host: Some("h".into()),
            cpus: Some([4, 2]),
            events: vec![event],
            ..Facts::default()
        };
        let text = facts.to_text();
        assert!(text.contains(r#""host":"h""#), "{text}");
        assert_eq!(Facts::from_text(&text), Some(facts));
        assert_eq!(Facts::from_text(r#"{"host":1}"#), None);
        assert_eq!(Facts::from_text(r#"{"recrep":9}"#), None);
        assert_eq!(Facts::from_text(""), None);
    }
}

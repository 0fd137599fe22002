//! EVENT_UPDATE records with the unit of an event's counts and the scale factor, which attrs do not
//! have.
//!
//! Event names are in the file's header, or with the attrs in pipe mode. perf record also writes
//! ID_INDEX, THREAD_MAP and CPU_MAP into every file. Files of rec do not need them: each record has
//! its counter's id, and each attr is stored with its ids. Decoders of AUX trace look up CPUs and
//! threads in ID_INDEX and times in TIME_CONV, so both are written with AUX trace.

use recrep_format::bytes::Encoder;
use recrep_format::endian::Endian;
use recrep_format::record::{Body, EventProperty, EventUpdate, Record, Scale};
use recrep_format::wire::Text;

use crate::kernel::counters::Counters;

/// Returns the records for all events with a unit or a scale.
pub(super) fn units(counters: &Counters) -> Vec<u8> {
    let mut e = Encoder::new(Endian::NATIVE);
    for (index, event) in counters.events.iter().enumerate() {
        let Some(id) = counters.ids(index).first().copied() else { continue };
        let mut put = |property| {
            // A unit cannot exceed a record's size limit.
            let _ = Record::new(0, Body::EventUpdate(EventUpdate { id, property })).encode(&mut e);
        };
        if let Some(unit) = event.unit.as_ref().filter(|unit| !unit.is_empty()) {
            put(EventProperty::Unit(Text::new(unit.as_bytes())));
        }
        let scale = event.scale.as_ref().and_then(|scale| scale.trim().parse::<f64>().ok());
        if let Some(scale) = scale.filter(|scale| scale.to_bits() != 1f64.to_bits()) {
            put(EventProperty::Scale(Scale::new(scale)));
        }
    }
    e.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Place;
    use crate::kernel::counters::Counter;
    use crate::plan::PlannedEvent;
    use recrep_format::abi::RecordType;
    use recrep_format::read::Frames;

    #[test]
    fn those_that_have_one_and_no_others() {
        let fd = || rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC).unwrap();
        let place = Place { thread: None, cpu: Some(0), cgroup: None };
        let event = |unit: Option<&str>, scale: Option<&str>| PlannedEvent {
            unit: unit.map(str::to_owned),
            scale: scale.map(str::to_owned),
            ..PlannedEvent::default()
        };
        let events = vec![
            event(None, None),
            event(Some("Joules"), Some("2.3e-10")),
            event(Some(""), Some("1")),
        ];
        let all = (0..3).map(|event| Counter::new(fd(), 7 + event as u64, event, place)).collect();
        let bytes = units(&Counters { events, all, ..Counters::default() });
        let bodies: Vec<_> =
            Frames::new(&bytes, 0, Endian::NATIVE).map(|raw| raw.unwrap()).collect();
        assert!(bodies.iter().all(|raw| raw.header.kind == RecordType::EVENT_UPDATE));
        let words = |body: &[u8]| {
            body.as_chunks::<8>().0.iter().map(|w| u64::from_ne_bytes(*w)).collect::<Vec<_>>()
        };
        let unit = u64::from_ne_bytes(*b"Joules\0\0");
        let found: Vec<_> = bodies.iter().map(|raw| words(raw.body())).collect();
        assert_eq!(found, [vec![0, 8, unit], vec![1, 8, 2.3e-10f64.to_bits()]]);
    }
}

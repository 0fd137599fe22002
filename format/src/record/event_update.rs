//! Properties of events that their attrs lack: EVENT_UPDATE.

use super::CpuMap;
use crate::abi::EventUpdateKind;
use crate::bytes::{Cursor, Encoder};
use crate::error::Result;
use crate::fields::{Field as _, Fields, Value};
use crate::wire::{Text, Wire};

/// A property of an event (`PERF_RECORD_EVENT_UPDATE`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventUpdate<'a> {
    /// The event's id.
    pub id: u64,
    /// The property.
    pub property: EventProperty<'a>,
}

/// The property in an [`EventUpdate`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventProperty<'a> {
    /// The unit of its counts.
    Unit(Text<'a>),
    /// The factor from its counts to that unit.
    Scale(Scale),
    /// Its name.
    Name(Text<'a>),
    /// The CPUs that it counts on.
    Cpus(CpuMap<'a>),
    /// A property that is not known here, and its bytes as found.
    Other(EventUpdateKind, &'a [u8]),
}

/// A factor: a 64-bit float, compared by its bits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Scale(u64);

impl Scale {
    /// Returns the factor with this value.
    pub fn new(value: f64) -> Self {
        Self(value.to_bits())
    }

    /// Returns its value.
    pub fn value(self) -> f64 {
        f64::from_bits(self.0)
    }
}

impl std::fmt::Debug for Scale {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Debug::fmt(&self.value(), f)
    }
}

impl EventProperty<'_> {
    /// Returns its number in the record.
    pub fn kind(&self) -> EventUpdateKind {
        match self {
            Self::Unit(_) => EventUpdateKind::UNIT,
            Self::Scale(_) => EventUpdateKind::SCALE,
            Self::Name(_) => EventUpdateKind::NAME,
            Self::Cpus(_) => EventUpdateKind::CPUS,
            Self::Other(kind, _) => *kind,
        }
    }
}

impl Fields for EventUpdate<'_> {
    fn each<'v>(&'v self, visit: &mut dyn FnMut(&'static str, Value<'v>)) {
        let kind = self.property.kind();
        visit("id", self.id.value());
        visit("type", Value::Named(kind.0, kind.name()));
        match &self.property {
            EventProperty::Unit(unit) => visit("unit", unit.value()),
            EventProperty::Scale(scale) => visit("scale", Value::Real(scale.value())),
            EventProperty::Name(name) => visit("name", name.value()),
            EventProperty::Cpus(cpus) => visit("cpus", cpus.value()),
            EventProperty::Other(_, bytes) => visit("data_size", bytes.value()),
        }
    }
}

impl<'a> Wire<'a> for EventUpdate<'a> {
    fn decode(c: &mut Cursor<'a>, what: &'static str) -> Result<Self> {
        let (kind, id) = (EventUpdateKind::decode(c, what)?, c.u64(what)?);
        let property = match kind {
            EventUpdateKind::UNIT => EventProperty::Unit(Wire::decode(c, what)?),
            EventUpdateKind::SCALE => EventProperty::Scale(Scale(c.u64(what)?)),
            EventUpdateKind::NAME => EventProperty::Name(Wire::decode(c, what)?),
            EventUpdateKind::CPUS => EventProperty::Cpus(Wire::decode(c, what)?),
            kind => EventProperty::Other(kind, c.rest()),
        };
        Ok(Self { id, property })
    }

    fn encode(&self, e: &mut Encoder) -> Result<()> {
        self.property.kind().encode(e)?;
        e.u64(self.id);
        match &self.property {
            EventProperty::Unit(text) | EventProperty::Name(text) => text.encode(e),
            EventProperty::Scale(scale) => scale.0.encode(e),
            EventProperty::Cpus(cpus) => cpus.encode(e),
            EventProperty::Other(_, bytes) => bytes.encode(e),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::Cpu;
    use crate::endian::Endian;
    use crate::record::CpuSet;

    #[track_caller]
    fn check(endian: Endian, parts: &[&[u8]], property: EventProperty<'_>) {
        let bytes = parts.concat();
        let update = EventUpdate { id: 0x107, property };
        let mut c = Cursor::new(&bytes, 0, endian);
        assert_eq!((EventUpdate::decode(&mut c, "update").unwrap(), c.left()), (update.clone(), 0));
        assert_eq!(update.to_bytes(endian).unwrap(), bytes);
    }

    const ID: [u8; 8] = [7, 1, 0, 0, 0, 0, 0, 0];
    const BIG_ID: [u8; 8] = [0, 0, 0, 0, 0, 0, 1, 7];

    #[test]
    fn every_property_in_both_byte_orders() {
        let (little, big) = (Endian::Little, Endian::Big);
        let unit = || EventProperty::Unit(Text::new(b"Joules"));
        check(little, &[&[0; 8], &ID, b"Joules\0\0"], unit());
        check(big, &[&[0; 8], &BIG_ID, b"Joules\0\0"], unit());
        // 0.5 is 0x3fe0_0000_0000_0000.
        let scale = || EventProperty::Scale(Scale::new(0.5));
        check(little, &[&[1, 0, 0, 0, 0, 0, 0, 0], &ID, &[0, 0, 0, 0, 0, 0, 0xe0, 0x3f]], scale());
        check(big, &[&[0, 0, 0, 0, 0, 0, 0, 1], &BIG_ID, &[0x3f, 0xe0, 0, 0, 0, 0, 0, 0]], scale());
        check(
            little,
            &[&[2, 0, 0, 0, 0, 0, 0, 0], &ID, b"ev\0\0\0\0\0\0"],
            EventProperty::Name(Text::new(b"ev")),
        );
        let cpus = || EventProperty::Cpus(CpuMap { set: CpuSet::Cpus(vec![3]), padding: &[] });
        check(little, &[&[3, 0, 0, 0, 0, 0, 0, 0], &ID, &[0, 0, 1, 0, 3, 0]], cpus());
        check(big, &[&[0, 0, 0, 0, 0, 0, 0, 3], &BIG_ID, &[0, 0, 0, 1, 0, 3]], cpus());
        check(
            little,
            &[&[9, 0, 0, 0, 0, 0, 0, 0], &ID, b"?"],
            EventProperty::Other(EventUpdateKind(9), b"?"),
        );
    }

    #[test]
    fn values_are_typed() {
        assert_eq!(Scale::new(2.5).value(), 2.5);
        assert_eq!(format!("{:?}", Scale::new(2.5)), "2.5".to_owned());
        let cpus = EventProperty::Cpus(CpuMap::new(CpuSet::Cpus(vec![3])));
        let EventProperty::Cpus(map) = &cpus else { panic!("{cpus:?}") };
        assert_eq!(cpus.kind(), EventUpdateKind::CPUS);
        assert_eq!(map.cpus().unwrap().next(), Some(Cpu(3)));
        let short = [&[1, 0, 0, 0, 0, 0, 0, 0][..], &ID, &[0; 4]].concat();
        assert!(EventUpdate::from_bytes(&short, Endian::Little).is_err());
    }
}

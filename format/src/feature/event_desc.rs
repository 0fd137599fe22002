//! EVENT_DESC: the events once more, with their names and ids.

use super::HeaderString;
use crate::attr::{Attr, AttrEntry};
use crate::bytes::{Cursor, Encoder, U64s};
use crate::endian::Endian;
use crate::error::{Error, Result};
use crate::fields::{Value, named, shown};
use crate::wire::Wire;

named! {
    /// The events with their names (`EVENT_DESC`).
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct EventDesc<'a> {
        /// Size of each attr in this section, in bytes.
        pub attr_size: u32 => hidden,
        /// The events, in the order of the attrs section.
        pub events: Vec<DescribedEvent<'a>>,
    }
}

named! {
    /// An event with its name.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct DescribedEvent<'a> {
        /// Its attr.
        pub attr: Attr,
        /// Its name, as the user gave it.
        pub name: HeaderString<'a>,
        /// The ids of its counters.
        pub ids: Ids<'a>,
    }
}

/// Event ids: where they lie in a file, or a list to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ids<'a> {
    /// As found.
    Found(U64s<'a>),
    /// To write.
    List(&'a [u64]),
}

shown! {
    Ids<'_>: |ids| Value::List(ids.iter().map(|id| Value::Number(id.into())).collect());
}

impl<'a> Ids<'a> {
    /// Returns the number of ids.
    pub fn len(&self) -> usize {
        match self {
            Self::Found(ids) => ids.len(),
            Self::List(ids) => ids.len(),
        }
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the ids.
    pub fn iter(&self) -> impl Iterator<Item = u64> + use<'a> {
        let (found, list): (Option<U64s<'a>>, &'a [u64]) = match *self {
            Self::Found(ids) => (Some(ids), &[]),
            Self::List(ids) => (None, ids),
        };
        found.into_iter().flat_map(|ids| ids.iter()).chain(list.iter().copied())
    }
}

impl<'a> EventDesc<'a> {
    /// Describes these events, each with its ids and its name, if it has one.
    ///
    /// # Errors
    /// Returns an error for an attr longer than its `size` can say.
    pub fn of(entries: &'a [AttrEntry]) -> Result<Self> {
        let sizes = entries.iter().flat_map(|entry| {
            [Endian::Little, Endian::Big].map(|endian| entry.attr.stored_size(endian))
        });
        let len = sizes.max().unwrap_or(Attr::KNOWN_SIZE);
        let attr_size = u32::try_from(len)
            .map_err(|_| Error::invalid(0, "EVENT_DESC", format!("an attr of {len} bytes")))?;
        let events = entries.iter().map(|entry| DescribedEvent {
            // perf takes a size of 0 for the end of the list.
            attr: Attr { size: attr_size, ..entry.attr.clone() },
            name: HeaderString::new(entry.name.as_deref().unwrap_or_default()),
            ids: Ids::List(&entry.ids),
        });
        Ok(Self { attr_size, events: events.collect() })
    }
}

impl<'a> Wire<'a> for EventDesc<'a> {
    fn decode(c: &mut Cursor<'a>, _: &'static str) -> Result<Self> {
        const WHAT: &str = "EVENT_DESC";
        let nr = c.u32(WHAT)?;
        let attr_size = c.u32(WHAT)?;
        if (attr_size as usize) < Attr::MIN_SIZE {
            return Err(Error::invalid(c.offset(), WHAT, format!("attrs of {attr_size} bytes")));
        }
        let mut events = Vec::new();
        for _ in 0..nr {
            let attr = Attr::decode(c, attr_size as usize)?;
            let nr_ids = c.u32(WHAT)?;
            let name = HeaderString::decode(c, WHAT)?;
            let ids = Ids::Found(c.take_u64s(u64::from(nr_ids), WHAT)?);
            events.push(DescribedEvent { attr, name, ids });
        }
        Ok(Self { attr_size, events })
    }

    fn encode(&self, e: &mut Encoder) -> Result<()> {
        e.length(self.events.len(), "the number of events")?;
        e.u32(self.attr_size);
        for event in &self.events {
            event.attr.encode(e, self.attr_size as usize)?;
            e.length(event.ids.len(), "the number of an event's ids")?;
            event.name.encode(e)?;
            event.ids.iter().for_each(|id| e.u64(id));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endian::Endian;

    #[test]
    fn events_come_back_with_names_and_ids() {
        let of = |size| {
            let attr = Attr { size, config: 3, ..Attr::default() };
            AttrEntry { attr, ids: vec![5, 6], name: Some("cpu-clock:u".into()) }
        };
        let entries = [of(0), of(136)];
        let desc = EventDesc::of(&entries).unwrap();
        assert_eq!((desc.attr_size, desc.events[0].attr.size), (136, 136));
        for endian in [Endian::Little, Endian::Big] {
            let e = desc.to_bytes(endian).unwrap();
            let back = EventDesc::from_bytes(&e, endian).unwrap();
            assert_eq!(back.events[0].name.to_text(), "cpu-clock:u");
            assert_eq!(back.events[0].attr, desc.events[0].attr);
            assert_eq!(back.events[0].ids.iter().collect::<Vec<_>>(), [5, 6]);
        }
    }
}

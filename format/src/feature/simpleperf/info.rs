//! META_INFO: facts about the recording. Features of simpleperf that are kept as they are.

use super::file::{put_text, until_nul};
use crate::abi::AttrFlags;
use crate::attr::Attr;
use crate::bytes::{Cursor, Encoder};
use crate::error::Result;
use crate::fields::named;
use crate::wire::{Wire, wire};

named! {
    /// Facts about the recording (`META_INFO`): keys and values.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct SimpleperfMetaInfo<'a> {
        /// Keys and values, in order.
        pub facts: Vec<[&'a [u8]; 2]>,
    }
}

impl<'a> SimpleperfMetaInfo<'a> {
    /// Returns the value of a key.
    pub fn get(&self, key: &str) -> Option<&'a [u8]> {
        self.facts.iter().find(|[name, _]| *name == key.as_bytes()).map(|[_, value]| *value)
    }

    /// Returns the name of an event, by its type and config, with simpleperf's modifiers.
    pub fn event_name(&self, attr: &Attr) -> Option<String> {
        // A line is the name, which may have commas, the type and the config.
        let own = format!(",{},{}", attr.kind.0, attr.config);
        let lines = std::str::from_utf8(self.get("event_type_info")?).ok()?;
        let name = lines.lines().find_map(|line| line.strip_suffix(&own))?;
        let (user, kernel) = (
            attr.flags.contains(AttrFlags::EXCLUDE_USER),
            attr.flags.contains(AttrFlags::EXCLUDE_KERNEL),
        );
        let modifier = match (user, kernel) {
            (true, false) => ":k",
            (false, true) => ":u",
            _ => "",
        };
        (!name.is_empty()).then(|| format!("{name}{modifier}"))
    }
}

impl<'a> Wire<'a> for SimpleperfMetaInfo<'a> {
    fn decode(c: &mut Cursor<'a>, what: &'static str) -> Result<Self> {
        let mut facts = Vec::new();
        while !c.is_empty() {
            facts.push([until_nul(c, what)?, until_nul(c, what)?]);
        }
        Ok(Self { facts })
    }

    fn encode(&self, e: &mut Encoder) -> Result<()> {
        self.facts.iter().flatten().for_each(|text| put_text(e, text));
        Ok(())
    }
}

wire! {
    /// Files with copied stacks, to debug simpleperf's unwinder (`DEBUG_UNWIND`).
    pub struct SimpleperfDebugUnwind<'a> {
        /// A protocol buffer.
        pub data: &'a [u8] => "data_bytes",
    }

    /// The contents of the files in DEBUG_UNWIND (`DEBUG_UNWIND_FILE`).
    pub struct SimpleperfDebugUnwindFiles<'a> {
        /// One file after the other.
        pub data: &'a [u8] => "data_bytes",
    }

    /// Branches decoded from an ETM trace (`ETM_BRANCH_LIST`).
    pub struct SimpleperfEtmBranchList<'a> {
        /// A protocol buffer.
        pub data: &'a [u8] => "data_bytes",
    }

    /// Records of what was mapped before the recording (`INIT_MAP`).
    pub struct SimpleperfInitMap<'a> {
        /// The records, one after the other.
        pub records: &'a [u8] => "data_bytes",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::EventType;
    use crate::endian::Endian;

    #[test]
    fn events_are_named_by_type_and_config() {
        let section = b"simpleperf_version\x001.0\0event_type_info\0cpu-cycles,0,0\nsched:sched_switch,2,47\n\
                        arm_spe_0/ts_enable=1,min_latency=2/,9,7\0";
        let facts = SimpleperfMetaInfo::from_bytes(section, Endian::Little).unwrap();
        let name = |kind: u32, config, flags| {
            facts.event_name(&Attr { kind: EventType(kind), config, flags, ..Attr::default() })
        };
        assert_eq!(name(2, 47, AttrFlags::empty()).as_deref(), Some("sched:sched_switch"));
        assert_eq!(name(0, 0, AttrFlags::EXCLUDE_KERNEL).as_deref(), Some("cpu-cycles:u"));
        assert_eq!(name(0, 0, AttrFlags::EXCLUDE_USER).as_deref(), Some("cpu-cycles:k"));
        assert_eq!(
            name(9, 7, AttrFlags::empty()).as_deref(),
            Some("arm_spe_0/ts_enable=1,min_latency=2/")
        );
        assert_eq!(name(2, 48, AttrFlags::empty()), None);
        assert_eq!(facts.to_bytes(Endian::Little).unwrap(), section);
        assert!(SimpleperfMetaInfo::from_bytes(b"key\0value", Endian::Little).is_err());
    }
}

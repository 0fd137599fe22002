//! Messages of OTLP profiles, as far as they are written. Tables of the dictionary begin with an empty
//! entry, so that 0 stands for none.
//!
//! Source: <https://github.com/open-telemetry/opentelemetry-proto/blob/main/opentelemetry/proto/profiles/v1development/profiles.proto>.

use prost::{Message, Oneof};

/// A file. A request to a collector has the same fields.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ProfilesData {
    #[prost(message, repeated, tag = "1")]
    pub(super) resource_profiles: Vec<ResourceProfiles>,
    #[prost(message, optional, tag = "2")]
    pub(super) dictionary: Option<ProfilesDictionary>,
}

/// What all profiles refer to, by number.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ProfilesDictionary {
    #[prost(message, repeated, tag = "1")]
    pub(super) mappings: Vec<OtlpMapping>,
    #[prost(message, repeated, tag = "2")]
    pub(super) locations: Vec<OtlpLocation>,
    #[prost(message, repeated, tag = "3")]
    pub(super) functions: Vec<OtlpFunction>,
    #[prost(message, repeated, tag = "4")]
    pub(super) links: Vec<OtlpLink>,
    #[prost(string, repeated, tag = "5")]
    pub(super) strings: Vec<String>,
    #[prost(message, repeated, tag = "6")]
    pub(super) attributes: Vec<Attribute>,
    #[prost(message, repeated, tag = "7")]
    pub(super) stacks: Vec<OtlpStack>,
}

/// Profiles of a process.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ResourceProfiles {
    #[prost(message, optional, tag = "1")]
    pub(super) resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    pub(super) scope_profiles: Vec<ScopeProfiles>,
}

/// A process with its host.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Resource {
    #[prost(message, repeated, tag = "1")]
    pub(super) attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct KeyValue {
    #[prost(string, tag = "1")]
    pub(super) key: String,
    #[prost(message, optional, tag = "2")]
    pub(super) value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub(super) struct AnyValue {
    #[prost(oneof = "AttributeValue", tags = "1, 3")]
    pub(super) value: Option<AttributeValue>,
}

/// Value of an attribute.
#[derive(Clone, PartialEq, Eq, Hash, Oneof)]
pub(super) enum AttributeValue {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(int64, tag = "3")]
    Number(i64),
}

/// Profiles by one program.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ScopeProfiles {
    #[prost(message, optional, tag = "1")]
    pub(super) scope: Option<OtlpScope>,
    #[prost(message, repeated, tag = "2")]
    pub(super) profiles: Vec<OtlpProfile>,
}

/// The program that made profiles.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct OtlpScope {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) version: String,
}

/// Samples with one value each.
#[derive(Clone, PartialEq, Message)]
pub(super) struct OtlpProfile {
    #[prost(message, optional, tag = "1")]
    pub(super) sample_type: Option<OtlpValueType>,
    #[prost(message, repeated, tag = "2")]
    pub(super) samples: Vec<OtlpSample>,
    /// Nanoseconds since 1970.
    #[prost(fixed64, tag = "3")]
    pub(super) time: u64,
    /// Nanoseconds.
    #[prost(uint64, tag = "4")]
    pub(super) duration: u64,
    #[prost(message, optional, tag = "5")]
    pub(super) period_type: Option<OtlpValueType>,
    #[prost(int64, tag = "6")]
    pub(super) period: i64,
}

/// Name and unit of values.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct OtlpValueType {
    #[prost(int32, tag = "1")]
    pub(super) name: i32,
    #[prost(int32, tag = "2")]
    pub(super) unit: i32,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct OtlpSample {
    #[prost(int32, tag = "1")]
    pub(super) stack: i32,
    #[prost(int32, repeated, tag = "2")]
    pub(super) attributes: Vec<i32>,
    #[prost(int64, repeated, tag = "4")]
    pub(super) values: Vec<i64>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct OtlpMapping {
    #[prost(uint64, tag = "1")]
    pub(super) start: u64,
    /// Address after the last.
    #[prost(uint64, tag = "2")]
    pub(super) limit: u64,
    #[prost(uint64, tag = "3")]
    pub(super) offset: u64,
    #[prost(int32, tag = "4")]
    pub(super) filename: i32,
    #[prost(int32, repeated, tag = "5")]
    pub(super) attributes: Vec<i32>,
}

/// Locations of a stack, innermost first.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub(super) struct OtlpStack {
    #[prost(int32, repeated, tag = "1")]
    pub(super) locations: Vec<i32>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct OtlpLocation {
    #[prost(int32, tag = "1")]
    pub(super) mapping: i32,
    #[prost(uint64, tag = "2")]
    pub(super) address: u64,
    /// Inlined functions, innermost first, then the one that contains them.
    #[prost(message, repeated, tag = "3")]
    pub(super) lines: Vec<OtlpLine>,
    #[prost(int32, repeated, tag = "4")]
    pub(super) attributes: Vec<i32>,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct OtlpLine {
    #[prost(int32, tag = "1")]
    pub(super) function: i32,
    #[prost(int64, tag = "2")]
    pub(super) line: i64,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct OtlpFunction {
    #[prost(int32, tag = "1")]
    pub(super) name: i32,
    /// Name as the file spells it.
    #[prost(int32, tag = "2")]
    pub(super) system_name: i32,
    #[prost(int32, tag = "3")]
    pub(super) filename: i32,
    /// Line at which it begins; 0 if unknown.
    #[prost(int64, tag = "4")]
    pub(super) start_line: i64,
}

/// Reference to a span of a trace; there are none but the empty one.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct OtlpLink {}

/// An attribute of the dictionary.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub(super) struct Attribute {
    #[prost(int32, tag = "1")]
    pub(super) key: i32,
    #[prost(message, optional, tag = "2")]
    pub(super) value: Option<AnyValue>,
}

/// Returns a number as the tables of a dictionary have it.
pub(super) fn small(number: impl TryInto<i32>) -> i32 {
    number.try_into().unwrap_or(i32::MAX)
}

//! A profile as OpenTelemetry has it: `ProfilesData` of `profiles.proto` (v1development).
//!
//! ```text
//!   message of pprof ─► mappings, locations, functions, texts      one for one, after an empty entry
//!                    └► samples ─► process, container ─► resource ─► two profiles for each event:
//!                                └► stack, other labels              periods, numbers of samples
//! ```
//!
//! A sample has one value in each profile, and no time.

mod attributes;
mod messages;

use std::collections::BTreeMap;
use std::io::{self, Write};

use indexmap::IndexSet;
use prost::Message as _;
use rustc_hash::FxBuildHasher;

use self::attributes::{Attributes, Process, frame_type};
use self::messages::{
    OtlpFunction, OtlpLine, OtlpLink, OtlpLocation, OtlpMapping, OtlpProfile, OtlpSample,
    OtlpScope, OtlpStack, OtlpValueType, ProfilesData, ProfilesDictionary, ResourceProfiles,
    ScopeProfiles, small,
};
use super::export::FileExport;
use super::frames::{CodeType, Frames};
use super::pprof::{self, ProfileBuilder};
use crate::engine::facts::RecordingFacts;
use crate::pprof::{PprofProfile, PprofSample, ValueType};
use crate::profile::Profile;
use crate::query::{Column, Query, SortKey};

pub(super) struct Otlp;

impl FileExport for Otlp {
    fn extension(&self) -> &'static str {
        "otlp.pb"
    }

    fn complete(&self, query: &mut Query) {
        for (typed, key) in [
            (attributes::PROCESS, SortKey::Process),
            (pprof::PROCESS_NAME, SortKey::Process),
            (attributes::CGROUP, SortKey::Cgroup),
        ] {
            if query.columns.iter().all(|column| column.typed != typed) {
                query.columns.push(Column { typed: typed.into(), key });
            }
        }
        pprof::complete(query);
    }

    fn write(
        &self,
        profile: &Profile,
        query: &Query,
        facts: &RecordingFacts,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let frames = Frames::of(profile);
        let message = ProfileBuilder::new(profile, query, &frames).profile(facts);
        let data = OtlpBuilder::new(&frames, message).data(facts);
        out.write_all(&data.encode_to_vec())?;
        out.flush()
    }
}

struct OtlpBuilder<'f, 'p> {
    frames: &'f Frames<'p>,
    message: PprofProfile,
    attributes: Attributes,
    stacks: IndexSet<OtlpStack, FxBuildHasher>,
}

impl<'f, 'p> OtlpBuilder<'f, 'p> {
    fn new(frames: &'f Frames<'p>, mut message: PprofProfile) -> Self {
        let attributes = Attributes::new(std::mem::take(&mut message.string_table));
        let stacks = std::iter::once(OtlpStack::default()).collect();
        Self { frames, message, attributes, stacks }
    }

    fn data(mut self, recorded: &RecordingFacts) -> ProfilesData {
        let samples = std::mem::take(&mut self.message.sample);
        let mut of_processes = BTreeMap::<Process, Vec<Vec<OtlpSample>>>::new();
        for PprofSample { location, value, label } in samples {
            let (process, attributes) = self.attributes.of_sample(&label);
            let locations = location.into_iter().map(small).collect();
            let stack = small(self.stacks.insert_full(OtlpStack { locations }).0);
            let profiles =
                of_processes.entry(process).or_insert_with(|| vec![Vec::new(); value.len()]);
            for (profile, value) in profiles.iter_mut().zip(value).filter(|(_, value)| *value != 0)
            {
                let (attributes, values) = (attributes.clone(), vec![value]);
                profile.push(OtlpSample { stack, attributes, values });
            }
        }
        let resource_profiles = of_processes.into_iter().map(|(process, profiles)| {
            let resource = Some(self.attributes.resource(&process, &recorded.facts));
            let profiles = self.profiles(profiles);
            let scope = OtlpScope { name: "rep".into(), version: env!("CARGO_PKG_VERSION").into() };
            let scope_profiles = vec![ScopeProfiles { scope: Some(scope), profiles }];
            ResourceProfiles { resource, scope_profiles }
        });
        let resource_profiles = resource_profiles.collect();
        ProfilesData { resource_profiles, dictionary: Some(self.dictionary()) }
    }

    /// Returns the profiles of a process, given the samples of each type: of each event the periods
    /// come first, because viewers show the first profile.
    fn profiles(&self, samples: Vec<Vec<OtlpSample>>) -> Vec<OtlpProfile> {
        let message = &self.message;
        let value_type =
            |of: &ValueType| OtlpValueType { name: small(of.name), unit: small(of.unit) };
        let period_type = message.period_type.as_ref().map(value_type);
        let types = message.sample_type.iter().map(value_type);
        let mut profiles: Vec<OtlpProfile> = types
            .zip(samples)
            .map(|(sample_type, samples)| OtlpProfile {
                sample_type: Some(sample_type),
                samples,
                time: message.time_nanos.unsigned_abs(),
                duration: message.duration_nanos.unsigned_abs(),
                period_type,
                period: message.period,
            })
            .collect();
        for pair in profiles.chunks_mut(2) {
            pair.reverse();
        }
        profiles.retain(|profile| !profile.samples.is_empty());
        profiles
    }

    fn dictionary(mut self) -> ProfilesDictionary {
        let mut mappings = vec![OtlpMapping::default()];
        for mapping in &self.message.mapping {
            mappings.push(OtlpMapping {
                start: mapping.start,
                limit: mapping.limit,
                offset: mapping.offset,
                filename: small(mapping.filename),
                attributes: self.attributes.build_id(mapping.build_id).into_iter().collect(),
            });
        }
        let mut locations = vec![OtlpLocation::default()];
        for location in &self.message.location {
            let module = usize::try_from(location.mapping).ok().and_then(|id| id.checked_sub(1));
            let module = module.and_then(|module| self.frames.modules.get(module)).copied();
            let function = location.line.first().and_then(|line| {
                self.frames.functions.get(usize::try_from(line.function).ok()?.checked_sub(1)?)
            });
            let kind = CodeType::of(module, location.address, function).map(frame_type);
            let attributes = kind.map(|kind| self.attributes.frame_type(kind));
            let lines = location
                .line
                .iter()
                .map(|line| OtlpLine { function: small(line.function), line: line.line });
            locations.push(OtlpLocation {
                mapping: small(location.mapping),
                address: location.address,
                lines: lines.collect(),
                attributes: attributes.into_iter().collect(),
            });
        }
        let mut functions = vec![OtlpFunction::default()];
        functions.extend(self.message.function.iter().map(|function| OtlpFunction {
            name: small(function.name),
            system_name: small(function.system_name),
            filename: small(function.filename),
            start_line: function.start_line,
        }));
        let (strings, attributes) = self.attributes.into_tables();
        ProfilesDictionary {
            mappings,
            locations,
            functions,
            links: vec![OtlpLink::default()],
            strings,
            attributes,
            stacks: self.stacks.into_iter().collect(),
        }
    }
}

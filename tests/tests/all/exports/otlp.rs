//! `rep export --format otlp`, read with OpenTelemetry's own messages.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::read;

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::profiles::v1development::{
    ProfilesData, ProfilesDictionary, Sample,
};
use prost::Message as _;
use recrep_fixtures::build::{Event, SampleSpec, Stream};
use recrep_format::abi::{CpuMode, SampleType, context};
use recrep_format::build_id::BuildId;
use recrep_format::endian::Endian;
use recrep_format::feature::{BuildIdEvent, BuildIds, Hostname};
use recrep_tests::programs::rep;
use recrep_tests::run::run;

use super::jit_map;

const KERNEL: u64 = 0xffff_ffff_8100_0000;
const CODE: u64 = 0x10_0000;

fn text(value: &AnyValue) -> String {
    match value.value.as_ref().unwrap() {
        Value::StringValue(text) => text.clone(),
        Value::IntValue(number) => number.to_string(),
        other => panic!("{other:?}"),
    }
}

fn at<T>(table: &[T], index: i32) -> &T {
    &table[usize::try_from(index).unwrap()]
}

fn attributes(dictionary: &ProfilesDictionary, indices: &[i32]) -> BTreeMap<String, String> {
    let attribute = |index: &i32| {
        let attribute = at(&dictionary.attribute_table, *index);
        let key = at(&dictionary.string_table, attribute.key_strindex).clone();
        (key, text(attribute.value.as_ref().unwrap()))
    };
    indices.iter().map(attribute).collect()
}

/// A stack as `name type;…`, innermost frame first.
fn stack(dictionary: &ProfilesDictionary, sample: &Sample) -> String {
    let stack = at(&dictionary.stack_table, sample.stack_index);
    let frames = stack.location_indices.iter().map(|location| {
        let location = at(&dictionary.location_table, *location);
        let kind = attributes(dictionary, &location.attribute_indices);
        let name = location.lines.first().map_or("?", |line| {
            let function = at(&dictionary.function_table, line.function_index);
            at(&dictionary.string_table, function.name_strindex).as_str()
        });
        let kind = kind.get("profile.frame.type").map_or("-", String::as_str);
        // Which kernel runs here does not matter.
        let name = if kind == "kernel" { "?" } else { name };
        format!("{name} {kind}")
    });
    frames.collect::<Vec<_>>().join(";")
}

fn resource(attributes: &[KeyValue]) -> BTreeMap<&str, String> {
    let pair = |pair: &KeyValue| text(pair.value.as_ref().unwrap());
    attributes.iter().map(|one| (one.key.as_str(), pair(one))).collect()
}

/// A process of a container with code of a JIT and of Python, and another process.
fn recording(pid: u32, container: &str) -> Stream {
    let id = BuildId::new(&[7; 20]).unwrap();
    let entries = vec![BuildIdEvent::new(CpuMode::User, &id, b"/no/app")];
    let chain = [context::KERNEL, KERNEL + 4, context::USER, CODE + 4, CODE + 0x48, 0x70_0010];
    let sample = |period| SampleSpec::at(KERNEL + 4).misc(1).period(period).callchain(&chain);
    let fields = SampleType::CALLCHAIN | SampleType::CGROUP;
    Stream::new(Endian::NATIVE)
        .event(Event::new("cpu-clock").sampling(fields))
        .event(Event::new("faults").sampling(fields))
        .feature(&BuildIds { entries })
        .feature(&Hostname::new("h1"))
        .task(1, 1)
        .kernel_map(KERNEL, 0x10_0000)
        .cgroup(5, &format!("/docker/{container}"))
        .task(pid, pid)
        .comm("app")
        .map("//anon", CODE, 0x200, 0)
        .map("/no/app", 0x70_0000, 0x1000, 0)
        .at(10)
        .sample(sample(5).cgroup(5))
        .sample(sample(7).cgroup(5))
        .of(1)
        .sample(sample(3).cgroup(5))
        .of(0)
        .task(pid + 1, pid + 1)
        .comm("other")
        .sample(SampleSpec::at(0x99).period(2).cgroup(6))
}

#[test]
fn a_receiver_reads_resources_frames_and_events() {
    let container = "ab".repeat(32);
    let names = format!("{CODE:x} 40 jitted\n{:x} 40 py::work:/x.py\n", CODE + 0x40);
    let (pid, map) = jit_map(1, names.as_bytes());
    let dir = tempfile::tempdir().unwrap();
    let (file, out) = (dir.path().join("perf.data"), dir.path().join("out"));
    std::fs::write(&file, recording(pid, &container).file()).unwrap();
    let mut command = rep();
    command.args(["export", "--format", "otlp", "--trust-paths", "--labels", "comm,tid", "-o"]);
    run(command.arg(&out).arg(&file)).expect(0);
    std::fs::remove_file(&map).unwrap();
    let data = ProfilesData::decode(&*read(&out).unwrap()).unwrap();
    let dictionary = data.dictionary.as_ref().unwrap();
    let mut found = BTreeSet::new();
    for profiles in &data.resource_profiles {
        let resource = resource(&profiles.resource.as_ref().unwrap().attributes);
        assert_eq!(resource["host.name"], "h1");
        let place = (resource["service.name"].clone(), resource.get("container.id").cloned());
        for profile in &profiles.scope_profiles[0].profiles {
            let kind = profile.sample_type.unwrap();
            let [kind, unit] = [kind.type_strindex, kind.unit_strindex]
                .map(|index| at(&dictionary.string_table, index).as_str());
            for sample in &profile.samples {
                let own = attributes(dictionary, &sample.attribute_indices);
                let thread = [&own["thread.name"], &own["thread.id"]].map(String::as_str).join(" ");
                let line = format!(
                    "{kind} {unit} {thread}: {} = {:?}",
                    stack(dictionary, sample),
                    sample.values
                );
                found.insert((place.clone(), line));
            }
        }
    }
    let app = ("app".to_owned(), Some(container));
    let other = ("other".to_owned(), None);
    let frames = "? kernel;jitted jit;py::work:/x.py cpython;? native";
    let other_tid = pid + 1;
    let expected = [
        (&app, format!("cpu-clock count app {pid}: {frames} = [12]")),
        (&app, format!("cpu-clock.samples count app {pid}: {frames} = [2]")),
        (&app, format!("faults count app {pid}: {frames} = [3]")),
        (&app, format!("faults.samples count app {pid}: {frames} = [1]")),
        (&other, format!("cpu-clock count other {other_tid}: ? native = [2]")),
        (&other, format!("cpu-clock.samples count other {other_tid}: ? native = [1]")),
    ];
    assert_eq!(found, expected.map(|(place, line)| (place.clone(), line)).into());
    // The tables begin with empty entries.
    assert_eq!(dictionary.string_table[0], "");
    assert_eq!(dictionary.stack_table[0].location_indices, [0; 0]);
    let mapping = dictionary
        .mapping_table
        .iter()
        .find(|mapping| at(&dictionary.string_table, mapping.filename_strindex) == "/no/app");
    let ids = attributes(dictionary, &mapping.unwrap().attribute_indices);
    assert_eq!(ids["process.executable.build_id.gnu"], "07".repeat(20));
}

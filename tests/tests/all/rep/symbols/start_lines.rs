//! Profiles of pprof as Go's compiler takes them: where functions begin, and the types of samples.

use std::collections::BTreeMap;
use std::io::Read as _;

use flate2::read::GzDecoder;
use prost::Message;

use super::*;

const SOURCE: &str = r"#include <stdlib.h>
static inline __attribute__((always_inline))
int add(int a, int b)
{
    return a * rand() + b;
}

__attribute__((noinline))
int work(int n)
{
    int s = 0;
    for (int i = 0; i < n; i++)
        s += add(i, s);
    return s;
}

int main(int argc, char **argv) { return work(argc * 100); }
";

#[derive(Clone, PartialEq, Message)]
struct PprofFile {
    #[prost(message, repeated, tag = "1")]
    types: Vec<SampleTypeOf>,
    #[prost(message, repeated, tag = "3")]
    mappings: Vec<MappingOf>,
    #[prost(message, repeated, tag = "5")]
    functions: Vec<FunctionOf>,
    #[prost(string, repeated, tag = "6")]
    texts: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
struct SampleTypeOf {
    #[prost(int64, tag = "1")]
    name: i64,
    #[prost(int64, tag = "2")]
    unit: i64,
}

#[derive(Clone, PartialEq, Message)]
struct MappingOf {
    #[prost(int64, tag = "5")]
    filename: i64,
    #[prost(bool, tag = "7")]
    has_functions: bool,
    #[prost(bool, tag = "10")]
    has_inline_frames: bool,
}

#[derive(Clone, PartialEq, Message)]
struct FunctionOf {
    #[prost(int64, tag = "2")]
    name: i64,
    #[prost(int64, tag = "5")]
    start_line: i64,
}

impl PprofFile {
    fn read(file: &Path) -> Self {
        let mut bytes = Vec::new();
        GzDecoder::new(fs::File::open(file).unwrap()).read_to_end(&mut bytes).unwrap();
        Self::decode(&*bytes).unwrap()
    }

    fn text(&self, number: i64) -> &str {
        &self.texts[usize::try_from(number).unwrap()]
    }

    fn types(&self) -> Vec<(&str, &str)> {
        let types = self.types.iter();
        types.map(|kind| (self.text(kind.name), self.text(kind.unit))).collect()
    }

    fn start_lines(&self) -> BTreeMap<&str, i64> {
        let functions = self.functions.iter();
        functions.map(|function| (self.text(function.name), function.start_line)).collect()
    }
}

#[test]
fn functions_begin_at_their_own_lines() {
    let Some(place) = Place::with("gcc") else { return };
    let program = place.compiled("gcc -O2 -g", ("start.c", SOURCE), "start");
    let (start, _) = function(&program, "work");
    let bytes = fs::read(&program).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let size = file.symbols().find(|symbol| symbol.name() == Ok("work")).unwrap().size();
    let mut stream = stream_with(Event::new("cpu-clock")).event(Event::new("faults"));
    stream = mapped(stream, &program);
    for offset in 0..size {
        stream = stream.at(offset + 2).sample(SampleSpec::at(BASE + start + offset));
    }
    stream = stream.of(1).sample(SampleSpec::at(BASE + start));
    stream = stream.of(0).map("/no/names", 0x10_0000_0000, 0x1000, 0);
    stream = stream.sample(SampleSpec::at(0x10_0000_0010));
    let profile = place.at("x.pb.gz");
    let exported = |args: &[&str]| {
        let out = ["export", "--trust-paths", "-o", profile.to_str().unwrap()];
        rep(&place, &[&out[..], args].concat(), &stream);
        PprofFile::read(&profile)
    };
    let whole = exported(&[]);
    let start_lines = whole.start_lines();
    assert_eq!((start_lines["work"], start_lines["add"]), (9, 3), "{start_lines:?}");
    // Of a location with several lines, one alone is not its function's.
    let outer = exported(&["--no-inline"]);
    assert_eq!(outer.start_lines()["work"], 0);
    for mapping in &whole.mappings {
        let is_known = whole.text(mapping.filename) != "/no/names";
        assert_eq!((mapping.has_functions, mapping.has_inline_frames), (is_known, is_known));
    }
    let types = ["cpu-clock.samples", "cpu-clock", "faults.samples", "faults"];
    let names = whole.types();
    assert!(names.iter().map(|(name, _)| *name).eq(types), "{names:?}");
    // The compiler asks for samples in count.
    let single = exported(&["--event", "cpu-clock"]);
    assert_eq!(single.types(), [("samples", "count"), ("cpu-clock", "count")]);
    let report = run(super::super::rep().args(["--json", "--sort", "comm"]).arg(&profile));
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["events"][0]["samples"], size + 1);
    assert_eq!(report["events"].as_array().unwrap().len(), 1);
}

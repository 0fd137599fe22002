//! Tests of profiles that no program of ours writes, and of damaged ones.

use std::ops::Range;

use proptest::prelude::*;
use prost::Message as _;
use recrep_format::abi::{CpuMode, context};
use recrep_format::feature::{Bundle, BundledModule, ClockData, bundled_modules};
use recrep_format::read::File;
use recrep_format::record::{Body, Comm, Mmap2, Record, SampleFields};

use super::*;
use crate::pprof::{
    Location, PprofFunction, PprofLabel, PprofLine, PprofMapping, PprofProfile, PprofSample,
    ValueType, is_profile,
};

/// A profile in the making; names are given as texts.
struct Made(PprofProfile);

impl Made {
    /// Returns a profile with values of these types.
    fn of(types: &[(&str, &str)]) -> Self {
        let mut made =
            Self(PprofProfile { string_table: vec![String::new()], ..PprofProfile::default() });
        for (name, unit) in types {
            let (name, unit) = (made.text(name), made.text(unit));
            made.0.sample_type.push(ValueType { name, unit });
        }
        made
    }

    fn text(&mut self, text: &str) -> i64 {
        let known = self.0.string_table.iter().position(|known| known == text);
        let place = known.unwrap_or_else(|| {
            self.0.string_table.push(text.to_owned());
            self.0.string_table.len() - 1
        });
        i64::try_from(place).unwrap()
    }

    fn mapping(mut self, range: Range<u64>, offset: u64, file: &str) -> Self {
        let id = self.0.mapping.len() as u64 + 1;
        let (start, limit, filename) = (range.start, range.end, self.text(file));
        self.0.mapping.push(PprofMapping {
            id,
            start,
            limit,
            offset,
            filename,
            ..PprofMapping::default()
        });
        self
    }

    /// Adds a location with lines of these functions, innermost first.
    fn location(mut self, mapping: u64, address: u64, functions: &[&str]) -> Self {
        let id = self.0.location.len() as u64 + 1;
        let line = functions.iter().map(|name| {
            let name = self.text(name);
            let known = self.0.function.iter().find(|known| known.name == name);
            let known = known.map(|known| known.id);
            let function = known.unwrap_or_else(|| {
                let id = self.0.function.len() as u64 + 1;
                let filename = self.text("a.c");
                let (system_name, start_line) = (name, 0);
                let function = PprofFunction { id, name, filename, system_name, start_line };
                self.0.function.push(function);
                id
            });
            PprofLine { function, line: 7 }
        });
        let line = line.collect();
        self.0.location.push(Location { id, mapping, address, line });
        self
    }

    fn sample(mut self, location: &[u64], value: &[i64], labels: &[(&str, &str)]) -> Self {
        let label = labels.iter().map(|(key, value)| {
            let key = self.text(key);
            match value.parse() {
                Ok(number) => PprofLabel { key, number, ..PprofLabel::default() },
                Err(_) => PprofLabel { key, text: self.text(value), ..PprofLabel::default() },
            }
        });
        let label = label.collect();
        self.0.sample.push(PprofSample {
            location: location.to_vec(),
            value: value.to_vec(),
            label,
        });
        self
    }

    fn bytes(&self) -> Vec<u8> {
        self.0.encode_to_vec()
    }

    fn recording(&self) -> ProfileRecording {
        assert!(is_profile(&self.bytes()));
        recording(&self.bytes(), usize::MAX).unwrap()
    }

    fn error(&self) -> String {
        recording(&self.bytes(), usize::MAX).err().unwrap().to_string()
    }
}

/// A process, its name and the callchain of each sample, with the number of samples and the period.
type Counted = (u32, String, Vec<u64>, u64, u64);

/// What a test looks at in a recording.
#[derive(Debug, Default)]
struct Read {
    samples: Vec<Counted>,
    /// CPU mode of the last one.
    mode: Option<CpuMode>,
    /// First address, length, offset in the file, and file.
    maps: Vec<(u64, u64, u64, String)>,
    /// Module, first address, and function.
    functions: Vec<(String, u64, String)>,
}

impl Read {
    fn of(bytes: &[u8]) -> Self {
        let file = File::parse(bytes).unwrap();
        let (mut read, mut named) = (Self::default(), String::new());
        for raw in file.records() {
            let Record { body, misc, .. } = file.attrs.decode(&raw.unwrap()).unwrap();
            match body {
                Body::Comm(Comm { comm, .. }) => named = comm.to_text().into_owned(),
                Body::Mmap2(Mmap2 { addr, len, pgoff, filename, .. }) => {
                    read.maps.push((addr, len, pgoff, filename.to_text().into_owned()));
                }
                Body::Sample(fields) => {
                    read.mode = Some(CpuMode::of(misc));
                    let SampleFields { tid, callchain, stream_id, period, .. } = *fields;
                    let words = callchain.map(|chain| chain.iter().collect()).unwrap_or_default();
                    let counts = (stream_id.unwrap(), period.unwrap());
                    read.samples.push((tid.unwrap()[0], named.clone(), words, counts.0, counts.1));
                }
                _ => {}
            }
        }
        let bundle: Bundle<'_> = file.feature().unwrap().unwrap();
        let body = bundle.unpack().unwrap();
        for BundledModule { path, functions, .. } in bundled_modules(&body, file.endian).unwrap() {
            for function in &functions.0 {
                let [module, name] = [path, function.name].map(|text| text.to_text().into_owned());
                read.functions.push((module, function.start, name));
            }
        }
        read
    }

    /// Returns the functions at the addresses of the first sample, as module and name.
    fn stack(&self) -> Vec<String> {
        let words = self.samples[0].2.iter().filter(|word| **word < context::MAX);
        let name = |ip: &u64| {
            let inside = |map: &&(u64, u64, u64, String)| (map.0..map.0 + map.1).contains(ip);
            let Some((start, _, offset, file)) = self.maps.iter().find(inside) else {
                return format!("{ip:#x}");
            };
            let address = if *start < crate::pprof::KERNEL { ip - start + offset } else { *ip };
            let mut of_module = self.functions.iter().filter(|(module, ..)| module == file);
            match of_module.rfind(|(_, start, _)| *start <= address) {
                Some((_, _, name)) => format!("{file} {name}"),
                None => format!("{file}+{address:#x}"),
            }
        };
        words.map(name).collect()
    }
}

#[test]
fn a_line_of_another_programs_location_is_a_frame() {
    let made = Made::of(&[("samples", "count"), ("cpu", "nanoseconds")])
        .mapping(0x40_0000..0x50_0000, 0, "/bin/app")
        .location(1, 0x40_1010, &["inlined", "outer"])
        .location(1, 0x40_2020, &["main"])
        .location(1, 0x40_3030, &["inlined"])
        .sample(&[1, 2], &[3, 30], &[("thread_name", "worker"), ("pid", "42")])
        .sample(&[3], &[1, 10], &[]);
    let made = made.recording();
    assert_eq!(made.samples, 8);
    let read = Read::of(&made.bytes);
    assert_eq!(read.stack(), ["/bin/app inlined", "/bin/app outer", "/bin/app main"]);
    let counts: Vec<_> = read.samples.iter().map(|s| (s.0, s.1.as_str(), s.3, s.4)).collect();
    // An event for each type of values, whose samples are those of the type before it.
    assert_eq!(
        counts,
        [(42, "worker", 3, 3), (42, "worker", 3, 30), (1, "app", 1, 1), (1, "app", 1, 10)]
    );
    let file = File::parse(&made.bytes).unwrap();
    let names: Vec<_> = file.attrs.entries().iter().map(|entry| entry.event_name()).collect();
    assert_eq!(names, ["samples", "cpu"]);
}

#[test]
fn places_that_overlap_are_kept_apart() {
    let made = Made::of(&[("alloc_space", "bytes")])
        .mapping(0x1000..0x9000, 0, "/lib/a.so")
        .mapping(0x2000..0x6000, 0x100, "/lib/b.so")
        .mapping(0..0, 0, "")
        .location(1, 0x1010, &["a1"])
        .location(1, 0x1030, &["a2"])
        // Within the first function's addresses.
        .location(1, 0x1020, &["a3"])
        .location(1, 0x1040, &["a1"])
        .location(2, 0x2010, &["b"])
        .location(3, 0, &["nowhere"])
        .location(0, 0x7777, &[])
        .location(2, 0x2222, &[])
        .sample(&[1, 2, 3, 4, 5, 6, 7, 8], &[64], &[]);
    let read = Read::of(&made.recording().bytes);
    assert_eq!(
        read.stack(),
        [
            "/lib/a.so a1",
            "/lib/a.so a2",
            "/lib/a.so a3",
            "/lib/a.so a1",
            "/lib/b.so b",
            "[unknown] nowhere",
            "0x7777",
            // Without a function, but behind the one that is known.
            "/lib/b.so b"
        ]
    );
    let mut maps = read.maps.clone();
    maps.sort();
    for pair in maps.windows(2) {
        assert!(pair[0].0 + pair[0].1 <= pair[1].0, "{pair:?}");
    }
}

#[test]
fn kernel_code_is_where_it_was() {
    let (kernel, module) = (0xffff_ffff_8100_0000, 0xffff_ffff_c000_0000);
    let made = Made::of(&[("samples", "count")])
        .mapping(kernel..kernel + 0x100_0000, 0, "[kernel.kallsyms]")
        .mapping(module..module + 0x10_0000, 0, "[ext4]")
        .mapping(0x1000..0x2000, 0, "/bin/app")
        .location(1, kernel + 0x20, &["do_syscall_64"])
        .location(2, module + 0x40, &["ext4_read"])
        .location(3, 0x1100, &["main"])
        .sample(&[2, 1, 3], &[1], &[]);
    let read = Read::of(&made.recording().bytes);
    let wanted = [context::KERNEL, module + 0x40, kernel + 0x20, context::USER, 0x1100];
    assert_eq!(read.samples[0].2, wanted);
    assert_eq!(read.maps[1].0, module);
    assert_eq!(
        read.stack(),
        ["[ext4] ext4_read", "[kernel.kallsyms] do_syscall_64", "/bin/app main"]
    );
    assert_eq!(read.mode, Some(CpuMode::Kernel));
}

#[test]
fn the_time_of_a_profile_is_that_of_the_recording() {
    let mut made = Made::of(&[("samples", "count")]);
    (made.0.time_nanos, made.0.duration_nanos) = (1_700_000_000_000_000_000, 5_000);
    let made = made.location(0, 5, &["f"]).sample(&[1], &[1], &[]).recording();
    let file = File::parse(&made.bytes).unwrap();
    let clock: ClockData = file.feature().unwrap().unwrap();
    assert_eq!((clock.wall_clock, clock.clock), (1_700_000_000_000_000_000, 1));
}

#[test]
fn what_a_profile_lacks_is_said() {
    let made = || Made::of(&[("samples", "count")]).location(0, 5, &["f"]);
    let error = |made: Made| made.error();
    assert!(error(made().sample(&[1], &[-1], &[])).contains("negative values"));
    assert!(error(made().sample(&[1], &[1, 2], &[])).contains("has 2 values, and 1 are"));
    assert!(error(made().sample(&[9], &[1], &[])).contains("location 9, which is missing"));
    assert!(error(made().location(7, 1, &[]).sample(&[1], &[1], &[])).contains("mapping 7"));
    let large = made().sample(&[1], &[i64::MAX], &[]).sample(&[1], &[i64::MAX], &[]);
    assert!(error(large).contains("too large"));
    let mut nameless = made().sample(&[1], &[1], &[]);
    nameless.0.function[0].name = 99;
    nameless.0.function[0].system_name = 99;
    assert!(error(nameless).contains("text 99 of"));
    let mut typeless = made();
    typeless.0.sample_type.clear();
    assert!(error(typeless).contains("no values are described"));
    let mut twice = made().location(0, 6, &["g"]);
    twice.0.location[1].id = 1;
    assert!(error(twice).contains("location 1 is there twice"));
    let mut unnumbered = made();
    unnumbered.0.function[0].id = 0;
    assert!(error(unnumbered).contains("has no number"));
    let mut empty = made();
    empty.0.sample.push(PprofSample::default());
    assert!(error(empty).contains("a sample has no values"));
    let bytes = made().sample(&[1], &[1], &[]).bytes();
    let cut = recording(&bytes[..bytes.len() - 1], usize::MAX).err().unwrap().to_string();
    assert!(cut.contains("damaged or cut at byte"), "{cut}");
}

#[test]
fn stacks_that_unfold_without_end_are_refused() {
    let names: Vec<String> = (0..4000).map(|number| format!("f{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut made = Made::of(&[("samples", "count")]).location(0, 5, &names);
    for _ in 0..2000 {
        made = made.sample(&[1], &[1], &[]);
    }
    assert!(made.error().contains("unfold to more than"), "{}", made.error());
}

#[test]
fn what_unpacks_to_much_is_no_profile() {
    let mut made = Made::of(&[("samples", "count")]);
    made.0.string_table.push("x".repeat(17 << 20));
    let error = recording(&made.bytes(), 1000).err().unwrap().to_string();
    assert!(error.contains("which is unlike one"), "{error}");
    assert!(recording(&made.bytes(), 1 << 20).is_ok());
}

fn any_profile() -> impl Strategy<Value = Vec<u8>> {
    let range = (any::<u64>(), 0u64..1 << 44, prop::sample::select(vec![0u64, 12, 30, 63]))
        .prop_map(|(start, len, shift)| (start >> shift, len));
    let names = prop::sample::select(vec!["f", "g", "_ZN1a1bEv", ""]);
    let files = prop::sample::select(vec![
        "/bin/app",
        "[kernel.kallsyms]",
        "[ext4]",
        "bpf_prog",
        "[JIT] tid 7",
        "[vdso]",
        "[heap]",
        "",
    ]);
    (
        prop::collection::vec((range, any::<u64>(), files), 0..5),
        prop::collection::vec((0u64..7, any::<u64>(), prop::collection::vec(names, 0..4)), 1..9),
        prop::collection::vec((prop::collection::vec(1u64..9, 0..6), 0i64..1000, 0u8..4), 0..9),
        prop::option::of((any::<prop::sample::Index>(), any::<u8>())),
    )
        .prop_map(|(mappings, locations, samples, damage)| {
            let mut made = Made::of(&[("samples", "count"), ("cpu", "microseconds")]);
            for ((start, len), offset, file) in mappings {
                made = made.mapping(start..start.saturating_add(len), offset, file);
            }
            let places: Vec<(u64, u64)> =
                made.0.mapping.iter().map(|mapping| (mapping.start, mapping.limit)).collect();
            for (mapping, address, functions) in locations {
                // Most of them within their mapping.
                let place = usize::try_from(mapping).unwrap().checked_sub(1);
                let (start, limit) =
                    place.and_then(|place| places.get(place)).copied().unwrap_or_default();
                let inside = start + (address >> 32).min(limit.saturating_sub(start));
                let address = if address & 7 == 0 { address } else { inside };
                made = made.location(mapping, address, &functions);
            }
            for (location, value, task) in samples {
                let labels = [("pid", "7"), ("tid", "9"), ("comm", "x"), ("cpumode", "guest_user")];
                let labels = &labels[..usize::from(task)];
                made = made.sample(&location, &[value, value], labels);
            }
            let mut bytes = made.bytes();
            if let Some((at, byte)) = damage {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            bytes
        })
}

proptest! {
    #[test]
    fn any_profile_is_a_recording_or_an_error(bytes in any_profile()) {
        if let Ok(made) = recording(&bytes, usize::MAX) {
            let read = Read::of(&made.bytes);
            let sum: u64 = read.samples.iter().map(|sample| sample.3).sum();
            prop_assert_eq!(sum, made.samples);
        }
    }

    #[test]
    fn any_bytes_are_read_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if is_profile(&bytes) {
            drop(recording(&bytes, usize::MAX));
        }
    }
}

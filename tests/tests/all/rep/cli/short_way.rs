//! Samples that are counted the short way, by what they have in common with those before, give the
//! rows that they give when a key of another kind (`time`) has each counted for itself.

use proptest::prelude::*;

use super::*;

/// What comes next in a stream, of one of four threads of two processes on one of two CPUs.
#[derive(Clone, Copy, Debug)]
enum Next {
    /// A sample of an event, in a CPU mode (`misc`), at an address.
    Sample(usize, u16, u64),
    Comm(bool),
    Exec,
    Fork,
    Map(u64),
    /// A time: also one before those of other records, or none.
    Time(u64),
}

fn next() -> impl Strategy<Value = (Next, u32, u32)> {
    let next = prop_oneof![
        12 => (0usize..2, prop_oneof![8 => 1u16..3, 1 => 3u16..6], 0u64..6).prop_map(|(event, misc, ip)| Next::Sample(event, misc, ip)),
        1 => any::<bool>().prop_map(Next::Comm),
        1 => Just(Next::Exec),
        1 => Just(Next::Fork),
        1 => (0u64..6).prop_map(Next::Map),
        2 => (0u64..20).prop_map(Next::Time),
    ];
    // Records of one thread often follow each other.
    (next, prop_oneof![6 => Just(1u32), 2 => 2u32..5], 0u32..2)
}

fn stream(records: &[(Next, u32, u32)], endian: Endian) -> Stream {
    let stream = Stream::new(endian)
        .event(Event::new("cycles").ids(&[7]))
        .event(Event::new("faults").ids(&[9]));
    records.iter().fold(stream.at(1), |stream, (next, tid, cpu)| {
        let stream = stream.task(tid.div_ceil(2), *tid).on_cpu(*cpu);
        match *next {
            Next::Sample(event, misc, ip) => {
                stream.of(event).sample(SampleSpec::at(0x1000 * ip).misc(misc).period(1 + ip))
            }
            Next::Comm(is_long) => stream.comm(if is_long { "another" } else { "a" }),
            Next::Exec => stream.exec("executed"),
            Next::Fork => stream.fork(tid.div_ceil(2), tid + 1),
            Next::Map(at) => {
                stream.map(if at < 3 { "/low.so" } else { "/high.so" }, 0x1000 * at, 0x2000, 0)
            }
            Next::Time(time) => stream.at(time),
        }
    })
}

/// Returns the samples and periods of each event's rows by the values of their keys, without
/// `time`.
fn sums(answer: &Value) -> Vec<BTreeMap<Vec<String>, [u64; 2]>> {
    let of_event = |event: &Value| {
        let mut sums = BTreeMap::<_, [u64; 2]>::new();
        for row in list(&event["rows"]) {
            let key = row["key"].as_object().unwrap().iter().filter(|(name, _)| *name != "time");
            let sum = sums.entry(key.map(|(_, value)| value.to_string()).collect()).or_default();
            sum[0] += row["samples"].as_u64().unwrap();
            sum[1] += row["period"].as_u64().unwrap();
        }
        sums
    };
    list(&answer["events"]).iter().map(of_event).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn the_short_way_gives_the_rows_of_the_long_way(
        records in prop::collection::vec(next(), 0..60),
        endian in prop_oneof![Just(Endian::Little), Just(Endian::Big)],
    ) {
        let (_place, file) = recorded(&stream(&records, endian));
        for keys in ["ip", "comm,tid", "cpu,ip", "comm,dso,symbol", "pid,cpu"] {
            let short = json(&["--sort", keys], &file);
            let long = json(&["--sort", &format!("{keys},time"), "--time-quantum", "7ns"], &file);
            prop_assert_eq!(sums(&short), sums(&long), "{}", keys);
            let totals = |answer: &Value| -> Vec<Value> { list(&answer["events"]).iter().map(|e| e["period"].clone()).collect() };
            prop_assert_eq!(totals(&short), totals(&long));
        }
    }
}

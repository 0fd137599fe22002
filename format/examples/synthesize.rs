//! Writes a perf.data file of samples that were never taken: a parser in two threads, and where it
//! would spend its time.
//!
//!     cargo run -p recrep-format --example synthesize -- made.data
//!     perf report -i made.data --sort comm,dso,symbol -n

use std::error::Error;
use std::fs::File;

use recrep_format::abi::{AttrFlags, CpuMode, EventType, SampleType};
use recrep_format::attr::{Attr, AttrEntry};
use recrep_format::bytes::Encoder;
use recrep_format::endian::Endian;
use recrep_format::feature::{Arch, EventDesc, Hostname, NrCpus};
use recrep_format::record::{Body, Comm, Mmap, Record, SampleFields};
use recrep_format::wire::Text;
use recrep_format::write::{FeatureWriter, FileWriter};

const ENDIAN: Endian = Endian::NATIVE;
const PID: u32 = 1000;
const EVENT_ID: u64 = 1;
/// Thread, name, address and number of samples.
const SPENT: [(u32, &str, u64, u64); 4] = [
    (1000, "parser", 0x40_1000, 60),
    (1000, "parser", 0x40_2000, 25),
    (1001, "tokenizer", 0x40_3000, 10),
    (1001, "tokenizer", 0x40_1000, 5),
];

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("the output's name is missing")?;
    // An attr says what is counted and which fields samples have. This is the software event
    // cpu-clock, each millisecond.
    let attr = Attr {
        kind: EventType::SOFTWARE,
        sample_period: 1_000_000,
        sample_type: SampleType::IDENTIFIER
            | SampleType::IP
            | SampleType::TID
            | SampleType::TIME
            | SampleType::PERIOD,
        flags: AttrFlags::MMAP | AttrFlags::COMM,
        ..Attr::default()
    };
    let events = [AttrEntry { attr, ids: vec![EVENT_ID], name: Some("made-up".into()) }];
    let mut writer = FileWriter::new(File::create(path)?, ENDIAN, &events)?;

    let mut records = Encoder::new(ENDIAN);
    let filename = Text::new(b"/opt/demo/parser");
    let mmap = Mmap { pid: PID, tid: PID, addr: 0x40_0000, len: 0x1_0000, pgoff: 0, filename };
    Record::new(CpuMode::User.bits(), Body::Mmap(mmap)).encode(&mut records)?;
    for (tid, name) in [(1000, "parser"), (1001, "tokenizer")] {
        let comm = Comm { pid: PID, tid, comm: Text::new(name.as_bytes()) };
        Record::new(0, Body::Comm(comm)).encode(&mut records)?;
    }
    let addresses =
        SPENT.iter().flat_map(|(tid, _, ip, count)| (0..*count).map(move |_| (*tid, *ip)));
    for ((tid, ip), time) in addresses.zip((1_000_000..).step_by(1_000_000)) {
        let sample = SampleFields {
            identifier: Some(EVENT_ID),
            ip: Some(ip),
            tid: Some([PID, tid]),
            time: Some(time),
            period: Some(1_000_000),
            ..SampleFields::default()
        };
        Record::new(CpuMode::User.bits(), Body::Sample(Box::new(sample))).encode(&mut records)?;
    }
    writer.write(records.as_bytes())?;

    let mut features = FeatureWriter::new(ENDIAN);
    features.add(&Hostname::new("nowhere")).add(&Arch::new(std::env::consts::ARCH));
    features.add(&NrCpus { available: 1, online: 1 });
    features.add(&EventDesc::of(&events)?);
    writer.finish(&features)?;
    Ok(())
}

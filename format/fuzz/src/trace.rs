// Packets of traces of any bytes.

use recrep_trace::bts::{self, Branch};
use recrep_trace::pt::{self, Code, Flow, Gap, Graph, Packets, Sink, TakenStep, Task, World};
use recrep_trace::spe::{Packet, PacketError, PacketKind, RecordReader};

/// A byte of choice, then packets of Arm SPE. Each that is read comes back from its bytes, and no
/// record has more packets than there are bytes.
pub(crate) fn spe(bytes: &[u8]) {
    let Some((choice, bytes)) = bytes.split_first() else { return };
    let (mut at, mut records, mut reader) = (0, 0, RecordReader::default());
    while at < bytes.len() {
        let offset = (usize::from(*choice) + at) as u64;
        match Packet::read(&bytes[at..], offset) {
            Ok((packet, len)) => {
                assert!(len > 0 && at + len <= bytes.len(), "{packet:?}: {len} bytes");
                assert!(!packet.to_string().is_empty());
                comes_back(&packet);
                records += usize::from(reader.take(&packet).is_some());
                at += len;
            }
            Err(error) => {
                assert!(error == PacketError::Unknown || bytes.len() - at < 16, "{error}");
                reader.reset();
                at += 1;
            }
        }
    }
    assert!(records <= bytes.len());
}

fn comes_back(packet: &Packet) {
    let mut written = Vec::new();
    packet.write(&mut written);
    let (again, len) = Packet::read(&written, 0).expect("what was written is read");
    assert_eq!(&again, packet);
    assert!(len == written.len() || packet.kind == PacketKind::Alignment, "{packet:?}");
}

/// Branches of Intel BTS come back.
pub(crate) fn bts(bytes: &[u8]) {
    for branch in bytes.as_chunks::<{ bts::SIZE }>().0 {
        let read = Branch::read(branch);
        assert_eq!(&read.to_bytes(), branch);
        assert!(!read.to_string().is_empty());
    }
}

/// Address of the code of [`pt`].
const CODE: u64 = 0x40_1000;

/// Code that is mapped at one place.
#[derive(Clone, Copy)]
struct FuzzedCode<'a>(&'a [u8]);

impl Code for FuzzedCode<'_> {
    fn bytes(&self, address: u64) -> Option<&[u8]> {
        self.0.get(usize::try_from(address.checked_sub(CODE)?).ok()?..)
    }
}

impl World for FuzzedCode<'_> {
    fn task(&mut self, tsc: u64) -> Task {
        Task { space: (tsc >> 8 & 1) as u32, thread: (tsc & 3) as u32 }
    }

    fn code(&self, _: u32, address: u64) -> Option<&[u8]> {
        self.bytes(address)
    }
}

/// Branches of steps, in order and by counts.
#[derive(Default)]
struct Branches {
    listed: u64,
    counts: pt::StepCounts,
    counted: u64,
}

impl Sink for Branches {
    fn step(&mut self, step: &TakenStep<'_>) {
        step.branches(|_, _| self.listed += 1);
        self.counts.add(step.graph, step.code, step.step);
    }

    fn finish_task(&mut self, graph: &Graph, code: &dyn Code) {
        self.counts.branches(graph, code, |_, count| self.counted += count);
        self.counts.clear();
    }

    fn gap(&mut self, _: Gap, _: Task, _: u64) {}
}

/// Length of the code, the code, then a trace of Intel PT. Each packet comes back; the branches in
/// order are as many as those that are counted.
pub(crate) fn pt(bytes: &[u8]) {
    let Some((len, rest)) = bytes.split_first() else { return };
    let (code, trace) = rest.split_at(usize::from(*len).min(rest.len()));
    for found in Packets::from_bytes(trace) {
        let Ok(packet) = found.packet else { continue };
        assert!(!packet.to_string().is_empty());
        let mut written = Vec::new();
        packet.write(&mut written);
        if !matches!(packet, pt::Packet::Bip(..)) {
            let read = pt::Packet::from_bytes(&written, pt::Context::Usual);
            assert_eq!(read, Ok((packet, written.len())));
        }
    }
    let mut branches = Branches::default();
    let mut flow = Flow::new();
    let cycles = pt::CycleSource::Sparse;
    let rates = pt::ClockRates { mtc_shift: 3, tsc: 84, crystal: 2, non_turbo: 20, cycles };
    let clock = pt::Clock::from_rates(rates, 0, 0);
    flow.run(trace, trace.len(), clock, &mut FuzzedCode(code), &mut branches);
    assert_eq!(branches.listed, branches.counted);
}

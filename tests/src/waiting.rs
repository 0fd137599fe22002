//! A large recording of threads that wake each other, for measurements.

use std::collections::VecDeque;

use recrep_fixtures::build::{Event, SampleSpec, Stream, TracepointFormat, tracing_data};
use recrep_format::abi::{AttrFlags, EventType, SampleType, SwEvent, context, misc};
use recrep_format::endian::Endian;
use recrep_format::feature::TracingData;
use recrep_format::record::Body;

/// Numbers of threads and CPUs.
const THREADS: u32 = 64;
const CPUS: u32 = 8;

/// Number of the first thread, and of the process.
pub const FIRST: u32 = 1000;
/// Number of the tracepoint.
const WAKING: u64 = 314;
/// Number of wakes for each CPU sample.
const WAKES_OF_SAMPLE: u64 = 20;

/// Places of the events in the stream.
const CLOCK: usize = 0;
const SWITCHES: usize = 1;
const WAKES: usize = 2;

/// An address in the kernel.
const KERNEL: u64 = 0xffff_ffff_8100_1000;

/// Returns the events of a recording with waits, without records.
#[must_use]
pub fn events() -> Stream {
    let every = |attr: &mut recrep_format::attr::Attr| {
        (attr.sample_period, attr.flags) = (1, attr.flags - AttrFlags::FREQ);
    };
    let switches = Event::new("context-switches")
        .counting(EventType::SOFTWARE, SwEvent::CONTEXT_SWITCHES.0)
        .sampling(SampleType::CALLCHAIN)
        .with(every);
    let wakes = Event::new("sched:sched_waking")
        .counting(EventType::TRACEPOINT, WAKING)
        .sampling(SampleType::CALLCHAIN | SampleType::RAW)
        .with(every)
        .with(|attr| attr.flags |= AttrFlags::INHERIT);
    let fields = ["char comm[16];\toffset:8;\tsize:16;", "pid_t pid;\toffset:24;\tsize:4;"];
    let format =
        TracepointFormat { name: "sched_waking", id: WAKING, fields: &fields, print: "\"\"" };
    Stream::new(Endian::NATIVE)
        .event(
            Event::new("cpu-clock")
                .counting(EventType::SOFTWARE, SwEvent::CPU_CLOCK.0)
                .sampling(SampleType::CALLCHAIN),
        )
        .event(switches)
        .event(wakes)
        .feature(&TracingData { data: &tracing_data(Endian::NATIVE, "sched", &[format]) })
}

/// Appends the records of threads that wake each other: on each CPU in turn, the thread that has it
/// wakes the one that waited longest, and waits itself, at one of these places in its code.
#[must_use]
pub fn add_wakes(mut stream: Stream, number: u64, place: &mut dyn FnMut() -> u64) -> Stream {
    let task = |thread: u32| [FIRST, FIRST + thread];
    let mut running: Vec<u32> = (0..CPUS).collect();
    let mut waiting: VecDeque<u32> = (CPUS..THREADS).collect();
    for thread in 0..THREADS {
        let [pid, tid] = task(thread);
        stream = stream.of(CLOCK).task(pid, tid).at(1).comm(&format!("wakes{thread}"));
        if thread < CPUS {
            stream = stream.on_cpu(thread).at(2).record(0, Body::Switch);
        } else {
            stream = stream.at(2).record(misc::SWITCH_OUT, Body::Switch);
        }
    }
    for (wake, cpu) in (0..number).zip((0..CPUS).cycle()) {
        let (Some(has), Some(woken)) = (running.get_mut(cpu as usize), waiting.pop_front()) else {
            break;
        };
        let waker = std::mem::replace(has, woken);
        waiting.push_back(waker);
        let ([pid, tid], [_, target], time) = (task(waker), task(woken), 1000 + 1000 * wake);
        stream = stream.task(pid, tid).on_cpu(cpu);
        let (inner, outer) = (place(), place());
        let chain = [context::KERNEL, KERNEL, context::USER, inner, outer];
        if wake % WAKES_OF_SAMPLE == 0 {
            let user = SampleSpec::at(inner).callchain(&chain[2..]).period(1_000_000);
            stream = stream.of(CLOCK).at(time - 100).sample(user);
        }
        let mut raw = Endian::NATIVE.bytes_u64(WAKING).to_vec();
        raw.splice(4.., Endian::NATIVE.bytes_u32(tid));
        raw.extend([0; 16]);
        raw.extend(Endian::NATIVE.bytes_u32(target));
        let kernel = SampleSpec::at(KERNEL).misc(1).callchain(&chain);
        stream = stream.of(WAKES).at(time).sample(kernel.clone().raw(&raw));
        stream = stream.of(SWITCHES).at(time + 300).sample(kernel);
        stream = stream.at(time + 310).record(misc::SWITCH_OUT, Body::Switch);
        stream = stream.task(pid, target).at(time + 400).record(0, Body::Switch);
        if wake % 10_000 == 9_999 {
            stream = stream.round();
        }
    }
    stream
}

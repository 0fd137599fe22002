//! Traces of random walks decode to exactly the branches that were walked, however they are cut.

use std::collections::HashMap;
use std::path::Path;

use recrep_fixtures::trace::{Clocks, Image, Logged, Settings, Timing, Walk};
use recrep_trace::pt::{
    Branch, Clock, Code, Executed, Flow, Gap, Graph, Sink, StepCounts, TakenStep, Task, World,
};

const LIBC: &str = "/usr/lib/x86_64-linux-gnu/libc.so.6";
const ADDRESS: u64 = 0x7f12_3456_7000;

#[derive(Clone, Copy)]
struct OneImage<'a>(&'a Image);

impl World for OneImage<'_> {
    fn task(&mut self, _: u64) -> Task {
        Task { space: 1, thread: 1 }
    }

    fn code(&self, _: u32, address: u64) -> Option<&[u8]> {
        self.0.bytes(address)
    }
}

impl Code for OneImage<'_> {
    fn bytes(&self, address: u64) -> Option<&[u8]> {
        self.0.bytes(address)
    }
}

/// The branches in order.
#[derive(Default)]
struct List {
    branches: Vec<(u64, u64, u64)>,
    gaps: Vec<Gap>,
    instructions: u64,
    /// `None` where they are not asked for.
    counts: Option<StepCounts>,
    /// What the counts say: branches by source and target, instructions.
    counted: HashMap<(u64, u64), u64>,
    counted_instructions: u64,
}

impl Sink for List {
    fn step(&mut self, step: &TakenStep<'_>) {
        self.instructions += u64::from(step.instruction_count());
        let (mut executed, mut branches) = (0, Vec::new());
        step.executed(|part| match part {
            Executed::Instruction(..) => executed += 1,
            Executed::Branch(branch, is_last) => branches.push((branch, is_last)),
        });
        assert_eq!(executed, step.instruction_count());
        let mut branches = branches.into_iter();
        step.branches(|branch, is_last| assert_eq!(branches.next(), Some((branch, is_last))));
        assert_eq!(branches.next(), None);
        if let Some(counts) = &mut self.counts {
            counts.add(step.graph, step.code, step.step);
        }
        step.branches(|branch, is_last| {
            let time = if is_last { step.times.now } else { step.times.before };
            self.branches.push((branch.from, branch.to, time));
        });
    }

    fn finish_task(&mut self, graph: &Graph, code: &dyn Code) {
        let Self { counts: Some(counts), counted, counted_instructions, .. } = self else { return };
        counts.branches(graph, code, |Branch { from, to, .. }, count| {
            *counted.entry((from, to)).or_default() += count;
        });
        counts.instructions(graph, code, |_, count| *counted_instructions += count);
        counts.clear();
    }

    fn gap(&mut self, gap: Gap, _: Task, _: u64) {
        self.gaps.push(gap);
    }
}

/// Decodes a trace in so many parts.
fn decode(image: &Image, walk: &Walk, parts: usize) -> List {
    let mut list = List { counts: Some(StepCounts::default()), ..List::default() };
    let mut flow = Flow::new();
    let starts: Vec<usize> =
        walk.psbs.iter().copied().step_by(walk.psbs.len().div_ceil(parts)).collect();
    for (at, start) in starts.iter().enumerate() {
        let end = starts.get(at + 1).copied().unwrap_or(walk.trace.len());
        let clock = Clock::from_rates(Clocks::RATES, 0, 0);
        let part = walk.trace.get(*start..).unwrap_or_default();
        flow.run(part, end - start, clock, &mut OneImage(image), &mut list);
    }
    list
}

fn pairs(branches: impl Iterator<Item = (u64, u64)>) -> HashMap<(u64, u64), u64> {
    let mut pairs = HashMap::new();
    for pair in branches {
        *pairs.entry(pair).or_default() += 1;
    }
    pairs
}

#[test]
fn walks_decode_to_their_logs() {
    let Ok(image) = Image::read(Path::new(LIBC), ADDRESS) else {
        println!("skipped: there is no {LIBC}");
        return;
    };
    for (seed, settings) in (1..).zip(Settings::variants()) {
        let mut log: Vec<Logged> = Vec::new();
        let walk = Walk::through(&image, settings, seed, 20_000, |branch| log.push(branch));
        let expected: Vec<_> = log.iter().map(|branch| (branch.from, branch.to)).collect();
        for parts in [1, 2, 7, 100, 1_000] {
            let list = decode(&image, &walk, parts.min(walk.psbs.len()));
            assert_eq!(list.gaps, [], "{settings:?} in {parts} parts");
            assert_eq!(list.instructions, walk.instructions, "{settings:?} in {parts} parts");
            let found: Vec<_> = list.branches.iter().map(|(from, to, _)| (*from, *to)).collect();
            let first = found.iter().zip(&expected).position(|(found, log)| found != log);
            assert_eq!(first, None, "{settings:?} in {parts} parts");
            assert_eq!(found.len(), expected.len());
            assert_eq!(list.counted_instructions, walk.instructions);
            assert_eq!(list.counted.values().sum::<u64>(), walk.branches);
            assert!(list.counted == pairs(expected.iter().copied()), "{settings:?}");
        }
    }
}

/// Damage is counted, and ends nothing but the stretch up to the next PSB.
#[test]
fn damaged_walks_are_decoded_around_the_damage() {
    let Ok(image) = Image::read(Path::new(LIBC), ADDRESS) else { return };
    let settings =
        Settings { psb_every: 300, fault_every: 100, timing: Timing::Cyc, ..Settings::default() };
    let walk = Walk::through(&image, settings, 3, 2_000, |_| {});
    let mut flow = Flow::new();
    let mut damaged = 0;
    for variant in 0..2_000_usize {
        let mut trace = walk.trace.clone();
        for hit in 0..=variant % 4 {
            let at = (variant * 7919 + hit * 104_729) % trace.len();
            match variant % 3 {
                0 => trace[at] ^= 1 << (variant % 8),
                1 => trace[at] = 0xff,
                _ => drop(trace.drain(at..(at + 5).min(trace.len()))),
            }
        }
        let mut list = List::default();
        let clock = Clock::from_rates(Clocks::RATES, 0, 0);
        flow.run(&trace, trace.len(), clock, &mut OneImage(&image), &mut list);
        damaged += usize::from(!list.gaps.is_empty());
        assert!(list.branches.len() as u64 > walk.branches / 4, "variant {variant}");
    }
    assert!(damaged > 1_000, "{damaged}");
}

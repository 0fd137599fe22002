//! Made-up recordings of some threads.

use super::Act::{Begin, Exit, Fork, In, Interrupt, Out, Preempt, Wake as Wakes};
use super::{Faster, Recorded, words};
use crate::timeline::waits::PathSpan;

/// A generator of numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// Makes up a recording of some threads, in which some records are lost.
fn made_up(seed: u64, steps: usize, lost: u64) -> Recorded {
    const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
    #[derive(Clone, Copy, PartialEq)]
    enum State {
        None,
        Runs(u32),
        Waits,
        CanRun,
        Gone,
    }
    let mut random = Random(seed * 0x9e37_79b9 + 1);
    let mut recorded = Recorded::default();
    let mut states = [State::None; NAMES.len()];
    states[0] = State::Runs(0);
    recorded.act(0, NAMES[0], Begin, Some(0));
    let mut time = 0;
    for _ in 0..steps {
        time += [0, 1, 500, 20_000, 150_000][usize::try_from(random.below(5)).unwrap()];
        let which = usize::try_from(random.below(NAMES.len() as u64)).unwrap();
        let other = usize::try_from(random.below(NAMES.len() as u64)).unwrap();
        let is_lost = random.chance(lost);
        let mut act = |act, cpu| {
            if !is_lost {
                recorded.act(time, NAMES[which], act, cpu);
            }
        };
        match states[which] {
            State::Runs(cpu) => match random.below(12) {
                0..4 => {
                    act(Out, Some(cpu));
                    states[which] = State::Waits;
                }
                4 => {
                    act(Preempt, Some(cpu));
                    states[which] = State::CanRun;
                }
                5 if which > 0 && random.chance(10) => {
                    act(Exit, Some(cpu));
                    states[which] = State::Gone;
                }
                _ => match states[other] {
                    State::None => {
                        act(Fork(NAMES[other]), Some(cpu));
                        states[other] = State::CanRun;
                    }
                    State::Waits => {
                        let by_interrupt = random.chance(20);
                        let wake = if by_interrupt { Interrupt } else { Wakes };
                        act(wake(NAMES[other]), Some(cpu));
                        states[other] = State::CanRun;
                    }
                    // It finds the thread awake.
                    _ => act(Wakes(NAMES[other]), Some(cpu)),
                },
            },
            State::CanRun => {
                let cpu = u32::try_from(random.below(3)).unwrap();
                act(In, Some(cpu));
                states[which] = State::Runs(cpu);
            }
            State::Waits if random.chance(10) => states[which] = State::CanRun,
            State::None | State::Waits | State::Gone => {}
        }
    }
    recorded.act(time + 1, NAMES[0], Exit, None);
    recorded
}

#[test]
fn made_up_recordings_have_whole_paths_and_replay_as_recorded() {
    for seed in 0..400 {
        let lost = [0, 0, 5, 30][usize::try_from(seed % 4).unwrap()];
        let (waits, names) = made_up(seed, 300, lost).waits(seed % 3 == 0);
        for thread in &waits.threads {
            for pair in thread.stretches.windows(2) {
                assert!(pair[0].on <= pair[1].off, "seed {seed}: {pair:?}");
            }
        }
        let mut spans: Vec<PathSpan> = waits.run_of_program().into_iter().collect();
        spans.extend(waits.run_of(|thread| thread.tid == 102, u64::MAX));
        for span in spans.into_iter().filter(|span| span.from < span.to) {
            let path = waits.path(span);
            let mut at = span.from;
            for piece in &path {
                assert_eq!(piece.from, at, "seed {seed}: {:?}", words(&waits, &names, &path));
                at = piece.to;
            }
            assert_eq!(at, span.to, "seed {seed}");
            // All waits may be at barriers.
            for barriers in [Vec::new(), waits.barriers(|_, _, _| true)] {
                let nothing = Faster { thread: None, part: 0.0 };
                assert_eq!(waits.replay(span, &nothing, &barriers), span.to, "seed {seed}");
                let faster = Faster { thread: None, part: 0.5 };
                assert!(waits.replay(span, &faster, &barriers) <= span.to, "seed {seed}");
            }
        }
    }
}

//! The program of known shares: 60 functions, each with its part of the work, which can be changed.

use std::hint::black_box;

/// A function of the program.
pub(crate) struct Function {
    pub(crate) name: &'static str,
    /// Its part of the work, in percent.
    pub(crate) share: f64,
    call: fn(u64) -> u64,
}

/// Declares functions. Each multiplies by a number of its own: equal functions would be merged.
macro_rules! functions {
    ($($name:ident $share:literal)*) => {
        $(#[inline(never)]
        fn $name(turns: u64) -> u64 {
            const FACTOR: u64 = odd_number(stringify!($name));
            let mut number = black_box(turns);
            for _ in 0..turns {
                number = number.wrapping_mul(FACTOR).rotate_left(7);
            }
            number
        })*

        pub(crate) const FUNCTIONS: &[Function] =
            &[$(Function { name: stringify!($name), share: $share, call: $name }),*];
    };
}

/// Returns a number that another name does not have.
const fn odd_number(name: &str) -> u64 {
    let (mut bytes, mut number) = (name.as_bytes(), 0_u64);
    while let [first, rest @ ..] = bytes {
        number = number * 256 + *first as u64;
        bytes = rest;
    }
    2 * number + 1
}

functions! {
    w30 30.0
    w10 10.0
    w08 8.0
    w06 6.0
    w05 5.0
    w04 4.0
    w03a 3.0
    w03b 3.0
    w03c 3.0
    w02a 2.0
    w02b 2.0
    w02c 2.0
    w02d 2.0
    w01a 1.0
    w01b 1.0
    w01c 1.0
    w01d 1.0
    w01e 1.0
    w01f 1.0
    w01g 1.0
    w01h 1.0
    w005a 0.5
    w005b 0.5
    w005c 0.5
    w005d 0.5
    w005e 0.5
    w005f 0.5
    w005g 0.5
    w005h 0.5
    w005i 0.5
    w005j 0.5
    w003a 0.3
    w003b 0.3
    w003c 0.3
    w003d 0.3
    w003e 0.3
    w003f 0.3
    w003g 0.3
    w003h 0.3
    w003i 0.3
    w003j 0.3
    w002a 0.2
    w002b 0.2
    w002c 0.2
    w002d 0.2
    w002e 0.2
    w002f 0.2
    w002g 0.2
    w002h 0.2
    w002i 0.2
    w002j 0.2
    w001a 0.1
    w001b 0.1
    w001c 0.1
    w001d 0.1
    w001e 0.1
    w001f 0.1
    w001g 0.1
    w001h 0.1
    w001i 0.1
}

/// Turns of all functions together in a round.
const TURNS: f64 = 400_000.0;

/// Does the work, that of one function by a factor.
pub(crate) fn work(rounds: u64, changed: Option<(&str, f64)>) {
    for _ in 0..rounds {
        for function in FUNCTIONS {
            let factor = changed.filter(|(name, _)| *name == function.name).map_or(1.0, |of| of.1);
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "it is small"
            )]
            let turns = (TURNS / 100.0 * function.share * factor) as u64;
            black_box((function.call)(turns));
        }
    }
}

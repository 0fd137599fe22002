//! What unwinding has to know of Go's runtime: it switches stacks, which its call frame information
//! does not say.

use std::ops::Range;

/// Functions of Go's runtime that go on with another stack, and those at which stacks begin, by
/// linked address. All other functions keep a frame pointer, and so do these for their callers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GoRuntime {
    switches: Vec<Range<u64>>,
    roots: Vec<Range<u64>>,
}

/// Functions that call on another stack, whose caller is where the frame pointer says.
const SWITCHES: [&[u8]; 8] = [
    b"runtime.systemstack",
    b"runtime.morestack",
    b"runtime.mcall",
    b"runtime.asmcgocall",
    b"runtime.asmcgocall_no_g",
    // These call the vDSO there.
    b"runtime.nanotime1",
    b"runtime.walltime",
    b"time.now",
];

/// Functions with which goroutines and threads begin.
const ROOTS: [&[u8]; 4] =
    [b"runtime.goexit", b"runtime.mstart", b"runtime.rt0_go", b"runtime.clone"];

/// What a function of Go's runtime means for the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Landmark {
    Switch,
    Root,
}

impl GoRuntime {
    /// Takes note of a function of the program.
    pub fn add(&mut self, name: &[u8], addresses: Range<u64>) {
        let name = name.strip_suffix(b".abi0").unwrap_or(name);
        if SWITCHES.contains(&name) {
            self.switches.push(addresses);
        } else if ROOTS.contains(&name) {
            self.roots.push(addresses);
        }
    }

    /// Returns what the function at an address means for the chain.
    pub(super) fn landmark(&self, address: u64) -> Option<Landmark> {
        let has = |ranges: &[Range<u64>]| ranges.iter().any(|range| range.contains(&address));
        if has(&self.switches) {
            Some(Landmark::Switch)
        } else {
            has(&self.roots).then_some(Landmark::Root)
        }
    }
}

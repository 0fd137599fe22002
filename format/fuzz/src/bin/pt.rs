#![no_main]

#[path = "../trace.rs"]
#[allow(dead_code, reason = "of the targets, one is run")]
mod trace;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| trace::pt(bytes));

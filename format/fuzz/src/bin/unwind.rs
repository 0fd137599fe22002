#![no_main]

#[path = "../unwind.rs"]
mod unwind;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| unwind::unwind(bytes));

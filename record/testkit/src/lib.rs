//! Fakes for the tests of `rec`: what stands in for the kernel and for other machines, and for what
//! goes on there.
//!
//! | module | what |
//! |---|---|
//! | [`busy_cpus`] | loops on all CPUs |
//! | [`fake_kernel`] | counters whose rings and AUX areas are memfds, written by threads |
//! | [`fake_ring`] | a data ring that a test fills record by record |
//! | [`kernel_side`], [`ring_writer`] | the kernel's side of a ring: layout, and order of writes |
//! | [`sysfs`] | folders with the files of sysfs and tracefs of other machines |
//!
//! The unit tests of `recrep-record` compile these files as a module of their own crate, whose
//! private parts they test; so paths in here begin with `recrep_record` or `super`.
#![allow(missing_docs, reason = "comments say what names and types do not")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

pub mod busy_cpus;
pub mod fake_kernel;
pub mod fake_ring;
pub mod kernel_side;
pub mod ring_writer;
pub mod sysfs;

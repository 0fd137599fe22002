//! Tests that watch a live machine: they record what runs here, by the kernel's clock.

mod bpf;
mod build_ids;
mod draining;
mod off_cpu;
mod recording;
mod status;
mod waits;

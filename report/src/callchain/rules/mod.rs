//! The call frame information of modules: unwinding by it, and checking what was recorded by it.

pub(crate) mod frame_pointers;
pub(crate) mod unwind;

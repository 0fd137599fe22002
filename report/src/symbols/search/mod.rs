//! The search for the symbols, the debug information and the code of a module.
//!
//! ```text
//!   candidates, processes, fetch      where its files may be
//!   proof                             which of them are the recorded ones
//!   mapped                            mapped files, with their debug files
//!   kernel · jit · recorded           the kernel, code of JITs, symbols in the recording
//! ```

pub(crate) mod candidates;
pub(crate) mod fetch;
pub(crate) mod jit;
pub(crate) mod kernel;
pub(crate) mod mapped;
pub(crate) mod processes;
pub(crate) mod proof;
pub(crate) mod recorded;

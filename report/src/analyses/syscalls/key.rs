//! What calls are told apart by.

use crate::analyses::callers::Caller;

/// Names by which calls are told apart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct CallsKey {
    pub(super) process: Option<String>,
    pub(super) thread: Option<String>,
    pub(super) caller: Option<Caller>,
    pub(super) syscall: String,
}

//! Calls and returns among branches (`c`, `r`).

use recrep_trace::pt::{Branch, BranchKind};

use crate::query::{Letter, SynthOptions};

/// Which branches are samples.
#[derive(Clone, Copy, Debug)]
pub(super) struct BranchFilter {
    /// Only calls are wanted, or calls and returns.
    has_calls: bool,
    /// Only returns are wanted, or calls and returns.
    has_returns: bool,
}

impl BranchFilter {
    pub(super) fn from_options(options: &SynthOptions) -> Self {
        Self { has_calls: options.has(Letter::Calls), has_returns: options.has(Letter::Returns) }
    }

    /// Returns whether all branches are samples.
    pub(super) fn is_all(self) -> bool {
        !self.has_calls && !self.has_returns
    }

    /// Returns whether a branch is a sample, by the rules of perf: where tracing ends counts as a
    /// call, and where it begins as a return.
    pub(super) fn has(self, branch: &Branch) -> bool {
        use BranchKind::{
            Asynchronous, Begin, Call, Interrupt, InterruptReturn, Return, SystemCall, SystemReturn,
        };
        if self.is_all() {
            return true;
        }
        let is_call =
            branch.to == 0 || matches!(branch.kind, Call | SystemCall | Interrupt | Asynchronous);
        let is_return = matches!(branch.kind, Return | SystemReturn | InterruptReturn | Begin);
        self.has_calls && is_call || self.has_returns && is_return
    }
}

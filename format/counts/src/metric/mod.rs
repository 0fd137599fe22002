//! Metrics of perf's event tables: expressions of counts, such as `instructions / cycles`.
//!
//! ```text
//!  "100 * (a / b) if #smt_on else c"
//!     │ token, parse: Expr, or the column that is wrong
//!     ▼
//!  Expr ── fold: literals, constant branches (Facts) ──▶ formula: with the metrics that it names
//!                                                           │ events()           which to count
//!                                                           ▼ value(Counts)
//!  Row … ──▶ measure: Measure of each metric in each place (unknown: a division by zero, an
//!            event that was not counted)
//! ```
//!
//! ```
//! use recrep_counts::{Counts, Facts, Formula};
//!
//! struct Machine;
//! impl Facts for Machine {
//!     fn literal(&self, name: &str) -> Option<f64> {
//!         (name == "smt_on").then_some(1.0)
//!     }
//!     fn has_event(&self, _: &str) -> bool {
//!         true
//!     }
//!     fn is_cpu(&self, _: &str) -> Option<bool> {
//!         None
//!     }
//!     fn metric(&self, name: &str) -> Option<String> {
//!         (name == "half").then(|| "cycles / 2".to_owned())
//!     }
//! }
//! impl Counts for Machine {
//!     fn count(&self, event: &str) -> Option<f64> {
//!         Some(if event == "cycles" { 200.0 } else { 50.0 })
//!     }
//!     fn sources(&self, _: &str) -> Option<f64> {
//!         None
//!     }
//! }
//!
//! let formula = Formula::new("IPC", "instructions / half if #SMT_on else 0", &Machine).unwrap();
//! assert_eq!(formula.events(), ["cycles", "instructions"]);
//! assert_eq!(formula.value(&Machine), Some(0.5));
//! assert!(Formula::new("IPC", "instructions / ", &Machine).is_err());
//! ```

mod expr;
mod fold;
mod formula;
mod measure;
mod measured;
mod parse;
mod token;

pub use expr::Counts;
pub use fold::Facts;
pub use formula::{Formula, FormulaError};
pub use measure::{MetricInput, TableMetric, Times, measure};
pub use measured::{Measure, Threshold};

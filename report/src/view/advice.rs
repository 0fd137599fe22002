//! Comment lines below the tables: problems that make the result less reliable, and remedies.

use std::io::{self, Write};

use crate::count::metrics::share;
use crate::query::Query;
use crate::table::profile::Profile;

use crate::terminal::escape::escape;

/// Prints one line per problem.
pub(super) fn print(profile: &Profile, query: &Query, out: &mut impl Write) -> io::Result<()> {
    if query.style.quiet {
        return Ok(());
    }
    let sum = |of: fn(&crate::table::profile::InputSummary) -> u64| {
        profile.inputs.iter().map(of).fold(0, u64::saturating_add)
    };
    let (lost, throttled) = (sum(|input| input.lost_samples), sum(|input| input.recording.throttled));
    let taken = sum(|input| input.records.get("SAMPLE").copied().unwrap_or(0));
    let mut all = Vec::new();
    if lost > 0 {
        let percent = share(lost, lost.saturating_add(taken));
        all.push(format!("{percent:.1}% of the samples were lost: larger rings (-m) or a lower rate (-F) lose fewer"));
    }
    if throttled > 0 {
        all.push(format!(
            "{throttled} times the kernel sampled less than it was asked to: a lower rate (-F) is kept to"
        ));
    }
    let cut = profile.inputs.iter().filter(|input| !input.complete);
    all.extend(cut.map(|input| format!("{} is not whole: this is what was in it", input.path)));
    all.extend(profile.chain_ends.warning());
    all.extend(profile.module_uses.footer());
    all.iter().try_for_each(|line| writeln!(out, "# {}", escape(line)))
}

//! Text output of `rep modules`.

use std::io::{self, Write};

use super::listing::{AttemptRow, Listing};
use crate::count::metrics::share;
use crate::terminal::escape::escape;

/// Prints the listing.
pub(super) fn print(listing: &Listing, out: &mut impl Write) -> io::Result<()> {
    let percent = share(listing.resolved, listing.samples);
    writeln!(out, "# {} samples, {percent:.2}% of them with a function", listing.samples)?;
    writeln!(out, "#\n# {:>9}  {:>8}  {:>8}  Module", "Samples", "Share", "Resolved")?;
    for module in &listing.modules {
        let (samples, share, resolved) = (module.samples, module.percent, module.resolved_percent);
        let name = module.path.as_deref().filter(|path| path.starts_with('/')).unwrap_or(&module.name);
        writeln!(out, "{samples:>11}  {share:>7.2}%  {resolved:>7.2}%  {}", escape(name))?;
        if let Some(reason) = &module.reason {
            explain(out, reason.code, reason.message, reason.help)?;
        }
        for AttemptRow { source, path, symbols, refused } in &module.attempts {
            let result = match (symbols, refused) {
                (Some(symbols), _) => format!("{symbols} symbols"),
                (None, refused) => refused.clone().unwrap_or_default(),
            };
            writeln!(out, "{:35}tried {} ({source}): {}", "", escape(path), escape(&result))?;
        }
    }
    let stacks = &listing.stacks;
    if stacks.copies > 0 {
        let (cut, all, bytes) = (stacks.copies_truncated, stacks.copies, stacks.copy_bytes);
        let percent = share(cut, all);
        writeln!(out, "#\n# {cut} of {all} copied stacks ({percent:.2}%) are truncated at {bytes} bytes")?;
    }
    if stacks.callchains_at_limit > 0 {
        let (cut, all) = (stacks.callchains_at_limit, stacks.callchains);
        writeln!(out, "#\n# {cut} of {all} callchains ({:.2}%) reach the kernel's maximum depth", share(cut, all))?;
    }
    if let Some(reason) = &listing.truncated_stacks {
        explain(out, reason.code, reason.message, reason.help)?;
    }
    Ok(())
}

fn explain(out: &mut impl Write, code: &str, message: &str, help: &str) -> io::Result<()> {
    writeln!(out, "{:35}{code}: {message}", "")?;
    writeln!(out, "{:35}what would help: {help}", "")
}

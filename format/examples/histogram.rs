//! Counts samples by the name of their thread, from standard input.
//!
//! ```sh
//! perf record -o - -- ./app | cargo run --release -p recrep-format --example histogram
//! cargo run --release -p recrep-format --example histogram < perf.data
//! ```

#![allow(clippy::print_stderr, reason = "standard output is for the histogram")]

use std::collections::HashMap;
use std::error::Error;
use std::io::{self, Read, Write};

use recrep_format::read::File;
use recrep_format::record::{Body, RawRecord};

/// Returns the time of a record. Synthesized records have 0 or all ones in its place: they describe
/// what was there before all others.
fn time(file: &File<'_>, record: &RawRecord<'_>) -> Option<u64> {
    file.attrs.time_of(record).filter(|time| !matches!(*time, 0 | u64::MAX))
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut bytes = Vec::new();
    io::stdin().lock().read_to_end(&mut bytes)?;
    let file = File::parse(&bytes)?;
    let unpacked = file.unpacked();
    let mut records = Vec::new();
    for record in unpacked.records() {
        match record {
            Ok(record) => records.push(record),
            Err(error) => eprintln!("{error}: the records before it are counted"),
        }
    }
    // A name counts for the samples after it. Records of one time keep their order.
    records.sort_by_key(|record| time(&file, record));
    let mut comms: HashMap<u32, String> = HashMap::from([(0, "swapper".to_owned())]);
    let mut counts: HashMap<String, u64> = HashMap::new();
    for record in records {
        if let Some(tid) = file.attrs.sample(record).and_then(|(_, sample)| sample.tid()) {
            let comm = comms.get(&tid).map_or("unknown", String::as_str);
            match counts.get_mut(comm) {
                Some(count) => *count += 1,
                None => drop(counts.insert(comm.to_owned(), 1)),
            }
            continue;
        }
        match file.attrs.decode(&record).map(|record| record.body) {
            Ok(Body::Comm(comm)) => drop(comms.insert(comm.tid, comm.comm.to_text().into_owned())),
            // A new thread has the name of the one that made it.
            Ok(Body::Fork(fork)) => {
                if let Some(name) = comms.get(&fork.ptid).cloned() {
                    comms.insert(fork.tid, name);
                }
            }
            Ok(_) => {}
            Err(error) => eprintln!("{error}: left out"),
        }
    }
    file.warnings.iter().for_each(|warning| eprintln!("{warning}"));
    let mut rows: Vec<_> = counts.into_iter().collect();
    rows.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let mut out = io::stdout().lock();
    rows.iter().try_for_each(|(comm, count)| writeln!(out, "{count:>10}  {comm}"))?;
    Ok(())
}

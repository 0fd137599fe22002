//! Counts samples by the name of their thread, from standard input, in bounded memory: of two
//! rounds of perf.
//!
//! ```sh
//! perf record -o - -- ./app | cargo run --release -p recrep-format --example histogram
//! cargo run --release -p recrep-format --example histogram < perf.data
//! ```

#![allow(clippy::print_stderr, reason = "standard output is for the histogram")]

use std::collections::HashMap;
use std::error::Error;
use std::io::{self, Write};

use recrep_format::read::Recording;
use recrep_format::record::Body;

fn main() -> Result<(), Box<dyn Error>> {
    // In order of time: a name counts for the samples behind it.
    let mut records = Recording::new(io::stdin().lock())?.ordered();
    let mut comms: HashMap<u32, String> = HashMap::from([(0, "swapper".to_owned())]);
    let mut counts: HashMap<String, u64> = HashMap::new();
    while let Some(record) = records.next_record() {
        let record = match record {
            Ok(record) => record,
            Err(error) => {
                eprintln!("{error}: the records before it are counted");
                continue;
            }
        };
        if let Some(tid) = record.sample().and_then(|sample| sample.tid()) {
            let comm = comms.get(&tid).map_or("unknown", String::as_str);
            match counts.get_mut(comm) {
                Some(count) => *count += 1,
                None => drop(counts.insert(comm.to_owned(), 1)),
            }
            continue;
        }
        match record.decode().map(|record| record.body) {
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
    records.recording().warnings().iter().for_each(|warning| eprintln!("{warning}"));
    let mut rows: Vec<_> = counts.into_iter().collect();
    rows.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let mut out = io::stdout().lock();
    rows.iter().try_for_each(|(comm, count)| writeln!(out, "{count:>10}  {comm}"))?;
    Ok(())
}

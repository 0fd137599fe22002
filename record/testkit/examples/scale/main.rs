//! rec on machines that are not at hand: 8 to 512 CPUs, simulated from the costs of one round, one
//! record and one write, which are measured first. Prints `record/docs/scale.md`:
//!
//! ```text
//! cargo run --release -p recrep-record-testkit --example scale > record/docs/scale.md
//! ```

#![allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::float_cmp
)] // A model.
#![allow(clippy::indexing_slicing)] // Of its own vectors, by its own numbers.
#![allow(clippy::print_stdout)] // The document.

mod costs;
mod model;

use costs::{Failure, Measured};
use model::{Burst, Costs, Disk, Drains, Load, Setup, simulate};

/// Bytes of a sample: without a callchain, and with one of 30 frames.
const SIZES: [usize; 2] = [56, 304];
const CPUS: [usize; 7] = [8, 16, 32, 64, 128, 256, 512];
/// Records per second on each CPU.
const RATES: [f64; 6] = [10.0, 100.0, 1e3, 4e3, 2e4, 1e5];
/// Seconds that a woken thread waits where all CPUs are busy: a tick of a kernel at 250 Hz.
const TURN: f64 = 4e-3;
/// rec's default ring: 512 KiB.
const RING: f64 = (512 << 10) as f64;

fn main() -> Result<(), Failure> {
    let measured = costs::measure(&SIZES)?;
    let cpu = std::fs::read_to_string("/proc/cpuinfo")?;
    let cpu =
        cpu.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or(": an unknown CPU");
    println!(
        "{}",
        include_str!("head.md").replace("CPU_MODEL", cpu.trim_start_matches(['\t', ' ', ':']))
    );
    print_limits(&measured);
    if std::env::args().any(|word| word == "--all") {
        print_costs(&measured);
        print_one_thread(&measured);
        print_bursts(&measured);
        print_disks(&measured);
    }
    Ok(())
}

impl Measured {
    /// The costs for one size of records.
    fn of(&self, size: usize) -> Costs {
        let record =
            self.records.iter().find(|(known, _)| *known == size).map_or(0.0, |(_, cost)| *cost);
        Costs { record, ..self.costs }
    }

    fn setup(&self, cpus: usize, rate: f64, size: usize) -> Setup {
        let load = Load { cpus, rate, bytes: size as f64, burst: None };
        // Some wakeups of each ring; and more than the largest ring could put off.
        let seconds =
            (4.0 * RING / size as f64 / rate).clamp(if rate < 1e4 { 1.0 } else { 10.0 }, 100.0);
        Setup { load, costs: self.of(size), drains: Drains::One, ring: RING, disk: None, seconds }
    }
}

fn row(cells: impl IntoIterator<Item = String>) {
    println!("| {} |", cells.into_iter().collect::<Vec<_>>().join(" | "));
}

fn head(cells: &[String]) {
    row(cells.iter().cloned());
    row(cells.iter().map(|_| "---".to_owned()));
}

fn nanoseconds(seconds: f64) -> String {
    if seconds < 1e-8 {
        format!("{:.2} ns", seconds * 1e9)
    } else {
        format!("{:.0} ns", seconds * 1e9)
    }
}

fn rate(records: f64) -> String {
    match records {
        r if r >= 1e6 => format!("{:.1} M", r / 1e6),
        r if r >= 1e3 => format!("{:.0} k", r / 1e3),
        r => format!("{r:.0}"),
    }
}

fn bytes(bytes: f64) -> String {
    if bytes >= f64::from(1 << 20) {
        format!("{:.0}M", bytes / f64::from(1 << 20))
    } else {
        format!("{:.0}K", bytes / 1024.0)
    }
}

fn percent(share: f64) -> String {
    match share {
        s if s > 0.0 && s < 0.001 => "< 0.1 %".into(),
        s if s < 0.1 => format!("{:.1} %", s * 100.0),
        s => format!("{:.0} %", s * 100.0),
    }
}

fn print_costs(measured: &Measured) {
    let Costs { look, write, byte, wakeup, .. } = measured.costs;
    println!("## Measured costs\n");
    head(&["what".into(), "cost".into()]);
    row(["looking at an idle ring (of 512)".into(), nanoseconds(look)]);
    for (size, cost) in &measured.records {
        row([format!("walking over a record of {size} bytes, from memory"), nanoseconds(*cost)]);
    }
    row(["a system call that writes 64 bytes".into(), nanoseconds(write)]);
    row([
        "writing a byte into the page cache".into(),
        format!("{} ({:.1} GB/s)", nanoseconds(byte), 1e-9 / byte),
    ]);
    row([
        "compressing a byte (`-z`)".into(),
        format!("{} ({:.1} GB/s)", nanoseconds(measured.compress), 1e-9 / measured.compress),
    ]);
    row([
        "from the kernel's wakeup until the thread runs (idle CPUs, median)".into(),
        nanoseconds(wakeup),
    ]);
    println!(
        "\nWhole rounds of rec's drain over full rings of 64 KiB, against the sum of the above:\n"
    );
    head(&["rings", "bytes of a record", "measured", "sum"].map(Into::into));
    for (rings, size, seconds, sum) in &measured.rounds {
        let ms = |seconds: f64| format!("{:.2} ms", seconds * 1e3);
        row([rings.to_string(), size.to_string(), ms(*seconds), ms(*sum)]);
    }
}

/// The smallest ring that loses nothing, where the thread waits for its turn.
fn smallest_ring(mut setup: Setup) -> Option<f64> {
    setup.costs.wakeup += TURN;
    (12..=24)
        .map(|log| f64::from(1 << log))
        .find(|ring| simulate(Setup { ring: *ring, ..setup }).lost == 0.0)
}

fn print_one_thread(measured: &Measured) {
    println!(
        "\n## One thread\n\nThe share of one CPU that rec's thread needs, and the smallest ring \
         for each CPU without loss where the thread waits {:.0} ms for its turn; or what is lost.",
        TURN * 1e3
    );
    for size in SIZES {
        println!("\nRecords of {size} bytes:\n");
        let columns = RATES.map(|r| format!("{}/s", rate(r)));
        head(&[vec!["CPUs".to_owned()], columns.to_vec()].concat());
        for cpus in CPUS {
            let cell = |rate: f64| {
                let setup = measured.setup(cpus, rate, size);
                let outcome = simulate(setup);
                match smallest_ring(setup) {
                    Some(ring) => format!("{}, {}", percent(outcome.busy), bytes(ring)),
                    None => format!("**{} lost**", percent(simulate(setup).lost_share())),
                }
            };
            row(std::iter::once(cpus.to_string()).chain(RATES.map(cell)));
        }
    }
}

/// The highest rate on each CPU without loss, with the default ring.
fn highest_rate(setup: Setup) -> f64 {
    let (mut low, mut high) = (1.0, 1e9);
    while high / low > 1.02 {
        let middle = f64::sqrt(low * high);
        // Long enough that a ring would fill up.
        let seconds = (8.0 * setup.ring / setup.load.bytes / middle).clamp(0.02, 20.0);
        let load = Load { rate: middle, ..setup.load };
        if simulate(Setup { load, seconds, ..setup }).lost == 0.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

fn print_limits(measured: &Measured) {
    println!(
        "\n## Where one thread stops, and what `--threads` gains\n\nThe highest number of records \
         per second on each CPU without loss, rings of {}:",
        bytes(RING)
    );
    for size in SIZES {
        println!("\nRecords of {size} bytes:\n");
        head(
            &[
                "CPUs",
                "one thread",
                "one thread, `-z`",
                "`--threads -o -`",
                "`--threads`",
                "`--threads -z`",
            ]
            .map(Into::into),
        );
        for cpus in CPUS {
            let cell = |drains, packed: bool| {
                let mut setup = Setup { drains, ..measured.setup(cpus, 1.0, size) };
                if packed {
                    setup.costs.compress = measured.compress;
                    setup.costs.byte *= measured.ratio;
                }
                rate(highest_rate(setup))
            };
            row([
                cpus.to_string(),
                cell(Drains::One, false),
                cell(Drains::One, true),
                cell(Drains::PerCpu, false),
                cell(Drains::Directory, false),
                cell(Drains::Directory, true),
            ]);
        }
    }
}

fn print_bursts(measured: &Measured) {
    println!(
        "\n## Bursts\n\nAll records of 100 ms in 10 ms (ten times the mean rate). The smallest \
         ring without loss, where the thread waits as above; one thread, 56 bytes, by the mean \
         rate:\n"
    );
    head(
        &[vec!["CPUs".to_owned()], RATES[2..].iter().map(|r| format!("{}/s", rate(*r))).collect()]
            .concat(),
    );
    for cpus in CPUS {
        let cell = |rate: &f64| {
            let mut setup = Setup { seconds: 1.0, ..measured.setup(cpus, *rate, SIZES[0]) };
            setup.load.burst = Some(Burst { period: 0.1, duty: 0.1 });
            smallest_ring(setup).map_or_else(
                || format!("**{} lost**", percent(simulate(setup).lost_share())),
                bytes,
            )
        };
        row(std::iter::once(cpus.to_string()).chain(RATES[2..].iter().map(cell)));
    }
}

fn print_disks(measured: &Measured) {
    println!(
        "\n## A slow disk\n\n64 CPUs, records of 304 bytes, one thread, a page cache that takes 1 \
         GB before writers wait; lost in the first 10 and 60 seconds:\n"
    );
    head(
        &[
            "records/s on each CPU",
            "MB/s",
            "disk of 100 MB/s",
            "disk of 500 MB/s",
            "disk of 2,000 MB/s",
        ]
        .map(Into::into),
    );
    for records in RATES {
        let cell = |bandwidth: f64| {
            let lost = |seconds: f64| {
                let disk = Some(Disk { bandwidth, cache: 1e9 });
                simulate(Setup { disk, seconds, ..measured.setup(64, records, SIZES[1]) })
                    .lost_share()
            };
            format!("{}, {}", percent(lost(10.0)), percent(lost(60.0)))
        };
        let produced = format!("{:.1}", 64.0 * records * SIZES[1] as f64 / 1e6);
        row([rate(records), produced, cell(1e8), cell(5e8), cell(2e9)]);
    }
    println!(
        "\nNo ring makes up for a disk that is slower than the mean: `-z`, a lower rate or \
         shorter callchains do."
    );
}

//! `rec --help`, Buffers and threads: rings, AUX areas, and how they are drained.

use clap::Args;

use crate::cli::values;
use crate::plan::config::{
    Affinity, Aux, Config, Mask, RingSize, Rings, Snapshots, Split, Threads,
};
use crate::tasks;

/// Flags of rings and threads.
#[derive(Debug, Args)]
#[command(next_help_heading = "Buffers and threads")]
#[allow(clippy::struct_excessive_bools, reason = "each is an independent flag")]
pub(in crate::cli) struct RingFlags {
    /// Size of each ring, and of each AUX area, in pages, or with B, K, M or G [default: up to
    /// 512K, with copies of stacks 2M; AUX: up to 4M]
    #[arg(short, long, value_name = "DATA[,AUX]", value_parser = sizes)]
    pub(in crate::cli) mmap_pages: Option<Sizes>,
    /// Drain a ring only when it holds at least this many bytes [default: 1]
    #[arg(long, value_name = "BYTES", value_parser = flush)]
    mmap_flush: Option<usize>,
    /// Keep only the newest records in the rings; write them on SIGUSR2 and at the end; implies
    /// --tail-synthesize
    #[arg(long)]
    overwrite: bool,
    /// Wake rec for every record
    #[arg(long)]
    no_buffering: bool,
    /// Drain with this niceness: -20 to 19 [default: -20 where rings would be full in 50 ms, if
    /// that is allowed]
    #[arg(
        long, value_name = "N", allow_hyphen_values = true, conflicts_with = "realtime",
        value_parser = niceness
    )]
    nice: Option<i32>,
    /// Drain with this priority of SCHED_FIFO
    #[arg(short = 'r', long, value_name = "PRIORITY", value_parser = priority)]
    realtime: Option<u32>,
    /// Drain in threads, into a directory: one for each cpu, core, package or numa node, or
    /// CPUS/RUN-ON:... [default: cpu]
    #[arg(
        long, value_name = "SPEC", num_args = 0..=1, require_equals = true,
        default_missing_value = "cpu", value_parser = split
    )]
    threads: Option<Split>,
    /// Let at most SIZE of records wait to be written (B, K, M or G) [default: 64M, or the size of
    /// all rings if larger]
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    queue_size: Option<u64>,
    /// Drain each ring on its own NUMA node or CPU
    #[arg(long, value_name = "node|cpu", conflicts_with = "threads", value_parser = affinity)]
    affinity: Option<Affinity>,
    /// Keep only the newest AUX trace, [e][SIZE] of it; write it on SIGUSR2, and with e also at the
    /// end
    #[arg(
        short = 'S', long, value_name = "OPTS", num_args = 0..=1, require_equals = true,
        default_missing_value = "", value_parser = snapshots
    )]
    snapshot: Option<Snapshots>,
    /// Add the last BYTES of AUX trace to each sample of the events grouped with the AUX event
    /// [default: 4096]
    #[arg(
        long, value_name = "BYTES", num_args = 0..=1, require_equals = true,
        default_missing_value = "", conflicts_with = "snapshot", value_parser = aux_bytes
    )]
    aux_sample: Option<u32>,
}

/// Value of `-m`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) struct Sizes {
    /// Size of each ring.
    pub(in crate::cli) data: Option<RingSize>,
    /// Size of each AUX area.
    pub(in crate::cli) aux: Option<RingSize>,
}

impl RingFlags {
    pub(super) fn configure(self, config: &mut Config) {
        config.rings = Rings {
            data: self.mmap_pages.and_then(|sizes| sizes.data),
            aux: self.mmap_pages.and_then(|sizes| sizes.aux),
            overwrite: self.overwrite,
            // Overwritten rings end with the newest records, so tasks and mappings are described as
            // of then.
            tail_synthesize: config.rings.tail_synthesize || self.overwrite,
            flush: self.mmap_flush,
            no_buffering: self.no_buffering,
            nice: self.nice,
            realtime: self.realtime,
            threads: Threads { split: self.threads, affinity: self.affinity.unwrap_or_default() },
        };
        config.aux = Aux { snapshots: self.snapshot, sample: self.aux_sample };
        config.output.queue = self.queue_size;
    }
}

fn sizes(text: &str) -> Result<Sizes, String> {
    parse_sizes(text).ok_or_else(|| {
        format!("'{text}' is neither a number of pages nor a size in bytes with K, M or G")
    })
}

fn parse_sizes(text: &str) -> Option<Sizes> {
    match text.split_once(',') {
        None => Some(Sizes { data: Some(ring_size(text)?), aux: None }),
        Some(("", aux)) => Some(Sizes { data: None, aux: Some(ring_size(aux)?) }),
        Some((data, aux)) => {
            Some(Sizes { data: Some(ring_size(data)?), aux: Some(ring_size(aux)?) })
        }
    }
}

fn ring_size(text: &str) -> Option<RingSize> {
    match values::bytes(text) {
        Some(bytes) => Some(RingSize::Bytes(bytes)),
        None => text.parse().ok().filter(|n| *n > 0).map(RingSize::Pages),
    }
}

fn flush(text: &str) -> Result<usize, String> {
    let size = values::bytes(text).or_else(|| text.parse().ok().filter(|n| *n > 0));
    size.map(|size| usize::try_from(size).unwrap_or(usize::MAX))
        .ok_or_else(|| format!("'{text}' is not a number of bytes"))
}

fn niceness(text: &str) -> Result<i32, String> {
    values::number_in(text, -20..=19)
        .ok_or_else(|| format!("'{text}' is not a niceness, -20 to 19"))
}

fn priority(text: &str) -> Result<u32, String> {
    values::number_in(text, 1..=99)
        .ok_or_else(|| format!("'{text}' is not a SCHED_FIFO priority from 1 to 99"))
}

/// Parses the unit that gets a thread (cpu, core, package, numa), or masks (CPUs of the rings/CPUs
/// to run on).
fn split(text: &str) -> Result<Split, String> {
    match text {
        "cpu" => return Ok(Split::Cpu),
        "core" => return Ok(Split::Core),
        "package" => return Ok(Split::Package),
        "numa" => return Ok(Split::Numa),
        _ => {}
    }
    let masks: Option<Vec<Mask>> = text.split(':').map(mask).collect();
    let masks = masks.ok_or_else(|| {
        format!(
            "'{text}' is none of cpu, core, package and numa, nor a list of CPU masks \
             (0,2/0:1,3/1)"
        )
    })?;
    let are_rings_shared = share_a_cpu(masks.iter().map(|mask| mask.cpus.as_slice()));
    if are_rings_shared || share_a_cpu(masks.iter().map(|mask| mask.affinity.as_slice())) {
        return Err(format!(
            "'{text}' has a CPU in two masks; name each CPU's ring in one mask only"
        ));
    }
    Ok(Split::Masks(masks))
}

fn mask(text: &str) -> Option<Mask> {
    let (cpus, affinity) = text.split_once('/')?;
    Some(Mask { cpus: tasks::parse_cpus(cpus).ok()?, affinity: tasks::parse_cpus(affinity).ok()? })
}

fn share_a_cpu<'a>(lists: impl Iterator<Item = &'a [u32]>) -> bool {
    let mut all: Vec<u32> = lists.flatten().copied().collect();
    all.sort_unstable();
    all.windows(2).any(|pair| pair.first() == pair.last())
}

fn affinity(text: &str) -> Result<Affinity, String> {
    match text {
        "sys" => Ok(Affinity::System),
        "node" => Ok(Affinity::Node),
        "cpu" => Ok(Affinity::Cpu),
        _ => Err(format!("'{text}' is neither node nor cpu")),
    }
}

/// Parses perf's options: `e` for a snapshot at the end, and a size.
fn snapshots(text: &str) -> Result<Snapshots, String> {
    let size = text.strip_prefix('e').unwrap_or(text);
    let bytes = if size.is_empty() { Some(0) } else { unsigned(size) };
    match bytes {
        Some(bytes) => Ok(Snapshots { size: bytes, at_end: size != text }),
        None => Err(format!(
            "'{text}' is not a size in bytes, optionally after an e (snapshot at the end)"
        )),
    }
}

fn aux_bytes(text: &str) -> Result<u32, String> {
    /// A record has at most 64 KiB; this leaves room for the sample's other fields.
    const MOST: u32 = 60 << 10;
    if text.is_empty() {
        return Ok(4096);
    }
    let bytes = unsigned(text).and_then(|n| u32::try_from(n).ok());
    bytes
        .filter(|n| (1..=MOST).contains(n))
        .ok_or_else(|| format!("'{text}' is not a number of bytes from 1 to {MOST}"))
}

/// Parses a decimal number, or a hexadecimal one after `0x`.
fn unsigned(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ring_sizes() {
        let of = |data, aux| Ok(Sizes { data, aux });
        assert_eq!(sizes("2"), of(Some(RingSize::Pages(2)), None));
        assert_eq!(sizes("1M"), of(Some(RingSize::Bytes(1 << 20)), None));
        assert_eq!(sizes("8,16"), of(Some(RingSize::Pages(8)), Some(RingSize::Pages(16))));
        assert_eq!(sizes(",4M"), of(None, Some(RingSize::Bytes(4 << 20))));
        for wrong in ["", "0", ",", "x", "1,x", "1T", "8,"] {
            assert!(sizes(wrong).is_err(), "{wrong}");
        }
        assert_eq!(flush("10"), Ok(10));
        assert_eq!(flush("4K"), Ok(4096));
        assert!(flush("0").is_err());
    }

    #[test]
    fn who_drains() {
        assert_eq!((split("cpu"), split("numa")), (Ok(Split::Cpu), Ok(Split::Numa)));
        let mask = |cpus: &[u32], affinity: &[u32]| Mask {
            cpus: cpus.to_vec(),
            affinity: affinity.to_vec(),
        };
        assert_eq!(
            split("0,2-3/2:1/0"),
            Ok(Split::Masks(vec![mask(&[0, 2, 3], &[2]), mask(&[1], &[0])]))
        );
        for wrong in ["", "cpus", "0", "0/", "/0", "0/0:", "0/1:0/2", "0/1:2/1"] {
            assert!(split(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn small_numbers() {
        assert!(priority("0").is_err() && priority("99").is_ok() && priority("100").is_err());
        assert_eq!((aux_bytes(""), aux_bytes("0x100")), (Ok(4096), Ok(256)));
        assert!(aux_bytes("0").is_err() && aux_bytes("61441").is_err());
        assert!(
            snapshots("e").is_ok()
                && snapshots("e0x1000").is_ok()
                && snapshots("").is_ok()
                && snapshots("x").is_err()
        );
    }
}

//! Samples that are left out at the begin (`s`): how many of each part.

use rayon::prelude::*;
use recrep_format::endian::Endian;

use super::decoder::TraceDecoder;
use super::gaps::Gaps;
use super::samples::SampleWriter;

/// Returns how many samples each part leaves out, so that the first are left out: those of the parts that
/// begin first, which are decoded to count them.
pub(super) fn left_out(decoder: &dyn TraceDecoder, most: u64, endian: Endian) -> Vec<u64> {
    if most == 0 {
        return Vec::new();
    }
    let begins = decoder.begins();
    let mut order: Vec<(u64, usize)> = begins.into_iter().zip(0..).collect();
    order.sort_unstable();
    let (mut left_out, mut rest) = (vec![0; order.len()], most);
    for parts in order.chunks(rayon::current_num_threads()) {
        if rest == 0 {
            break;
        }
        let counts = parts.par_iter().map(|(_, part)| {
            let mut samples = SampleWriter::leaving_out(u64::MAX, endian);
            decoder.decode(*part, &mut samples, &mut Gaps::default());
            samples.taken
        });
        for ((_, part), count) in parts.iter().zip(counts.collect::<Vec<u64>>()) {
            if let Some(left_out) = left_out.get_mut(*part) {
                *left_out = rest.min(count);
                rest -= *left_out;
            }
        }
    }
    left_out
}

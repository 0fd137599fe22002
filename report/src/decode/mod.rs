//! Traces of processors as samples: one more source of records for the pass over samples.
//!
//! ```text
//!   AUXTRACE records ─► queues: the bytes of each ring ─► parts ─┐     a decoder for each kind of trace
//!   AUXTRACE_INFO, TIME_CONV ─► kind, clock                      ▼
//!   side-band ─► timeline, threads on CPUs ────────────────────► part ─► samples, as records
//!   --itrace ─► events, with perf's names                             └► gaps, by reason
//! ```
//!
//! [`open`] opens an input with the samples of its traces: their events are added to those of the
//! file, and the parts of the traces to the pieces that the workers of `samples` take. A part is
//! decoded where it is read, by whichever worker takes it: all cores decode, and each holds one
//! part. What reads samples does not know of traces.
//!
//! A new kind of trace is a [`TraceDecoder`] and a line in [`decoding`].

mod bts;
mod calls;
mod code;
mod decoder;
mod gaps;
mod pt;
mod queues;
mod recorded;
mod running;
mod samples;
mod skip;
mod spe;
mod time;

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use recrep_console::units;
use recrep_format::abi::{AuxtraceKind, SampleType};
use recrep_format::attr::AttrTable;
use recrep_format::endian::Endian;
use recrep_format::read::File;

use self::decoder::{Decoding, TraceDecoder};
use self::gaps::Gaps;
pub(crate) use self::recorded::WantedTraces;
use self::recorded::{RecordedTraces, may_have_traces};
pub(crate) use self::samples::Elapsed;
use self::samples::SampleWriter;
use crate::input::unpack::RecordSource;
use crate::input::{Input, Keep, OpenError, OpenedInput};
use crate::query::{Letter, Warning};
use crate::symbols::Resolver;

/// Returns the decoder of traces.
///
/// # Errors
/// Returns the reason if they cannot be decoded.
fn decoding<'i>(
    traces: RecordedTraces<'i>,
    file: &File<'_>,
    resolver: &'i Resolver,
) -> Result<Decoding<'i>, String> {
    match traces.kind {
        AuxtraceKind::ARM_SPE => spe::decoding(traces, file),
        // What it takes depends on the code that is there.
        AuxtraceKind::INTEL_PT if !traces.is_chosen => {
            Err("Intel PT is decoded where letters are chosen: --itrace=b".to_owned())
        }
        AuxtraceKind::INTEL_PT => pt::decoding(traces, file, resolver),
        AuxtraceKind::INTEL_BTS => bts::decoding(traces, file, resolver),
        kind => Err(format!("rep knows no decoder of {kind}")),
    }
}

/// Opens an input with the samples of its traces. Listings get other samples by default than
/// reports, as in perf.
///
/// # Errors
/// Returns an error if it is not a perf.data file.
pub(crate) fn open<'i>(
    input: &'i Input,
    keep: Keep,
    wanted: WantedTraces<'_>,
    resolver: &'i Resolver,
) -> Result<OpenedInput<'i>, OpenError> {
    let mut opened = OpenedInput::new(input, keep)?;
    if let Some(options) = wanted.itrace.options(keep == Keep::All)
        && may_have_traces(&opened.file)
        && let Some(traces) = RecordedTraces::read(&opened, options, wanted, resolver)
    {
        add(&mut opened, traces, resolver);
    }
    Ok(opened)
}

/// Adds the samples of traces to an input. If letters were chosen, those without samples are
/// reported.
fn add<'i>(opened: &mut OpenedInput<'i>, traces: RecordedTraces<'i>, resolver: &'i Resolver) {
    let OpenedInput { file, streams, .. } = opened;
    let (is_chosen, skipped) = (traces.is_chosen, traces.options.skipped);
    let (recorded_gaps, bytes) = (traces.queues.gaps.clone(), traces.queues.bytes());
    let made = match has_common_id(&file.attrs) {
        true => decoding(traces, file, resolver),
        false => Err("its events cannot be told apart (no PERF_SAMPLE_IDENTIFIER)".to_owned()),
    };
    let first = file.attrs.entries().len();
    let mut summed = first..first;
    let (decoder, warnings) = match made {
        Ok(Decoding { decoder, events, unserved }) => {
            if events.are_sums() {
                summed.end += events.entries.len();
            }
            for entry in events.entries {
                file.attrs.push(entry);
            }
            let unserved = unserved.into_iter().filter(|_| is_chosen);
            let warning = |(letter, reason)| unserved_letter(letter, reason);
            (Some(decoder), unserved.map(warning).collect())
        }
        Err(reason) => {
            let message = format!("{} of AUX trace is not decoded: {reason}", units::bytes(bytes));
            (None, vec![Warning::new("aux-not-decoded", message)])
        }
    };
    let parts = decoder.as_ref().map(|decoder| decoder.parts()).unwrap_or_default();
    let found = parts.iter().map(|_| OnceLock::new()).collect();
    let endian = file.endian;
    let left_out = decoder.as_deref().map(|decoder| skip::left_out(decoder, skipped, endian));
    streams.add_decoded(Arc::new(DecodedTraces {
        decoder,
        parts,
        left_out: left_out.unwrap_or_default(),
        endian,
        summed,
        found,
        recorded_gaps,
        warnings,
    }));
}

/// Returns the warning about a letter for which there are no samples.
fn unserved_letter(letter: Letter, reason: &str) -> Warning {
    let (typed, meaning) = (letter.typed(), letter.meaning());
    Warning::new("itrace-letter", format!("--itrace: no {meaning} (`{typed}`): {reason}"))
}

/// Returns whether the events of decoded samples can be told from those of the file: by an id at
/// the same place in all samples.
fn has_common_id(attrs: &AttrTable) -> bool {
    let mut entries = attrs.entries().iter();
    entries.all(|entry| entry.attr.sample_type.contains(SampleType::IDENTIFIER))
}

/// What decoding a part found.
#[derive(Debug)]
struct FoundInPart {
    samples: u64,
    gaps: Gaps,
}

/// The samples of traces, as a source of records.
#[derive(Debug)]
struct DecodedTraces<'i> {
    /// `None` if the traces cannot be decoded.
    decoder: Option<Box<dyn TraceDecoder + 'i>>,
    parts: Vec<usize>,
    /// Number of samples that each part leaves out; empty: none.
    left_out: Vec<u64>,
    endian: Endian,
    /// Events of which a record is a sum of samples.
    summed: Range<usize>,
    /// What was found in each part, once it was decoded.
    found: Vec<OnceLock<FoundInPart>>,
    /// Gaps that records tell of.
    recorded_gaps: Gaps,
    warnings: Vec<Warning>,
}

impl RecordSource for DecodedTraces<'_> {
    fn parts(&self) -> Vec<usize> {
        self.parts.clone()
    }

    fn decode(&self, part: usize, into: &mut Vec<u8>) {
        let Some(decoder) = &self.decoder else { return };
        let left_out = self.left_out.get(part).copied().unwrap_or(0);
        let mut samples = SampleWriter::leaving_out(left_out, self.endian);
        let mut gaps = Gaps::default();
        decoder.decode(part, &mut samples, &mut gaps);
        into.extend_from_slice(samples.as_bytes());
        if let Some(found) = self.found.get(part) {
            found.get_or_init(|| FoundInPart { samples: samples.samples, gaps });
        }
    }

    fn summed_events(&self) -> Range<usize> {
        self.summed.clone()
    }

    fn samples(&self) -> u64 {
        self.found.iter().filter_map(OnceLock::get).map(|found| found.samples).sum()
    }

    fn warnings(&self) -> Vec<Warning> {
        let mut gaps = self.recorded_gaps.clone();
        for found in self.found.iter().filter_map(OnceLock::get) {
            gaps.append(&found.gaps);
        }
        self.warnings.iter().cloned().chain(gaps.warning()).collect()
    }
}

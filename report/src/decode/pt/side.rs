//! Events beside the flow: PTWRITE, power, transactions, the event trace. Their samples, with perf's names and raw data.

use recrep_format::abi::{EventType, HwEvent, SampleType, SynthEvent};
use recrep_format::attr::Attr;
use recrep_format::record::SynthData;
use recrep_trace::pt::SideEvent;

use super::info::PtInfo;
use crate::decode::samples::{DecodedEvent, DecodedEvents};
use crate::query::{Letter, SynthOptions};

/// What the samples of an event are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SideKind {
    Transaction,
    Synth(SynthEvent),
}

/// The events that are made, in perf's order: letter, name, what they are of.
const ALL: [(Letter, &str, SideKind); 10] = [
    (Letter::Transactions, "transactions", SideKind::Transaction),
    (Letter::PtWrites, "ptwrite", SideKind::Synth(SynthEvent::INTEL_PTWRITE)),
    (Letter::Power, "cbr", SideKind::Synth(SynthEvent::INTEL_CBR)),
    (Letter::Power, "psb", SideKind::Synth(SynthEvent::INTEL_PSB)),
    (Letter::Power, "mwait", SideKind::Synth(SynthEvent::INTEL_MWAIT)),
    (Letter::Power, "pwre", SideKind::Synth(SynthEvent::INTEL_PWRE)),
    (Letter::Power, "exstop", SideKind::Synth(SynthEvent::INTEL_EXSTOP)),
    (Letter::Power, "pwrx", SideKind::Synth(SynthEvent::INTEL_PWRX)),
    (Letter::Interrupts, "evt", SideKind::Synth(SynthEvent::INTEL_EVT)),
    (Letter::Interrupts, "iflag", SideKind::Synth(SynthEvent::INTEL_IFLAG_CHG)),
];

/// Events beside the flow of which samples are made.
#[derive(Clone, Debug, Default)]
pub(super) struct SideEvents(Vec<(SideKind, DecodedEvent)>);

impl SideEvents {
    /// Adds the events of letters that are asked for and that the trace was recorded with.
    pub(super) fn add(
        decoded: &mut DecodedEvents,
        options: &SynthOptions,
        info: &PtInfo,
        attr: &Attr,
    ) -> Self {
        let mut sample_type = attr.sample_type;
        sample_type.remove(SampleType::PERIOD | SampleType::RAW);
        let mut events = Vec::new();
        for (letter, name, kind) in ALL {
            if !options.has(letter) || !kind.is_recorded(info) {
                continue;
            }
            let attr = match kind {
                SideKind::Transaction => Attr {
                    config: HwEvent::INSTRUCTIONS.0,
                    sample_type,
                    sample_period: 1,
                    ..attr.clone()
                },
                SideKind::Synth(event) => Attr {
                    kind: EventType::SYNTH,
                    config: event.0,
                    sample_type: sample_type | SampleType::RAW,
                    sample_period: 1,
                    ..attr.clone()
                },
            };
            events.push((kind, decoded.add(name, attr)));
        }
        Self(events)
    }

    /// Returns whether there are any of the letters that are asked for.
    pub(super) fn are_recorded(options: &SynthOptions, info: &PtInfo) -> bool {
        ALL.iter().any(|(letter, _, kind)| options.has(*letter) && kind.is_recorded(info))
    }

    /// Returns whether there are any of a letter.
    pub(super) fn has(&self, letter: Letter) -> bool {
        ALL.iter().any(|(of, _, kind)| *of == letter && self.get(*kind).is_some())
    }

    /// Returns whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the event of which a transaction is a sample, if there is one.
    pub(super) fn transactions(&self) -> Option<DecodedEvent> {
        self.get(SideKind::Transaction)
    }

    /// Returns the event of which this is a sample, if there is one.
    pub(super) fn of_data(&self, data: &SynthData) -> Option<DecodedEvent> {
        self.get(SideKind::Synth(data.event()))
    }

    fn get(&self, kind: SideKind) -> Option<DecodedEvent> {
        self.0.iter().find(|(of, _)| *of == kind).map(|(_, event)| *event)
    }
}

impl SideKind {
    /// Returns whether such events are in the trace if they happened.
    fn is_recorded(self, info: &PtInfo) -> bool {
        match self {
            Self::Synth(
                SynthEvent::INTEL_MWAIT
                | SynthEvent::INTEL_PWRE
                | SynthEvent::INTEL_EXSTOP
                | SynthEvent::INTEL_PWRX,
            ) => info.has_power,
            Self::Synth(SynthEvent::INTEL_EVT) => info.has_event_trace,
            Self::Synth(SynthEvent::INTEL_IFLAG_CHG) => info.has_interrupt_flag,
            _ => true,
        }
    }
}

/// Returns the raw data of an event; `None` of transactions. `start` is the offset of its part in the AUX area.
pub(super) fn synth_data(event: &SideEvent, info: &PtInfo, start: u64) -> Option<SynthData> {
    Some(match *event {
        SideEvent::Transaction => return None,
        SideEvent::PtWrite { value, has_ip } => SynthData::PtWrite { has_ip, value },
        SideEvent::MWait(operands) => SynthData::MWait(operands),
        SideEvent::Pwre(state) => SynthData::Pwre(state.into()),
        SideEvent::Pwrx(states) => SynthData::Pwrx(states),
        SideEvent::ExStop { has_ip } => SynthData::ExStop { has_ip },
        SideEvent::Psb(offset) => SynthData::Psb { offset: start + offset as u64 },
        SideEvent::Cbr(ratio) => SynthData::Cbr {
            ratio,
            base: u8::try_from(info.rates.non_turbo).unwrap_or(0),
            kilohertz: u32::from(ratio).wrapping_mul(info.bus_kilohertz),
        },
        SideEvent::ControlFlow { kind, vector, has_ip, ref data } => {
            SynthData::ControlFlow { kind, has_ip, vector, data: data.clone() }
        }
        SideEvent::InterruptFlag { is_set, branch_to } => {
            SynthData::InterruptFlag { is_set, branch_to }
        }
    })
}

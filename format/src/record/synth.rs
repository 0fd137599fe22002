//! Raw data of events that perf makes of traces of Intel PT; little-endian.

use crate::abi::SynthEvent;
use crate::bytes::Encoder;
use crate::endian::Endian;

const LITTLE: Endian = Endian::Little;

/// What the raw data of a sample of [`crate::abi::EventType::SYNTH`] says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SynthData {
    /// A value that the program wrote.
    PtWrite {
        /// The sample has its address.
        has_ip: bool,
        /// The value.
        value: u64,
    },
    /// Operands of `mwait`.
    MWait(u64),
    /// Entry to a C-state.
    Pwre(u64),
    /// The core's clock stopped.
    ExStop {
        /// The sample has its address.
        has_ip: bool,
    },
    /// Exit from a C-state.
    Pwrx(u64),
    /// Another ratio of the core's clock to the bus clock.
    Cbr {
        /// The ratio.
        ratio: u8,
        /// That of the core's base frequency; 0 if not known.
        base: u8,
        /// Frequency of the core.
        kilohertz: u32,
    },
    /// A place where decoding can begin.
    Psb {
        /// Its offset in the trace.
        offset: u64,
    },
    /// An event of the flow of control.
    ControlFlow {
        /// Intel's number of what happened.
        kind: u8,
        /// The sample has its address.
        has_ip: bool,
        /// Vector of an interrupt.
        vector: u8,
        /// Types and values of its data.
        data: Vec<(u8, u64)>,
    },
    /// Interrupts were enabled or disabled.
    InterruptFlag {
        /// They are enabled.
        is_set: bool,
        /// Target of the branch with which they were.
        branch_to: Option<u64>,
    },
}

/// Returns a number's lowest byte.
const fn byte(number: u64) -> u8 {
    (number & 0xff) as u8
}

impl SynthData {
    /// Reads the raw data of an event; `None` if there is too little, or the event is not known.
    pub fn read(event: SynthEvent, raw: &[u8]) -> Option<Self> {
        let head = LITTLE.u32_at(raw, 0)?;
        let number = |at: usize| LITTLE.u64_at(raw, at);
        let has_ip = head & 1 != 0;
        Some(match event {
            SynthEvent::INTEL_PTWRITE => Self::PtWrite { has_ip, value: number(4)? },
            SynthEvent::INTEL_MWAIT => Self::MWait(number(4)?),
            SynthEvent::INTEL_PWRE => Self::Pwre(number(4)?),
            SynthEvent::INTEL_EXSTOP => Self::ExStop { has_ip },
            SynthEvent::INTEL_PWRX => Self::Pwrx(number(4)?),
            SynthEvent::INTEL_CBR => Self::Cbr {
                ratio: byte(head.into()),
                base: byte(u64::from(head) >> 16),
                kilohertz: LITTLE.u32_at(raw, 4)?,
            },
            SynthEvent::INTEL_PSB => Self::Psb { offset: number(4)? },
            SynthEvent::INTEL_EVT => {
                let count = usize::try_from(head >> 16).unwrap_or(0);
                let (data, _) = raw.get(4..)?.as_chunks::<16>();
                let datum = |datum: &[u8; 16]| Some((*datum.first()?, LITTLE.u64_at(datum, 8)?));
                Self::ControlFlow {
                    kind: byte(head.into()) & 0x1f,
                    has_ip: head >> 7 & 1 != 0,
                    vector: byte(u64::from(head) >> 8),
                    data: data.iter().take(count).filter_map(datum).collect(),
                }
            }
            SynthEvent::INTEL_IFLAG_CHG => {
                let target = number(4)?;
                let branch_to = (head & 2 != 0).then_some(target);
                Self::InterruptFlag { is_set: has_ip, branch_to }
            }
            _ => return None,
        })
    }

    /// Returns the event that this is of.
    pub fn event(&self) -> SynthEvent {
        match self {
            Self::PtWrite { .. } => SynthEvent::INTEL_PTWRITE,
            Self::MWait(_) => SynthEvent::INTEL_MWAIT,
            Self::Pwre(_) => SynthEvent::INTEL_PWRE,
            Self::ExStop { .. } => SynthEvent::INTEL_EXSTOP,
            Self::Pwrx(_) => SynthEvent::INTEL_PWRX,
            Self::Cbr { .. } => SynthEvent::INTEL_CBR,
            Self::Psb { .. } => SynthEvent::INTEL_PSB,
            Self::ControlFlow { .. } => SynthEvent::INTEL_EVT,
            Self::InterruptFlag { .. } => SynthEvent::INTEL_IFLAG_CHG,
        }
    }

    /// Returns the raw data.
    pub fn to_raw(&self) -> Vec<u8> {
        /// Flags and a number.
        fn long(flags: u32, number: u64) -> Vec<u8> {
            let mut raw = Encoder::new(LITTLE);
            raw.u32(flags);
            raw.u64(number);
            raw.into_bytes()
        }
        match *self {
            Self::PtWrite { has_ip, value } => long(has_ip.into(), value),
            Self::MWait(number) | Self::Pwre(number) | Self::Pwrx(number) => long(0, number),
            Self::ExStop { has_ip } => LITTLE.bytes_u32(has_ip.into()).to_vec(),
            Self::Cbr { ratio, base, kilohertz } => {
                let flags = u32::from(ratio) | u32::from(base) << 16;
                long(flags, kilohertz.into())
            }
            Self::Psb { offset } => long(0, offset),
            Self::ControlFlow { kind, has_ip, vector, ref data } => {
                let count = u32::try_from(data.len()).unwrap_or(u32::MAX);
                let flags = u32::from(kind & 0x1f) | u32::from(has_ip) << 7;
                let head = flags | u32::from(vector) << 8 | count << 16;
                let mut raw = Encoder::new(LITTLE);
                raw.u32(head);
                for (kind, value) in data {
                    raw.u64((*kind).into());
                    raw.u64(*value);
                }
                raw.into_bytes()
            }
            Self::InterruptFlag { is_set, branch_to } => {
                let flags = u32::from(is_set) | u32::from(branch_to.is_some()) << 1;
                long(flags, branch_to.unwrap_or(0))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_data_is_read_back_and_cut_data_is_none() {
        let control_flow = |data: &[(u8, u64)]| SynthData::ControlFlow {
            kind: 9,
            has_ip: true,
            vector: 0xfe,
            data: data.to_vec(),
        };
        for data in [
            SynthData::PtWrite { has_ip: true, value: 0x0102_0304_0506_0708 },
            SynthData::MWait(0x1_0000_0020),
            SynthData::Pwre(0x3280),
            SynthData::ExStop { has_ip: true },
            SynthData::Pwrx(0x123),
            SynthData::Cbr { ratio: 30, base: 20, kilohertz: 3_000_000 },
            SynthData::Psb { offset: u64::MAX },
            control_flow(&[]),
            control_flow(&[(0, 0xdead), (63, u64::MAX)]),
            SynthData::InterruptFlag { is_set: true, branch_to: None },
            SynthData::InterruptFlag { is_set: false, branch_to: Some(0x1000) },
        ] {
            let (event, raw) = (data.event(), data.to_raw());
            assert_eq!(SynthData::read(event, &raw), Some(data));
            assert_eq!(SynthData::read(event, &raw[..3]), None);
        }
        assert_eq!(SynthData::read(SynthEvent(99), &[0; 16]), None);
        let ptwrite = SynthData::PtWrite { has_ip: true, value: 2 };
        assert_eq!(ptwrite.to_raw(), [1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]);
    }
}

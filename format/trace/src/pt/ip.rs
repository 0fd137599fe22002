//! Addresses in packets: bits that equal those of the address before are left out.

/// Number of bytes of an address that a packet has, and what the others are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IpForm {
    /// No address: it is out of context.
    None,
    /// The low 16 bits; the others stay.
    Low16,
    /// The low 32 bits; the others stay.
    Low32,
    /// 48 bits, sign-extended.
    Signed48,
    /// The low 48 bits; the upper 16 stay.
    Low48,
    /// All 64 bits.
    Full,
}

impl IpForm {
    /// All forms.
    pub const ALL: [Self; 6] =
        [Self::None, Self::Low16, Self::Low32, Self::Signed48, Self::Low48, Self::Full];

    /// Returns the form that the upper three bits of a first byte name.
    pub(super) fn from_bits(bits: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|form| form.bits() == bits)
    }

    /// Returns the upper three bits of the first byte.
    pub(super) fn bits(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Low16 => 1,
            Self::Low32 => 2,
            Self::Signed48 => 3,
            Self::Low48 => 4,
            Self::Full => 6,
        }
    }

    /// Returns the number of bytes of the address.
    pub(super) fn len(self) -> usize {
        match self {
            Self::None => 0,
            Self::Low16 => 2,
            Self::Low32 => 4,
            Self::Signed48 | Self::Low48 => 6,
            Self::Full => 8,
        }
    }
}

/// An address as a packet has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ip {
    /// How much of the address there is.
    pub form: IpForm,
    /// The bits that are there.
    pub bits: u64,
}

impl Ip {
    /// No address.
    pub const NONE: Self = Self { form: IpForm::None, bits: 0 };
}

/// The address that the next one is compressed against.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LastIp(u64);

impl LastIp {
    /// Returns the full address of a packet, and keeps it; `None` if the packet has none.
    #[inline]
    pub fn update(&mut self, ip: Ip) -> Option<u64> {
        let kept = |bits: u32| self.0 >> bits << bits;
        self.0 = match ip.form {
            IpForm::None => return None,
            IpForm::Low16 => kept(16) | ip.bits,
            IpForm::Low32 => kept(32) | ip.bits,
            IpForm::Low48 => kept(48) | ip.bits,
            IpForm::Signed48 => ((ip.bits << 16).cast_signed() >> 16).cast_unsigned(),
            IpForm::Full => ip.bits,
        };
        Some(self.0)
    }

    /// Forgets the address, as a PSB does.
    pub fn reset(&mut self) {
        self.0 = 0;
    }

    /// Returns the shortest form of an address, as processors choose it, and keeps the address.
    pub fn compress(&mut self, address: u64) -> Ip {
        let same_above = |bits: u32| address >> bits == self.0 >> bits;
        let is_signed48 = ((address << 16).cast_signed() >> 16).cast_unsigned() == address;
        let (form, width) = if same_above(16) {
            (IpForm::Low16, 16)
        } else if same_above(32) {
            (IpForm::Low32, 32)
        } else if is_signed48 {
            (IpForm::Signed48, 48)
        } else if same_above(48) {
            (IpForm::Low48, 48)
        } else {
            (IpForm::Full, 64)
        };
        self.0 = address;
        Ip { form, bits: address & (u64::MAX >> (64 - width)) }
    }
}

//! The letters after an event's colon.

use std::fmt;

use recrep_format::abi::AttrFlags;

use super::error::SpecError;

/// What the letters after the colon ask for. None of `u k h`: all three; none of `G H`: the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Modifiers {
    /// `u`: count user space.
    pub user: bool,
    /// `k`: count the kernel.
    pub kernel: bool,
    /// `h`: count the hypervisor.
    pub hypervisor: bool,
    /// `G`: count guests.
    pub guest: bool,
    /// `H`: count the host.
    pub host: bool,
    /// `p` … `ppp`: how exact the ip must be.
    pub precise: u8,
    /// `P`: as exact as the machine can.
    pub max_precise: bool,
    /// `D`: always on the PMU.
    pub pinned: bool,
    /// `I`: not when idle.
    pub no_idle: bool,
    /// `e`: alone on the PMU.
    pub exclusive: bool,
}

impl Modifiers {
    /// Reads the letters; `spec` is the whole spec, for the error.
    pub(super) fn parse(spec: &str, letters: &str) -> Result<Self, SpecError> {
        let mut m = Self::default();
        for letter in letters.chars() {
            match letter {
                'u' => m.user = true,
                'k' => m.kernel = true,
                'h' => m.hypervisor = true,
                'G' => m.guest = true,
                'H' => m.host = true,
                'p' if m.precise == 3 => return Err(SpecError::TooPrecise { spec: spec.to_owned() }),
                'p' => m.precise += 1,
                'P' => m.max_precise = true,
                'D' => m.pinned = true,
                'I' => m.no_idle = true,
                'e' => m.exclusive = true,
                'S' | 'W' => return Err(SpecError::GroupModifier { spec: spec.to_owned(), modifier: letter }),
                _ => return Err(SpecError::Modifier { spec: spec.to_owned(), modifier: letter }),
            }
        }
        if letters.is_empty() {
            return Err(SpecError::Modifier { spec: spec.to_owned(), modifier: ':' });
        }
        Ok(m)
    }

    /// The attr's flags for these letters.
    #[must_use]
    pub fn flags(&self) -> AttrFlags {
        let mut flags = AttrFlags::empty();
        if self.user || self.kernel || self.hypervisor {
            flags.set(AttrFlags::EXCLUDE_USER, !self.user);
            flags.set(AttrFlags::EXCLUDE_KERNEL, !self.kernel);
            flags.set(AttrFlags::EXCLUDE_HV, !self.hypervisor);
        }
        flags.set(AttrFlags::EXCLUDE_GUEST, !self.guest);
        flags.set(AttrFlags::EXCLUDE_HOST, self.guest && !self.host);
        flags.set(AttrFlags::PINNED, self.pinned);
        flags.set(AttrFlags::EXCLUDE_IDLE, self.no_idle);
        flags.set(AttrFlags::EXCLUSIVE, self.exclusive);
        flags.with_precise_ip(if self.max_precise { 3 } else { self.precise })
    }
}

/// The letters again, in perf's usual order.
impl fmt::Display for Modifiers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (set, letter) in [
            (self.user, 'u'),
            (self.kernel, 'k'),
            (self.hypervisor, 'h'),
            (self.precise > 0, 'p'),
            (self.precise > 1, 'p'),
            (self.precise > 2, 'p'),
            (self.max_precise, 'P'),
            (self.host, 'H'),
            (self.guest, 'G'),
            (self.pinned, 'D'),
            (self.no_idle, 'I'),
            (self.exclusive, 'e'),
        ] {
            if set {
                write!(f, "{letter}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(letters: &str) -> AttrFlags {
        Modifiers::parse("x", letters).unwrap().flags()
    }

    #[test]
    fn exclusions_are_what_was_not_named() {
        use AttrFlags as F;
        assert_eq!(Modifiers::default().flags(), F::EXCLUDE_GUEST);
        assert_eq!(flags("u"), F::EXCLUDE_KERNEL | F::EXCLUDE_HV | F::EXCLUDE_GUEST);
        assert_eq!(flags("k"), F::EXCLUDE_USER | F::EXCLUDE_HV | F::EXCLUDE_GUEST);
        assert_eq!(flags("uk"), F::EXCLUDE_HV | F::EXCLUDE_GUEST);
        assert_eq!(flags("ukh"), F::EXCLUDE_GUEST);
        assert_eq!(flags("G"), F::EXCLUDE_HOST);
        assert_eq!(flags("GH"), F::empty());
        assert_eq!(flags("DIe"), F::PINNED | F::EXCLUDE_IDLE | F::EXCLUSIVE | F::EXCLUDE_GUEST);
    }

    #[test]
    fn precision_is_counted() {
        assert_eq!(flags("p").precise_ip(), 1);
        assert_eq!(flags("uppp").precise_ip(), 3);
        assert_eq!(flags("P").precise_ip(), 3);
        assert!(matches!(Modifiers::parse("x:pppp", "pppp"), Err(SpecError::TooPrecise { .. })));
    }

    #[test]
    fn unknown_letters_are_named() {
        let e = Modifiers::parse("cycles:ux", "ux").unwrap_err();
        assert_eq!(e.to_string(), "'x' in 'cycles:ux' is no modifier; they are u k h G H p P D I e");
        assert!(Modifiers::parse("cycles:", "").is_err());
    }

    #[test]
    fn letters_print_again() {
        for letters in ["u", "kpp", "ukhP", "HG", "DIe"] {
            assert_eq!(Modifiers::parse("x", letters).unwrap().to_string(), letters);
        }
    }
}

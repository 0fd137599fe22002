//! Modifiers: the letters after an event's colon.

use std::fmt;

use recrep_format::abi::AttrFlags;

use super::error::Problem;

/// Modifiers of an event. Without any of `u k h`, all three apply; without `G H`, see
/// [`Modifiers::flags`].
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
    /// `p` … `ppp`: precision of the ip.
    pub precise: u8,
    /// `P`: maximum precision of the machine.
    pub max_precise: bool,
    /// `D`: always on the PMU.
    pub pinned: bool,
    /// `I`: do not count when idle.
    pub no_idle: bool,
    /// `e`: alone on the PMU.
    pub exclusive: bool,
    /// `S`: samples of the leader read the whole group, and the other members take none.
    pub sample_read: bool,
    /// `W`: open the members alone if the group does not fit on the PMU.
    pub weak: bool,
    /// `true` if all modifiers come from the group.
    pub group_only: bool,
}

impl Modifiers {
    /// Parses the letters. An error includes the position of the letter.
    pub(super) fn parse(letters: &str) -> Result<Self, (usize, Problem)> {
        let mut m = Self::default();
        for (at, letter) in letters.char_indices() {
            let field = match letter {
                'p' if m.precise == 3 => return Err((at, Problem::TooPrecise)),
                'p' => {
                    m.precise += 1;
                    continue;
                }
                'u' => &mut m.user,
                'k' => &mut m.kernel,
                'h' => &mut m.hypervisor,
                'G' => &mut m.guest,
                'H' => &mut m.host,
                'P' => &mut m.max_precise,
                'D' => &mut m.pinned,
                'I' => &mut m.no_idle,
                'e' => &mut m.exclusive,
                'S' => &mut m.sample_read,
                'W' => &mut m.weak,
                'b' | 'R' => return Err((at, Problem::StatModifier(letter))),
                _ => return Err((at, Problem::Modifier(letter))),
            };
            if std::mem::replace(field, true) {
                return Err((at, Problem::RepeatedModifier(letter)));
            }
        }
        if letters.is_empty() { Err((0, Problem::NoModifier)) } else { Ok(m) }
    }

    /// Returns whether all letters are modifiers, unlike those of `sched:sched_switch`.
    pub(super) fn are(letters: &str) -> bool {
        !letters.is_empty() && letters.bytes().all(|b| b"ukhGHpPDIeSWbR".contains(&b))
    }

    /// Combines a member's modifiers with those of its group. Of the group's, `D` and `e` apply
    /// only to the leader.
    pub(super) fn with_group(self, group: Self, leads: bool) -> Result<Self, Problem> {
        let precise = self.precise + group.precise;
        if precise > 3 {
            return Err(Problem::TooPrecise);
        }
        Ok(Self {
            user: self.user || group.user,
            kernel: self.kernel || group.kernel,
            hypervisor: self.hypervisor || group.hypervisor,
            guest: self.guest || group.guest,
            host: self.host || group.host,
            precise,
            max_precise: self.max_precise || group.max_precise,
            pinned: self.pinned || (group.pinned && leads),
            no_idle: self.no_idle || group.no_idle,
            exclusive: self.exclusive || (group.exclusive && leads),
            sample_read: self.sample_read || group.sample_read,
            weak: self.weak || group.weak,
            group_only: self == Self::default(),
        })
    }

    /// Returns the attr's flags. Guests are handled like in perf record: excluded without
    /// modifiers, and with `u`, `p`, or `H` alone; included with other modifiers of the event
    /// itself.
    pub fn flags(&self) -> AttrFlags {
        let mut flags = AttrFlags::empty();
        if self.user || self.kernel || self.hypervisor {
            flags.set(AttrFlags::EXCLUDE_USER, !self.user);
            flags.set(AttrFlags::EXCLUDE_KERNEL, !self.kernel);
            flags.set(AttrFlags::EXCLUDE_HV, !self.hypervisor);
        }
        let no_guests = *self == Self::default()
            || self.group_only
            || self.user
            || self.precise > 0
            || self.host;
        flags.set(AttrFlags::EXCLUDE_GUEST, no_guests && !self.guest);
        flags.set(AttrFlags::EXCLUDE_HOST, self.guest && !self.host);
        flags.set(AttrFlags::PINNED, self.pinned);
        flags.set(AttrFlags::EXCLUDE_IDLE, self.no_idle);
        flags.set(AttrFlags::EXCLUSIVE, self.exclusive);
        flags.with_precise_ip(if self.max_precise { 3 } else { self.precise })
    }
}

/// Formats the letters in perf's usual order.
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
            (self.sample_read, 'S'),
            (self.pinned, 'D'),
            (self.no_idle, 'I'),
            (self.weak, 'W'),
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
        Modifiers::parse(letters).unwrap().flags()
    }

    #[test]
    fn exclusions_are_what_was_not_named() {
        use AttrFlags as F;
        assert_eq!(Modifiers::default().flags(), F::EXCLUDE_GUEST);
        assert_eq!(flags("u"), F::EXCLUDE_KERNEL | F::EXCLUDE_HV | F::EXCLUDE_GUEST);
        assert_eq!(flags("k"), F::EXCLUDE_USER | F::EXCLUDE_HV);
        assert_eq!(flags("uk"), F::EXCLUDE_HV | F::EXCLUDE_GUEST);
        assert_eq!(flags("ukh"), F::EXCLUDE_GUEST);
        assert_eq!(flags("G"), F::EXCLUDE_HOST);
        assert_eq!(flags("H"), F::EXCLUDE_GUEST);
        assert_eq!(flags("GH"), F::empty());
        assert_eq!(flags("uH"), F::EXCLUDE_KERNEL | F::EXCLUDE_HV | F::EXCLUDE_GUEST);
        assert_eq!(flags("DIe"), F::PINNED | F::EXCLUDE_IDLE | F::EXCLUSIVE);
    }

    #[test]
    fn precision_is_counted() {
        assert_eq!(flags("p").precise_ip(), 1);
        assert!(
            flags("p").contains(AttrFlags::EXCLUDE_GUEST)
                && !flags("P").contains(AttrFlags::EXCLUDE_GUEST)
        );
        assert_eq!(flags("uppp").precise_ip(), 3);
        assert_eq!(flags("P").precise_ip(), 3);
        assert_eq!(Modifiers::parse("pppp"), Err((3, Problem::TooPrecise)));
    }

    #[test]
    fn wrong_letters_are_named() {
        assert_eq!(Modifiers::parse("ux"), Err((1, Problem::Modifier('x'))));
        assert_eq!(Modifiers::parse("uku"), Err((2, Problem::RepeatedModifier('u'))));
        assert_eq!(Modifiers::parse("b"), Err((0, Problem::StatModifier('b'))));
        assert_eq!(Modifiers::parse(""), Err((0, Problem::NoModifier)));
    }

    #[test]
    fn members_have_the_letters_of_their_group_too() {
        let parse = |letters| Modifiers::parse(letters).unwrap();
        assert_eq!(parse("u").with_group(parse("kpS"), false).unwrap().to_string(), "ukpS");
        assert_eq!(parse("p").with_group(parse("D"), false).unwrap().to_string(), "p");
        assert_eq!(parse("p").with_group(parse("D"), true).unwrap().to_string(), "pD");
        assert_eq!(parse("pp").with_group(parse("pp"), true), Err(Problem::TooPrecise));
    }

    #[test]
    fn letters_print_again() {
        for letters in ["u", "kpp", "ukhP", "HG", "DIe", "SW"] {
            assert_eq!(Modifiers::parse(letters).unwrap().to_string(), letters);
        }
    }
}

//! Processes, threads and CPUs, where a field may also stand for none or for all of them.

macro_rules! ids {
    ($($(#[$meta:meta])* $name:ident;)*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// All ones (-1): none in particular.
            pub const ANY: Self = Self(u32::MAX);

            /// Returns whether the field is -1: none in particular.
            pub const fn is_any(self) -> bool {
                self.0 == Self::ANY.0
            }

            /// Returns the ID in a 64-bit field, whose low half holds it.
            pub const fn from_wide(word: u64) -> Self {
                Self((word & 0xffff_ffff) as u32)
            }
        }

        /// Prints the number as perf does: -1 for none in particular.
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(&self.0.cast_signed(), f)
            }
        }

        impl<'a> crate::wire::Wire<'a> for $name {
            fn decode(
                c: &mut crate::bytes::Cursor<'a>,
                what: &'static str,
            ) -> crate::error::Result<Self> {
                c.u32(what).map(Self)
            }
            fn encode(&self, e: &mut crate::bytes::Encoder) -> crate::error::Result<()> {
                e.u32(self.0);
                Ok(())
            }
        }

        crate::fields::shown! {
            $name: |id| crate::fields::Value::Number(id.0.cast_signed().into());
        }
    )*};
}

ids! {
    /// A process (thread group): -1 for the kernel, for any process, and for a task that has
    /// already ended.
    Pid;
    /// A thread: -1 for any thread, and for a task that has already ended.
    Tid;
    /// A CPU: -1 for any CPU.
    Cpu;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_ones_is_none_in_particular() {
        assert!(Pid::ANY.is_any() && Tid(u32::MAX).is_any() && !Cpu(0).is_any());
        assert_eq!([Pid(7).to_string(), Tid::ANY.to_string()], ["7", "-1"]);
        assert_eq!(format!("{:>4}", Cpu::ANY), "  -1");
        assert_eq!([Cpu::from_wide(u64::MAX), Cpu::from_wide(5)], [Cpu::ANY, Cpu(5)]);
    }
}

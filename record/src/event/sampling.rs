//! Settings that both flags and terms of events have: sampling rate, callchain mode, branch
//! filters.

use recrep_format::abi::BranchSampleType;

/// Sampling rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rate {
    /// Default: 4000 Hz, or the kernel's limit if lower.
    #[default]
    Default,
    /// Samples per second.
    Hz(u64),
    /// The kernel's limit.
    Max,
    /// Events per sample.
    Period(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Callchain {
    /// The best that an event can have at little cost: unwound where its rate is known and the
    /// machine's stacks can be unwound, else by frame pointers.
    Best,
    /// By frame pointers, unwound by the kernel.
    Fp,
    /// Unwound by rec while it records, from user registers and a copy of the stack.
    Unwind {
        /// Bytes of the stack to copy; `None` for as many as the rate allows.
        stack_size: Option<u32>,
    },
    /// Unwound by rep, from user registers and a copy of the stack.
    Dwarf {
        /// Bytes of the stack to copy.
        stack_size: u32,
    },
    /// From the last branch records in call-stack mode.
    Lbr,
}

impl Callchain {
    /// Default bytes of the stack to copy.
    pub const STACK_SIZE: u32 = 8192;
    /// Maximum bytes of the stack to copy: a multiple of 8 that fits into 16 bits.
    pub const MOST_STACK: u32 = 65528;

    /// Parses `unwind[,size]`, `fp[,depth]`, `dwarf[,size]` or `lbr`. Also returns the depth, which means the same
    /// as `--max-stack`.
    pub fn parse(text: &str) -> Result<(Self, Option<u16>), String> {
        let (mode, rest) =
            text.split_once(',').map_or((text, None), |(mode, rest)| (mode, Some(rest)));
        match (mode, rest) {
            ("fp", None) => Ok((Self::Fp, None)),
            ("fp", Some(depth)) => {
                let depth = depth.parse().ok().filter(|depth| *depth > 0);
                Ok((
                    Self::Fp,
                    Some(depth.ok_or_else(|| {
                        format!("'{text}': the depth after fp must be a number of frames")
                    })?),
                ))
            }
            ("unwind", None) => Ok((Self::Unwind { stack_size: None }, None)),
            ("unwind", Some(size)) => {
                Ok((Self::Unwind { stack_size: Some(Self::stack_size(size)?) }, None))
            }
            ("dwarf", None) => Ok((Self::Dwarf { stack_size: Self::STACK_SIZE }, None)),
            ("dwarf", Some(size)) => {
                Ok((Self::Dwarf { stack_size: Self::stack_size(size)? }, None))
            }
            ("lbr", None) => Ok((Self::Lbr, None)),
            ("lbr", Some(_)) => Err(format!("'{text}': lbr has no options; use lbr alone")),
            _ => Err(format!(
                "unknown callchain mode '{text}'; use unwind[,SIZE], fp, dwarf[,SIZE] or lbr"
            )),
        }
    }

    /// Parses the bytes of the stack to copy, rounded up to a multiple of 8.
    pub fn stack_size(text: &str) -> Result<u32, String> {
        let number = match text.strip_prefix("0x") {
            Some(digits) => u32::from_str_radix(digits, 16).ok(),
            None => text.parse().ok(),
        };
        let size = number.and_then(|size| size.checked_next_multiple_of(8));
        size.filter(|size| (8..=Self::MOST_STACK).contains(size)).ok_or_else(|| {
            format!("invalid stack size '{text}'; use 1 to {} bytes", Self::MOST_STACK)
        })
    }
}

/// Names of branch filters, as in perf-record(1), `-j`.
const BRANCHES: &[(&str, BranchSampleType)] = &[
    ("u", BranchSampleType::USER),
    ("k", BranchSampleType::KERNEL),
    ("hv", BranchSampleType::HV),
    ("any", BranchSampleType::ANY),
    ("any_call", BranchSampleType::ANY_CALL),
    ("any_ret", BranchSampleType::ANY_RETURN),
    ("ind_call", BranchSampleType::IND_CALL),
    ("abort_tx", BranchSampleType::ABORT_TX),
    ("in_tx", BranchSampleType::IN_TX),
    ("no_tx", BranchSampleType::NO_TX),
    ("cond", BranchSampleType::COND),
    ("ind_jmp", BranchSampleType::IND_JUMP),
    ("call", BranchSampleType::CALL),
    ("no_flags", BranchSampleType::NO_FLAGS),
    ("no_cycles", BranchSampleType::NO_CYCLES),
    ("save_type", BranchSampleType::TYPE_SAVE),
    ("stack", BranchSampleType::CALL_STACK),
    ("call_stack", BranchSampleType::CALL_STACK),
    ("hw_index", BranchSampleType::HW_INDEX),
    ("priv", BranchSampleType::PRIV_SAVE),
    ("counter", BranchSampleType::COUNTERS),
];

/// Parses a list of branch filters. If it has only privilege levels, it selects branches of any
/// type, like in perf.
pub(crate) fn parse_branches(list: &str) -> Result<BranchSampleType, String> {
    let mut all = BranchSampleType::empty();
    for word in list.split(',') {
        let known = BRANCHES.iter().find(|(name, _)| name.eq_ignore_ascii_case(word));
        all |= known.map(|(_, bit)| *bit).ok_or_else(|| {
            let names: Vec<_> = BRANCHES.iter().map(|(name, _)| *name).collect();
            format!("unknown branch filter '{word}'; the filters are {}", names.join(" "))
        })?;
    }
    let levels = BranchSampleType::USER | BranchSampleType::KERNEL | BranchSampleType::HV;
    Ok(if levels.contains(all) { BranchSampleType::ANY } else { all })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_to_find_callchains() {
        assert_eq!(Callchain::parse("fp"), Ok((Callchain::Fp, None)));
        assert_eq!(Callchain::parse("fp,16"), Ok((Callchain::Fp, Some(16))));
        let unwind = |stack_size| Ok((Callchain::Unwind { stack_size }, None));
        assert_eq!(Callchain::parse("unwind"), unwind(None));
        assert_eq!(Callchain::parse("unwind,8190"), unwind(Some(8192)));
        assert_eq!(Callchain::parse("dwarf"), Ok((Callchain::Dwarf { stack_size: 8192 }, None)));
        assert_eq!(
            Callchain::parse("dwarf,1001"),
            Ok((Callchain::Dwarf { stack_size: 1008 }, None))
        );
        assert_eq!(
            Callchain::parse("dwarf,0x1000"),
            Ok((Callchain::Dwarf { stack_size: 4096 }, None))
        );
        assert_eq!(
            Callchain::parse("dwarf,65528"),
            Ok((Callchain::Dwarf { stack_size: 65528 }, None))
        );
        assert_eq!(Callchain::parse("lbr"), Ok((Callchain::Lbr, None)));
        for wrong in [
            "",
            "FP",
            "best",
            "unwind,0",
            "dwarf,0",
            "dwarf,65529",
            "dwarf,x",
            "lbr,1",
            "fp,0",
            "fp,x",
            "no",
        ] {
            assert!(Callchain::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn branch_filters_by_perf_s_names() {
        use BranchSampleType as B;
        assert_eq!(parse_branches("any_call,u"), Ok(B::ANY_CALL | B::USER));
        assert_eq!(
            parse_branches("any,save_type,priv,counter"),
            Ok(B::ANY | B::TYPE_SAVE | B::PRIV_SAVE | B::COUNTERS)
        );
        assert_eq!(parse_branches("u"), Ok(B::ANY));
        assert_eq!(parse_branches("hv,k"), Ok(B::ANY));
        assert_eq!(parse_branches("ANY_RET"), Ok(B::ANY_RETURN));
        assert!(parse_branches("any,none").unwrap_err().contains("'none'"));
        assert!(parse_branches("").is_err());
    }
}

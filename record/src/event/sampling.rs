//! How often samples are taken, how their callchains are found and which branches they hold: words that both flags and
//! events use.

use recrep_format::abi::BranchSampleType;

/// How often to sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rate {
    /// Nothing was said: 4000 Hz, or what the kernel allows.
    #[default]
    Default,
    /// So many samples a second.
    Hz(u64),
    /// As many as the kernel allows.
    Max,
    /// One sample every so many events.
    Period(u64),
}

/// How callchains are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Callchain {
    /// By frame pointers, in the kernel.
    Fp,
    /// From user registers and a copy of so many bytes of the stack, afterwards.
    Dwarf {
        /// The size of the copy.
        stack_size: u32,
    },
    /// From the last branch records in call-stack mode.
    Lbr,
}

impl Callchain {
    /// How much of the stack is copied where nothing is said.
    pub const STACK_SIZE: u32 = 8192;
    /// The kernel's limit: the size is 16 bits wide and a multiple of 8.
    pub const MOST_STACK: u32 = 65528;

    /// Reads `fp[,depth]`, `dwarf[,size]` or `lbr`; the depth is that of `--max-stack`.
    ///
    /// # Errors
    /// In words, what is none of these.
    pub fn parse(text: &str) -> Result<(Self, Option<u16>), String> {
        let (mode, rest) = text.split_once(',').map_or((text, None), |(mode, rest)| (mode, Some(rest)));
        match (mode, rest) {
            ("fp", None) => Ok((Self::Fp, None)),
            ("fp", Some(depth)) => {
                let depth = depth.parse().ok().filter(|depth| *depth > 0);
                Ok((
                    Self::Fp,
                    Some(depth.ok_or_else(|| format!("'{text}': the depth after fp is no number of frames"))?),
                ))
            }
            ("dwarf", None) => Ok((Self::Dwarf { stack_size: Self::STACK_SIZE }, None)),
            ("dwarf", Some(size)) => Ok((Self::Dwarf { stack_size: Self::stack_size(size)? }, None)),
            ("lbr", None) => Ok((Self::Lbr, None)),
            ("lbr", Some(_)) => Err(format!("'{text}': nothing follows lbr")),
            _ => Err(format!("'{text}' is no way to find callchains; there are fp, dwarf[,SIZE] and lbr")),
        }
    }

    /// Reads the size of a stack's copy: bytes, rounded up to a multiple of 8.
    ///
    /// # Errors
    /// In words, why it is not one.
    pub fn stack_size(text: &str) -> Result<u32, String> {
        let number = match text.strip_prefix("0x") {
            Some(digits) => u32::from_str_radix(digits, 16).ok(),
            None => text.parse().ok(),
        };
        let size = number.and_then(|size| size.checked_next_multiple_of(8));
        size.filter(|size| (8..=Self::MOST_STACK).contains(size))
            .ok_or_else(|| format!("'{text}' is no size for a copy of the stack: 1 to {} bytes", Self::MOST_STACK))
    }
}

/// perf's names of branch filters (perf-record(1), `-j`).
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

/// Reads a list of branch filters. Where it names privilege levels only, it is about any branch of any level, as perf has it.
///
/// # Errors
/// In words, what is no filter.
pub fn parse_branches(list: &str) -> Result<BranchSampleType, String> {
    let mut all = BranchSampleType::empty();
    for word in list.split(',') {
        let known = BRANCHES.iter().find(|(name, _)| name.eq_ignore_ascii_case(word));
        all |= known.map(|(_, bit)| *bit).ok_or_else(|| {
            let names: Vec<_> = BRANCHES.iter().map(|(name, _)| *name).collect();
            format!("'{word}' is no branch filter; they are {}", names.join(" "))
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
        assert_eq!(Callchain::parse("dwarf"), Ok((Callchain::Dwarf { stack_size: 8192 }, None)));
        assert_eq!(Callchain::parse("dwarf,1001"), Ok((Callchain::Dwarf { stack_size: 1008 }, None)));
        assert_eq!(Callchain::parse("dwarf,0x1000"), Ok((Callchain::Dwarf { stack_size: 4096 }, None)));
        assert_eq!(Callchain::parse("dwarf,65528"), Ok((Callchain::Dwarf { stack_size: 65528 }, None)));
        assert_eq!(Callchain::parse("lbr"), Ok((Callchain::Lbr, None)));
        for wrong in ["", "FP", "dwarf,0", "dwarf,65529", "dwarf,x", "lbr,1", "fp,0", "fp,x", "no"] {
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

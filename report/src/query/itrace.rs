//! What is made of the traces of processors (`--itrace`), in the syntax of perf.
//!
//! ```text
//!   i100us     instructions, one each 100 microseconds
//!   i1000i     instructions, one each 1000
//!   bcr        branches: calls and returns only
//!   ig16l8     instructions with callchains of 16 frames and the last 8 branches
//! ```

use super::lists::UsageError;

/// Kind of sample, or option of decoding, that a letter stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Letter {
    Instructions,
    Cycles,
    Branches,
    Transactions,
    PtWrites,
    Power,
    Other,
    Interrupts,
    Errors,
    Log,
    Calls,
    Returns,
    Callchains,
    AddedCallchains,
    LastBranches,
    AddedLastBranches,
    Skip,
    FirstLevel,
    LastLevel,
    Tlb,
    Remote,
    Memory,
    Quick,
    ApproximateIpc,
    Timeless,
    Timestamps,
}

/// What may follow a letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LetterArgument {
    None,
    /// A number and a unit: i, t, ms, us, ns.
    Period,
    /// A number from 1 to [`MOST_ENTRIES`].
    Entries,
    /// A number, which must be there.
    Count,
    /// Letters, each after a sign.
    Flags,
}

/// Most frames of a callchain, and most last branches.
const MOST_ENTRIES: usize = 1024;

/// All letters: how each is typed, what it stands for, and what may follow it.
const LETTERS: [(char, Letter, LetterArgument, &str); 26] = {
    use Letter::*;
    use LetterArgument::{Count, Entries, Flags, None, Period};
    [
        ('i', Instructions, Period, "instructions"),
        ('y', Cycles, Period, "cycles"),
        ('b', Branches, None, "branches"),
        ('c', Calls, None, "calls"),
        ('r', Returns, None, "returns"),
        ('x', Transactions, None, "transactions"),
        ('w', PtWrites, None, "ptwrites"),
        ('p', Power, None, "power events"),
        ('o', Other, None, "other events"),
        ('I', Interrupts, None, "interrupts"),
        ('e', Errors, Flags, "errors"),
        ('d', Log, Flags, "a log of decoding"),
        ('g', Callchains, Entries, "callchains"),
        ('G', AddedCallchains, Entries, "callchains of other events"),
        ('l', LastBranches, Entries, "last branches"),
        ('L', AddedLastBranches, Entries, "last branches of other events"),
        ('s', Skip, Count, "events to skip first"),
        ('f', FirstLevel, None, "accesses to the first level of the cache"),
        ('m', LastLevel, None, "accesses to the last level of the cache"),
        ('t', Tlb, None, "accesses to the TLB"),
        ('a', Remote, None, "remote accesses"),
        ('M', Memory, None, "memory accesses"),
        ('q', Quick, None, "quicker, less detailed decoding"),
        ('A', ApproximateIpc, None, "approximate instructions per cycle"),
        ('Z', Timeless, None, "decoding without times"),
        ('T', Timestamps, None, "times of the trace"),
    ]
};

impl Letter {
    /// Returns what samples of this letter are called.
    pub(crate) fn meaning(self) -> &'static str {
        self.row().3
    }

    /// Returns the letter as it is typed.
    pub(crate) fn typed(self) -> char {
        self.row().0
    }

    fn row(self) -> (char, Self, LetterArgument, &'static str) {
        let mut rows = LETTERS.into_iter();
        rows.find(|(_, letter, ..)| *letter == self).unwrap_or((
            ' ',
            self,
            LetterArgument::None,
            "",
        ))
    }

    fn bit(self) -> u32 {
        1 << self as u32
    }
}

/// Unit of the distance between two samples of instructions or cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PeriodUnit {
    Instructions,
    Ticks,
    Nanoseconds,
}

/// Samples that are made of traces.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SynthOptions {
    /// A bit for each letter.
    letters: u32,
    /// Distance between two samples of instructions or cycles.
    pub(crate) period: u64,
    pub(crate) unit: PeriodUnit,
    /// Maximum number of frames in a callchain.
    pub(crate) frames: usize,
    /// Maximum number of last branches.
    pub(crate) branches: usize,
    /// Number of events that are skipped first.
    pub(crate) skipped: u64,
    /// Number of times that quicker decoding is asked for.
    pub(crate) quickness: u32,
}

impl Default for SynthOptions {
    /// Returns options that ask for nothing, with perf's numbers.
    fn default() -> Self {
        Self {
            letters: 0,
            period: 100_000,
            unit: PeriodUnit::Nanoseconds,
            frames: 16,
            branches: 64,
            skipped: 0,
            quickness: 0,
        }
    }
}

impl SynthOptions {
    /// Returns perf's defaults: for listings, with every call; else with samples of instructions.
    fn usual(is_listing: bool) -> Self {
        use Letter::*;
        let mut usual = Self::default();
        usual.set(&[Branches, Transactions, PtWrites, Power, Other, Interrupts, Errors]);
        usual.set(&[FirstLevel, LastLevel, Tlb, Memory, Remote]);
        if is_listing {
            usual.set(&[Calls]);
            (usual.period, usual.unit) = (1, PeriodUnit::Instructions);
        } else {
            usual.set(&[Instructions, Cycles]);
        }
        usual
    }

    /// Returns whether samples of this letter are asked for.
    pub(crate) fn has(&self, letter: Letter) -> bool {
        self.letters & letter.bit() != 0
    }

    /// Returns the letters that are asked for.
    pub(crate) fn letters(&self) -> impl Iterator<Item = Letter> {
        LETTERS.into_iter().map(|(_, letter, ..)| letter).filter(|letter| self.has(*letter))
    }

    fn set(&mut self, letters: &[Letter]) {
        for letter in letters {
            self.letters |= letter.bit();
        }
    }
}

/// What the user asked to make of traces.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Itrace {
    /// Nothing was asked: perf's defaults.
    #[default]
    Usual,
    /// What was chosen.
    Chosen(SynthOptions),
    /// Traces are not decoded.
    Nothing,
}

impl Itrace {
    /// Returns what to make; `None` if nothing.
    pub(crate) fn options(&self, is_listing: bool) -> Option<SynthOptions> {
        match self {
            Self::Usual => Some(SynthOptions::usual(is_listing)),
            Self::Chosen(options) => Some(options.clone()),
            Self::Nothing => None,
        }
    }

    /// Parses the value of `--itrace`; an empty one stands for perf's defaults.
    pub(crate) fn parse(text: &str) -> Result<Self, UsageError> {
        if text.is_empty() {
            return Ok(Self::Usual);
        }
        let mut parser = LetterParser { text, at: 0 };
        let mut options = SynthOptions::default();
        while let Some(typed) = parser.next() {
            if matches!(typed, ' ' | ',') {
                continue;
            }
            let known = LETTERS.into_iter().find(|(letter, ..)| *letter == typed);
            let (_, letter, argument, _) = known.ok_or_else(|| parser.unknown(typed))?;
            options.set(&[letter]);
            match letter {
                Letter::Calls | Letter::Returns => options.set(&[Letter::Branches]),
                Letter::Quick => options.quickness += 1,
                _ => {}
            }
            parser.argument(letter, argument, &mut options)?;
        }
        if options.letters == 0 {
            return Err(UsageError("--itrace: no letter says what to make of traces".into()));
        }
        Ok(Self::Chosen(options))
    }
}

/// A text that is read letter by letter.
struct LetterParser<'t> {
    text: &'t str,
    /// Offset in bytes.
    at: usize,
}

impl<'t> LetterParser<'t> {
    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.rest().chars().next()?;
        self.at += next.len_utf8();
        Some(next)
    }

    fn skip(&mut self, separators: &[char]) {
        while self.rest().starts_with(separators) {
            self.at += 1;
        }
    }

    /// Reads a number, if there is one.
    fn number(&mut self) -> Result<Option<u64>, UsageError> {
        let rest = self.rest();
        let len = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let digits = rest.get(..len).unwrap_or_default();
        if digits.is_empty() {
            return Ok(None);
        }
        let number = digits.parse().map_err(|_| self.error("the number is too large"))?;
        self.at += len;
        Ok(Some(number))
    }

    /// Reads what may follow a letter.
    fn argument(
        &mut self,
        letter: Letter,
        argument: LetterArgument,
        options: &mut SynthOptions,
    ) -> Result<(), UsageError> {
        match argument {
            LetterArgument::None => {}
            LetterArgument::Period => {
                self.skip(&[' ', ',']);
                if let Some(number) = self.number()? {
                    self.skip(&[' ', ',']);
                    self.unit(number, options)?;
                }
            }
            LetterArgument::Entries => {
                self.skip(&[' ', ',']);
                let at = self.at;
                if let Some(number) = self.number()? {
                    let entries = usize::try_from(number).ok();
                    let entries = entries.filter(|entries| (1..=MOST_ENTRIES).contains(entries));
                    let limits = || Self { text: self.text, at }.error("a number from 1 to 1024");
                    let entries = entries.ok_or_else(limits)?;
                    match letter {
                        Letter::Callchains | Letter::AddedCallchains => options.frames = entries,
                        _ => options.branches = entries,
                    }
                }
            }
            LetterArgument::Count => {
                let number = self.number()?;
                options.skipped =
                    number.ok_or_else(|| self.error("the number of events to skip is missing"))?;
            }
            LetterArgument::Flags => self.flags()?,
        }
        Ok(())
    }

    /// Reads the unit of a period; without one, it is in nanoseconds if the text ends.
    fn unit(&mut self, number: u64, options: &mut SynthOptions) -> Result<(), UsageError> {
        let units = [
            ("ms", PeriodUnit::Nanoseconds, 1_000_000),
            ("us", PeriodUnit::Nanoseconds, 1000),
            ("ns", PeriodUnit::Nanoseconds, 1),
            ("i", PeriodUnit::Instructions, 1),
            ("t", PeriodUnit::Ticks, 1),
        ];
        let found = units.into_iter().find(|(unit, ..)| self.rest().starts_with(unit));
        let (unit, factor) = match found {
            Some((text, unit, factor)) => {
                self.at += text.len();
                (unit, factor)
            }
            None if self.rest().is_empty() => (PeriodUnit::Nanoseconds, 1),
            None => return Err(self.error("a period ends in i, t, ms, us or ns")),
        };
        (options.period, options.unit) = (number.saturating_mul(factor), unit);
        Ok(())
    }

    /// Reads flags of errors or of the log: which of them are reported, which not. Of errors, all
    /// are counted by reason; nothing is logged.
    fn flags(&mut self) -> Result<(), UsageError> {
        loop {
            self.skip(&[' ']);
            if !self.rest().starts_with(['+', '-']) {
                return Ok(());
            }
            self.at += 1;
            match self.next() {
                Some('a'..='z') => {}
                _ => return Err(self.error("a sign is followed by a letter from a to z")),
            }
        }
    }

    fn error(&self, what: &str) -> UsageError {
        UsageError(format!("--itrace `{}`, position {}: {what}", self.text, self.at + 1))
    }

    fn unknown(&self, typed: char) -> UsageError {
        let letters: String = LETTERS.iter().map(|(letter, ..)| *letter).collect();
        let at = self.at - typed.len_utf8();
        let before = Self { text: self.text, at };
        before.error(&format!("unknown letter `{typed}`; letters: {letters}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(text: &str) -> SynthOptions {
        match Itrace::parse(text) {
            Ok(Itrace::Chosen(options)) => options,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn periods_have_units() {
        for (text, period, unit) in [
            ("i", 100_000, PeriodUnit::Nanoseconds),
            ("i100us", 100_000, PeriodUnit::Nanoseconds),
            ("i2ms", 2_000_000, PeriodUnit::Nanoseconds),
            ("i 7ns", 7, PeriodUnit::Nanoseconds),
            ("i1000i", 1000, PeriodUnit::Instructions),
            ("y10t", 10, PeriodUnit::Ticks),
            ("bi50", 50, PeriodUnit::Nanoseconds),
        ] {
            let options = chosen(text);
            assert_eq!((options.period, options.unit), (period, unit), "{text}");
        }
    }

    #[test]
    fn every_letter_is_read_and_none_twice() {
        let mut seen = 0;
        for (typed, letter, argument, meaning) in LETTERS {
            let text =
                if argument == LetterArgument::Count { format!("{typed}5") } else { typed.into() };
            assert!(chosen(&text).has(letter) && !meaning.is_empty(), "{typed}");
            assert_eq!((letter.typed(), letter.meaning()), (typed, meaning));
            assert_eq!(seen & letter.bit(), 0, "{typed}");
            seen |= letter.bit();
        }
    }

    #[test]
    fn letters_follow_each_other_with_their_numbers() {
        let options = chosen("ig32l8,cs10e+o-lqq");
        assert_eq!((options.frames, options.branches), (32, 8));
        assert_eq!((options.skipped, options.quickness), (10, 2));
        let typed: String = options.letters().map(Letter::typed).collect();
        assert_eq!(typed, "ibceglsq", "calls are branches");
        assert!(Itrace::parse("").unwrap() == Itrace::Usual);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        for (text, message) in [
            ("bz", "--itrace `bz`, position 2: unknown letter `z`"),
            ("i10x", "--itrace `i10x`, position 4: a period ends in i, t, ms, us or ns"),
            ("g2000", "--itrace `g2000`, position 2: a number from 1 to 1024"),
            ("l0", "--itrace `l0`, position 2: a number from 1 to 1024"),
            ("s", "--itrace `s`, position 2: the number of events to skip is missing"),
            ("e+", "--itrace `e+`, position 3: a sign is followed by a letter"),
            ("i99999999999999999999", "--itrace `i99999999999999999999`, position 2: the number"),
            (",", "--itrace: no letter"),
            ("bé", "--itrace `bé`, position 2: unknown letter `é`"),
        ] {
            let error = Itrace::parse(text).unwrap_err().0;
            assert!(error.starts_with(message), "{text}: {error}");
        }
    }
}

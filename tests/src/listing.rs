//! `rep script` and `perf script`, held against each other line by line.
//!
//! The same fields are asked of both: all of [`FIELDS`] but those that perf says the file's samples
//! do not have. The instruction trace of a file is left alone (`--no-itrace`): what perf decodes
//! from it are not samples of the file.
//!
//! rep prints as perf 6.12 does. Where the version at hand prints the same value in another form,
//! or something else, the line is counted under its [`Form`] and held equal in everything else.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use crate::agreement::Extent;
use crate::aliases::with_shortest_names;
use crate::perf::perf;
use crate::programs::rep;
use crate::report::listed;
use crate::run::{Outcome, run};
use crate::table::is_plt;
use crate::witness::Witness;

/// The fields that are compared.
pub const FIELDS: [&str; 15] = [
    "comm",
    "pid",
    "tid",
    "cpu",
    "time",
    "event",
    "ip",
    "sym",
    "dso",
    "addr",
    "period",
    "weight",
    "data_src",
    "phys_addr",
    "brstack",
];

/// A form in which a line may differ, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Form {
    /// perf before 6.12: columns are narrower (`%5d/%-5d` for pid and tid).
    Widths,
    /// perf before 6.12: no space before a branch's module, and no speculation outcome at its end.
    Branches,
    /// perf before 6.12: a frame in a user module is told by its offset in the module.
    Offsets,
    /// perf before 6.12: a memory level that both the old and the new bits name is told twice.
    Levels,
    /// perf before 6.12: where nothing is known of a sample's data, the bits that the kernel added
    /// since are not set.
    Unknown,
    /// perf before 6.12: in big-endian files the bits of a branch's newer types are not swapped.
    NewTypes,
    /// perf before 6.3: an entry of a procedure linkage table has another one's name, or none.
    Linkage,
    /// In a recording of the whole machine, a function in a program that no test knows: perf finds
    /// none or another one, but the module's own tables (see [`Witness`]) show that rep is right.
    /// They have a symbol there that is called as rep calls it undemangled; or a linkage table,
    /// where rep names an entry; or no function, where rep says `[unknown]`.
    ///
    /// Of the compiler's library, where these were found, perf 6.1 and 6.12 give up reading
    /// `.dynsym` at a symbol whose section is not in the file. Then the first sample of the module
    /// has no function, the linkage table no names, and of several names for one address the best
    /// one is not chosen.
    ///
    /// A file without `.symtab` may have symbols elsewhere, by its build ID: what `.dynsym` does
    /// not confirm is right only if perf says `[unknown]`. Of a file that is gone, no ELF file or
    /// changed since the recording began, nobody knows: one of both says `[unknown]`.
    Strangers,
    /// perf from 6.4 on: a thread is forgotten at its EXIT, and what it samples on its way out has
    /// the comm `:TID`.
    Exited,
    /// A function in a recording of another machine: perf takes the symbols of the running kernel,
    /// of its vdso and of the file at the recorded path; rep does not where nothing proves that
    /// they are the recorded ones.
    Unproven,
}

/// The threads in a recording of the whole machine that no test knows.
struct Strangers<'a> {
    /// The comms that are known.
    known: &'a [&'a str],
    /// rep's lines with undemangled names, offsets in functions, and offsets in modules.
    spelt: Vec<String>,
    witness: Witness,
}

/// Result of comparing one file.
#[derive(Debug, Default)]
pub struct Listing {
    /// The fields.
    pub fields: Vec<&'static str>,
    /// Number of lines.
    pub lines: usize,
    /// Number of lines that differ, by the form in which they do.
    pub forms: BTreeMap<Form, usize>,
}

/// Compares these fields in the listings of a file, but those that perf says its samples do not
/// have; `Err` is what perf said where it cannot read it. In a recording of the whole machine these
/// comms' functions must be perf's, and the others' either perf's or confirmed.
///
/// # Errors
/// perf cannot read the file.
#[track_caller]
pub fn compare(
    file: &Path,
    extent: Extent<'_>,
    fields: &[&'static str],
) -> Result<Listing, String> {
    let (fields, perfs) = perfs_listing(file, fields)?;
    let ours = listed(run(rep().args(["script", "-F", &fields.join(",")]).arg(file)));
    Ok(held(file, (&ours, &perfs), fields, extent))
}

/// Compares the listings that both give with the same options.
#[track_caller]
pub fn compare_with(file: &Path, options: &[&str], extent: Extent<'_>) -> Listing {
    let perfs = run(perf()
        .args(["script", "--no-inline", "--no-itrace"])
        .args(options)
        .arg("-i")
        .arg(file))
    .expect(0);
    let ours = listed(run(rep().arg("script").args(options).arg(file)));
    held(file, (&ours, &perfs), vec!["comm"], extent)
}

#[track_caller]
fn held(
    file: &Path,
    (ours, perfs): (&Outcome, &Outcome),
    fields: Vec<&'static str>,
    extent: Extent<'_>,
) -> Listing {
    let (ours, perfs): (Vec<_>, Vec<_>) = (lines(ours), lines(perfs));
    let mut listing = Listing { fields, lines: perfs.len(), forms: BTreeMap::new() };
    let mut strangers = match extent {
        Extent::Command | Extent::Foreign => None,
        Extent::System(known) => Some(Strangers::new(file, &listing.fields, known)),
    };
    let mut wrong = Vec::new();
    for (number, (our, their)) in ours.iter().zip(&perfs).enumerate() {
        if matches!(extent, Extent::System(_)) && is_named_by_its_process(our, their) {
            continue;
        }
        let right = |theirs: &str| {
            strangers.as_mut().is_some_and(|strangers| strangers.right(number, our, theirs))
        };
        let nameless = without_name(our, their).filter(|_| matches!(extent, Extent::Foreign));
        if nameless.is_some() {
            *listing.forms.entry(Form::Unproven).or_insert(0) += 1;
        }
        let their = nameless.as_ref().unwrap_or(their);
        match forms(our, their, &listing.fields, right) {
            Some(forms) => {
                for form in forms {
                    *listing.forms.entry(form).or_insert(0) += 1;
                }
            }
            None => wrong.push(format!("line {}\n  perf {their}\n  rep  {our}", number + 1)),
        }
    }
    let differ = wrong.len();
    wrong.truncate(5);
    assert!(wrong.is_empty(), "{}: {differ} lines differ:\n{}", file.display(), wrong.join("\n"));
    assert_eq!(ours.len(), perfs.len(), "lines of {}", file.display());
    listing
}

impl<'a> Strangers<'a> {
    #[track_caller]
    fn new(file: &Path, fields: &[&str], known: &'a [&'a str]) -> Self {
        let fields = format!("{},symoff,dsoff", fields.join(","));
        let spelt = listed(run(rep().args(["script", "--no-demangle", "-F", &fields]).arg(file)));
        Self { known, spelt: lines(&spelt), witness: Witness::new(file) }
    }

    /// Returns whether the function in this line is rightly called otherwise than by perf.
    fn right(&mut self, number: usize, our: &str, theirs: &str) -> bool {
        let Some(line) = self.spelt.get(number) else { return false };
        let (our, spelt) = (squeezed(our), squeezed(line));
        let is_stranger = our.first().is_some_and(|comm| !self.known.contains(&comm.as_str()));
        let Some((name, path, offset)) = spelt_function(&spelt) else { return false };
        is_stranger && self.witness.confirms(path, offset, &name, theirs)
    }
}

/// The function, module, and offset in the module that a line with offsets names.
fn spelt_function(words: &[String]) -> Option<(String, &str, u64)> {
    let (module, before) = words.split_last()?;
    let (path, offset) = module.strip_prefix('(')?.strip_suffix(')')?.rsplit_once("+0x")?;
    let name = before.get(function_place(words)..)?.join(" ");
    let name = name.rsplit_once("+0x").map_or(name.as_str(), |(name, _)| name).to_owned();
    Some((name, path, u64::from_str_radix(offset, 16).ok()?))
}

/// All of these fields that perf prints of the file, and how.
fn perfs_listing(
    file: &Path,
    fields: &[&'static str],
) -> Result<(Vec<&'static str>, Outcome), String> {
    let mut fields = fields.to_vec();
    loop {
        let mut perf = perf();
        perf.args(["script", "--no-inline", "--no-itrace", "-F", &fields.join(","), "-i"])
            .arg(file);
        let outcome = run(&mut perf);
        if outcome.code() == 0 {
            return Ok((fields, outcome));
        }
        let refused =
            outcome.stderr.split_once("Cannot print '").and_then(|(_, rest)| rest.split_once('\''));
        let Some(place) =
            refused.and_then(|(name, _)| fields.iter().position(|field| *field == name))
        else {
            return Err(outcome.stderr);
        };
        fields.remove(place);
    }
}

fn lines(outcome: &Outcome) -> Vec<String> {
    // Of start files, without a size: perf lets the first go on to the next symbol, and of two names
    // of one address chooses the other.
    with_shortest_names(&String::from_utf8_lossy(&outcome.stdout))
        .replace("__frame_dummy_init_array_entry", "[unknown]")
        .replace("__TMC_LIST__", "__TMC_END__")
        .lines()
        .map(|line| line.trim_end().to_owned())
        .collect()
}

fn squeezed(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

/// The forms in which two lines differ; `None` where they differ in more.
/// `right` tells whether rep is right where perf gives another function.
fn forms(
    our: &str,
    their: &str,
    fields: &[&str],
    right: impl FnOnce(&str) -> bool,
) -> Option<Vec<Form>> {
    if our == their {
        return Some(Vec::new());
    }
    let (mut ours, mut theirs) = (squeezed(our), squeezed(their));
    let mut forms = Vec::new();
    if our.starts_with('\t') && their.starts_with('\t') {
        forms.extend(frame_forms(&mut ours, &mut theirs));
    } else {
        if let Some(once) = levels_once(their).filter(|_| fields.contains(&"data_src")) {
            theirs = squeezed(&once);
            forms.push(Form::Levels);
        }
        for (our, their) in ours.iter().zip(&mut theirs) {
            if our == "1e05080021" && their == "5080021" {
                their.clone_from(our);
                forms.push(Form::Unknown);
            }
        }
        let older = with_older_branches(&ours);
        if fields.contains(&"brstack") && older != ours && ours != theirs {
            ours = older;
            forms.push(Form::Branches);
            if their.contains("FAULT_ALGN") && our.contains("FAULT_DATA") {
                theirs = squeezed(&their.replace("FAULT_ALGN", "FAULT_DATA"));
                forms.push(Form::NewTypes);
            }
        }
        if let Some(function) = strange_function(&ours, &theirs)
            && right(&theirs[function.clone()].join(" "))
        {
            let end = ours.len() - 1;
            ours.splice(function.start..end, theirs[function].iter().cloned());
            forms.push(Form::Strangers);
        }
        if let (Some(comm), Some(theirs)) = (ours.first_mut(), theirs.first()) {
            let tid = squeezed(their)
                .get(1)
                .and_then(|ids| ids.split_once('/').map(|(_, tid)| format!(":{tid}")));
            if *comm != *theirs && tid.as_ref() == Some(theirs) {
                comm.clone_from(theirs);
                forms.push(Form::Exited);
            }
        }
    }
    for (our, their) in ours.iter().zip(&mut theirs) {
        let bare = |name: &str| {
            name.split_once("+0x").map_or_else(|| name.to_owned(), |(name, _)| name.to_owned())
        };
        let is_entry = |name: &str| is_plt(&bare(name));
        if is_entry(our) && our != their && (is_entry(their) || their == "[unknown]") {
            their.clone_from(our);
            forms.push(Form::Linkage);
        }
    }
    if forms.is_empty() {
        forms.push(Form::Widths);
    }
    (ours == theirs).then_some(forms)
}

/// perf's line without the name that it gives to an address for which rep has none.
fn without_name(our: &str, their: &str) -> Option<String> {
    let (ours, theirs) = (squeezed(our), squeezed(their));
    let [before @ .., unknown, module] = &ours[..] else { return None };
    // The function is behind the address; a frame has nothing else in front.
    let tab = if their.starts_with('\t') { "\t" } else { "" };
    let place = if tab.is_empty() {
        theirs.iter().rposition(|word| Some(word) == before.last())?
    } else {
        0
    };
    let is_named = theirs.get(place + 1).is_some_and(|word| word != unknown && word != module);
    let nameless = unknown == "[unknown]" && theirs.last() == Some(module) && is_named;
    nameless.then(|| format!("{tab}{} {unknown} {module}", theirs[..=place].join(" ")))
}

/// Returns whether two lines are equal but for the name of a function in a program of others that
/// runs from memory, or whose file is deleted: rep finds it while the program runs, perf does not
/// look for it.
fn is_named_by_its_process(our: &str, their: &str) -> bool {
    let (Some((ours, our_file)), Some((theirs, their_file))) =
        (without_file(our), without_file(their))
    else {
        return false;
    };
    let nameless = theirs.strip_suffix("[unknown]").map(squeezed);
    our_file == their_file && nameless.is_some_and(|words| squeezed(ours).starts_with(&words))
}

/// Splits the file off a line, if only its process leads to it.
fn without_file(line: &str) -> Option<(&str, &str)> {
    let (before, file) = line.split_at(line.rfind(" (/")?);
    (file.starts_with(" (/memfd:") || file.ends_with(" (deleted))")).then_some((before, file))
}

/// Returns the place in perf's line that names another function of the same program's file.
fn strange_function(ours: &[String], theirs: &[String]) -> Option<Range<usize>> {
    let start = function_place(ours);
    let module = ours.last().filter(|module| module.starts_with("(/"))?;
    let differs = theirs.last() == Some(module) && ours.get(start..)? != theirs.get(start..)?;
    (differs && start < theirs.len()).then(|| start..theirs.len() - 1)
}

/// Returns the place of the function in a line: behind the address, which is behind the event,
/// which has a colon, as has the time. Names of functions may have spaces.
fn function_place(words: &[String]) -> usize {
    words.iter().take(7).rposition(|word| word.ends_with(':')).map_or(3, |event| event + 2)
}

/// A line whose memory level is told twice, `|LVL L1 or L1 hit|`, with the second telling alone.
fn levels_once(line: &str) -> Option<String> {
    let (before, rest) = line.split_once("|LVL ")?;
    let (levels, behind) = rest.split_once('|')?;
    let (first, second) = levels.split_once(" or ")?;
    let same = second.strip_prefix(first).is_some_and(|more| ["", " hit", " miss"].contains(&more));
    same.then(|| format!("{before}|LVL {second}|{behind}"))
}

/// A line of a callchain: address, function, module.
fn frame_forms(ours: &mut [String], theirs: &mut [String]) -> Vec<Form> {
    let mut forms = Vec::new();
    let ([our, names @ ..], [their, ..]) = (ours, theirs) else { return forms };
    let page = |address: &String| u64::from_str_radix(address, 16).map(|address| address & 0xfff);
    let module =
        names.last().is_some_and(|module| module.starts_with("(/") || module == "([vdso])");
    if our != their && module && page(our).is_ok() && page(our) == page(their) {
        their.clone_from(our);
        forms.push(Form::Offsets);
    }
    forms
}

/// The words of a line, with branches as perf before 6.12 prints them.
fn with_older_branches(words: &[String]) -> Vec<String> {
    let mut older: Vec<String> = Vec::new();
    for word in words {
        let is_address =
            |last: &String| last.rsplit('/').next().is_some_and(|end| end.starts_with("0x"));
        match older.last_mut() {
            Some(last) if word.starts_with('(') && is_address(last) => last.push_str(word),
            _ => older.push(word.clone()),
        }
    }
    for word in &mut older {
        let ends: Vec<&str> = word.rsplit('/').take(6).collect();
        if let [_spec, _kind, cycles, "A" | "-", "X" | "-", "P" | "M" | "-"] = ends[..]
            && cycles.parse::<u16>().is_ok()
        {
            let (before, _) = word.rsplit_once('/').expect("it has six");
            *word = before.to_owned();
        }
    }
    older
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_in_files_that_are_gone_may_differ() {
        let line = |name: &str, file: &str| {
            format!("b  7/8 [000] 5.1: 100 cpu-clock: 7f {name} (/{file})")
        };
        let is_same = |ours: &str, theirs: &str, file: &str| {
            is_named_by_its_process(&line(ours, file), &line(theirs, file))
        };
        for file in ["memfd:x (deleted)", "tmp/a (deleted)"] {
            assert!(is_same("f<(a, b)>::g", "[unknown]", file));
            assert!(!is_same("f", "g", file) && !is_same("[unknown]", "f", file));
        }
        assert!(!is_same("f", "[unknown]", "tmp/a"));
        assert!(!is_named_by_its_process(
            &line("f", "a (deleted)"),
            &line("[unknown]", "b (deleted)")
        ));
    }

    #[test]
    fn only_the_forms_may_differ() {
        let fields = ["brstack", "data_src"];
        let of = |our: &str, their: &str| {
            forms(our, their, &fields, |theirs| our.starts_with('b') && theirs != "h")
        };
        assert_eq!(of("a    7/7  f", "a    7/7  f"), Some(vec![]));
        assert_eq!(of("a    7/7  f", "a  7/7  f"), Some(vec![Form::Widths]));
        assert_eq!(of("a    7/7  f", "a  7/8  f"), None);
        assert_eq!(
            of("a 7/7 0x1 (x)/0x2 ([y])/P/-/-/3//- ", "a 7/7 0x1(x)/0x2([y])/P/-/-/3/"),
            Some(vec![Form::Branches])
        );
        assert_eq!(
            of("a 7/7 0x1 (x)/0x2 ([y])/P/-/-/3//- ", "a 7/7 0x1(x)/0x2([y])/M/-/-/3/"),
            None
        );
        assert_eq!(
            of("a 7/7 |LVL L1 hit|S", "a 7/7 |LVL L1 or L1 hit|S"),
            Some(vec![Form::Levels])
        );
        assert_eq!(of("a 7/7 |LVL L1 hit|S", "a 7/7 |LVL L2 or L1 hit|S"), None);
        assert_eq!(of("a 7/7 1 x@plt (/l)", "a 7/7 1 y@plt (/l)"), Some(vec![Form::Linkage]));
        assert_eq!(
            of("a 7/7 1 x@plt+0x1 (/l)", "a 7/7 1 [unknown] (/l)"),
            Some(vec![Form::Linkage])
        );
        assert_eq!(of("a 7/7 1 x (/l)", "a 7/7 1 y@plt (/l)"), None);
        assert_eq!(
            of("b 7/7 1 <x as y> (/l)", "b 7/7 1 [unknown] (/l)"),
            Some(vec![Form::Strangers])
        );
        assert_eq!(of("a 7/7 1 <x as y> (/l)", "a 7/7 1 [unknown] (/l)"), None);
        assert_eq!(of("b 7/7 1 <x as y> (/l)", "b 7/7 1 [unknown] (/k)"), None);
        let named =
            |name: &str, ip: &str| format!("b 7/8 [000] 5.1: 100 cpu-clock:u: {ip} {name} (/l)");
        assert_eq!(of(&named("f<(a, b)>", "7f"), &named("g", "7f")), Some(vec![Form::Strangers]));
        assert_eq!(of(&named("f", "7f"), &named("h", "7f")), None);
        assert_eq!(of(&named("f", "7f"), &named("f", "7e")), None);
        assert_eq!(of(&named("f", "7f"), &named("g", "7e")), None);
        assert_eq!(
            spelt_function(&squeezed(&named("_Zf+0x1b", "7f").replace("(/l)", "(/l+0x2c)"))),
            Some(("_Zf".to_owned(), "/l", 0x2c))
        );
        assert_eq!(of("ls 7/8  f", ":8 7/8  f"), Some(vec![Form::Exited]));
        assert_eq!(of("ls 7/8  f", ":7 7/8  f"), None);
        assert_eq!(of("\t7f001234 f (/lib/x)", "\t1234 f (/lib/x)"), Some(vec![Form::Offsets]));
        assert_eq!(of("\t7f001234 f (/lib/x)", "\t1235 f (/lib/x)"), None);
        assert_eq!(of("\tff001234 f ([kernel.kallsyms])", "\t1234 f ([kernel.kallsyms])"), None);
        let named = |name: &str| format!("\tff001234 {name} ([kernel.kallsyms])");
        assert_eq!(of(&named("[unknown]"), &named("f")), None);
        assert_eq!(without_name(&named("[unknown]"), &named("f")), Some(named("[unknown]")));
        assert_eq!(without_name(&named("g"), &named("f")), None);
        assert_eq!(without_name(&named("[unknown]"), &named("[unknown]")), None);
        assert_eq!(without_name("\t1 [unknown] (/lib/x)", "\t1 f (/lib/y)"), None);
        let spaced =
            without_name("a 7/7 1 [unknown] (/lib/x)", "a  7/7 1 f(int, int) const (/lib/x)");
        assert_eq!(spaced.as_deref(), Some("a 7/7 1 [unknown] (/lib/x)"));
    }
}

//! Interpreters, and what shows the functions of the programs that they run.

use recrep_format::abi::SampleType;
use recrep_format::feature::Cmdline;

use crate::profile::recording::known;
use crate::samples::Session;

/// The function in which an interpreter runs a program's code, and what shows the program's own
/// functions.
pub(super) struct Interpreter {
    pub(super) functions: &'static [&'static str],
    pub(super) language: &'static str,
    /// Beginning of the names of the program's functions where they are known; empty if they never
    /// are.
    pub(super) named: &'static str,
    /// Words of a command line that show what the remedy asks for.
    done: &'static [&'static str],
    remedy: &'static str,
}

pub(super) const INTERPRETERS: &[Interpreter] = &[
    Interpreter {
        functions: &["_PyEval_EvalFrameDefault"],
        language: "Python",
        named: "py::",
        done: &["perf", "perf_jit", "-Xperf", "-Xperf_jit"],
        remedy: "run it with `python3 -X perf` or PYTHONPERFSUPPORT=1 (Python 3.12 or later)",
    },
    Interpreter {
        functions: &["Builtins_InterpreterEntryTrampoline"],
        language: "JavaScript",
        named: "",
        done: &["--interpreted-frames-native-stack"],
        remedy: "run it with `node --perf-basic-prof --interpreted-frames-native-stack`",
    },
    Interpreter {
        functions: &["Interpreter"],
        language: "Java",
        named: "",
        done: &[],
        remedy: "methods have names once they are compiled: record after the start (rec -D MS), \
                 with `java -XX:+PreserveFramePointer -XX:+DumpPerfMapAtExit`",
    },
    Interpreter {
        functions: &["vm_exec_core", "rb_vm_exec"],
        language: "Ruby",
        named: "",
        done: &["--yjit-perf"],
        remedy: "compiled methods have names with `ruby --yjit --yjit-perf` (Ruby 3.3 or later)",
    },
    Interpreter {
        functions: &["Perl_runops_standard"],
        language: "Perl",
        named: "",
        done: &[],
        remedy: "perl has no names for perf; a profiler of its own has (Devel::NYTProf)",
    },
    Interpreter {
        functions: &["execute_ex"],
        language: "PHP",
        named: "",
        done: &[],
        remedy: "php has no names for perf; a profiler of its own has (Excimer, SPX)",
    },
    Interpreter {
        functions: &["luaV_execute"],
        language: "Lua",
        named: "",
        done: &[],
        remedy: "lua has no names for perf; a hook (debug.sethook) or LuaJIT's -jp has",
    },
];

/// What is known of how a program was started and recorded.
#[derive(Clone, Debug, Default)]
pub(super) struct RecordedCommand {
    /// Command line of the recorder, with the program's.
    words: Vec<String>,
    has_callchains: bool,
}

impl RecordedCommand {
    pub(super) fn of(session: &Session<'_>) -> Self {
        let line = known(session.file).map(|Cmdline { args }| {
            args.0.iter().map(|word| word.to_text().into_owned()).collect()
        });
        Self {
            words: line.unwrap_or_default(),
            has_callchains: session.samples_have(SampleType::CALLCHAIN),
        }
    }

    /// Returns what would show an interpreter's functions; `None` if all of it was done.
    pub(super) fn remedy(&self, interpreter: &Interpreter) -> Option<String> {
        const CALLERS: &str = "record callers with rec -g";
        let Interpreter { named, done, remedy, .. } = interpreter;
        let is_done = self.words.iter().any(|word| done.contains(&word.as_str()));
        match (named.is_empty(), is_done) {
            (true, true) => None,
            (true, false) => Some((*remedy).to_owned()),
            // Functions of the program are callers of the interpreter.
            (false, true) if !self.has_callchains => Some(CALLERS.into()),
            (false, true) => None,
            (false, false) if !self.has_callchains => Some(format!("{remedy}, and {CALLERS}")),
            (false, false) => Some((*remedy).to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_advice_asks_for_what_was_done() {
        let remedy = |language: &str, line: &str, has_callchains: bool| {
            let words = line.split(' ').map(str::to_owned).collect();
            let interpreter = INTERPRETERS.iter().find(|one| one.language == language).unwrap();
            RecordedCommand { words, has_callchains }.remedy(interpreter)
        };
        let python = |line: &str, chains| remedy("Python", line, chains);
        let both = python("rec python3 x.py", false).unwrap();
        assert!(both.contains("-X perf") && both.contains("rec -g"), "{both}");
        let flag = python("rec -g python3 x.py", true).unwrap();
        assert!(flag.contains("-X perf") && !flag.contains("rec -g"), "{flag}");
        let callers = python("rec python3 -X perf x.py", false);
        assert_eq!(callers.as_deref(), Some("record callers with rec -g"));
        assert_eq!(python("rec -g python3 -X perf_jit x.py", true), None);
        let node = "rec node --perf-basic-prof --interpreted-frames-native-stack x.js";
        assert_eq!(remedy("JavaScript", node, true), None);
        assert!(remedy("JavaScript", "rec node x.js", false).is_some());
    }
}

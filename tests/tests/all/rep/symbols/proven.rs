//! A function has a name only if something proves that the name comes from the recorded file.

use std::fs::File;
use std::os::unix::fs::FileExt;

use recrep_format::abi::CpuMode;
use recrep_format::build_id::BuildId;
use recrep_format::feature::{BuildIdEvent, BuildIds};

use super::*;

/// Returns the image of this process's `[vdso]`.
fn vdso() -> Vec<u8> {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let line = maps.lines().find(|line| line.ends_with("[vdso]")).unwrap();
    let (start, end) = line.split(' ').next().unwrap().split_once('-').unwrap();
    let [start, end] = [start, end].map(|word| u64::from_str_radix(word, 16).unwrap());
    let mut bytes = vec![0; usize::try_from(end - start).unwrap()];
    File::open("/proc/self/mem").unwrap().read_exact_at(&mut bytes, start).unwrap();
    bytes
}

/// A sampled module.
struct Subject {
    name: &'static str,
    /// Name in `rep modules`.
    module: String,
    /// Adds the mapping and samples.
    sampled: Box<dyn Fn(Stream) -> Stream>,
    /// Name, CPU mode and value of its recorded build ID; `None` if such modules have none.
    build_id: Option<(String, CpuMode, [u8; 20])>,
    /// Reasons that `rep modules` gives: for a different build ID, and for none.
    reasons: [&'static str; 2],
    /// `true` if `--trust-paths` helps.
    has_path: bool,
}

fn user_file(name: &'static str, path: PathBuf) -> Subject {
    let (offset, _) = function(&path, "outer");
    let id = build_id_in(&fs::read(&path).unwrap());
    Subject {
        name,
        module: path.file_name().unwrap().to_str().unwrap().into(),
        build_id: Some((path.to_str().unwrap().into(), CpuMode::User, id)),
        sampled: Box::new(move |stream| {
            mapped(stream, &path).at(2).sample(SampleSpec::at(BASE + offset))
        }),
        reasons: ["build-id-mismatch", "unproven"],
        has_path: true,
    }
}

/// Returns the kernel of this machine; `None` if its addresses are hidden.
fn kernel() -> Option<Subject> {
    let list = fs::read_to_string("/proc/kallsyms").unwrap();
    let line = list.lines().find(|line| line.ends_with(" _text")).unwrap();
    let text = u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap();
    if text == 0 {
        eprintln!("skipped: this user may not read the kernel's addresses");
        return None;
    }
    let sampled = move |stream| {
        let stream = kernel_mapping(stream, "[kernel.kallsyms]_text", text, text);
        stream.at(2).sample(SampleSpec::at(text + 0x1000).misc(1))
    };
    let id = build_id_in(&fs::read("/sys/kernel/notes").unwrap());
    Some(Subject {
        name: "kernel",
        module: "[kernel.kallsyms]".into(),
        sampled: Box::new(sampled),
        // Another name than the mapping's: the CPU mode shows that it is the kernel's.
        build_id: Some(("/lib/modules/6/build/vmlinux".into(), CpuMode::Kernel, id)),
        reasons: ["other-kernel"; 2],
        has_path: false,
    })
}

fn kernel_module(place: &Place) -> Subject {
    let source = ("k.c", "int init_it(void) { return 1; } int probe_it(void) { return 2; }\n");
    let path = place.compiled("gcc -r -nostdlib -Wl,--build-id", source, "some-driver.ko");
    let id = build_id_in(&fs::read(&path).unwrap());
    let recorded: String = path.to_str().unwrap().into();
    let (name, loaded) = (recorded.clone(), 0xffff_ffff_c010_0000);
    let sampled = move |stream| {
        // The machine of a kernel module is known only from its kernel.
        let stream = kernel_mapping(
            stream,
            "[kernel.kallsyms]_text",
            0xffff_ffff_8765_4000,
            0xffff_ffff_8765_4000,
        );
        kernel_mapping(stream, &name, loaded, 0).at(2).sample(SampleSpec::at(loaded).misc(1))
    };
    Subject {
        name: "kernel module",
        module: "[some_driver]".into(),
        sampled: Box::new(sampled),
        build_id: Some((recorded, CpuMode::Kernel, id)),
        reasons: ["other-kernel"; 2],
        has_path: true,
    }
}

fn running_vdso() -> Subject {
    let image = vdso();
    let (id, len) = (build_id_in(&image), image.len() as u64);
    let sampled = move |stream: Stream| {
        let stream = stream.map("[vdso]", BASE, len, 0).at(2);
        (0..len / 16).fold(stream, |stream, place| stream.sample(SampleSpec::at(BASE + 16 * place)))
    };
    Subject {
        name: "vdso",
        module: "[vdso]".into(),
        sampled: Box::new(sampled),
        build_id: Some(("[vdso]".into(), CpuMode::User, id)),
        reasons: ["build-id-mismatch", "unproven"],
        has_path: false,
    }
}

fn jit_map() -> Subject {
    let pid = (1 << 30) + std::process::id();
    let map = format!("/tmp/perf-{pid}.map");
    fs::write(map, format!("{BASE:x} 40 Interpreter\n")).unwrap();
    let sampled = move |stream: Stream| {
        stream
            .task(pid, pid)
            .map("//anon", BASE, 0x1000, 0)
            .at(2)
            .sample(SampleSpec::at(BASE + 0x20))
    };
    Subject {
        name: "JIT map",
        module: format!("[JIT] tid {pid}"),
        sampled: Box::new(sampled),
        build_id: None,
        reasons: ["unproven"; 2],
        has_path: true,
    }
}

fn elsewhere(arch: &str) -> Stream {
    stream_of(Event::new("cycles:u"), ["elsewhere", "2.6.39", arch])
}

/// Adds the build ID of a module to the stream.
fn identified(stream: Stream, pipe: bool, (name, mode, id): (&str, CpuMode, [u8; 20])) -> Stream {
    let id = BuildId::new(&id).unwrap();
    let entry = BuildIdEvent::new(mode, &id, name.as_bytes());
    if !pipe {
        return stream.feature(&BuildIds { entries: vec![entry] });
    }
    stream.record(entry.misc, Body::HeaderBuildId(entry.body))
}

/// Runs `rep modules`; returns whether the module has functions, the reason if not, and the codes
/// of the warnings.
fn modules(
    place: &Place,
    words: &[&str],
    bytes: &[u8],
    subject: &Subject,
    case: &str,
) -> (bool, String, Vec<String>) {
    let answer = parsed(rep_of(place, &[&["modules", "--json"], words].concat(), bytes));
    let modules = list(&answer["modules"]);
    let kernels = ["[kernel.kallsyms]", "[kernel.vmlinux]"];
    let is_subject = |name: &str| {
        name == subject.module || (subject.name == "kernel" && kernels.contains(&name))
    };
    let module = modules.iter().find(|module| is_subject(module["name"].as_str().unwrap()));
    let module = module.unwrap_or_else(|| panic!("{case}: {modules:#?}"));
    let reason = module["reason"]["code"].as_str().unwrap_or_default().to_owned();
    (
        module["resolved"].as_u64().unwrap() > 0,
        reason,
        codes(&answer).into_iter().map(str::to_owned).collect(),
    )
}

#[test]
fn names_need_a_proof() {
    let Some(place) = Place::with("gcc") else { return };
    let mut subjects = vec![
        user_file("executable", place.program("program", "")),
        user_file("shared library", place.program("lib.so", "-shared -fPIC")),
        kernel_module(&place),
        running_vdso(),
        jit_map(),
    ];
    subjects.extend(kernel());
    let arch = rustix::system::uname().machine().to_str().unwrap().to_owned();
    for subject in &subjects {
        for same_host in [true, false] {
            for (which, equal) in
                [("equal", Some(true)), ("different", Some(false)), ("absent", None)]
            {
                for pipe in [false, true] {
                    let case = format!(
                        "{}, same host: {same_host}, build ID {which}, pipe: {pipe}",
                        subject.name
                    );
                    let mut recorded = if same_host { stream() } else { elsewhere(&arch) };
                    let id = subject.build_id.as_ref().zip(equal);
                    if let Some(((name, mode, id), equal)) = id {
                        let id = if equal { *id } else { [9; 20] };
                        recorded = identified(recorded, pipe, (name, *mode, id));
                    }
                    let recorded = (subject.sampled)(recorded);
                    let bytes = if pipe { recorded.pipe() } else { recorded.file() };
                    let is_proven = id.map_or(same_host, |(_, equal)| equal);
                    let (named, reason, warnings) = modules(&place, &[], &bytes, subject, &case);
                    assert_eq!(named, is_proven, "{case}: {reason}");
                    let doubts = warnings.iter().filter(|code| *code == "unproven-names").count();
                    assert_eq!(doubts, usize::from(!is_proven), "{case}: {warnings:?}");
                    if !is_proven {
                        assert_eq!(reason, subject.reasons[usize::from(id.is_none())], "{case}");
                    }
                    let (trusted, _, warnings) =
                        modules(&place, &["--trust-paths"], &bytes, subject, &case);
                    assert_eq!(trusted, is_proven || subject.has_path, "{case}, --trust-paths");
                    let contradicted = warnings.iter().any(|code| code == "contradicted-names");
                    assert_eq!(
                        contradicted,
                        subject.has_path && id.is_some_and(|(_, equal)| !equal),
                        "{case}: {warnings:?}"
                    );
                }
            }
        }
    }
    let _ = fs::remove_file(format!("/tmp/perf-{}.map", (1 << 30) + std::process::id()));
}

#[test]
fn a_build_id_is_ignored_if_several_files_had_the_path() {
    let Some(place) = Place::with("gcc") else { return };
    let path = place.program("program", "");
    let (offset, _) = function(&path, "outer");
    let id = build_id_in(&fs::read(&path).unwrap());
    let map = |stream: Stream, path: &Path| {
        mapped(stream, path).at(2).sample(SampleSpec::at(BASE + offset))
    };
    let begun = || identified(elsewhere(""), false, (path.to_str().unwrap(), CpuMode::User, id));
    let names = |stream: &Stream| rep_of(&place, &["-s", "sym", "--format", "csv"], &stream.file());
    assert!(names(&map(begun(), &path)).contains("outer"));
    // Inode 4711 was mapped from the same path.
    let replaced = |stream: Stream| {
        let stream = stream
            .map(path.to_str().unwrap(), BASE, 1 << 20, 0)
            .at(2)
            .sample(SampleSpec::at(BASE + offset));
        mapped(stream.at(3), &path).at(4).sample(SampleSpec::at(BASE + offset))
    };
    assert!(!names(&replaced(begun())).contains("outer"));
    // On this machine the inode is proof, unless the file was written to after the recording.
    let here = || identified(stream(), false, (path.to_str().unwrap(), CpuMode::User, id));
    assert!(names(&replaced(here())).contains("outer"));
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(3600);
    File::options().write(true).open(&path).unwrap().set_modified(later).unwrap();
    assert!(!names(&replaced(here())).contains("outer"));
}

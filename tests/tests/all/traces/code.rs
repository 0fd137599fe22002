//! Code of Intel PT's traces that is in no file of a program: of JITs, of the kernel, and of nobody.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use recrep_fixtures::build::Stream;
use recrep_fixtures::trace::{Image, PtFile, Settings, Timing, Walk};
use recrep_format::record::{Body, Inode, Mmap2, MmapIdentity};
use recrep_format::wire::Text;
use recrep_tests::needs;
use recrep_tests::perf::{version, versions};
use recrep_tests::programs::rep;
use recrep_tests::run::run;
use tempfile::TempDir;

use super::pt::{ADDRESS, LIBC};
use super::{assert_equal, json, lines, warnings, written};

/// Arguments that list branches.
const BRANCHES: [&str; 4] = ["script", "--itrace=b", "-F", "ip,addr"];

/// Returns the recording of a walk through an image, and the sorted lines of its branches.
fn walked(image: &Image, settings: Settings) -> (Stream, Vec<String>) {
    let mut log = Vec::new();
    let walk = Walk::through(image, settings, 11, 5_000, |branch| {
        log.push(format!("{:x} => {:x}", branch.from, branch.to));
    });
    log.sort();
    let Walk { trace, psbs, end, .. } = &walk;
    (PtFile { image, settings, trace, psbs, end: *end }.stream(), log)
}

/// Returns the dump of a JIT of process 70 that made this code.
fn jit_dump(image: &Image) -> Vec<u8> {
    let mut dump = [0x4a69_5444, 1, 40, 62, 0, 70, 0, 0, 0, 0].map(u32::to_le_bytes).concat();
    let (name, code) = (b"made\0", &image.code);
    let size = u32::try_from(32 + 24 + name.len() + code.len()).unwrap();
    dump.extend([0, size, 0, 0, 70, 70, 0, 0].map(u32::to_le_bytes).concat());
    dump.extend([image.address, code.len() as u64, 0].map(u64::to_le_bytes).concat());
    dump.extend(name);
    dump.extend(code);
    dump
}

/// Returns a mapping of a file by process 70.
fn mapping(file: &Path) -> Body<'_> {
    Body::Mmap2(Mmap2 {
        pid: 70,
        tid: 70,
        addr: 0x1000,
        len: 0x1000,
        pgoff: 0,
        identity: MmapIdentity::Inode(Inode { maj: 8, min: 1, ino: 70, ino_generation: 0 }),
        prot: 5,
        flags: 2,
        filename: Text::new(file.as_os_str().as_encoded_bytes()),
    })
}

#[test]
fn code_of_a_jit_is_that_of_its_dump() {
    let Ok(mut image) = Image::read(Path::new(LIBC), ADDRESS) else { return };
    (image.path, image.offset, image.build_id) = ("//anon".into(), 0, [0; 20]);
    let settings = Settings { fault_every: 500, timing: Timing::Mtc, ..Settings::default() };
    let (stream, log) = walked(&image, settings);
    let dir = tempfile::tempdir().unwrap();
    let dump = dir.path().join("jit-70.dump");
    fs::write(&dump, jit_dump(&image)).unwrap();
    let stream = stream.task(70, 70).record(2, mapping(&dump));
    let (_dir, file) = &written(&stream);
    // Nothing shows that the recording and the dump are of this machine.
    let trusting = "--trust-paths";
    assert_equal(&lines(rep().args(BRANCHES).arg(trusting).arg(file)), &log);
    let answer = json(&["--itrace=b", "-s", "symbol", trusting], file);
    assert_eq!(answer["events"][1]["rows"][0]["key"]["symbol"], "made");
    fs::remove_file(&dump).unwrap();
    let told = warnings(&json(&["--itrace=b", trusting], file), "trace-gaps");
    assert!(told.iter().any(|gap| gap.contains("in no file of this machine")), "{told:?}");
}

/// Returns a kernel whose code is the C library's.
fn kernel() -> Option<(TempDir, Image)> {
    let library = Image::read(Path::new(LIBC), ADDRESS).ok().filter(|_| needs::commands("gcc"))?;
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| -> PathBuf { dir.path().join(name) };
    fs::write(at("code"), &library.code).unwrap();
    let source = ".globl _text, _stext\n.type _text, @function\n_text:\n_stext:\n.incbin \"code\"\n\
                  .size _text, . - _text\n.globl _etext\n_etext:\n";
    fs::write(at("kernel.s"), source).unwrap();
    let words = "-nostdlib -static -no-pie -Wl,--build-id=none,-e,_text,-Ttext=0xffffffff81000000 \
                 -o vmlinux kernel.s";
    let mut gcc = Command::new("gcc");
    assert!(run(gcc.args(words.split_whitespace()).current_dir(dir.path())).status.success());
    let image = Image::read(&at("vmlinux"), 0xffff_ffff_8100_0000).unwrap();
    Some((dir, image))
}

#[test]
fn code_of_the_kernel_is_that_of_its_image() {
    let Some((_kernel, image)) = kernel() else { return };
    for timing in [Timing::Tsc, Timing::None] {
        let settings = Settings { fault_every: 300, timing, ..Settings::default() };
        let (stream, log) = walked(&image, settings);
        let (_dir, file) = &written(&stream);
        let vmlinux = ["--vmlinux", image.path.to_str().unwrap()];
        assert_equal(&lines(rep().args(BRANCHES).args(vmlinux).arg(file)), &log);
        let words = ["--itrace=b", "-s", "symbol", vmlinux[0], vmlinux[1]];
        let key = &json(&words, file)["events"][1]["rows"][0]["key"];
        assert_eq!((&key["symbol"], &key["cpumode"]), (&"_text".into(), &"kernel".into()));
        let told = warnings(&json(&["--itrace=b"], file), "trace-gaps");
        assert!(told.iter().any(|gap| gap.contains("kernel code")), "{told:?}");
        if !needs::commands("perf") {
            continue;
        }
        for perf in versions() {
            let mut perf = version(&perf);
            let perf = perf.args(BRANCHES).args(vmlinux).arg("--no-inline").arg("-i").arg(file);
            assert_equal(&log, &lines(perf));
        }
    }
}

#[test]
fn code_that_is_in_no_file_is_a_gap() {
    let Ok(mut image) = Image::read(Path::new(LIBC), ADDRESS) else { return };
    image.path = "/nonexistent/libc.so.6".into();
    // Nor is there a copy of it.
    image.build_id = [0xee; 20];
    let settings = Settings::default();
    let Walk { trace, psbs, end, .. } = &Walk::through(&image, settings, 11, 2_000, |_| {});
    let (_dir, file) =
        written(&PtFile { image: &image, settings, trace, psbs, end: *end }.stream());
    let told = warnings(&json(&["--itrace=b"], &file), "trace-gaps");
    assert!(told.iter().any(|gap| gap.contains("in no file of this machine")), "{told:?}");
}

//! Symbols, source lines and `rep modules`, tested with programs that are compiled here.

mod annotated;
mod explained;
mod fetched;
mod go;
mod lines;
mod listed;
mod live;
mod proven;
mod recorded;
mod sources;
mod start_lines;

use std::os::unix::fs::MetadataExt;

use object::{Object, ObjectSegment, ObjectSymbol, Segment};
use recrep_format::feature::{Arch, Hostname, OsRelease};
use recrep_format::record::{Inode, Mmap, Mmap2, MmapBuildId, MmapIdentity};
use recrep_format::wire::Text;

use super::*;

/// Address at which the programs of these tests are mapped.
const BASE: u64 = 0x10_0000;

impl Place {
    /// Returns a place if all of these commands are installed.
    fn with(commands: &str) -> Option<Self> {
        needs::commands(commands).then(Self::new)
    }

    /// Compiles a source file, given by name and content, with this command.
    #[track_caller]
    fn compiled(&self, command: &str, (source, text): (&str, &str), program: &str) -> PathBuf {
        let (source, program) = (self.put(source, text), self.at(program));
        tool(&format!("{command} -o"), &[&program, &source]);
        program
    }

    /// Compiles a C program with a static function `inner` and an exported one `outer`.
    fn program(&self, name: &str, flags: &str) -> PathBuf {
        let text = "volatile int x; __attribute__((noinline)) static int inner(int a) { x += a; \
                    return x; }\n\
                    __attribute__((noinline)) int outer(int a) { return inner(a) + 1; }\n\
                    int main(void) { return outer(1); }\n";
        self.compiled(&format!("gcc -O1 -g -rdynamic -Wl,--build-id {flags}"), ("p.c", text), name)
    }
}

/// Returns the file offset and the linked address of a function.
fn function(program: &Path, name: &str) -> (u64, u64) {
    let bytes = fs::read(program).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let address = file.symbols().find(|symbol| symbol.name() == Ok(name)).unwrap().address();
    let has = |load: &Segment<'_, '_>| {
        load.address() <= address && address - load.address() < load.file_range().1
    };
    (address - bias(&file.segments().find(has).unwrap()), address)
}

/// Returns the difference between the addresses and the file offsets of a segment.
fn bias(load: &Segment<'_, '_>) -> u64 {
    load.address() - load.file_range().0
}

/// Returns the build ID in the ELF notes of a file or of the kernel.
fn build_id_in(bytes: &[u8]) -> [u8; 20] {
    let note = [4_u32, 20, 3]
        .iter()
        .flat_map(|word| word.to_ne_bytes())
        .chain(*b"GNU\0")
        .collect::<Vec<u8>>();
    let at = bytes.windows(note.len()).position(|window| window == note).unwrap() + note.len();
    bytes[at..at + 20].try_into().unwrap()
}

/// Returns a stream of process 7 with one event, recorded on this machine.
fn stream() -> Stream {
    stream_with(Event::new("cycles:u"))
}

/// Like [`stream`], with the given event.
fn stream_with(event: Event) -> Stream {
    let name = rustix::system::uname();
    let [host, release, arch] =
        [name.nodename(), name.release(), name.machine()].map(|name| name.to_str().unwrap());
    stream_of(event, [host, release, arch])
}

/// Like [`stream_with`], recorded on a machine with this host name, kernel release and
/// architecture.
fn stream_of(event: Event, [host, release, arch]: [&str; 3]) -> Stream {
    let stream = Stream::new(Endian::NATIVE).event(event).task(7, 7).at(1).comm("test");
    stream.feature(&Hostname::new(host)).feature(&OsRelease::new(release)).feature(&Arch::new(arch))
}

/// Maps the whole of `path` at [`BASE`] and adds a sample at this offset.
fn sampled(stream: Stream, path: &Path, offset: u64) -> Stream {
    mapped(stream, path).at(2).sample(SampleSpec::at(BASE + offset))
}

/// Maps the whole of `path` at [`BASE`], with its device and inode as the kernel records them.
fn mapped(stream: Stream, path: &Path) -> Stream {
    mapped_at(stream, path, BASE)
}

/// Like [`mapped`], at the given address.
fn mapped_at(stream: Stream, path: &Path, addr: u64) -> Stream {
    let Ok(meta) = fs::metadata(path) else {
        return stream.map(path.to_str().unwrap(), addr, 1 << 20, 0);
    };
    let (maj, min) = (rustix::fs::major(meta.dev()), rustix::fs::minor(meta.dev()));
    let identity = MmapIdentity::Inode(Inode { maj, min, ino: meta.ino(), ino_generation: 0 });
    map_by(stream, path, addr, 2, identity)
}

fn map_by(stream: Stream, path: &Path, addr: u64, misc: u16, identity: MmapIdentity) -> Stream {
    let filename = Text::new(path.to_str().unwrap().as_bytes());
    let (pid, tid, len) = (7, 7, 1 << 20);
    stream.record(
        misc,
        Body::Mmap2(Mmap2 { pid, tid, addr, len, pgoff: 0, identity, prot: 5, flags: 2, filename }),
    )
}

/// Like [`mapped`], with the build ID in the place of device and inode.
fn map_with_id(stream: Stream, path: &Path, id: &[u8; 20]) -> Stream {
    let identity = MmapIdentity::BuildId(MmapBuildId { size: 20, reserved: [0; 3], bytes: *id });
    // Bit 14: the mapping has a build ID.
    map_by(stream, path, BASE, 1 << 14 | 2, identity)
}

/// Maps the kernel or one of its modules.
fn kernel_mapping(stream: Stream, name: &str, addr: u64, pgoff: u64) -> Stream {
    let filename = Text::new(name.as_bytes());
    stream.record(
        1,
        Body::Mmap(Mmap { pid: u32::MAX, tid: 0, addr, len: 0x100_0000, pgoff, filename }),
    )
}

/// Runs `rep` on a stream and returns what it prints.
fn rep(place: &Place, words: &[&str], stream: &Stream) -> String {
    rep_of(place, words, &stream.file())
}

/// Runs `rep` on the bytes of a file and returns what it prints.
fn rep_of(place: &Place, words: &[&str], bytes: &[u8]) -> String {
    run(&mut rep_command(place, words, bytes))
}

/// Returns a command of `rep` with these words on a recording.
fn rep_command(place: &Place, words: &[&str], bytes: &[u8]) -> Command {
    let file = place.put("t.data", bytes);
    let mut command = super::rep();
    // Only the copies of files that a test makes are to be found.
    let cleared =
        ["PERF_BUILDID_DIR", "XDG_CACHE_HOME", "DEBUGINFOD_CACHE_PATH", "DEBUGINFOD_URLS"];
    cleared
        .iter()
        .fold(command.env("HOME", place.at("home")), |command, name| command.env_remove(name));
    command.args(words).arg(file);
    command
}

/// Returns the functions of a stream's samples.
fn symbols(place: &Place, words: &[&str], stream: &Stream) -> Vec<String> {
    functions(&parsed(rep(place, &[&["--json", "-s", "sym"], words].concat(), stream)))
}

/// Returns the functions in a report by `sym`.
fn functions(answer: &Value) -> Vec<String> {
    list(&answer["events"][0]["rows"])
        .iter()
        .map(|row| row["key"]["sym"].as_str().unwrap().to_owned())
        .collect()
}

/// Returns the entry of the module `name` in the output of `rep modules`.
fn module(place: &Place, words: &[&str], stream: &Stream, name: &str) -> Value {
    let answer = parsed(rep(place, &[&["modules", "--json"], words].concat(), stream));
    let modules = list(&answer["modules"]);
    modules
        .iter()
        .find(|module| module["name"] == name)
        .unwrap_or_else(|| panic!("{name} in {modules:#?}"))
        .clone()
}

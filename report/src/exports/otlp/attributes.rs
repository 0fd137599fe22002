//! Attributes: names and values of OpenTelemetry's semantic conventions.

use indexmap::IndexSet;
use rustc_hash::FxBuildHasher;

use super::messages::{AnyValue, Attribute, AttributeValue, KeyValue, Resource, small};
use crate::exports::frames::CodeType;
use crate::exports::pprof::PROCESS_NAME;
use crate::pprof::{Facts, PprofLabel};

/// Labels of samples that tell their resource, beside [`PROCESS_NAME`]: number of the process, and
/// its cgroup.
pub(super) const PROCESS: &str = "pid";
pub(super) const CGROUP: &str = "cgroup";

/// Length of the number of a container in hexadecimal digits.
const CONTAINER_ID: usize = 64;

/// A process of a container, or of none.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Process {
    container: Option<String>,
    pid: i64,
    name: String,
}

/// Texts and attributes of a dictionary.
pub(super) struct Attributes {
    strings: IndexSet<String, FxBuildHasher>,
    all: IndexSet<Attribute, FxBuildHasher>,
}

impl Attributes {
    /// Creates attributes beside these texts, which keep their numbers.
    pub(super) fn new(texts: Vec<String>) -> Self {
        let strings = texts.into_iter().collect();
        Self { strings, all: std::iter::once(Attribute::default()).collect() }
    }

    fn text(&self, number: i64) -> &str {
        let number = usize::try_from(number).unwrap_or(0);
        self.strings.get_index(number).map_or("", String::as_str)
    }

    fn number(&mut self, key: &str, value: AttributeValue) -> i32 {
        let key = match self.strings.get_index_of(key) {
            Some(known) => known,
            None => self.strings.insert_full(key.to_owned()).0,
        };
        let value = Some(AnyValue { value: Some(value) });
        small(self.all.insert_full(Attribute { key: small(key), value }).0)
    }

    /// Returns the process of a sample, and the numbers of its other attributes.
    pub(super) fn of_sample(&mut self, labels: &[PprofLabel]) -> (Process, Vec<i32>) {
        let (mut process, mut attributes) = (Process::default(), Vec::new());
        for label in labels {
            let text = self.text(label.text);
            match self.text(label.key) {
                PROCESS => process.pid = label.number,
                PROCESS_NAME => text.clone_into(&mut process.name),
                CGROUP => process.container = container_of(text).map(str::to_owned),
                key => {
                    let value = match label.text {
                        0 => AttributeValue::Number(label.number),
                        _ => AttributeValue::Text(text.to_owned()),
                    };
                    let key = convention(key).to_owned();
                    attributes.push(self.number(&key, value));
                }
            }
        }
        (process, attributes)
    }

    /// Returns the attribute of a mapping whose build ID has this text; `None` if that is empty.
    pub(super) fn build_id(&mut self, text: i64) -> Option<i32> {
        let id = AttributeValue::Text(self.text(text).to_owned());
        (text != 0).then(|| self.number("process.executable.build_id.gnu", id))
    }

    pub(super) fn frame_type(&mut self, kind: &str) -> i32 {
        self.number("profile.frame.type", AttributeValue::Text(kind.to_owned()))
    }

    /// Returns the resource that a process is.
    pub(super) fn resource(&self, process: &Process, facts: &Facts) -> Resource {
        let text = |key: &str, value: &Option<String>| {
            let value = value.clone().filter(|text| !text.is_empty());
            value.map(|text| key_value(key, AttributeValue::Text(text)))
        };
        let name = (!process.name.is_empty()).then(|| process.name.clone());
        let known = [
            text("service.name", &name),
            text("process.executable.name", &name),
            (process.pid >= 0)
                .then(|| key_value("process.pid", AttributeValue::Number(process.pid))),
            text("container.id", &process.container),
            text("host.name", &facts.host),
            text("host.arch", &facts.arch.as_deref().map(architecture)),
            text("os.type", &Some("linux".to_owned())),
            text("os.version", &facts.kernel),
        ];
        Resource { attributes: known.into_iter().flatten().collect() }
    }

    pub(super) fn into_tables(self) -> (Vec<String>, Vec<Attribute>) {
        (self.strings.into_iter().collect(), self.all.into_iter().collect())
    }
}

fn key_value(key: &str, value: AttributeValue) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }) }
}

/// Returns the conventions' name of a label; its own if they have none.
fn convention(label: &str) -> &str {
    match label {
        "comm" => "thread.name",
        "tid" => "thread.id",
        "cpu" => "cpu.logical_number",
        other => other,
    }
}

/// Returns the conventions' name of an architecture.
fn architecture(machine: &str) -> String {
    match machine {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "i386" | "i486" | "i586" | "i686" => "x86",
        other => other,
    }
    .to_owned()
}

/// Returns the number of the container that a cgroup belongs to: the last 64 hexadecimal digits in a
/// row in its path.
pub(super) fn container_of(cgroup: &str) -> Option<&str> {
    let parts = cgroup.split(|c: char| !c.is_ascii_hexdigit());
    parts.rev().find(|part| part.len() == CONTAINER_ID)
}

/// Returns the conventions' name of a kind of frame; their list is open, and has none for code of any
/// JIT.
pub(super) fn frame_type(kind: CodeType) -> &'static str {
    match kind {
        CodeType::Kernel => "kernel",
        CodeType::Native => "native",
        CodeType::Jit => "jit",
        CodeType::Python => "cpython",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_are_found_in_the_paths_of_cgroups() {
        let id = "0123456789abcdef".repeat(4);
        for path in [
            format!("/system.slice/docker-{id}.scope"),
            format!("/kubepods.slice/kubepods-pod7.slice/cri-containerd-{id}.scope"),
            format!("/docker/{id}"),
            format!("/docker/{id}/init.scope"),
        ] {
            assert_eq!(container_of(&path), Some(id.as_str()), "{path}");
        }
        assert_eq!(container_of("/user.slice/user-1000.slice"), None);
        assert_eq!(container_of("N/A"), None);
    }
}

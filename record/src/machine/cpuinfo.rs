//! Files of `/proc` with a field a line, such as `/proc/cpuinfo`: `model name : Intel(R) Xeon(R)`.

/// Returns a field's value; of several CPUs' fields, the first.
pub(crate) fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut fields = text.lines().filter_map(|line| line.split_once(':'));
    fields.find_map(|(key, value)| (key.trim_end() == name).then(|| value.trim()))
}

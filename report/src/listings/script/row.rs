//! A sample as a row of values: an object of JSON (schema `recrep-script/1`) or a line of CSV.

use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::Arc;

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::fields::OutputField;

/// Value of a field.
pub(super) enum FieldValue<'v> {
    /// The sample does not have it, or it is unknown.
    Missing,
    Number(u64),
    /// A number of which -1 is unknown.
    Id(i32),
    Hex(u64),
    Text(Cow<'v, str>),
    Name(Arc<str>),
    Texts(Vec<String>),
    /// Names with values.
    Named(Vec<(String, String)>),
    /// Names with numbers.
    Numbers(Vec<(&'static str, u64)>),
    /// Callchain, innermost first.
    Frames(Vec<FrameRow>),
}

/// A frame of a callchain, with the fields that are printed.
pub(super) struct FrameRow {
    pub(super) ip: u64,
    /// Its fields besides the address.
    pub(super) fields: Vec<(OutputField, FieldValue<'static>)>,
    pub(super) is_inlined: bool,
}

/// Name of the callchain among the fields.
pub(super) const CALLCHAIN: &str = "callchain";

/// Fields of a sample, by name.
pub(super) type SampleRow<'v> = Vec<(&'static str, FieldValue<'v>)>;

impl Serialize for FieldValue<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Missing => serializer.serialize_none(),
            Self::Number(number) => serializer.serialize_u64(*number),
            Self::Id(id) => serializer.serialize_i32(*id),
            Self::Hex(number) => serializer.collect_str(&format_args!("{number:#x}")),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Name(name) => serializer.serialize_str(name),
            Self::Texts(texts) => serializer.collect_seq(texts),
            Self::Named(all) => {
                serializer.collect_map(all.iter().map(|(name, value)| (name, value)))
            }
            Self::Numbers(all) => serializer.collect_map(all.iter().copied()),
            Self::Frames(frames) => serializer.collect_seq(frames),
        }
    }
}

impl Serialize for FrameRow {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry(OutputField::Ip.name(), &FieldValue::Hex(self.ip))?;
        for (field, value) in &self.fields {
            map.serialize_entry(field.name(), value)?;
        }
        if self.is_inlined {
            map.serialize_entry("inlined", &true)?;
        }
        map.end()
    }
}

impl FieldValue<'_> {
    /// Returns the text of a cell of CSV.
    fn cell(&self) -> Cow<'_, str> {
        match self {
            Self::Missing => "".into(),
            Self::Number(number) => number.to_string().into(),
            Self::Id(id) => id.to_string().into(),
            Self::Hex(number) => format!("{number:#x}").into(),
            Self::Text(text) => (&**text).into(),
            Self::Name(name) => (&**name).into(),
            Self::Texts(texts) => texts.join(" ").into(),
            Self::Named(all) => {
                let all = all.iter().map(|(name, value)| format!("{name}:{value}"));
                all.collect::<Vec<_>>().join(" ").into()
            }
            Self::Numbers(all) => {
                let all = all.iter().map(|(name, number)| format!("{name}:{number}"));
                all.collect::<Vec<_>>().join(" ").into()
            }
            Self::Frames(frames) => {
                frames.iter().rev().map(FrameRow::label).collect::<Vec<_>>().join(";").into()
            }
        }
    }
}

impl FrameRow {
    /// Returns its function, or its address without one, as a part of a folded callchain.
    fn label(&self) -> String {
        let name = self.fields.iter().find_map(|(field, value)| match value {
            FieldValue::Name(name) if *field == OutputField::Sym => Some(name.replace(';', ":")),
            _ => None,
        });
        name.unwrap_or_else(|| format!("{:#x}", self.ip))
    }
}

/// An object of JSON.
struct JsonRow<'r, 'v>(&'r SampleRow<'v>);

impl Serialize for JsonRow<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1 + self.0.len()))?;
        map.serialize_entry("schema", "recrep-script/1")?;
        for (name, value) in self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// Writes a row as an object of JSON, on a line.
pub(super) fn write_json(row: &SampleRow<'_>, out: &mut Vec<u8>) -> io::Result<()> {
    serde_json::to_writer(&mut *out, &JsonRow(row))?;
    out.push(b'\n');
    Ok(())
}

/// Writes the cells of a row as a line of CSV.
pub(super) fn write_csv(row: &SampleRow<'_>, out: &mut Vec<u8>) -> io::Result<()> {
    write_cells(row.iter().map(|(_, value)| value.cell()), out)
}

/// Writes the names of fields as a line of CSV.
pub(super) fn write_names(
    names: impl Iterator<Item = &'static str>,
    out: &mut impl Write,
) -> io::Result<()> {
    write_cells(names.map(Cow::Borrowed), out)
}

fn write_cells<'c>(
    cells: impl Iterator<Item = Cow<'c, str>>,
    out: &mut impl Write,
) -> io::Result<()> {
    /// Length of most lines.
    const USUAL: usize = 512;
    let mut csv = csv::WriterBuilder::new().buffer_capacity(USUAL).from_writer(out);
    for cell in cells {
        csv.write_field(&*cell)?;
    }
    csv.write_record(None::<&[u8]>)?;
    csv.flush()
}

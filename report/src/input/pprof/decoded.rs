//! The parts of a profile, with what refers to them checked.

use prost::Message;
use recrep_format::build_id::BuildId;
use recrep_format::error::Error;
use rustc_hash::FxHashMap;

use crate::pprof::{
    DamagedField, FACTS, Facts, Location, PprofFunction, PprofMapping, PprofSample, RawField,
    RawFields, ValueType,
};

/// Reason for which a profile cannot be read.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ProfileError {
    #[error("a pprof profile that is damaged or cut at byte {0}")]
    Damaged(usize),
    #[error("a pprof profile in which {0} {1}")]
    Invalid(&'static str, String),
    #[error(
        "a pprof profile with negative values: the difference of two profiles; name both, or make \
         it without -diff_base and -base"
    )]
    Negative,
    #[error(
        "a pprof profile that unpacks to {0} bytes, which is unlike one; unpack it with gzip -dk"
    )]
    Bomb(usize),
    #[error("a pprof profile whose values are too large to be added up")]
    TooLarge,
    #[error("a pprof profile whose stacks unfold to more than {0} bytes")]
    TooLong(usize),
    #[error("a pprof profile that cannot be made a recording: {0}")]
    Record(#[from] Error),
    #[error("a pprof profile that cannot be made a recording: {0}")]
    Write(#[from] std::io::Error),
}

impl ProfileError {
    pub(super) fn at(damaged: DamagedField, profile: &[u8]) -> Self {
        Self::Damaged(profile.len() - damaged.left.min(profile.len()))
    }
}

/// A decoded profile, but for its samples: there may be many.
#[derive(Debug, Default)]
pub(super) struct Decoded<'a> {
    bytes: &'a [u8],
    pub(super) types: Vec<ValueType>,
    samples: Vec<&'a [u8]>,
    pub(super) mappings: Vec<PprofMapping>,
    pub(super) locations: Vec<Location>,
    pub(super) functions: Vec<PprofFunction>,
    texts: Vec<&'a [u8]>,
    pub(super) time: u64,
    pub(super) duration: u64,
    pub(super) period: (ValueType, u64),
    /// Facts about the recording, if rep wrote the profile.
    pub(super) facts: Option<Facts>,
    /// Places of the mappings, locations and functions, by their numbers in the file.
    mapping_places: FxHashMap<u64, usize>,
    location_places: FxHashMap<u64, usize>,
    function_places: FxHashMap<u64, usize>,
}

impl<'a> Decoded<'a> {
    /// Decodes the bytes of a profile.
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self, ProfileError> {
        let mut decoded = Self { bytes, ..Self::default() };
        let mut facts = None;
        for field in RawFields::new(bytes) {
            let (tag, field) = field.map_err(|damaged| ProfileError::at(damaged, bytes))?;
            match field {
                RawField::Bytes(text) if tag == FACTS => facts = str::from_utf8(text).ok(),
                RawField::Bytes(field) => decoded.take(tag, field)?,
                RawField::Number(number) => match tag {
                    9 => decoded.time = unsigned(number),
                    10 => decoded.duration = unsigned(number),
                    12 => decoded.period.1 = unsigned(number),
                    _ => {}
                },
            }
        }
        if decoded.types.is_empty() {
            return Err(ProfileError::Invalid("no values", "are described".into()));
        }
        let (mappings, locations) = (&decoded.mappings, &decoded.locations);
        decoded.mapping_places = places("mapping", mappings.iter().map(|mapping| mapping.id))?;
        decoded.location_places = places("location", locations.iter().map(|place| place.id))?;
        let functions = decoded.functions.iter().map(|function| function.id);
        decoded.function_places = places("function", functions)?;
        let facts = facts.and_then(Facts::from_text);
        decoded.facts = facts.filter(|facts| 2 * facts.events.len() == decoded.types.len());
        Ok(decoded)
    }

    /// Takes a field that is a message, a text or a row of numbers.
    fn take(&mut self, tag: u32, field: &'a [u8]) -> Result<(), ProfileError> {
        match tag {
            1 => self.types.push(self.message(field)?),
            // Each has a value at least, so that there are no more than the size justifies.
            2 if field.len() < 3 => {
                return Err(ProfileError::Invalid("a sample", "has no values".into()));
            }
            2 => self.samples.push(field),
            3 => self.mappings.push(self.message(field)?),
            4 => self.locations.push(self.message(field)?),
            5 => self.functions.push(self.message(field)?),
            6 => self.texts.push(field),
            11 => self.period.0 = self.message(field)?,
            _ => {}
        }
        Ok(())
    }

    fn message<M: Message + Default>(&self, field: &[u8]) -> Result<M, ProfileError> {
        M::decode(field).map_err(|_| self.damaged(field))
    }

    fn damaged(&self, field: &[u8]) -> ProfileError {
        let place = field.as_ptr().addr().saturating_sub(self.bytes.as_ptr().addr());
        ProfileError::Damaged(place.min(self.bytes.len()))
    }

    /// Returns the samples, decoded.
    pub(super) fn samples(&self) -> impl Iterator<Item = Result<PprofSample, ProfileError>> {
        self.samples.iter().map(|sample| self.sample(sample))
    }

    /// Returns the sample with this number, decoded.
    pub(super) fn sample_at(&self, number: usize) -> Result<PprofSample, ProfileError> {
        self.sample(self.samples.get(number).copied().unwrap_or_default())
    }

    fn sample(&self, bytes: &[u8]) -> Result<PprofSample, ProfileError> {
        let sample: PprofSample = self.message(bytes)?;
        if sample.value.len() != self.types.len() {
            let (has, wanted) = (sample.value.len(), self.types.len());
            let what = format!("has {has} values, and {wanted} are described");
            return Err(ProfileError::Invalid("a sample", what));
        }
        Ok(sample)
    }

    /// Returns the text with this number.
    pub(super) fn text(&self, number: i64) -> Result<&'a [u8], ProfileError> {
        let text = usize::try_from(number).ok().and_then(|number| self.texts.get(number));
        // Without any texts, number 0 is none.
        match text {
            Some(text) => Ok(text),
            None if number == 0 => Ok(&[]),
            None => Err(ProfileError::Invalid(
                "a name",
                format!("is text {number} of {}", self.texts.len()),
            )),
        }
    }

    /// Returns the text with this number; what is not UTF-8 is replaced.
    pub(super) fn name(&self, number: i64) -> Result<String, ProfileError> {
        self.text(number).map(|text| String::from_utf8_lossy(text).into_owned())
    }

    /// Returns the place of a location, by its number in the file.
    pub(super) fn location(&self, id: u64) -> Result<usize, ProfileError> {
        found(&self.location_places, id, "a sample", "location")
    }

    /// Returns the place of a location's mapping.
    pub(super) fn mapping(&self, location: &Location) -> Result<Option<usize>, ProfileError> {
        let id = Some(location.mapping).filter(|id| *id != 0);
        id.map(|id| found(&self.mapping_places, id, "a location", "mapping")).transpose()
    }

    /// Returns the place of a function; `None` for number 0.
    pub(super) fn function(&self, id: u64) -> Result<Option<usize>, ProfileError> {
        let id = Some(id).filter(|id| *id != 0);
        id.map(|id| found(&self.function_places, id, "a line", "function")).transpose()
    }

    /// Returns the name of a function as its file spells it, as far as that is known.
    pub(super) fn function_name(&self, function: &PprofFunction) -> Result<&'a [u8], ProfileError> {
        let [name, system] = [self.text(function.name)?, self.text(function.system_name)?];
        let is_mangled = [&b"_Z"[..], b"_R", b"__Z"].iter().any(|mark| system.starts_with(mark));
        Ok(if !system.is_empty() && (self.facts.is_some() || is_mangled) { system } else { name })
    }

    /// Returns the build ID of a mapping, if it is one.
    pub(super) fn build_id(&self, mapping: &PprofMapping) -> Result<Option<BuildId>, ProfileError> {
        let digits = self.text(mapping.build_id)?;
        let bytes: Option<Vec<u8>> = digits
            .chunks(2)
            .map(|pair| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok())
            .collect();
        Ok(bytes.filter(|bytes| !bytes.is_empty()).and_then(|bytes| BuildId::new(&bytes)))
    }
}

/// Returns the places of numbers, which all differ and are not 0.
fn places(
    what: &'static str,
    ids: impl Iterator<Item = u64>,
) -> Result<FxHashMap<u64, usize>, ProfileError> {
    let mut places = FxHashMap::default();
    for (place, id) in ids.enumerate() {
        if id == 0 {
            return Err(ProfileError::Invalid("a", format!("{what} has no number")));
        }
        if places.insert(id, place).is_some() {
            return Err(ProfileError::Invalid(what, format!("{id} is there twice")));
        }
    }
    Ok(places)
}

fn found(
    places: &FxHashMap<u64, usize>,
    id: u64,
    whose: &'static str,
    what: &str,
) -> Result<usize, ProfileError> {
    places.get(&id).copied().ok_or_else(|| {
        ProfileError::Invalid(whose, format!("refers to {what} {id}, which is missing"))
    })
}

/// Returns a number that is not negative in a profile.
fn unsigned(number: u64) -> u64 {
    u64::try_from(number.cast_signed()).unwrap_or(0)
}

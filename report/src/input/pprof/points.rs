//! Points: what becomes an address of the recording. A location is one, or has one for each of its
//! lines.

use std::ops::Range;

use super::decoded::Decoded;
use super::decoded::ProfileError;
use crate::pprof::{PprofLine, PprofMapping, is_kernel};

/// An address of the recording in the making.
#[derive(Clone, Debug)]
pub(super) struct CodePoint {
    /// Place of its mapping; that behind the last for functions without one. `None` where nothing
    /// is mapped.
    pub(super) mapping: Option<usize>,
    /// Place of its function.
    pub(super) function: Option<usize>,
    /// Location, and those of its lines that debug information will have.
    pub(super) location: usize,
    pub(super) lines: Range<usize>,
    /// Address in the profile, if it can be kept.
    pub(super) wanted: Option<u64>,
    pub(super) is_kernel: bool,
    /// Address in the recording.
    pub(super) ip: u64,
}

/// All points of a profile.
#[derive(Debug)]
pub(super) struct Points {
    pub(super) all: Vec<CodePoint>,
    /// Those of each location, innermost first.
    of_location: Vec<Range<usize>>,
}

/// Name of the frame that stands for those that are not known, as rep writes it.
const CALLERS_UNKNOWN: &[u8] = b"[callers unknown]";

/// Address that stands for them in callchains: the last one before the context markers.
const MISSING: u64 = recrep_format::abi::context::MAX - 1;

impl Points {
    pub(super) fn of(decoded: &Decoded<'_>) -> Result<Self, ProfileError> {
        let mut points = Self { all: Vec::new(), of_location: Vec::new() };
        let is_of_rep = decoded.facts.is_some();
        for (place, location) in decoded.locations.iter().enumerate() {
            let begin = points.all.len();
            let at = decoded.mapping(location)?;
            let mapping = at.and_then(|at| decoded.mappings.get(at));
            let name = mapping.map_or(Ok(&b""[..]), |mapping| decoded.text(mapping.filename))?;
            let point = CodePoint {
                mapping: at,
                function: None,
                location: place,
                lines: 0..0,
                wanted: mapping
                    .is_some_and(|mapping| is_within(location.address, mapping))
                    .then_some(location.address),
                is_kernel: is_kernel(location.address, name),
                ip: 0,
            };
            let functions =
                location.line.iter().map(|line: &PprofLine| decoded.function(line.function));
            let functions = functions.collect::<Result<Vec<_>, _>>()?;
            match &functions[..] {
                [.., Some(outermost)] if is_of_rep || functions.len() == 1 => {
                    let name = decoded.functions.get(*outermost);
                    let name = name.map_or(Ok(&b""[..]), |name| decoded.function_name(name))?;
                    points.all.push(if at.is_none() && name == CALLERS_UNKNOWN {
                        CodePoint { wanted: Some(MISSING), ..point }
                    } else {
                        let lines = 0..functions.len();
                        point.of_function(*outermost, lines, decoded)
                    });
                }
                [] | [None] => points.all.push(point.without_function(location.address)),
                all => {
                    let last = all.len() - 1;
                    for (number, function) in all.iter().enumerate() {
                        let Some(function) = function else { continue };
                        let lines = number..number + 1;
                        let point = point.clone().of_function(*function, lines, decoded);
                        // The function that contains the others is what is at the address.
                        let wanted = point.wanted.filter(|_| number == last);
                        points.all.push(CodePoint { wanted, ..point });
                    }
                }
            }
            points.of_location.push(begin..points.all.len());
        }
        Ok(points)
    }

    /// Returns the points of a location, innermost first.
    pub(super) fn of_location(&self, place: usize) -> &[CodePoint] {
        let points = self.of_location.get(place).and_then(|range| self.all.get(range.clone()));
        points.unwrap_or_default()
    }
}

impl CodePoint {
    fn of_function(self, function: usize, lines: Range<usize>, decoded: &Decoded<'_>) -> Self {
        let mapping = Some(self.mapping.unwrap_or(decoded.mappings.len()));
        Self { mapping, function: Some(function), lines, ..self }
    }

    /// Returns the point without a function: outside of its mapping, nothing is mapped.
    fn without_function(self, address: u64) -> Self {
        match self.wanted {
            Some(_) => self,
            None => Self { mapping: None, wanted: Some(address), ..self },
        }
    }
}

fn is_within(address: u64, mapping: &PprofMapping) -> bool {
    (mapping.start..mapping.limit).contains(&address)
}

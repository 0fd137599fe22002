//! Names of rows: as each side has them, as they are printed, and as rules may call them. What only
//! some rows show is made when they are printed.

use recrep_console::demangle::demangled_fully;
use rustc_hash::FxHashMap;

use crate::compare::matching::{CodeName, JIT, RowName, function_text, module_key};
use crate::count::Count;
use crate::query::{Query, SortKey};
use crate::table::Cells;

/// A row as one side names it.
#[derive(Clone, Debug, Default)]
pub(crate) struct SideName {
    /// Texts of the columns.
    texts: Vec<String>,
    module: String,
    identity: Option<String>,
    /// `None` if functions are no part of the key.
    code: Option<SideCode>,
    /// All other cells.
    pub(crate) rest: String,
}

#[derive(Clone, Debug, PartialEq)]
enum SideCode {
    /// As the file spells it.
    Function(String),
    Address(u64),
}

impl SideName {
    /// Creates the name of the row with these words, the values of these columns; so many of the first
    /// are shown.
    pub(crate) fn of_words(
        words: &[u64],
        columns: &[(usize, SortKey)],
        shown: usize,
        cells: &Cells<'_>,
    ) -> Self {
        let one = Count { samples: 1, period: 0 };
        let mut name = Self { texts: Vec::with_capacity(shown), ..Self::default() };
        for (place, ((column, key), word)) in columns.iter().zip(words).enumerate() {
            let text = cells.text(*column, *word, &one);
            match key {
                SortKey::Identity => {
                    name.identity = Some(text.into_owned()).filter(|text| !text.is_empty());
                    continue;
                }
                SortKey::Dso | SortKey::DsoPath => name.module = text.clone().into_owned(),
                SortKey::Symbol => {
                    name.code = Some(match cells.address(*column, *word) {
                        Some(address) => SideCode::Address(address),
                        None => {
                            let mangled = cells.mangled(*column, *word);
                            SideCode::Function(mangled.unwrap_or_else(|| text.clone().into_owned()))
                        }
                    });
                }
                SortKey::FromSymbol | SortKey::ToSymbol => {
                    let mangled = cells.mangled(*column, *word);
                    name.rest.push_str(&function_text("", mangled.as_deref().unwrap_or(&text)));
                    name.rest.push('\0');
                }
                _ => {
                    name.rest.push_str(&text);
                    name.rest.push('\0');
                }
            }
            if place < shown {
                name.texts.push(text.into_owned());
            }
        }
        name
    }

    pub(crate) fn as_row(&self) -> RowName<'_> {
        RowName {
            module: &self.module,
            identity: self.identity.as_deref(),
            code: match &self.code {
                None => CodeName::Any,
                Some(SideCode::Function(name)) => CodeName::Function(name),
                Some(SideCode::Address(address)) => CodeName::Address(*address),
            },
            rest: &self.rest,
        }
    }

    /// Returns whether it is an address without a function.
    pub(crate) fn is_address(&self) -> bool {
        matches!(self.code, Some(SideCode::Address(_)))
    }

    /// Returns the name with all that distinguishes it.
    fn full(&self) -> String {
        match &self.code {
            Some(SideCode::Function(function)) => demangled_fully(function.as_bytes()).into_owned(),
            Some(SideCode::Address(address)) => format!("{}+{address:#x}", self.module),
            None => self.texts.join(" "),
        }
    }

    /// Returns the function as its file spells it.
    fn spelt(&self) -> Option<&str> {
        match &self.code {
            Some(SideCode::Function(function)) => Some(function),
            _ => None,
        }
    }
}

/// A row of both sides, as it is printed.
#[derive(Clone, Debug, Default)]
pub(crate) struct RowLabels {
    /// Texts of the columns.
    pub(crate) cells: Vec<String>,
    /// The column of its function, else the first one: what rules name.
    pub(crate) subject: usize,
    /// Numbers of its names on both sides, those of base first.
    names: Vec<usize>,
}

impl RowLabels {
    /// Returns the texts of so many columns: the function first, then its module and others.
    pub(crate) fn in_order(&self, columns: usize) -> impl Iterator<Item = &String> {
        let shown = || self.cells.iter().take(columns).enumerate();
        let first = shown().filter(|(place, _)| *place == self.subject);
        let rest = shown().filter(|(place, _)| *place != self.subject);
        first.chain(rest).map(|(_, cell)| cell)
    }
}

/// The rows of an event, and all of their names.
#[derive(Clone, Debug, Default)]
pub(crate) struct EventLabels {
    pub(crate) rows: Vec<RowLabels>,
    names: Vec<SideName>,
    /// `true` if rules name modules.
    of_modules: bool,
}

impl EventLabels {
    /// Creates rows with one text each.
    pub(crate) fn of_texts(texts: Vec<String>) -> Self {
        let row = |text| RowLabels { cells: vec![text], ..RowLabels::default() };
        Self { rows: texts.into_iter().map(row).collect(), ..Self::default() }
    }

    /// Creates rows, given the names of all, those of each row, whether it stands for all addresses of
    /// a module, and the keys of the columns that are shown.
    pub(crate) fn of_names(
        names: Vec<SideName>,
        rows: impl Iterator<Item = (Vec<usize>, Option<usize>, bool)>,
        keys: &[SortKey],
    ) -> Self {
        let subject = keys.iter().position(|key| *key == SortKey::Symbol);
        let row = |(all, chosen, is_unknown): (Vec<usize>, Option<usize>, bool)| {
            let chosen = chosen.and_then(|number| names.get(number));
            RowLabels {
                cells: chosen.map(|name| cells(name, keys, is_unknown)).unwrap_or_default(),
                subject: subject.unwrap_or(0),
                names: all,
            }
        };
        let rows = rows.map(row).collect();
        let of_modules = subject.is_none() && keys.first() == Some(&SortKey::Dso);
        let mut labels = Self { rows, names, of_modules };
        if let Some(symbol) = subject {
            labels.disambiguate(symbol);
        }
        labels
    }

    fn of_row(&self, row: usize) -> impl Iterator<Item = &SideName> {
        let numbers = self.rows.get(row).map_or(&[][..], |labels| labels.names.as_slice());
        numbers.iter().filter_map(|number| self.names.get(*number))
    }

    /// Returns the names of a row on both sides, in full, those of base first.
    pub(crate) fn names(&self, row: usize) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        let module = self.of_row(row).next().map(|name| module_key(&name.module));
        let are_modules_one = self.of_row(row).all(|name| Some(module_key(&name.module)) == module);
        for name in self.of_row(row) {
            let full = match are_modules_one {
                true => name.full(),
                false => format!("{} ({})", name.full(), name.module),
            };
            if !names.contains(&full) {
                names.push(full);
            }
        }
        if names.is_empty() {
            names.extend(self.rows.get(row).and_then(|labels| labels.cells.first()).cloned());
        }
        names
    }

    /// Returns the modules and functions of a row on both sides, by their texts.
    pub(crate) fn functions(&self, row: usize) -> Vec<(String, String)> {
        let Some(labels) = self.rows.get(row) else { return Vec::new() };
        let function =
            |name: &SideName| Some((name.module.clone(), name.texts.get(labels.subject)?.clone()));
        self.of_row(row).filter_map(function).collect()
    }

    /// Returns the text of a row that rules name.
    pub(crate) fn subject(&self, row: usize) -> &str {
        let labels = self.rows.get(row);
        labels.and_then(|labels| labels.cells.get(labels.subject)).map_or("", String::as_str)
    }

    /// Returns all that rules may call a row, the name for messages first.
    pub(crate) fn names_for_rules(&self, row: usize) -> Vec<String> {
        let Some(labels) = self.rows.get(row) else { return Vec::new() };
        let mut aliases = Vec::new();
        for name in self.of_row(row) {
            aliases.extend(name.spelt().map(str::to_owned));
            aliases.extend(name.texts.get(labels.subject).cloned());
            aliases.push(name.full());
            if self.of_modules {
                aliases.push(module_key(&name.module).into_owned());
            }
        }
        aliases.push(self.subject(row).to_owned());
        aliases.sort_unstable();
        aliases.dedup();
        let mut names = vec![self.subject(row).to_owned()];
        names.append(&mut aliases);
        names
    }

    /// Adds the names of other rows, which are the same code, to those of a row; names of base come
    /// first.
    pub(crate) fn join(
        &mut self,
        row: usize,
        others: &[usize],
        is_in_base: impl Fn(usize) -> bool,
    ) {
        let of = |row: usize| self.rows.get(row).map_or(&[][..], |labels| &labels.names);
        let (base, new): (Vec<usize>, Vec<usize>) =
            others.iter().copied().partition(|other| is_in_base(*other));
        let all = base.into_iter().chain([row]).chain(new);
        let names: Vec<usize> = all.flat_map(of).copied().collect();
        if let Some(labels) = self.rows.get_mut(row) {
            labels.names = names;
        }
    }

    /// Spells functions out that would read alike.
    fn disambiguate(&mut self, symbol: usize) {
        for round in 0..2 {
            let mut alike: FxHashMap<&[String], usize> = FxHashMap::default();
            for row in &self.rows {
                *alike.entry(&row.cells).or_default() += 1;
            }
            let is_alike = |row: &RowLabels| alike.get(row.cells.as_slice()) > Some(&1);
            let rows: Vec<usize> =
                (0..).zip(&self.rows).filter(|(_, row)| is_alike(row)).map(|(at, _)| at).collect();
            for row in rows {
                let mut name = self.names(row).into_iter().next().unwrap_or_default();
                if round > 0
                    && let Some(spelt) = self
                        .of_row(row)
                        .filter_map(SideName::spelt)
                        .find(|name| name.starts_with('_'))
                {
                    name = format!("{name} ({spelt})");
                }
                let cell = self.rows.get_mut(row).and_then(|labels| labels.cells.get_mut(symbol));
                cell.into_iter().for_each(|cell| cell.clone_from(&name));
            }
        }
    }
}

/// Returns the texts of a row that is printed with this name.
fn cells(name: &SideName, keys: &[SortKey], is_unknown: bool) -> Vec<String> {
    let module = module_key(&name.module);
    let cell = |(key, text): (&SortKey, &String)| match key {
        SortKey::Symbol if is_unknown => format!("{module}+?"),
        // Its number is that of a process.
        SortKey::Dso if module == JIT => module.to_string(),
        _ => text.clone(),
    };
    keys.iter().zip(&name.texts).map(cell).collect()
}

/// Returns the columns of a query with their keys.
pub(crate) fn with_keys(query: &Query, columns: &[usize]) -> Vec<(usize, SortKey)> {
    let key = |column: &usize| Some((*column, query.columns.get(*column)?.key));
    columns.iter().filter_map(key).collect()
}

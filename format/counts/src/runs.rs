//! Means over several runs.

use super::place::Place;
use super::report::Row;
use super::spread::Spread;

/// Rows of several runs, that become their means.
#[derive(Clone, Debug, Default)]
pub struct Runs {
    rows: Vec<Mean>,
}

#[derive(Clone, Debug)]
struct Mean {
    event: usize,
    place: Place,
    cpus: usize,
    values: Spread,
    enabled: u128,
    running: u128,
}

impl Runs {
    /// Adds the rows of a run. A row in which nothing was counted adds no value to the mean.
    pub fn add(&mut self, rows: &[Row]) {
        for row in rows {
            let mean = match self.rows.iter_mut().find(|mean| mean.is_of(row)) {
                Some(mean) => mean,
                None => {
                    self.rows.push(Mean::new(row));
                    let Some(mean) = self.rows.last_mut() else { continue };
                    mean
                }
            };
            mean.enabled += u128::from(row.enabled);
            mean.running += u128::from(row.running);
            mean.cpus = mean.cpus.max(row.cpus);
            if row.is_counted() {
                mean.values.add(row.value);
            }
        }
    }

    /// Returns a row for each event and place, with the mean of the runs.
    pub fn rows(&self) -> Vec<Row> {
        self.rows.iter().map(Mean::row).collect()
    }
}

impl Mean {
    fn new(row: &Row) -> Self {
        let place = row.place.clone();
        let values = Spread::default();
        Self { event: row.event, place, cpus: row.cpus, values, enabled: 0, running: 0 }
    }

    fn is_of(&self, row: &Row) -> bool {
        self.event == row.event && self.place == row.place
    }

    fn per_run(&self, sum: u128) -> u64 {
        u64::try_from(sum / u128::from(self.values.runs().max(1))).unwrap_or(u64::MAX)
    }

    fn row(&self) -> Row {
        Row {
            event: self.event,
            place: self.place.clone(),
            cpus: self.cpus,
            value: self.values.mean(),
            enabled: self.per_run(self.enabled),
            running: self.per_run(self.running),
            spread: Some(self.values),
            metrics: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_become_their_mean() {
        let row = |value, running| Row {
            event: 0,
            place: Place::Cpu(1),
            cpus: 1,
            value,
            enabled: 10,
            running,
            spread: None,
            metrics: Vec::new(),
        };
        let mut runs = Runs::default();
        runs.add(&[row(4.0, 10)]);
        runs.add(&[row(6.0, 5), Row { place: Place::Cpu(2), ..row(0.0, 0) }]);
        let rows = runs.rows();
        assert_eq!((rows.len(), rows[0].value, rows[0].running), (2, 5.0, 7));
        assert_eq!(rows[0].spread.map(|spread| (spread.runs(), spread.error())), Some((2, 1.0)));
        assert!(!rows[1].is_counted());
    }
}

//! Notes on deviations of the plan from the request.

/// Notes for the user, without duplicates.
pub(super) struct Notes(pub(super) Vec<String>);

impl Notes {
    pub(super) fn add(&mut self, note: String) {
        if !self.0.contains(&note) {
            self.0.push(note);
        }
    }
}

//! Results of a run: sections of rows, some with a target, printed as text or JSON.

use std::fmt::Write as _;

use serde::Serialize;

/// Target of a figure.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// This or less.
    AtMost(f64),
    /// This or more.
    AtLeast(f64),
}

/// A figure and what it should be.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Check {
    /// The figure.
    pub measured: f64,
    /// `None` for an informative figure.
    pub target: Option<Target>,
}

impl Check {
    /// A figure that has a target.
    pub fn new(measured: f64, target: Target) -> Self {
        Self { measured, target: Some(target) }
    }

    /// A figure to know.
    pub fn note(measured: f64) -> Self {
        Self { measured, target: None }
    }

    fn missed(&self) -> bool {
        match self.target {
            Some(Target::AtMost(most)) => self.measured > most,
            Some(Target::AtLeast(least)) => self.measured < least,
            None => false,
        }
    }
}

/// A row: its name, its cells under the section's columns, and what is checked of it.
#[derive(Debug, Serialize)]
pub struct Row {
    name: String,
    cells: Vec<String>,
    check: Option<Check>,
}

/// One subject of the run.
#[derive(Debug, Serialize)]
pub struct Section {
    title: String,
    /// Explanation, printed below the title.
    note: String,
    columns: Vec<String>,
    /// Name of the checked figure.
    measure: String,
    rows: Vec<Row>,
}

impl Section {
    /// An empty section.
    pub fn new(title: impl Into<String>, columns: &[&str], measure: &str) -> Self {
        let columns = columns.iter().map(|&column| column.to_owned()).collect();
        Self { title: title.into(), note: String::new(), columns, measure: measure.to_owned(), rows: Vec::new() }
    }

    /// Adds a line beneath the title that says how to read the section.
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }

    /// Adds a row.
    pub fn row(&mut self, name: impl Into<String>, cells: Vec<String>, check: Option<Check>) {
        self.rows.push(Row { name: name.into(), cells, check });
    }

    fn missed(&self) -> impl Iterator<Item = String> {
        self.rows
            .iter()
            .filter(|row| row.check.is_some_and(|check| check.missed()))
            .map(|row| format!("{}: {}", self.title, row.name))
    }

    /// The section as text: the first column to the left, all others to the right.
    pub fn render(&self) -> String {
        let head = [String::new()]
            .into_iter()
            .chain(self.columns.iter().cloned())
            .chain([self.measure.clone(), "target".to_owned(), String::new()])
            .collect();
        let mut lines: Vec<Vec<String>> = vec![head];
        for row in &self.rows {
            let mut line = vec![row.name.clone()];
            line.extend(row.cells.iter().cloned());
            line.resize(self.columns.len() + 1, String::new());
            line.extend(check_cells(row.check));
            lines.push(line);
        }
        let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.columns.len() + 4).map(width).collect();
        let mut text = format!("## {}\n", self.title);
        if !self.note.is_empty() {
            let _ = writeln!(text, "{}", self.note);
        }
        for line in &lines {
            let mut printed = format!("{:<1$}", line[0], widths[0]);
            for (cell, width) in line.iter().zip(&widths).skip(1) {
                let _ = write!(printed, "  {cell:>width$}");
            }
            let _ = writeln!(text, "{}", printed.trim_end());
        }
        text
    }
}

fn check_cells(check: Option<Check>) -> [String; 3] {
    let Some(check) = check else { return Default::default() };
    let target = match check.target {
        Some(Target::AtMost(most)) => format!("≤ {most}"),
        Some(Target::AtLeast(least)) => format!("≥ {least}"),
        None => "–".to_owned(),
    };
    let verdict = match check.target {
        Some(_) if check.missed() => "MISSED",
        Some(_) => "ok",
        None => "",
    };
    [format!("{:.3}", check.measured), target, verdict.to_owned()]
}

/// The closing lines: how many targets there are, and which were missed.
pub fn summary(sections: &[Section]) -> String {
    let checks = sections.iter().flat_map(|section| &section.rows).filter_map(|row| row.check);
    let targets = checks.filter(|check| check.target.is_some()).count();
    let missed: Vec<String> = sections.iter().flat_map(Section::missed).collect();
    let mut text = format!("{} of {targets} targets met\n", targets - missed.len());
    for name in missed {
        let _ = writeln!(text, "MISSED  {name}");
    }
    text
}

/// A number with its thousands apart.
pub fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renders_aligned_rows_with_verdicts() {
        let mut section = Section::new("title", &["ms"], "ratio").note("how to read it");
        section.row("ours", vec!["1.5".into()], None);
        section.row("peer", vec!["13.0".into()], Some(Check::new(8.7, Target::AtLeast(2.0))));
        section.row("other", vec![], Some(Check::new(1.3, Target::AtMost(1.25))));
        let expected = "## title\nhow to read it\n         ms  ratio  target\nours    1.5\n\
                        peer   13.0  8.700     ≥ 2      ok\nother        1.300  ≤ 1.25  MISSED\n";
        assert_eq!(section.render(), expected);
        assert_eq!(summary(&[section]), "1 of 2 targets met\nMISSED  title: other\n");
    }

    #[test]
    fn thousands_are_apart() {
        assert_eq!([0, 999, 1000, 1_234_567].map(thousands), ["0", "999", "1,000", "1,234,567"]);
    }
}

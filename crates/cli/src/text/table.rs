//! Tables: columns as wide as their widest cell; where that is wider than the terminal, the widest
//! columns are cut.

use super::{Paint, Screen};

/// Blanks between columns.
const GAP: usize = 3;
/// No column is cut to less.
const LEAST: usize = 8;

/// One cell.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cell {
    text: String,
    paint: Paint,
}

impl Cell {
    /// A cell in a colour.
    pub fn painted(paint: Paint, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { text, paint }
    }

    /// What is in it.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::painted(Paint::Plain, text)
    }
}

/// Rows of cells under a heading.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Table {
    head: Vec<String>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// A table with these headings.
    pub fn new<S: Into<String>>(head: impl IntoIterator<Item = S>) -> Self {
        Self {
            head: head.into_iter().map(Into::into).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// Whether it has no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The rows.
    pub fn rows(&self) -> &[Vec<Cell>] {
        &self.rows
    }

    /// The text.
    pub fn render(&self, screen: Screen) -> String {
        let head: Vec<Cell> = self
            .head
            .iter()
            .map(|text| Cell::painted(Paint::Strong, text.as_str()))
            .collect();
        let widths = self.widths(screen);
        let rows = self.rows.iter().map(|cells| line(cells, &widths, screen));
        let mut out = line(&head, &widths, screen);
        out.extend(rows);
        out
    }

    fn widths(&self, screen: Screen) -> Vec<usize> {
        let mut widths: Vec<usize> = self.head.iter().map(|head| head.chars().count()).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(shown(&cell.text).chars().count());
            }
        }
        let Some(most) = screen.width else {
            return widths;
        };
        let gaps = GAP * widths.len().saturating_sub(1);
        while widths.iter().sum::<usize>() + gaps > most {
            match widths.iter_mut().max() {
                Some(widest) if *widest > LEAST => *widest -= 1,
                _ => break,
            }
        }
        widths
    }
}

fn line(cells: &[Cell], widths: &[usize], screen: Screen) -> String {
    let mut out = String::new();
    let mut owed = 0;
    for (cell, width) in cells.iter().zip(widths) {
        let text = match cell.paint {
            // A heading may be empty: what is below it speaks for itself.
            Paint::Strong => cut(&cell.text, *width),
            _ => cut(shown(&cell.text), *width),
        };
        let length = text.chars().count();
        out.push_str(&" ".repeat(owed));
        out.push_str(&screen.paint(cell.paint, &text));
        owed = width.saturating_sub(length) + GAP;
    }
    out.push('\n');
    out
}

/// What is not there is said, so that columns can be counted.
fn shown(text: &str) -> &str {
    match text {
        "" => "-",
        text => text,
    }
}

fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(width.saturating_sub(1)).collect();
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(["NAME", "PHASE", "WHY"]);
        let why = "because of a very long reason that does not fit into one line of a terminal";
        table.row(vec![
            "blue".into(),
            Cell::painted(Paint::Bad, "Failed"),
            why.into(),
        ]);
        table.row(vec!["ünï".into(), "".into(), "x".into()]);
        table
    }

    #[test]
    fn a_heading_may_be_empty() {
        let mut table = Table::new(["A", "", "C"]);
        table.row(vec!["1".into(), "[##]".into(), "".into()]);
        assert_eq!(table.render(Screen::PIPE), "A          C\n1   [##]   -\n");
    }

    #[test]
    fn columns_are_aligned_and_whole_in_a_pipe() {
        let text = table().render(Screen::PIPE);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "NAME   PHASE    WHY");
        assert!(lines[1].starts_with("blue   Failed   because") && lines[1].ends_with("terminal"));
        assert_eq!(lines[2], "ünï    -        x");
    }

    #[test]
    fn the_widest_column_is_cut_on_a_terminal() {
        let screen = Screen {
            colour: false,
            width: Some(50),
        };
        let text = table().render(screen);
        assert!(
            text.lines().all(|line| line.chars().count() <= 50),
            "{text}"
        );
        assert!(text.contains('…') && text.contains("Failed"), "{text}");
        let coloured = Screen {
            colour: true,
            ..screen
        };
        assert!(table().render(coloured).contains("\x1b[31mFailed\x1b[0m"));
    }
}

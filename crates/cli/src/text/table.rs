//! Tables: columns as wide as their widest cell. Where that is wider than the terminal, reasons go to
//! lines of their own below their rows, and the widest of the other columns are cut.

use super::{Paint, Screen};

/// Blanks between columns.
const GAP: usize = 3;
/// No column is cut to less.
const MIN_COLUMN_WIDTH: usize = 8;
/// What a last column is called that has sentences.
const REASONS: [&str; 2] = ["WHY", "NOTE"];
/// Blanks before a sentence on a line of its own.
const INDENT: usize = 4;

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

    /// The rows alone, below those of another table whose columns are as wide as these say, at least.
    pub fn render_rows(&self, widths: &[usize], screen: Screen) -> String {
        let widths: Vec<usize> = self
            .widths()
            .iter()
            .zip(widths)
            .map(|(a, b)| *a.max(b))
            .collect();
        let rows = self.rows.iter().map(|cells| line(cells, &widths, screen));
        rows.collect()
    }

    /// How wide its columns are.
    pub fn widths(&self) -> Vec<usize> {
        let mut widths: Vec<usize> = self.head.iter().map(|head| head.chars().count()).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(visible_text(&cell.text).chars().count());
            }
        }
        widths
    }

    /// The text.
    pub fn render(&self, screen: Screen) -> String {
        let head: Vec<Cell> = self
            .head
            .iter()
            .map(|text| Cell::painted(Paint::Strong, text.as_str()))
            .collect();
        let mut widths = self.widths();
        let Some(most) = screen.width else {
            return self.lines(&head, &widths, screen);
        };
        let has_reasons = |head: &String| REASONS.contains(&head.as_str());
        let below = total(&widths) > most && self.head.last().is_some_and(has_reasons);
        if below {
            let _ = widths.pop();
        }
        fit(&mut widths, most);
        match below {
            false => self.lines(&head, &widths, screen),
            true => self.with_reasons_below(&head, &widths, most, screen),
        }
    }

    fn lines(&self, head: &[Cell], widths: &[usize], screen: Screen) -> String {
        let rows = self.rows.iter().map(|cells| line(cells, widths, screen));
        std::iter::once(line(head, widths, screen))
            .chain(rows)
            .collect()
    }

    fn with_reasons_below(
        &self,
        head: &[Cell],
        widths: &[usize],
        most: usize,
        screen: Screen,
    ) -> String {
        let mut out = line(head, widths, screen);
        for row in &self.rows {
            out.push_str(&line(row, widths, screen));
            let reason = row.get(widths.len()).map_or("", Cell::text);
            for part in wrapped(reason, most.saturating_sub(INDENT)) {
                out.push_str(&format!("{:INDENT$}{part}\n", ""));
            }
        }
        out
    }
}

fn total(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)
}

/// Cuts the widest, as far as columns are cut.
fn fit(widths: &mut [usize], most: usize) {
    while total(widths) > most {
        match widths.iter_mut().max() {
            Some(widest) if *widest > MIN_COLUMN_WIDTH => *widest -= 1,
            _ => break,
        }
    }
}

/// A sentence in lines of at most so many characters; longer words are not broken.
fn wrapped(text: &str, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= most => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

fn line(cells: &[Cell], widths: &[usize], screen: Screen) -> String {
    let mut out = String::new();
    let mut owed = 0;
    for (cell, width) in cells.iter().zip(widths) {
        let text = match cell.paint {
            // A heading may be empty: what is below it speaks for itself.
            Paint::Strong => cut(&cell.text, *width),
            _ => cut(visible_text(&cell.text), *width),
        };
        let length = text.chars().count();
        out.push_str(&" ".repeat(owed));
        out.push_str(&screen.paint(cell.paint, &text));
        owed = width.saturating_sub(length) + GAP;
    }
    out.push('\n');
    out
}

/// An empty cell has a mark, so that columns can be counted.
fn visible_text(text: &str) -> &str {
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
        let mut table = Table::new(["NAME", "SUBNETS"]);
        table.row(vec!["blue".into(), "10.1.0.0/16,fd00:1::/48".into()]);
        let screen = Screen {
            colour: false,
            width: Some(20),
        };
        assert_eq!(
            table.render(screen),
            "NAME   SUBNETS\nblue   10.1.0.0/16,…\n"
        );
    }

    #[test]
    fn reasons_go_below_their_rows_on_a_terminal() {
        let screen = Screen {
            colour: false,
            width: Some(50),
        };
        let text = table().render(screen);
        assert!(
            text.lines().all(|line| line.chars().count() <= 50),
            "{text}"
        );
        let words: Vec<&str> = text.split_whitespace().collect();
        assert!(
            words
                .join(" ")
                .contains("does not fit into one line of a terminal"),
            "{text}"
        );
        assert_eq!(text.lines().next(), Some("NAME   PHASE"), "{text}");
        let coloured = Screen {
            colour: true,
            ..screen
        };
        assert!(table().render(coloured).contains("\x1b[31mFailed\x1b[0m"));
    }
}

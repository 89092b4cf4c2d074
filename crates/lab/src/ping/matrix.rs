//! The result as a value, and as a text: an address a row, a pod a column.

use super::expect::Expected;
use serde::Serialize;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Which pods reach which addresses.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Matrix {
    /// Every pair of a pod and an address of another one.
    pub cells: Vec<Cell>,
    /// What should be in it and is not.
    pub unseen: Vec<Unseen>,
}

/// A pod that runs, or one of its interfaces, that cannot be judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unseen {
    /// The pod.
    pub pod: String,
    /// Why it is not there.
    pub why: String,
}

/// Whether a pod reaches an address of another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cell {
    /// The pod that pings.
    pub from: String,
    /// The pod that is pinged.
    pub to: String,
    /// On which network the address is.
    pub network: String,
    /// The address.
    pub address: IpAddr,
    /// What must be seen.
    pub expected: Expected,
    /// What was seen.
    pub seen: bool,
}

/// What a table means: in lines that fit.
const LEGEND: &str = "does the pod of a column reach the address of a row?\n\
                      (! not as expected, in parentheses: not judged)\n";

/// More columns than this do not fit anywhere.
const COLUMNS: usize = 20;
/// `(yes)`, and the space before it.
const CELL: usize = 7;

impl Cell {
    /// Whether it is not as it must be.
    pub fn is_wrong(&self) -> bool {
        match self.expected {
            Expected::Yes => !self.seen,
            Expected::No => self.seen,
            Expected::Either => false,
        }
    }

    fn text(&self) -> String {
        let seen = if self.seen { "yes" } else { "no" };
        match self.expected {
            Expected::Either => format!("({seen})"),
            _ if self.is_wrong() => format!("{seen}!"),
            _ => seen.to_owned(),
        }
    }
}

impl Matrix {
    /// The cells that are not as they must be.
    pub fn wrong(&self) -> Vec<&Cell> {
        self.cells.iter().filter(|cell| cell.is_wrong()).collect()
    }

    /// Whether something was judged, and everything that should be there is there and as it must be.
    pub fn is_well(&self) -> bool {
        self.wrong().is_empty() && self.unseen.is_empty() && self.judged() > 0
    }

    fn judged(&self) -> usize {
        let judged = |cell: &&Cell| cell.expected != Expected::Either;
        self.cells.iter().filter(judged).count()
    }

    /// As a table with a line below that sums it up; of many pods only what is wrong, a line each. What does
    /// not fit into that many columns stands below, in a table with the other pods.
    pub fn text(&self, width: Option<usize>) -> String {
        let mut pods: Vec<&str> = Vec::new();
        for cell in &self.cells {
            for pod in [cell.from.as_str(), cell.to.as_str()] {
                if !pods.contains(&pod) {
                    pods.push(pod);
                }
            }
        }
        pods.sort_unstable();
        let mut text = if pods.len() <= COLUMNS {
            self.tables(&pods, width)
        } else {
            self.list()
        };
        for Unseen { pod, why } in &self.unseen {
            text.push_str(&format!("! {pod}: {why}\n"));
        }
        text.push_str(&self.summary());
        text
    }

    /// Pods have numbers: their names would make it too wide.
    fn tables(&self, pods: &[&str], width: Option<usize>) -> String {
        let numbered: Vec<(String, &str)> = (1..)
            .map(|n: usize| n.to_string())
            .zip(pods.iter().copied())
            .collect();
        let number_of = |wanted: &str| {
            let found = numbered.iter().find(|(_, pod)| *pod == wanted);
            found.map_or_else(String::new, |(number, _)| number.clone())
        };
        let mut by_row: BTreeMap<(&str, &str, IpAddr), BTreeMap<&str, &Cell>> = BTreeMap::new();
        for cell in &self.cells {
            let row = (cell.network.as_str(), cell.to.as_str(), cell.address);
            by_row.entry(row).or_default().insert(&cell.from, cell);
        }
        let table = |some: &[(String, &str)]| {
            let head = ["#", "pod", "network", "address"].map(str::to_owned);
            let columns = some.iter().map(|(number, _)| number.clone());
            let mut rows: Vec<Vec<String>> = vec![head.into_iter().chain(columns).collect()];
            for ((network, to, address), cells) in &by_row {
                let texts = [
                    number_of(to),
                    (*to).to_owned(),
                    (*network).to_owned(),
                    address.to_string(),
                ];
                let cells = some.iter().map(|(_, from)| match cells.get(from) {
                    Some(cell) => cell.text(),
                    None => "-".to_owned(),
                });
                rows.push(texts.into_iter().chain(cells).collect());
            }
            aligned(&rows)
        };
        let room = match width {
            Some(width) => width.saturating_sub(longest(&table(&[]))) / CELL,
            None => numbered.len(),
        };
        let tables: Vec<String> = numbered.chunks(room.max(1)).map(table).collect();
        format!("{LEGEND}{}", tables.join("\n"))
    }

    fn list(&self) -> String {
        let wrong = self.wrong().into_iter().map(|cell| {
            let verb = if cell.seen {
                "reaches"
            } else {
                "does not reach"
            };
            let Cell {
                from,
                to,
                network,
                address,
                ..
            } = cell;
            format!("{from} {verb} {address} of {to} on {network}\n")
        });
        wrong.collect()
    }

    fn summary(&self) -> String {
        let reached = self.cells.iter().filter(|cell| cell.seen).count();
        let wrong = self.wrong().len();
        let mut verdict = match (wrong, self.judged()) {
            (0, 0) => "nothing to judge: run two pods with `plexus lab run`".to_owned(),
            (0, _) if !self.unseen.is_empty() => "what is seen is as expected".to_owned(),
            (0, _) => "all as expected".to_owned(),
            (1, _) => "1 is not as expected (!)".to_owned(),
            (many, _) => format!("{many} are not as expected (!)"),
        };
        if !self.unseen.is_empty() {
            verdict.push_str(&format!("; not seen: {} (!)", self.unseen.len()));
        }
        format!(
            "{} pings, {reached} answered, {} judged: {verdict}\n",
            self.cells.len(),
            self.judged()
        )
    }
}

fn longest(text: &str) -> usize {
    let lengths = text.lines().map(|line| line.chars().count());
    lengths.max().unwrap_or_default()
}

fn aligned(rows: &[Vec<String>]) -> String {
    let mut widths: Vec<usize> = Vec::new();
    for row in rows {
        for (column, text) in row.iter().enumerate() {
            let length = text.chars().count();
            match widths.get_mut(column) {
                Some(width) => *width = (*width).max(length),
                None => widths.push(length),
            }
        }
    }
    let mut text = String::new();
    for row in rows {
        let padded: Vec<String> = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        text.push_str(padded.join("  ").trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(from: &str, to: &str, address: &str, expected: Expected, seen: bool) -> Cell {
        Cell {
            from: from.to_owned(),
            to: to.to_owned(),
            network: "blue".to_owned(),
            address: address.parse().unwrap(),
            expected,
            seen,
        }
    }

    #[test]
    fn a_row_per_address_a_column_per_pod() {
        let matrix = Matrix {
            cells: vec![
                cell("a", "b", "10.0.0.2", Expected::Yes, true),
                cell("c", "b", "10.0.0.2", Expected::No, false),
                cell("b", "a", "10.0.0.1", Expected::Yes, false),
                cell("c", "a", "10.0.0.1", Expected::Either, true),
            ],
            unseen: vec![],
        };
        let expected = "\
#  pod  network  address   1    2    3
1  a    blue     10.0.0.1  -    no!  (yes)
2  b    blue     10.0.0.2  yes  -    no
4 pings, 2 answered, 3 judged: 1 is not as expected (!)
";
        let text = matrix.text(None);
        assert_eq!(text.strip_prefix(LEGEND), Some(expected));
        assert_eq!(matrix.wrong().len(), 1);
    }

    #[test]
    fn what_does_not_fit_stands_below() {
        let cells = [("a", "b"), ("b", "a"), ("c", "a")];
        let cells = cells.map(|(from, to)| cell(from, to, "10.0.0.1", Expected::Yes, true));
        let matrix = Matrix {
            cells: cells.to_vec(),
            unseen: vec![],
        };
        let expected = "\
#  pod  network  address   1    2
1  a    blue     10.0.0.1  -    yes
2  b    blue     10.0.0.1  yes  -

#  pod  network  address   3
1  a    blue     10.0.0.1  yes
2  b    blue     10.0.0.1  -
3 pings, 3 answered, 3 judged: all as expected
";
        let text = matrix.text(Some(39));
        assert_eq!(text.strip_prefix(LEGEND), Some(expected));
        assert_eq!(matrix.text(Some(46)), matrix.text(None));
        assert_eq!(matrix.text(Some(1)).matches("address ").count(), 3 + 1);
    }

    #[test]
    fn of_many_pods_only_what_is_wrong() {
        let names: Vec<String> = (0..21).map(|number| format!("p{number}")).collect();
        let mut cells: Vec<Cell> = names
            .iter()
            .map(|name| cell(name, "x", "fd00::1", Expected::No, false))
            .collect();
        cells[3].seen = true;
        let unseen = vec![];
        let text = Matrix { cells, unseen }.text(None);
        assert_eq!(text.lines().next(), Some("p3 reaches fd00::1 of x on blue"));
        assert_eq!(text.lines().count(), 2);
    }

    #[test]
    fn a_leak_is_not_well() {
        let mut matrix = Matrix {
            cells: vec![
                cell("a", "b", "10.0.0.2", Expected::Yes, true),
                cell("c", "b", "10.0.0.2", Expected::No, false),
            ],
            unseen: vec![],
        };
        assert!(matrix.is_well());
        matrix.cells[1].seen = true;
        assert!(!matrix.is_well(), "reached, and must not be");
        assert_eq!(matrix.wrong(), [&matrix.cells[1]]);
        let text = matrix.text(None);
        assert!(text.contains("yes!"), "{text}");
        assert!(
            text.ends_with("2 judged: 1 is not as expected (!)\n"),
            "{text}"
        );
    }

    #[test]
    fn what_is_not_seen_is_not_well() {
        assert!(!Matrix::default().is_well());
        let text = Matrix::default().text(None);
        assert!(text.contains("nothing to judge"), "{text}");
        let mut matrix = Matrix {
            cells: vec![cell("a", "b", "10.0.0.2", Expected::Either, true)],
            unseen: vec![],
        };
        assert!(!matrix.is_well(), "nothing is judged");
        matrix
            .cells
            .push(cell("b", "a", "10.0.0.1", Expected::Yes, true));
        assert!(matrix.is_well());
        let (pod, why) = ("c".to_owned(), "it has no sandbox yet".to_owned());
        matrix.unseen.push(Unseen { pod, why });
        assert!(!matrix.is_well());
        let text = matrix.text(None);
        assert!(text.contains("\n! c: it has no sandbox yet\n"), "{text}");
        assert!(!text.contains("all as expected"), "{text}");
    }
}

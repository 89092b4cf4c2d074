//! The result as a value, and as a text: an address a row, a pod a column.

use super::expect::Expected;
use serde::Serialize;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Who reaches whom.
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
    /// Whose.
    pub pod: String,
    /// Why it is not there.
    pub why: String,
}

/// Whether a pod reaches an address of another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cell {
    /// Who pings.
    pub from: String,
    /// Whom.
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

/// More columns than this do not fit anywhere.
const COLUMNS: usize = 20;

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

    /// As a table with a line below that sums it up; of many pods only what is wrong, a line each.
    pub fn text(&self) -> String {
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
            self.table(&pods)
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
    fn table(&self, pods: &[&str]) -> String {
        let head = ["#", "pod", "network", "address"].map(str::to_owned);
        let columns = (1..=pods.len()).map(|number| number.to_string());
        let mut rows: Vec<Vec<String>> = vec![head.into_iter().chain(columns).collect()];
        let mut by_row: BTreeMap<(&str, &str, IpAddr), BTreeMap<&str, &Cell>> = BTreeMap::new();
        for cell in &self.cells {
            let row = (cell.network.as_str(), cell.to.as_str(), cell.address);
            by_row.entry(row).or_default().insert(&cell.from, cell);
        }
        for ((network, to, address), cells) in by_row {
            let number = pods
                .iter()
                .position(|pod| *pod == to)
                .map_or(0, |at| at + 1);
            let texts = [
                number.to_string(),
                to.into(),
                network.into(),
                address.to_string(),
            ];
            let cells = pods.iter().map(|from| match cells.get(from) {
                Some(cell) => cell.text(),
                None => "-".to_owned(),
            });
            rows.push(texts.into_iter().chain(cells).collect());
        }
        let legend = "does the pod of a column reach the address of a row? \
                      (! not as expected, in parentheses: not judged)\n";
        format!("{legend}{}", aligned(&rows))
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
        let text = matrix.text();
        let (legend, table) = text.split_once('\n').unwrap();
        assert!(legend.contains("not as expected"), "{legend}");
        assert_eq!(table, expected);
        assert_eq!(matrix.wrong().len(), 1);
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
        let text = Matrix { cells, unseen }.text();
        assert_eq!(text.lines().next(), Some("p3 reaches fd00::1 of x on blue"));
        assert_eq!(text.lines().count(), 2);
    }

    #[test]
    fn what_is_not_seen_is_not_well() {
        assert!(!Matrix::default().is_well());
        let text = Matrix::default().text();
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
        let text = matrix.text();
        assert!(text.contains("\n! c: it has no sandbox yet\n"), "{text}");
        assert!(!text.contains("all as expected"), "{text}");
    }
}

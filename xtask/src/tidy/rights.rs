//! What is promised of rights: each claim of SECURITY.md names tests that are there, and the table of what tokens may read,
//! in the book, is what the roles in `deploy/parts` say.

use super::Text;
use std::collections::{BTreeMap, BTreeSet};

const CLAIMS: &str = "SECURITY.md";
const BOOK: &str = "docs/src/security.md";
const PARTS: &str = "deploy/parts/";
/// The heading above the table.
const READS: &str = "## What a token may read";
const ACCOUNTS: [&str; 2] = ["plexus-agent", "plexus-controller"];
const READING: [&str; 3] = ["get", "list", "watch"];

/// What is wrong with either.
pub(super) fn problems(texts: &[Text]) -> Vec<String> {
    let mut problems = claims(texts);
    let page = texts.iter().find(|text| text.path == BOOK);
    let written = page.map(|page| table(&page.content));
    let granted = rows_of_roles(texts);
    if let Some(written) = written
        && written != granted
    {
        let only = |one: &BTreeSet<Row>, other: &BTreeSet<Row>| {
            let rows = one.difference(other).map(|row| format!("{row:?}"));
            rows.collect::<Vec<_>>().join(", ")
        };
        problems.push(format!(
            "{BOOK}: the table below {READS:?} is not what {PARTS} says; only in the table: {}; only in the roles: {}",
            only(&written, &granted),
            only(&granted, &written)
        ));
    }
    problems
}

/// Claims are list items and rows of tables; a test is a link whose text is its name and whose target is its file.
fn claims(texts: &[Text]) -> Vec<String> {
    let Some(page) = texts.iter().find(|text| text.path == CLAIMS) else {
        return vec![format!("{CLAIMS}: is not there")];
    };
    let files: BTreeMap<&str, &str> = texts
        .iter()
        .map(|text| (text.path.as_str(), text.content.as_str()))
        .collect();
    let mut problems = Vec::new();
    for (number, line) in (1..).zip(page.content.lines()) {
        let cited = tests(line);
        let is_head = line.starts_with("| who |") || line.starts_with("|---");
        if cited.is_empty() && (line.starts_with("- ") || line.starts_with('|')) && !is_head {
            problems.push(format!("{CLAIMS}:{number}: a claim without a test"));
        }
        for (name, path) in cited {
            let content = files.get(path).copied().unwrap_or_default();
            if !is_test(content, name) {
                problems.push(format!("{CLAIMS}:{number}: {path} has no test {name}"));
            }
        }
    }
    problems
}

/// The tests that a line names: [`name`](file.rs).
fn tests(line: &str) -> Vec<(&str, &str)> {
    let links = line.split("[`").skip(1);
    let parts = links.filter_map(|rest| {
        let (name, rest) = rest.split_once("`](")?;
        let (path, _) = rest.split_once(')')?;
        path.ends_with(".rs").then_some((name, path))
    });
    parts.collect()
}

/// Whether a function of that name is marked as a test.
fn is_test(content: &str, name: &str) -> bool {
    let mut marked = false;
    for line in content.lines().map(str::trim) {
        let plain = line.strip_prefix("async ").unwrap_or(line);
        if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            marked = true;
        } else if let Some(rest) = plain.strip_prefix("fn ") {
            if marked && rest.split('(').next() == Some(name) {
                return true;
            }
            marked = false;
        }
    }
    false
}

/// Resource and group, and how each account of [`ACCOUNTS`] reads it.
type Row = (String, [String; 2]);

/// The rows of the table in the book.
fn table(page: &str) -> BTreeSet<Row> {
    let below = page.split_once(READS).map_or("", |(_, below)| below);
    let section = below.split("\n## ").next().unwrap_or_default();
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    rows.filter_map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [resource, agent, controller, ..] = cells[..] else {
            return None;
        };
        let resource = resource.replace('`', "");
        Some((resource, [agent.to_owned(), controller.to_owned()]))
    })
    .collect()
}

/// What the roles of the manifest let each account read.
fn rows_of_roles(texts: &[Text]) -> BTreeSet<Row> {
    let mut rows: BTreeMap<String, [BTreeSet<&str>; 2]> = BTreeMap::new();
    let parts = texts.iter().filter(|text| text.path.starts_with(PARTS));
    for document in parts.flat_map(|part| part.content.split("\n---\n")) {
        let is_role =
            document.contains("\nkind: ClusterRole\n") || document.contains("\nkind: Role\n");
        let mut accounts = ACCOUNTS.iter();
        let account = accounts.position(|name| document.contains(&format!("\n  name: {name}\n")));
        let Some(account) = account.filter(|_| is_role) else {
            continue;
        };
        for rule in document.split("\n- apiGroups: ").skip(1) {
            let group = items(rule, "");
            let verbs = items(rule, "  verbs: ");
            let names = items(rule, "  resourceNames: ");
            for resource in items(rule, "  resources: ") {
                let group = group.first().filter(|group| **group != "\"\"");
                let mut what =
                    group.map_or(resource.to_owned(), |group| format!("{resource}.{group}"));
                if let Some(name) = names.first() {
                    what = format!("{what}/{name}");
                }
                let verbs = verbs.iter().copied().filter(|verb| READING.contains(verb));
                if let Some(cell) = rows.entry(what).or_default().get_mut(account) {
                    cell.extend(verbs);
                }
            }
        }
    }
    let row = |(what, cells): (String, [BTreeSet<&str>; 2])| {
        let text = |verbs: &BTreeSet<&str>| {
            let all: Vec<&str> = verbs.iter().copied().collect();
            if all.is_empty() {
                "–".to_owned()
            } else {
                all.join(", ")
            }
        };
        let reads = cells.iter().any(|verbs| !verbs.is_empty());
        reads.then(|| (what, [text(&cells[0]), text(&cells[1])]))
    };
    rows.into_iter().filter_map(row).collect()
}

/// The flow list behind a key; behind nothing: that which the rule begins with.
fn items<'a>(rule: &'a str, key: &str) -> Vec<&'a str> {
    let line = rule.lines().find_map(|line| line.strip_prefix(key));
    let list = line.unwrap_or_default().trim();
    let inner = list
        .strip_prefix('[')
        .and_then(|list| list.strip_suffix(']'));
    let each = inner.unwrap_or_default().split(',').map(str::trim);
    each.filter(|item| !item.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::text;
    use super::*;

    const ROLE: &str = "# A role.\nkind: ClusterRole\nmetadata:\n  name: plexus-agent\nrules:\n# Pods.\n- apiGroups: [\"\"]\n  resources: [pods]\n  verbs: [get, watch, patch]\n- apiGroups: [plexus.dev]\n  resources: [blocks]\n  verbs: [create]\n";

    fn page(rows: &str) -> Text {
        text(
            BOOK,
            &format!(
                "# S\n\n{READS}\n\n| what | agent | controller |\n|---|---|---|\n{rows}\n## Next\n\n| `x` | get | get |\n"
            ),
        )
    }

    #[test]
    fn a_claim_needs_a_test_that_is_there() {
        let test = text("a.rs", "#[test]\nfn it_holds() {\n}\nfn helper() {}\n");
        let of = |claims: &str| {
            let test = text(&test.path, &test.content);
            super::claims(&[test, text(CLAIMS, claims)])
        };
        assert!(
            of("- Yes: [`it_holds`](a.rs).\n| who | x |\n|---|---|\n| y | [`it_holds`](a.rs) |\n")
                .is_empty()
        );
        for wrong in [
            "- No.\n",
            "| y | z |\n",
            "- [`other`](a.rs)\n",
            "- [`helper`](a.rs)\n",
            "- [`it_holds`](b.rs)\n",
        ] {
            assert_eq!(of(wrong).len(), 1, "{wrong}");
        }
        assert_eq!(super::claims(&[]).len(), 1);
    }

    #[test]
    fn the_table_of_reads_is_what_the_roles_say() {
        let of = |rows: &str| {
            let claims = text(CLAIMS, "");
            problems(&[claims, text("deploy/parts/10.yaml", ROLE), page(rows)])
        };
        assert!(of("| `pods` | get, watch | – | x |\n").is_empty());
        for wrong in [
            "",
            "| `pods` | get | – | x |\n",
            "| `pods` | get, watch | get | x |\n",
            "| `pods` | get, watch | – | x |\n| `blocks.plexus.dev` | get | – | x |\n",
        ] {
            assert_eq!(of(wrong).len(), 1, "{wrong}");
        }
    }
}

//! The pages that people read: every relative link and anchor leads to something in the tree, every page of the book is
//! in its SUMMARY.md, and README.md stays short. Addresses elsewhere are not looked at.

use super::Text;
use std::collections::{BTreeMap, BTreeSet};

const README: &str = "README.md";
const README_LINES: usize = 120;
/// The pages of the book.
const BOOK: &str = "docs/src/";
const SUMMARY: &str = "docs/src/SUMMARY.md";

/// What is wrong with the Markdown files among `texts`.
pub(super) fn problems(texts: &[Text]) -> Vec<String> {
    let tree = Tree::of(texts);
    let mut problems = Vec::new();
    let mut in_summary = BTreeSet::new();
    for text in texts.iter().filter(|text| is_markdown(&text.path)) {
        for link in links(&text.content) {
            match tree.target(&text.path, &link.target) {
                Ok(target) if text.path == SUMMARY => drop(in_summary.insert(target)),
                Ok(_) => {}
                Err(wrong) => {
                    let (path, line, target) = (&text.path, link.line, &link.target);
                    problems.push(format!("{path}:{line}: link to {target}: {wrong}"));
                }
            }
        }
        let lines = text.content.lines().count();
        if text.path == README && lines > README_LINES {
            problems.push(format!(
                "{README}: {lines} lines, at most {README_LINES} are allowed: move what is not for the first minutes to {BOOK}"
            ));
        }
    }
    let pages = texts.iter().map(|text| &text.path);
    let pages = pages.filter(|path| is_page(path) && !in_summary.contains(*path));
    problems.extend(
        pages.map(|path| format!("{path}: is not in {SUMMARY}: link it there, or remove the page")),
    );
    problems
}

/// The files outside the book that its pages link to.
pub(super) fn linked_outside(texts: &[Text]) -> BTreeSet<String> {
    let tree = Tree::of(texts);
    let pages = texts.iter().filter(|text| is_page(&text.path));
    let targets = pages.flat_map(|page| {
        let links = links(&page.content).into_iter();
        links.filter_map(|link| tree.target(&page.path, &link.target).ok())
    });
    targets
        .filter(|path| !path.is_empty() && !path.starts_with(BOOK))
        .collect()
}

fn is_markdown(path: &str) -> bool {
    path.ends_with(".md")
}

fn is_page(path: &str) -> bool {
    path.starts_with(BOOK) && is_markdown(path) && path != SUMMARY
}

/// What links can lead to.
struct Tree<'a> {
    /// Every file; a Markdown file with the anchors of its headings.
    files: BTreeMap<&'a str, BTreeSet<String>>,
}

impl<'a> Tree<'a> {
    fn of(texts: &'a [Text]) -> Self {
        let file = |text: &'a Text| match is_markdown(&text.path) {
            true => (text.path.as_str(), anchors(&text.content)),
            false => (text.path.as_str(), BTreeSet::new()),
        };
        Self {
            files: texts.iter().map(file).collect(),
        }
    }

    /// The path that a link in the file `from` leads to, from the root of the tree; empty for an address elsewhere.
    fn target(&self, from: &str, link: &str) -> Result<String, String> {
        if link.contains("://") || link.starts_with("mailto:") {
            return Ok(String::new());
        }
        let (path, anchor) = match link.split_once('#') {
            Some((path, anchor)) => (path, Some(anchor)),
            None => (link, None),
        };
        let path = match path {
            "" => from.to_owned(),
            path => resolved(from, path).ok_or("leads out of the tree")?,
        };
        let Some(anchors) = self.files.get(path.as_str()) else {
            return match self.is_directory(&path) {
                true if from.starts_with(BOOK) => {
                    Err("is a directory, which the book cannot show: link a file in it".to_owned())
                }
                true => Ok(path),
                false => Err(format!("there is no file {path}")),
            };
        };
        match anchor {
            Some(anchor) if !anchors.contains(anchor) => {
                Err(format!("{path} has no heading for #{anchor}"))
            }
            _ => Ok(path),
        }
    }

    fn is_directory(&self, path: &str) -> bool {
        let start = format!("{}/", path.trim_end_matches('/'));
        self.files.keys().any(|file| file.starts_with(&start))
    }
}

/// `link` as a path from the root of the tree, seen from the file `from`.
fn resolved(from: &str, link: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

#[derive(Debug, PartialEq)]
struct Link {
    line: usize,
    target: String,
}

/// The targets of `[text](target)` and of `[name]: target`.
fn links(markdown: &str) -> Vec<Link> {
    let mut found = Vec::new();
    for (index, line) in prose(markdown) {
        let mut add = |target: &str| {
            let target = target.split_whitespace().next().unwrap_or_default();
            found.push(Link {
                line: index + 1,
                target: target.trim_matches(['<', '>']).to_owned(),
            });
        };
        for (start, _) in line.match_indices("](") {
            let rest = &line[start + 2..];
            add(rest.split(')').next().unwrap_or_default());
        }
        let definition = line.strip_prefix('[');
        if let Some((_, target)) = definition.and_then(|rest| rest.split_once("]: ")) {
            add(target);
        }
    }
    found
}

/// The anchors of the headings, as GitHub and mdBook name them.
fn anchors(markdown: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let fenced: BTreeSet<usize> = prose(markdown)
        .into_iter()
        .map(|(index, _)| index)
        .collect();
    for (index, line) in markdown.lines().enumerate() {
        let heading = line.trim_start_matches('#');
        let level = line.len() - heading.len();
        if !fenced.contains(&index) || !(1..=6).contains(&level) || !heading.starts_with(' ') {
            continue;
        }
        let name = anchor(heading.trim());
        let repeated = (1..).map(|number| format!("{name}-{number}"));
        let mut names = std::iter::once(name.clone()).chain(repeated);
        found.extend(names.find(|name| !found.contains(name)));
    }
    found
}

fn anchor(heading: &str) -> String {
    let mut anchor = String::new();
    for c in heading.chars() {
        match c {
            ' ' => anchor.push('-'),
            '-' | '_' => anchor.push(c),
            c if c.is_alphanumeric() => anchor.extend(c.to_lowercase()),
            _ => {}
        }
    }
    anchor
}

/// The lines outside of fenced code with their numbers from 0; what is code within them is blank.
fn prose(markdown: &str) -> Vec<(usize, String)> {
    let mut fence = false;
    let mut lines = Vec::new();
    for (index, line) in markdown.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fence = !fence;
        } else if !fence {
            lines.push((index, without_code(line)));
        }
    }
    lines
}

fn without_code(line: &str) -> String {
    let mut code = false;
    let mut blank = |c: char| {
        code ^= c == '`';
        if code { ' ' } else { c }
    };
    line.chars().map(&mut blank).collect()
}

#[cfg(test)]
mod tests {
    use super::{Link, anchors, linked_outside, links, problems};
    use crate::tidy::text;

    #[test]
    fn a_tree_whose_links_lead_somewhere_has_no_problem() {
        let tree = [
            text(
                "README.md",
                "[lab](docs/src/lab.md#to-try) [here](#a-b) [c](crates/a/)\n# A, b\n",
            ),
            text("docs/src/SUMMARY.md", "- [Lab](lab.md)\n"),
            text(
                "docs/src/lab.md",
                "# To try!\n[up](../../README.md#a-b) [x](https://x.org/y)\n[1]: lab.md\n",
            ),
            text("crates/a/b.rs", ""),
        ];
        assert_eq!(problems(&tree), Vec::<String>::new());
        assert_eq!(
            linked_outside(&tree).into_iter().collect::<Vec<_>>(),
            ["README.md"]
        );
    }

    #[test]
    fn a_broken_link_is_found_with_its_line() {
        let tree = [
            text(
                "README.md",
                "# A\n[x](gone.md)\n[y](docs/src/lab.md#gone)\n[z](#b)\n[o](../x)\n",
            ),
            text("docs/src/SUMMARY.md", "- [Lab](lab.md)\n"),
            text(
                "docs/src/lab.md",
                "# Lab\n[examples](../../examples/)\n[u]: away.md\n",
            ),
            text("examples/a.yaml", ""),
        ];
        assert_eq!(
            problems(&tree),
            [
                "README.md:2: link to gone.md: there is no file gone.md",
                "README.md:3: link to docs/src/lab.md#gone: docs/src/lab.md has no heading for #gone",
                "README.md:4: link to #b: README.md has no heading for #b",
                "README.md:5: link to ../x: leads out of the tree",
                "docs/src/lab.md:2: link to ../../examples/: is a directory, which the book cannot show: link a file in it",
                "docs/src/lab.md:3: link to away.md: there is no file docs/src/away.md",
            ]
        );
    }

    #[test]
    fn a_page_that_the_summary_does_not_name_is_found() {
        let tree = [
            text("docs/src/SUMMARY.md", "- [Lab](lab.md)\n"),
            text("docs/src/lab.md", "# Lab\n[more](networks.md)\n"),
            text("docs/src/networks.md", "# Networks\n"),
        ];
        let wanted = "docs/src/networks.md: is not in docs/src/SUMMARY.md: link it there, or remove the page";
        assert_eq!(problems(&tree), [wanted]);
    }

    #[test]
    fn the_readme_may_have_120_lines_and_no_more() {
        assert_eq!(problems(&[text("README.md", &"x\n".repeat(120))]).len(), 0);
        let found = problems(&[text("README.md", &"x\n".repeat(121))]);
        assert!(
            found.len() == 1 && found[0].contains("121 lines"),
            "{found:?}"
        );
    }

    #[test]
    fn code_has_no_links_and_no_headings() {
        let page = "# One\n```sh\n# two\n[a](b)\n```\n`[c](d)` [`e`](f \"title\")\n## One\n";
        let link = Link {
            line: 6,
            target: "f".to_owned(),
        };
        assert_eq!(links(page), [link]);
        assert_eq!(
            anchors(page).into_iter().collect::<Vec<_>>(),
            ["one", "one-1"]
        );
    }
}

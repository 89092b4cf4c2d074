//! Words that never land: notes to oneself, switched-off tests, and paths of one machine.

use super::Text;

/// What is refused, and what to do instead. Written in two halves, so that this file is clean.
const REFUSED: &[(&str, &str)] = &[
    (concat!("TO", "DO"), NOTE),
    (concat!("FIX", "ME"), NOTE),
    (concat!("XX", "X"), NOTE),
    (concat!("todo", "!"), NOTE),
    (concat!("unimplemented", "!"), NOTE),
    (concat!("dbg", "!"), "remove it, or use tracing"),
    (
        concat!("#[ig", "nore"),
        "a test that cannot run here must say why at run time",
    ),
    (
        concat!("env!(\"CARGO_MANI", "FEST_DIR\")"),
        "checkouts share their build output: read it with `std::env::var` when the program runs",
    ),
    (concat!("/wo", "rk/"), MACHINE),
    (concat!("../sha", "red"), MACHINE),
];
const NOTE: &str = "do it, or leave it out";
const MACHINE: &str = "a path of one machine: make it relative to the tree, or an option";

pub(super) fn problems(text: &Text) -> Vec<String> {
    let mut problems = Vec::new();
    for (index, line) in text.content.lines().enumerate() {
        for (word, remedy) in REFUSED {
            if has_word(line, word) {
                problems.push(format!("{}:{}: {word}: {remedy}", text.path, index + 1));
            }
        }
    }
    problems
}

/// Whether `word` occurs with neither end inside a longer word.
fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(start, _)| {
        let before = line[..start].chars().next_back();
        let after = line[start + word.len()..].chars().next();
        let starts_inside = joins(word.chars().next()) && joins(before);
        let ends_inside = joins(word.chars().next_back()) && joins(after);
        let relative = word.starts_with('/') && (before == Some('.') || joins(before));
        !starts_inside && !ends_inside && !relative
    })
}

fn joins(character: Option<char>) -> bool {
    character.is_some_and(|c| c.is_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::{REFUSED, problems};
    use crate::tidy::text;

    #[test]
    fn every_word_is_found_and_named_with_its_line() {
        for (word, remedy) in REFUSED {
            let found = problems(&text(
                "crates/core/src/pool.rs",
                &format!("ok\n {word} x\n"),
            ));
            assert_eq!(
                found,
                [format!("crates/core/src/pool.rs:2: {word}: {remedy}")]
            );
        }
    }

    #[test]
    fn parts_of_longer_words_are_not() {
        let fine = [
            concat!("mktemp -d /tmp/x.XX", "XX", "XX"),
            concat!("my_todo", "!()"),
            concat!("/tmp/wo", "rk/x"),
            concat!("TO", "DOS"),
            "#[must_use]",
        ];
        for line in fine {
            assert_eq!(
                problems(&text("a.sh", line)),
                Vec::<String>::new(),
                "{line}"
            );
        }
    }
}

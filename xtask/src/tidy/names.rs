//! Names that say nothing to a newcomer: types, functions, modules and constants that once had them were renamed, and
//! must not come back. Looks at definitions alone, tests included.

use super::{Text, source};

/// What may not be defined under these names.
const REFUSED: &[(&[&str], &[&str])] = &[
    (
        &["struct", "enum", "trait", "type", "union"],
        &[
            "Around",
            "Asked",
            "Because",
            "Bell",
            "Brings",
            "Desk",
            "Found",
            "How",
            "Kept",
            "OutOfSight",
            "Place",
            "Seen",
            "Turn",
            "Wanted",
            "World",
        ],
    ),
    (
        &["fn", "mod"],
        &[
            "asked", "brings", "earlier", "front", "gifts", "given", "granted", "hire", "keep",
            "kept", "mind", "place", "said", "shown", "tend", "together", "told", "trouble",
            "unkeep", "weave", "whose", "wish",
        ],
    ),
    (&["const", "static"], &["AGAIN", "LOOK", "PATIENCE"]),
];

pub(super) fn problems(text: &Text) -> Vec<String> {
    let code = source::code_only(&text.content);
    let mut problems = Vec::new();
    for (index, line) in code.lines().enumerate() {
        for (kind, name) in definitions(line) {
            let is_refused = |(kinds, names): &(&[&str], &[&str])| {
                kinds.contains(&kind) && names.contains(&name)
            };
            if REFUSED.iter().any(is_refused) {
                problems.push(format!(
                    "{}:{}: {kind} {name}: call it by the Kubernetes, CNI or Linux word for what it is",
                    text.path,
                    index + 1
                ));
            }
        }
    }
    problems
}

/// Neighbouring words of a line: a keyword, and the name that it defines.
fn definitions(line: &str) -> impl Iterator<Item = (&str, &str)> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let words = line.split_whitespace();
    let names = line.split_whitespace().skip(1);
    words.zip(names).map(move |(keyword, name)| {
        let end = name.find(|c| !is_name(c)).unwrap_or(name.len());
        (keyword, &name[..end])
    })
}

#[cfg(test)]
mod tests {
    use super::{REFUSED, problems};
    use crate::tidy::text;

    #[test]
    fn every_definition_is_found_and_named_with_its_line() {
        for (kinds, names) in REFUSED {
            for (kind, name) in kinds
                .iter()
                .flat_map(|kind| names.iter().map(move |name| (kind, name)))
            {
                for rest in [" {", "(x: u8) {}", "<T>(T);", ";", ": u8 = 1;"] {
                    let code = format!("ok();\n    pub(crate) {kind} {name}{rest}\n");
                    let found = problems(&text("crates/core/src/a.rs", &code));
                    assert_eq!(found.len(), 1, "{code}: {found:?}");
                    let start = format!("crates/core/src/a.rs:2: {kind} {name}: ");
                    assert!(found[0].starts_with(&start), "{found:?}");
                }
            }
        }
    }

    #[test]
    fn uses_longer_names_and_texts_are_not() {
        for code in [
            "let kept = told.asked();",
            "fn kept_config() {}",
            "struct FoundNamespace;",
            "// fn told() is gone",
            "let text = \"struct World\";",
            "pub place: PathBuf,",
            "const PATIENCE_LIMIT: u8 = 1;",
        ] {
            let found = problems(&text("crates/core/src/a.rs", code));
            assert_eq!(found, Vec::<String>::new(), "{code}");
        }
    }
}

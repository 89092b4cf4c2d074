//! Providers are told apart in their own files alone. Reads the registry for their types, and each
//! provider's file for its name; refuses `Provider::<type>` and a name as a string anywhere else in
//! product code, unless the word means something else there. Never looks at tests.

use super::{Text, pure, source};

/// The registry, and the two directories with a file per provider.
const REGISTRY: &str = "crates/api/src/cni/provider/mod.rs";
pub(crate) const HOMES: &[&str] = &[
    "crates/api/src/cni/provider/",
    "crates/core/src/plan/provider/",
];

/// Rooms whose words are the kernel's own (links, modes, features), and rooms for tests.
const OTHER_ROOMS: &[&str] = &["kernel", "types", "testkit", "kubekit"];

/// Where a provider's name is a word for something else.
const OTHER_MEANING: &[(&str, &str)] = &[
    (
        "crates/core/src/plan/mod.rs",
        "the kernel's word for a link",
    ),
    (
        "crates/core/src/nics/mod.rs",
        "the kernel's word for a link",
    ),
    ("crates/api/src/cni/parse/mod.rs", "the reference plugins"),
    (
        "crates/api/src/objects/multinic/meaning.rs",
        "the plugins of multi-nic-cni",
    ),
    (
        "crates/api/src/objects/multinic/network.rs",
        "the plugins of multi-nic-cni",
    ),
    (
        "crates/core/src/resolve/pod/container.rs",
        "what runtimes call their own networks",
    ),
];

/// What still has to move: this list only gets shorter. An entry that is not needed is refused.
const REMAINING: &[(&str, &str)] = &[];

pub(super) fn problems(texts: &[Text]) -> Vec<String> {
    let providers = registered(texts);
    if providers.is_empty() {
        return vec![format!("{REGISTRY}: lists no provider: is it elsewhere?")];
    }
    let mut problems = Vec::new();
    for text in texts.iter().filter(|text| is_looked_at(text)) {
        let found = problems_of(text, &providers);
        let excuse = OTHER_MEANING.iter().chain(REMAINING);
        match excuse.into_iter().find(|(path, _)| *path == text.path) {
            None => problems.extend(found),
            Some((path, why)) if found.is_empty() => problems.push(format!(
                "{path}: no longer needs its exception ({why}): remove it from xtask/src/tidy/providers.rs"
            )),
            Some(_) => {}
        }
    }
    problems
}

/// A line of the registry.
struct Registered {
    options: String,
    name: String,
}

/// The providers: `macvlan Macvlan,` in the registry, `name: "macvlan"` in the file of that name.
fn registered(texts: &[Text]) -> Vec<Registered> {
    let content_of = |path: &str| {
        let text = texts.iter().find(|text| text.path == path);
        text.map_or("", |text| text.content.as_str())
    };
    let registry = content_of(REGISTRY);
    let list = registry.split_once("macro_rules! with_providers");
    let list = list.and_then(|(_, rest)| rest.split_once("$callback! {")?.1.split_once('}'));
    let lines = list.map_or("", |(list, _)| list).lines();
    let both = lines.filter_map(|line| line.trim().strip_suffix(',')?.split_once(' '));
    both.filter_map(|(module, options)| {
        let file = content_of(&format!("crates/api/src/cni/provider/{module}.rs"));
        let (name, _) = file.split_once("name: \"")?.1.split_once('"')?;
        Some(Registered {
            options: options.to_owned(),
            name: name.to_owned(),
        })
    })
    .collect()
}

fn is_looked_at(text: &Text) -> bool {
    let is_test = |part: &str| {
        matches!(part, "tests" | "tests.rs" | "fuzz" | "fuzz.rs") || part.ends_with("_tests.rs")
    };
    text.is_room_source()
        && !text.room().is_some_and(|room| OTHER_ROOMS.contains(&room))
        && !HOMES.iter().any(|home| text.path.starts_with(home))
        && !text.path.split('/').any(is_test)
}

fn problems_of(text: &Text, providers: &[Registered]) -> Vec<String> {
    let code = source::code_only(&text.content);
    let whole: Vec<&str> = text.content.lines().collect();
    let mut problems = Vec::new();
    for (index, code) in pure::product(&code) {
        let line = whole.get(index).copied().unwrap_or_default();
        for Registered { options, name } in providers {
            let of_type = format!("Provider::{options}");
            let found = [
                has_path(code, &of_type).then_some(of_type),
                has_literal(line, code, name).then(|| format!("{name:?}")),
            ];
            problems.extend(found.into_iter().flatten().map(|what| {
                format!(
                    "{}:{}: {what}: only a provider's own file knows it: ask `ProviderKind` or the plan",
                    text.path,
                    index + 1
                )
            }));
        }
    }
    problems
}

/// Whether a path occurs that does not go on as a longer word.
fn has_path(code: &str, path: &str) -> bool {
    let goes_on = |rest: &str| rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
    code.match_indices(path)
        .any(|(start, _)| !goes_on(&code[start + path.len()..]))
}

/// Whether a string is that word and no more. `code` is the same line without strings and comments:
/// what is beside the string must be there too, else it is within a longer one or in a comment.
fn has_literal(line: &str, code: &str, word: &str) -> bool {
    let (line, code): (Vec<char>, Vec<char>) = (line.chars().collect(), code.chars().collect());
    let literal: Vec<char> = format!("{word:?}").chars().collect();
    let is_code = |at: Option<usize>| at.is_none_or(|at| line.get(at) == code.get(at));
    let mut starts = (0..line.len()).filter(|at| line[*at..].starts_with(&literal));
    starts.any(|start| {
        let end = start + literal.len();
        let solid = |at: &usize| !line[*at].is_whitespace();
        let before = (0..start).rev().find(solid);
        let after = (end..line.len()).find(solid);
        code[start..end].iter().all(|c| *c == ' ') && is_code(before) && is_code(after)
    })
}

#[cfg(test)]
mod tests {
    use super::{REGISTRY, problems};
    use crate::tidy::{Text, text};

    fn tree(path: &str, content: &str) -> Vec<Text> {
        let registry = "macro_rules! with_providers {\n ($callback:ident) => {\n  $callback! {\n   \
                        wire Wire,\n   far_wire FarWire,\n  }\n };\n}\n";
        let file = |name: &str| format!("const KIND: K = K {{\n name: \"{name}\",\n}};\n");
        vec![
            text(REGISTRY, registry),
            text("crates/api/src/cni/provider/wire.rs", &file("wire")),
            text("crates/api/src/cni/provider/far_wire.rs", &file("far-wire")),
            text(path, content),
        ]
    }

    fn found(path: &str, content: &str) -> Vec<String> {
        problems(&tree(path, content))
    }

    #[test]
    fn types_and_names_are_found_wherever_they_are_told_apart() {
        for code in [
            "match p { Provider::Wire(_) => 1 }",
            "let p = cni::Provider::FarWire(x);",
            "match name { \"wire\" => 1 }",
            "match name {\n    \"wire\"\n    | \"x\" => 1 }",
            "if name == \"far-wire\" {}",
            "matches!(name, None | Some(\"wire\"))",
            "const ALL: [&str; 2] = [\n    \"wire\",\n    \"x\",\n];",
        ] {
            let found = found("crates/agent/src/a.rs", &format!("//! A.\n{code}\n"));
            assert_eq!(found.len(), 1, "{code}: {found:?}");
            assert!(found[0].starts_with("crates/agent/src/a.rs:"), "{found:?}");
        }
    }

    #[test]
    fn longer_words_texts_comments_and_tests_are_not() {
        for code in [
            "Provider::Wired(_)",
            "let text = \"a wire is \\\"wire\\\"\";",
            "let json = r#\"{\"type\": \"wire\"}\"#;",
            "let json = r#\"{\n    \"wire\": 1}\"#;",
            "x(); // \"wire\" and Provider::Wire",
            "/// `Provider::Wire`, \"wire\"\nfn f() {}",
            "#[cfg(test)]\nmod tests {\n    const A: &str = \"wire\";\n}",
        ] {
            let found = found("crates/agent/src/a.rs", &format!("//! A.\n{code}\n"));
            assert_eq!(found, Vec::<String>::new(), "{code}");
        }
    }

    #[test]
    fn at_home_in_the_kernel_and_in_tests_they_may_be() {
        let code = "//! A.\nfn f() { g(\"wire\", Provider::Wire(x)) }\n";
        for path in [
            "crates/core/src/plan/provider/far_wire.rs",
            "crates/kernel/src/link.rs",
            "crates/testkit/src/a.rs",
            "crates/agent/tests/a.rs",
            "crates/agent/src/ipam/tests.rs",
            "crates/agent/src/tests/a.rs",
            "crates/agent/src/a_tests.rs",
            "crates/agent/src/fuzz/a.rs",
            "crates/agent/src/serve/fuzz.rs",
            "xtask/src/a.rs",
        ] {
            assert_eq!(found(path, code), Vec::<String>::new(), "{path}");
        }
    }

    #[test]
    fn an_exception_goes_when_nothing_needs_it() {
        let path = super::OTHER_MEANING[0].0;
        assert_eq!(found(path, "//! A.\nf(\"wire\");\n"), Vec::<String>::new());
        let stale = found(path, "//! A.\n");
        assert!(stale[0].contains("no longer needs"), "{stale:?}");
    }

    #[test]
    fn a_registry_that_moved_is_noticed() {
        let stray = [text("crates/agent/src/a.rs", "//! A.\n")];
        assert!(problems(&stray)[0].contains("lists no provider"));
    }
}

//! Which room may know which: arrows point down only. Read from the `Cargo.toml` of each room;
//! a room that is not in the table below is refused until it has a place there.

use super::Text;
use anyhow::{Context, Result};
use toml::{Table, Value};

/// A room, and the rooms that its product code may use.
const MAY_USE: &[(&str, &[&str])] = &[
    ("types", &[]),
    ("faults", &[]),
    ("api", &["types"]),
    ("client", &[]),
    ("core", &["api", "types"]),
    ("kernel", &["core", "api", "types", "faults"]),
    ("cni", &["core", "api", "types", "faults"]),
    (
        "agent",
        &["cni", "kernel", "core", "client", "api", "types", "faults"],
    ),
    ("controller", &["core", "client", "api", "types"]),
    ("embedded", &["types"]),
    (
        "cli",
        &["kernel", "core", "client", "api", "types", "faults"],
    ),
    (
        "lab",
        &["kernel", "core", "client", "api", "types", "faults"],
    ),
    (
        "plexus",
        &[
            "agent",
            "controller",
            "embedded",
            "cli",
            "lab",
            "cni",
            "kernel",
            "core",
            "client",
            "api",
            "types",
        ],
    ),
    ("fuzz", &[]),
    (
        "testkit",
        &["fuzz", "cni", "kernel", "core", "api", "types"],
    ),
    (
        "kubekit",
        &[
            "testkit", "fuzz", "cni", "kernel", "core", "client", "api", "types",
        ],
    ),
];

/// Only tests may use them.
const TESTS_ONLY: &[&str] = &["fuzz", "testkit", "kubekit"];

/// Crates from outside that would bring I/O, a clock or a runtime into a room that has none.
/// (`kube` is not among them: without its client it is types and a derive macro.)
const NOT_PURE: &[&str] = &[
    "libc", "rustix", "nix", "rusqlite", "tokio", "mio", "netlink",
];
const PURE: &[&str] = &["types", "api", "core"];

pub(super) fn problems(texts: &[Text]) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    for text in texts {
        let Some(room) = text.room() else { continue };
        if text.path == format!("crates/{room}/Cargo.toml") {
            let manifest: Table = text
                .content
                .parse()
                .with_context(|| format!("cannot parse {}", text.path))?;
            problems.extend(problems_of(room, &manifest));
        }
    }
    Ok(problems)
}

fn problems_of(room: &str, manifest: &Table) -> Vec<String> {
    let Some((_, may_use)) = MAY_USE.iter().find(|(name, _)| *name == room) else {
        return vec![format!(
            "crates/{room} has no place among the rooms: add it to xtask/src/tidy/rooms.rs, \
             with the rooms below it"
        )];
    };
    let mut problems = Vec::new();
    for (section, package) in dependencies(manifest) {
        let tests = section == "dev-dependencies";
        let Some(used) = room_of(&package) else {
            if PURE.contains(&room) && !tests && is_not_pure(&package) {
                problems.push(format!(
                    "crates/{room}/Cargo.toml: [{section}] has {package}, but {room} does no I/O: \
                     move the code to kernel, cni or agent"
                ));
            }
            continue;
        };
        let allowed = may_use.contains(&used) || (tests && TESTS_ONLY.contains(&used));
        if !allowed {
            problems.push(format!(
                "crates/{room}/Cargo.toml: [{section}] has {package}, but {room} may use only \
                 {}: move the code down, or pass a value or a trait",
                if may_use.is_empty() {
                    "no other room".to_owned()
                } else {
                    may_use.join(", ")
                }
            ));
        }
    }
    problems
}

fn is_not_pure(package: &str) -> bool {
    NOT_PURE.iter().any(|name| {
        package
            .strip_prefix(name)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    })
}

/// The room behind a package name; none for a crate from outside.
fn room_of(package: &str) -> Option<&str> {
    match package {
        "plexus" | "xtask" => Some(package),
        _ => package.strip_prefix("plexus-"),
    }
}

/// Section and package of every dependency, those for one target only included.
fn dependencies(manifest: &Table) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for section in ["dependencies", "dev-dependencies", "build-dependencies"] {
        let for_targets = manifest
            .get("target")
            .and_then(Value::as_table)
            .into_iter()
            .flat_map(Table::values)
            .filter_map(|target| target.get(section));
        for table in manifest.get(section).into_iter().chain(for_targets) {
            for (key, value) in table.as_table().into_iter().flatten() {
                let package = value.get("package").and_then(Value::as_str).unwrap_or(key);
                found.push((section.to_owned(), package.to_owned()));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{MAY_USE, problems};
    use crate::tidy::text;

    fn problems_with(room: &str, manifest: &str) -> Vec<String> {
        problems(&[text(&format!("crates/{room}/Cargo.toml"), manifest)]).unwrap()
    }

    #[test]
    fn down_is_allowed() {
        let manifest = "[dependencies]\nplexus-core.workspace = true\nserde.workspace = true\n";
        assert_eq!(problems_with("kernel", manifest), Vec::<String>::new());
    }

    #[test]
    fn up_and_sideways_are_refused() {
        let up = problems_with("core", "[dependencies]\nplexus-kernel.workspace = true\n");
        assert!(up[0].contains("[dependencies] has plexus-kernel"), "{up:?}");
        assert!(up[0].contains("only api, types"), "{up:?}");
        let sideways = problems_with("cni", "[dependencies]\nplexus-kernel.workspace = true\n");
        assert_eq!(sideways.len(), 1);
        let faults = problems_with("core", "[dependencies]\nplexus-faults.workspace = true\n");
        assert_eq!(faults.len(), 1);
    }

    #[test]
    fn another_name_or_target_does_not_hide_a_dependency() {
        let renamed = "[dependencies]\nk = { package = \"plexus-kernel\", path = \"../kernel\" }\n";
        assert_eq!(problems_with("api", renamed).len(), 1);
        let target = "[target.'cfg(unix)'.build-dependencies]\nplexus-agent = \"1\"\n";
        assert_eq!(problems_with("kernel", target).len(), 1);
    }

    #[test]
    fn testkit_is_for_tests() {
        let tests = "[dev-dependencies]\nplexus-testkit.workspace = true\n";
        assert_eq!(problems_with("agent", tests), Vec::<String>::new());
        let product = "[dependencies]\nplexus-testkit.workspace = true\n";
        assert_eq!(problems_with("plexus", product).len(), 1);
    }

    #[test]
    fn core_brings_no_io() {
        let problem = problems_with("core", "[dependencies]\nnetlink-packet-route = \"1\"\n");
        assert!(problem[0].contains("does no I/O"), "{problem:?}");
        assert_eq!(
            problems_with("core", "[dependencies]\nlibcore = \"1\"\n").len(),
            0
        );
    }

    #[test]
    fn a_new_room_needs_a_place() {
        assert!(problems_with("attic", "")[0].contains("no place"));
    }

    #[test]
    fn the_table_itself_has_no_way_back_up() {
        let may_use = |room: &str| MAY_USE.iter().find(|(name, _)| *name == room).unwrap().1;
        for (room, below) in MAY_USE {
            for lower in *below {
                assert!(
                    !may_use(lower).contains(room),
                    "{room} and {lower} use each other"
                );
                for lowest in may_use(lower) {
                    assert!(
                        *lowest == "faults" || below.contains(lowest),
                        "{room} uses {lower} but may not use {lowest}"
                    );
                }
            }
        }
    }
}

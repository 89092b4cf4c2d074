//! The deciding rooms stay pure: what `types`, `api` and `core` read comes in as an argument.
//! What is `#[cfg(test)]` may read fixtures.

use super::{Text, source};

const PURE: &[&str] = &["types", "api", "core"];
const REFUSED: &[&str] = &[
    "std::fs",
    "std::process",
    "std::thread",
    "Instant::now",
    "SystemTime::now",
    "env::var",
    "TcpStream",
    "UdpSocket",
    "UnixStream",
    "async fn",
];

pub(super) fn problems(text: &Text) -> Vec<String> {
    let Some(room) = text
        .room()
        .filter(|room| PURE.contains(room) && text.is_room_source())
    else {
        return Vec::new();
    };
    let mut problems = Vec::new();
    let code = source::code_only(&text.content);
    for (index, line) in product(&code) {
        for name in REFUSED.iter().filter(|name| line.contains(**name)) {
            problems.push(format!(
                "{}:{}: {name}: {room} does no I/O and reads no clock: take the value as an argument",
                text.path,
                index + 1
            ));
        }
    }
    problems
}

/// The lines, with their numbers from 0, of what is not for tests alone: the item after a `#[cfg(test)]` is left out, up
/// to its `;` or to the end of its braces.
pub(super) fn product(code: &str) -> impl Iterator<Item = (usize, &str)> {
    let (mut in_tests, mut depth) = (false, 0_usize);
    code.lines().enumerate().filter(move |(_, line)| {
        if !in_tests {
            in_tests = line.contains("#[cfg(test)]");
            return !in_tests;
        }
        let opened = depth + line.matches('{').count();
        depth = opened.saturating_sub(line.matches('}').count());
        let ends = line.contains(';') || opened > 0;
        in_tests = depth > 0 || !ends;
        false
    })
}

#[cfg(test)]
mod tests {
    use super::problems;
    use crate::tidy::text;

    const READS_A_CLOCK: &str = "//! A.\nfn now() { Instant::now() }\n";

    #[test]
    fn core_reads_no_clock() {
        let found = problems(&text("crates/core/src/a.rs", READS_A_CLOCK));
        assert!(
            found[0].starts_with("crates/core/src/a.rs:2: Instant::now"),
            "{found:?}"
        );
        assert_eq!(
            problems(&text("crates/agent/src/a.rs", READS_A_CLOCK)),
            Vec::<String>::new()
        );
    }

    #[test]
    fn what_follows_the_tests_is_looked_at() {
        for tests in [
            "mod tests;",
            "#[path = \"t.rs\"]\nmod tests;",
            "mod tests {\n  fn a() { b(); }\n}",
        ] {
            let content = format!("//! A.\n#[cfg(test)]\n{tests}\nfn now() {{ Instant::now() }}\n");
            assert_eq!(
                problems(&text("crates/core/src/a.rs", &content)).len(),
                1,
                "{tests}"
            );
        }
    }

    #[test]
    fn tests_and_comments_may() {
        let fine = "//! Not std::fs.\n#[cfg(test)]\nmod tests { use std::fs; }\n";
        assert_eq!(
            problems(&text("crates/core/src/a.rs", fine)),
            Vec::<String>::new()
        );
    }
}

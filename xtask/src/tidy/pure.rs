//! The deciding rooms stay pure: what `types`, `api` and `core` read comes in as an argument.
//! Their unit tests, from the first `#[cfg(test)]` on, may read fixtures.

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
    let product = code
        .lines()
        .take_while(|line| !line.contains("#[cfg(test)]"));
    for (index, line) in product.enumerate() {
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
    fn tests_and_comments_may() {
        let fine = "//! Not std::fs.\n#[cfg(test)]\nmod tests { use std::fs; }\n";
        assert_eq!(
            problems(&text("crates/core/src/a.rs", fine)),
            Vec::<String>::new()
        );
    }
}

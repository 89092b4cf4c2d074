//! What a Rust file must have and must not: an opening paragraph in every file of a room, and
//! `unsafe` in `kernel` alone. Also the lexing that these checks share.

use super::Text;

const MAY_BE_UNSAFE: &str = "kernel";

pub(super) fn problems(text: &Text) -> Vec<String> {
    let mut problems = Vec::new();
    if text.is_room_source() && !text.content.starts_with("//! ") {
        problems.push(format!(
            "{}: open with a `//!` paragraph: what it owns, what it never does, what goes in and out",
            text.path
        ));
    }
    if text.room() != Some(MAY_BE_UNSAFE) {
        for (index, line) in code_only(&text.content).lines().enumerate() {
            if words(line).any(|word| word == concat!("un", "safe")) {
                problems.push(format!(
                    "{}:{}: `unsafe` outside crates/{MAY_BE_UNSAFE}: offer a safe function there",
                    text.path,
                    index + 1
                ));
            }
        }
    }
    problems
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !(c.is_alphanumeric() || c == '_'))
}

/// The code with comments, strings and character literals turned into spaces; lines stay lines.
pub(super) fn code_only(code: &str) -> String {
    let mut rest = code;
    let mut output = String::with_capacity(code.len());
    while let Some(first) = rest.chars().next() {
        let after_word = output.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let (length, keep) = match first {
            '/' if rest.starts_with("//") => (rest.find('\n').unwrap_or(rest.len()), false),
            '/' if rest.starts_with("/*") => (block_comment(rest), false),
            '"' => (quoted(rest, '"'), false),
            'r' if !after_word && raw_string(rest).is_some() => {
                (raw_string(rest).unwrap_or(1), false)
            }
            'b' if !after_word && rest[1..].starts_with(['"', '\'']) => (1, true),
            'b' if !after_word && rest.starts_with("br") && raw_string(&rest[1..]).is_some() => {
                (1, false)
            }
            '\'' => match character(rest) {
                Some(length) => (length, false),
                None => (1, true),
            },
            other => (other.len_utf8(), true),
        };
        let (piece, remaining) = rest.split_at(length);
        if keep {
            output.push_str(piece);
        } else {
            output.extend(piece.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        }
        rest = remaining;
    }
    output
}

fn block_comment(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        if rest.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    text.len()
}

/// Length of a literal that starts and ends with `quote`; a backslash hides the next character.
fn quoted(text: &str, quote: char) -> usize {
    let mut characters = text.char_indices().skip(1);
    while let Some((index, c)) = characters.next() {
        if c == '\\' {
            characters.next();
        } else if c == quote {
            return index + 1;
        }
    }
    text.len()
}

/// Length of `r"…"`, `r#"…"#` and so on; none for a raw identifier or a plain word.
fn raw_string(text: &str) -> Option<usize> {
    let hashes = text[1..].chars().take_while(|c| *c == '#').count();
    let body = 1 + hashes + 1;
    if !text[1 + hashes..].starts_with('"') {
        return None;
    }
    let end = format!("\"{}", "#".repeat(hashes));
    Some(
        text[body..]
            .find(&end)
            .map_or(text.len(), |found| body + found + end.len()),
    )
}

/// Length of a character literal; none for a lifetime.
fn character(text: &str) -> Option<usize> {
    let mut characters = text.chars().skip(1);
    let first = characters.next()?;
    (first == '\\' || characters.next() == Some('\'')).then(|| quoted(text, '\''))
}

#[cfg(test)]
mod tests {
    use super::{code_only, problems};
    use crate::tidy::text;

    const UNSAFE_FN: &str = concat!("//! A file.\nun", "safe fn f() {}\n");

    #[test]
    fn unsafe_lives_in_kernel() {
        assert_eq!(
            problems(&text("crates/kernel/src/a.rs", UNSAFE_FN)),
            Vec::<String>::new()
        );
        for path in [
            "crates/agent/src/a.rs",
            "crates/agent/tests/a.rs",
            "xtask/src/a.rs",
        ] {
            let found = problems(&text(path, UNSAFE_FN));
            assert_eq!(found.len(), 1, "{path}");
            assert!(found[0].starts_with(&format!("{path}:2: ")), "{found:?}");
        }
    }

    #[test]
    fn unsafe_in_words_is_only_a_word() {
        let fine = "//! Nothing unsafe.\n#![forbid(unsafe_code)]\nconst A: &str = \"unsafe\";\n";
        assert_eq!(
            problems(&text("crates/core/src/a.rs", fine)),
            Vec::<String>::new()
        );
    }

    #[test]
    fn every_file_of_a_room_says_what_it_owns() {
        for content in ["use std::fs;\n", "// No.\n", "", "\n//! Late.\n"] {
            assert_eq!(
                problems(&text("crates/core/src/plan/route.rs", content)).len(),
                1
            );
            assert_eq!(
                problems(&text("crates/core/tests/route.rs", content)).len(),
                0
            );
        }
    }

    #[test]
    fn strings_comments_and_characters_become_spaces() {
        let cases = [
            (r#"a("x\"}{") b"#, "a( ) b"),
            (r##"a(r#"}"{"#) b"##, "a( ) b"),
            ("a(br\"}\") b", "a( ) b"),
            ("a('{', b'}', '\\'') b", "a( , b , ) b"),
            ("f<'a>(x: &'a str) {", "f<'a>(x: &'a str) {"),
            ("a /* { /* } */ { */ b", "a b"),
            ("a // {\nb", "a b"),
            ("for\"x\"", "for"),
            ("r#type { }", "r#type { }"),
            ("é \"é\" 'é' x", "é x"),
        ];
        for (code, left) in cases {
            let blanked = code_only(code);
            assert_eq!(
                blanked.split_whitespace().collect::<Vec<_>>().join(" "),
                left,
                "{code}"
            );
            assert_eq!(blanked.chars().count(), code.chars().count(), "{code}");
            assert_eq!(
                blanked.matches('\n').count(),
                code.matches('\n').count(),
                "{code}"
            );
        }
    }
}

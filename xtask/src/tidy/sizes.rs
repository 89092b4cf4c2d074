//! How large things may grow. A file over the limit is refused; a long function is only pointed
//! out, because a long flat `match` can be the clearest form.

use super::{Text, source};

const FILE_LINES: usize = 800;
const FUNCTION_LINES: usize = 90;

pub(super) fn problems(text: &Text) -> Vec<String> {
    let lines = text.content.lines().count();
    if lines <= FILE_LINES {
        return Vec::new();
    }
    vec![format!(
        "{}: {lines} lines, at most {FILE_LINES} are allowed: split it",
        text.path
    )]
}

pub(super) fn notes(text: &Text) -> Vec<String> {
    if !text.is_rust() {
        return Vec::new();
    }
    functions(&source::code_only(&text.content))
        .into_iter()
        .filter(|function| function.lines > FUNCTION_LINES)
        .map(|function| {
            format!(
                "{}:{}: fn {} has {} lines, over {FUNCTION_LINES}",
                text.path, function.line, function.name, function.lines
            )
        })
        .collect()
}

#[derive(Debug, PartialEq)]
struct Function {
    name: String,
    line: usize,
    lines: usize,
}

/// The functions with a body in `code`, from which strings and comments are blanked out.
fn functions(code: &str) -> Vec<Function> {
    let mut found = Vec::new();
    for (start, _) in code.match_indices("fn ") {
        let inside_word = code[..start].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let name: String = code[start + 3..]
            .chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect();
        if inside_word || name.is_empty() {
            continue;
        }
        if let Some(end) = body_end(&code[start..]) {
            found.push(Function {
                name,
                line: 1 + code[..start].matches('\n').count(),
                lines: code[start..start + end].lines().count(),
            });
        }
    }
    found
}

/// The length up to the closing brace of the body; none for a declaration without one.
fn body_end(code: &str) -> Option<usize> {
    let (mut round, mut curly) = (0_usize, 0_usize);
    for (index, c) in code.char_indices() {
        match c {
            '(' | '[' => round += 1,
            ')' | ']' => round = round.saturating_sub(1),
            ';' if round == 0 && curly == 0 => return None,
            '{' => curly += 1,
            '}' if curly <= 1 => return Some(index + 1),
            '}' => curly -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{Function, functions, notes, problems};
    use crate::tidy::text;

    #[test]
    fn a_file_may_have_800_lines_and_no_more() {
        assert_eq!(problems(&text("a.rs", &"\n".repeat(800))).len(), 0);
        let problem = problems(&text("a.rs", &"\n".repeat(801)));
        assert_eq!(
            problem,
            ["a.rs: 801 lines, at most 800 are allowed: split it"]
        );
    }

    #[test]
    fn a_long_function_is_pointed_out() {
        let body = "    x();\n".repeat(89);
        let long = text("a.rs", &format!("//! A.\n\nfn long() {{\n{body}}}\n"));
        assert_eq!(notes(&long), ["a.rs:3: fn long has 91 lines, over 90"]);
        let shorter = text("a.rs", &format!("fn short() {{\n{}}}\n", &body[9..]));
        assert_eq!(notes(&shorter), Vec::<String>::new());
    }

    #[test]
    fn declarations_pointers_and_arrays_do_not_confuse() {
        let code =
            "trait T { fn a(); }\ntype F = fn (u8);\nfn b(x: [u8; 4]) -> [u8; 2] {\n    {}\n}";
        let expected = Function {
            name: "b".to_owned(),
            line: 3,
            lines: 3,
        };
        assert_eq!(functions(code), [expected]);
    }
}

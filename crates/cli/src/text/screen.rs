//! Where text goes: a terminal with colours and a width, or a pipe with neither.

use std::io::IsTerminal;
use std::os::fd::AsFd;

/// A place that text is written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Screen {
    /// Whether it shows colours.
    pub colour: bool,
    /// How many columns it has; none: as many as needed.
    pub width: Option<usize>,
}

/// What a colour is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Paint {
    /// None.
    #[default]
    Plain,
    /// As it should be.
    Good,
    /// It waits, or somebody should look.
    Warn,
    /// It is wrong.
    Bad,
    /// A heading.
    Strong,
    /// What matters less.
    Faint,
}

impl Paint {
    fn code(self) -> &'static str {
        match self {
            Paint::Plain => "",
            Paint::Good => "32",
            Paint::Warn => "33",
            Paint::Bad => "31",
            Paint::Strong => "1",
            Paint::Faint => "2",
        }
    }
}

/// Narrower terminals get lines of this width all the same.
const NARROWEST: usize = 40;

impl Screen {
    /// A pipe or a file: no colour, no width.
    pub const PIPE: Screen = Screen {
        colour: false,
        width: None,
    };

    /// Standard output, as it is. `NO_COLOR` and `TERM=dumb` are honoured, `COLUMNS` wins over what
    /// the terminal says.
    pub fn stdout() -> Self {
        Self::of(std::io::stdout())
    }

    /// Standard error.
    pub fn stderr() -> Self {
        Self::of(std::io::stderr())
    }

    fn of(output: impl IsTerminal + AsFd) -> Self {
        if !output.is_terminal() {
            return Self::PIPE;
        }
        let variable = |name: &str| std::env::var(name).ok();
        let size = rustix::termios::tcgetwinsize(&output).ok();
        Self::terminal(
            variable("NO_COLOR").as_deref(),
            variable("TERM").as_deref(),
            variable("COLUMNS").as_deref(),
            size.map(|size| size.ws_col.into()),
        )
    }

    /// A terminal, by its variables and what it says its size is.
    fn terminal(
        no_color: Option<&str>,
        term: Option<&str>,
        columns: Option<&str>,
        size: Option<usize>,
    ) -> Self {
        let written = columns.and_then(|columns| columns.parse().ok());
        let width = written.or(size).filter(|width| *width > 0);
        Self {
            colour: no_color.is_none_or(str::is_empty) && term != Some("dumb"),
            width: Some(width.unwrap_or(80).max(NARROWEST)),
        }
    }

    /// The text in a colour, if there are colours.
    pub fn paint(self, paint: Paint, text: &str) -> String {
        match paint.code() {
            code if self.colour && !code.is_empty() && !text.is_empty() => {
                format!("\x1b[{code}m{text}\x1b[0m")
            }
            _ => text.to_owned(),
        }
    }

    /// The text behind `first`, in lines that fit; those that follow begin after `indent` blanks.
    /// Without a width it is one line.
    pub fn wrapped(self, first: &str, indent: usize, text: &str) -> String {
        let most = self
            .width
            .map_or(usize::MAX, |width| width.max(indent + 20));
        let mut out = first.to_owned();
        let mut column = visible(first);
        let mut begun = false;
        for word in text.split_whitespace() {
            let length = word.chars().count();
            if begun && column + 1 + length > most {
                out.push('\n');
                out.push_str(&" ".repeat(indent));
                column = indent;
            } else if begun {
                out.push(' ');
                column += 1;
            }
            out.push_str(word);
            column += length;
            begun = true;
        }
        out.push('\n');
        out
    }
}

/// How many columns a text takes: colours take none.
fn visible(text: &str) -> usize {
    let mut count = 0;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\x1b' => while letters.next().is_some_and(|letter| letter != 'm') {},
            _ => count += 1,
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_honoured() {
        let full = Screen::terminal(None, Some("xterm"), None, Some(120));
        assert_eq!((full.colour, full.width), (true, Some(120)));
        assert!(!Screen::terminal(Some("1"), None, None, None).colour);
        assert!(Screen::terminal(Some(""), None, None, None).colour);
        assert!(!Screen::terminal(None, Some("dumb"), None, None).colour);
        assert_eq!(
            Screen::terminal(None, None, Some("90"), Some(120)).width,
            Some(90)
        );
        assert_eq!(
            Screen::terminal(None, None, Some("x"), Some(0)).width,
            Some(80)
        );
        assert_eq!(
            Screen::terminal(None, None, Some("3"), None).width,
            Some(NARROWEST)
        );
    }

    #[test]
    fn a_pipe_gets_plain_text_in_one_line() {
        let long = "word ".repeat(100);
        assert_eq!(Screen::PIPE.paint(Paint::Bad, "x"), "x");
        assert_eq!(Screen::PIPE.wrapped("", 4, &long).lines().count(), 1);
    }

    #[test]
    fn lines_fit_a_terminal() {
        let screen = Screen {
            colour: true,
            width: Some(50),
        };
        assert_eq!(screen.paint(Paint::Good, "ok"), "\x1b[32mok\x1b[0m");
        assert_eq!(screen.paint(Paint::Plain, "ok"), "ok");
        let first = screen.paint(Paint::Bad, "file:7: ");
        let behind = screen.wrapped(&first, 4, &"word ".repeat(40));
        assert!(behind.lines().all(|line| visible(line) <= 50), "{behind}");
        let text = screen.wrapped("    ", 4, &"word ".repeat(40));
        assert!(text.lines().count() > 3);
        assert!(
            text.lines()
                .all(|line| line.chars().count() <= 50 && line.starts_with("    "))
        );
    }
}

//! An error and its causes as one line.

use std::error::Error;

/// An error with its causes, outermost first: `cannot open x: permission denied`. What one has said already
/// is not said again by the next.
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let said = cause.to_string();
        if !text.ends_with(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::chain;
    use std::fmt;

    #[derive(Debug)]
    struct Said(&'static str, Option<Box<Said>>);

    impl fmt::Display for Said {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl std::error::Error for Said {
        fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
            self.1.as_deref().map(|said| said as _)
        }
    }

    #[test]
    fn causes_are_said_once() {
        let cause = Said(
            "x: no such file",
            Some(Box::new(Said("no such file", None))),
        );
        let error = Said("cannot read", Some(Box::new(cause)));
        assert_eq!(chain(&error), "cannot read: x: no such file");
    }
}

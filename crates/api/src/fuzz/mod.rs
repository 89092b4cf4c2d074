//! Mutated input for every reader of what users and runtimes write: `tests/corpus/<target>/` is replayed and changed.
//! What must hold of any input: no panic, messages with bounds that name a field, and what was accepted is read the same
//! again when it is written.

mod annotations;
mod configuration;
mod networks;

use crate::Problems;
use crate::cni::{Code, Error};
use plexus_fuzz::{Kind, Target, bounded};

/// As long as a message may be, with all that it quotes.
const MESSAGE: usize = 12_000;

const fn target(name: &'static str, kind: Kind) -> Target {
    Target::new(env!("CARGO_PKG_NAME"), name, kind)
}

/// What refused problems came to. Each has the path of a field and says something.
fn refused(problems: &Problems) -> String {
    assert!(!problems.0.is_empty(), "refused without a problem");
    for problem in &problems.0 {
        bounded("a path", &problem.path, 1_000);
        bounded("a problem", &problem.text, 1_500);
        assert!(
            !problem.path.is_empty() && !problem.text.is_empty(),
            "{problem:?}"
        );
    }
    let text = problems.to_string();
    bounded("problems", &text, MESSAGE);
    text
}

/// What an error came to.
fn failed(error: &Error) -> String {
    bounded("a message", &error.msg, MESSAGE);
    bounded("the details", &error.details, 1_000);
    assert!(!error.msg.is_empty(), "an error without a message");
    if matches!(error.code, Code::InvalidConfig | Code::UnsupportedField) {
        let named = error.msg.contains(": ");
        assert!(named, "no field is named: {error}");
    }
    format!("{} {}", error.code.number(), error.msg)
}

/// How a value is shown may be so many times longer than what it was read from.
fn sized(shown: &str, input: &[u8]) {
    bounded("what was read", shown, 64 * 1024 + 64 * input.len());
}

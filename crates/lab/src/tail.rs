//! The last lines of a log, for an error message.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

const MAX_LINES: usize = 3;
const MAX_BYTES: u64 = 4096;

/// The last lines in one; a word if there is nothing.
pub(crate) fn of(log: &Path) -> String {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = File::open(log)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(MAX_BYTES)))?;
        let mut bytes = Vec::new();
        file.take(MAX_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    if lines.is_empty() {
        return "nothing".to_owned();
    }
    lines[lines.len().saturating_sub(MAX_LINES)..].join(" | ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::tests::Scratch;

    #[test]
    fn the_last_lines() {
        let scratch = Scratch::new();
        let log = scratch.0.join("a.log");
        assert_eq!(of(&log), "nothing");
        std::fs::write(&log, format!("{}\na\nb\n\nc\n", "x".repeat(10_000))).unwrap();
        assert_eq!(of(&log), "a | b | c");
    }
}

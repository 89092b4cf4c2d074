//! Files with inputs: those that are committed, and those that a failure leaves. A name that ends in `.hex` says
//! that the content is hexadecimal, with white space and comments behind `#`.

use crate::Kind;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// All inputs of a directory by name; none is an error.
pub(crate) fn read(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = std::fs::read_dir(directory)
        .unwrap_or_else(|error| panic!("there is no corpus in {}: {error}", directory.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty(), "no input in {}", directory.display());
    let read = |file: PathBuf| {
        let input = one(&file);
        (file, input)
    };
    files.into_iter().map(read).collect()
}

/// The input of a file.
pub(crate) fn one(file: &Path) -> Vec<u8> {
    let content = std::fs::read(file)
        .unwrap_or_else(|error| panic!("cannot read {}: {error}", file.display()));
    if file.extension().is_none_or(|extension| extension != "hex") {
        return content;
    }
    let text = String::from_utf8(content).expect("hexadecimal is text");
    let digits: String = text
        .lines()
        .map(|line| line.split('#').next().unwrap_or_default())
        .collect();
    let digits: Vec<u32> = digits
        .chars()
        .filter(|c| !c.is_whitespace())
        .map(|c| c.to_digit(16))
        .collect::<Option<_>>()
        .unwrap_or_else(|| panic!("{} is not hexadecimal", file.display()));
    assert!(
        digits.len().is_multiple_of(2),
        "half a byte in {}",
        file.display()
    );
    let bytes = digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8);
    bytes.collect()
}

/// Writes an input so that it can be put into the corpus as it is; gives the place.
pub(crate) fn write(directory: &Path, name: &str, kind: Kind, input: &[u8]) -> PathBuf {
    std::fs::create_dir_all(directory).expect("a directory for inputs that fail");
    let (name, content) = match kind {
        Kind::Attributes => (format!("{name}.hex"), hexadecimal(input).into_bytes()),
        _ => (name.to_owned(), input.to_vec()),
    };
    let file = directory.join(name);
    std::fs::write(&file, content).expect("a file for an input that fails");
    file
}

fn hexadecimal(input: &[u8]) -> String {
    let mut text = String::new();
    for line in input.chunks(16) {
        let words = line.chunks(4).map(|word| {
            let mut digits = String::new();
            for byte in word {
                let _ = write!(digits, "{byte:02x}");
            }
            digits
        });
        let words: Vec<String> = words.collect();
        text.push_str(&words.join(" "));
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let directory = std::env::temp_dir().join(format!("plexus-corpus-{}", std::process::id()));
        let input: Vec<u8> = (0..=255).collect();
        for kind in [Kind::Attributes, Kind::Bytes] {
            let file = write(&directory, "x", kind, &input);
            assert_eq!(one(&file), input);
        }
        std::fs::write(directory.join("c.hex"), "01 # one\n# 02\n0304").unwrap();
        assert_eq!(one(&directory.join("c.hex")), [1, 3, 4]);
        assert_eq!(read(&directory).len(), 3);
        std::fs::remove_dir_all(&directory).unwrap();
    }
}

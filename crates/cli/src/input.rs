//! Files, directories and standard input as manifests. Owns which files of a directory count: those
//! that `kubectl` would take.

use plexus_api::manifest::{Fault, Written, read};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// More than any manifest has.
const MAX_BYTES: u64 = 64 << 20;
/// The endings that count in a directory.
const ENDINGS: [&str; 3] = ["json", "yaml", "yml"];

/// Why something cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// It is not there, or not ours to read.
    #[error("cannot read {path}: is it there, and may you read it?")]
    Read {
        /// The file or directory.
        path: String,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// Not text.
    #[error("{path} is not text: a manifest is UTF-8, or UTF-16 with its mark")]
    NotText {
        /// The file.
        path: String,
    },
    /// Too much of it.
    #[error("{path} has more than {} MiB: no manifest has", MAX_BYTES >> 20)]
    TooLarge {
        /// The file.
        path: String,
    },
    /// A directory without manifests.
    #[error("{path} has no file that ends in .json, .yaml or .yml{}", if *.recursive { "" } else { "; -R looks into its directories too" })]
    Empty {
        /// The directory.
        path: String,
        /// Whether its directories were looked into.
        recursive: bool,
    },
}

/// A file with what is in it.
#[derive(Debug, Clone)]
pub struct Source {
    /// As the user named it; `-` is standard input.
    pub name: String,
    /// Its objects.
    pub objects: Vec<Written>,
    /// What cannot be read of it.
    pub faults: Vec<Fault>,
}

/// Reads what the user named: files, directories, `-`.
pub fn sources(named: &[PathBuf], recursive: bool) -> Result<Vec<Source>, InputError> {
    let mut all = Vec::new();
    for path in named {
        if path.as_os_str() == "-" {
            all.push(source("-", &mut io::stdin().lock())?);
            continue;
        }
        let metadata = fs::metadata(path).map_err(failed(path))?;
        if metadata.is_dir() {
            let files = files(path, recursive)?;
            if files.is_empty() {
                let path = path.display().to_string();
                return Err(InputError::Empty { path, recursive });
            }
            for file in files {
                all.push(file_source(&file)?);
            }
        } else {
            all.push(file_source(path)?);
        }
    }
    Ok(all)
}

fn file_source(path: &Path) -> Result<Source, InputError> {
    let mut file = fs::File::open(path).map_err(failed(path))?;
    source(&path.display().to_string(), &mut file)
}

fn source(name: &str, from: &mut dyn Read) -> Result<Source, InputError> {
    let mut bytes = Vec::new();
    let path = || name.to_owned();
    from.take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|source| InputError::Read {
            path: path(),
            source,
        })?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(InputError::TooLarge { path: path() });
    }
    let text = text(bytes).ok_or_else(|| InputError::NotText { path: path() })?;
    let manifest = read(&text);
    Ok(Source {
        name: path(),
        objects: manifest.objects,
        faults: manifest.faults,
    })
}

/// UTF-8, or UTF-16 if it begins with the mark of that.
fn text(bytes: Vec<u8>) -> Option<String> {
    let wide = |bytes: &[u8], unit: fn([u8; 2]) -> u16| {
        let (pairs, rest) = bytes.as_chunks::<2>();
        let units: Vec<u16> = pairs.iter().copied().map(unit).collect();
        String::from_utf16(&units).ok().filter(|_| rest.is_empty())
    };
    match bytes.as_slice() {
        [0xff, 0xfe, rest @ ..] => wide(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => wide(rest, u16::from_be_bytes),
        _ => String::from_utf8(bytes).ok(),
    }
}

/// The manifests of a directory, by name.
fn files(directory: &Path, recursive: bool) -> Result<Vec<PathBuf>, InputError> {
    let mut found = Vec::new();
    let mut entries = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed(directory))? {
        entries.push(entry.map_err(failed(directory))?.path());
    }
    entries.sort();
    for path in entries {
        let ending = path.extension().and_then(|ending| ending.to_str());
        if path.is_dir() {
            if recursive {
                found.extend(files(&path, recursive)?);
            }
        } else if ending.is_some_and(|ending| ENDINGS.contains(&ending)) {
            found.push(path);
        }
    }
    Ok(found)
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> InputError + use<> {
    let path = path.display().to_string();
    |source| InputError::Read { path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Dir(PathBuf);

    impl Dir {
        fn new(name: &str) -> Self {
            let name = format!("plexus-cli-{name}-{}", std::process::id());
            let path = std::env::temp_dir().join(name);
            let _ = fs::remove_dir_all(&path);
            fs::create_dir_all(path.join("deep")).unwrap();
            Self(path)
        }
    }

    impl Drop for Dir {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn directories_are_read_as_kubectl_reads_them() {
        let dir = Dir::new("input");
        for (name, text) in [
            ("b.yaml", "kind: B"),
            ("a.yml", "kind: A1\n---\nkind: A2"),
            ("c.json", "{\"kind\": \"C\"}"),
            ("notes.txt", "not a manifest: ["),
            ("deep/d.yaml", "kind: D"),
        ] {
            fs::write(dir.0.join(name), text).unwrap();
        }
        let kinds = |recursive| {
            let sources = sources(std::slice::from_ref(&dir.0), recursive).unwrap();
            let objects = sources.into_iter().flat_map(|source| source.objects);
            let kinds = objects.map(|one| one.object["kind"].as_str().unwrap().to_owned());
            kinds.collect::<Vec<_>>()
        };
        assert_eq!(kinds(false), ["A1", "A2", "B", "C"]);
        assert_eq!(kinds(true), ["A1", "A2", "B", "C", "D"]);
    }

    #[test]
    fn wide_text_is_read_as_kubectl_reads_it() {
        let wide = |mark: u16, bytes: fn(u16) -> [u8; 2]| {
            let units = std::iter::once(mark).chain("kind: \u{c4}".encode_utf16());
            source(
                "x",
                &mut units.flat_map(bytes).collect::<Vec<u8>>().as_slice(),
            )
            .unwrap()
        };
        for source in [
            wide(0xfeff, u16::to_le_bytes),
            wide(0xfeff, u16::to_be_bytes),
        ] {
            assert_eq!(source.objects[0].object["kind"], "\u{c4}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let dir = Dir::new("refused");
        let error_of = |path: &Path| sources(&[path.to_owned()], false).unwrap_err().to_string();
        assert!(error_of(&dir.0).contains("-R looks"));
        assert!(error_of(&dir.0.join("none.yaml")).contains("none.yaml"));
        fs::write(dir.0.join("x.yaml"), [0xff, 0xfe, 0x00]).unwrap();
        assert!(error_of(&dir.0.join("x.yaml")).contains("is not text"));
    }
}

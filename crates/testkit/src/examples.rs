//! The manifests in `examples/`, as paths.

use std::path::{Path, PathBuf};

/// Those of all documents that an API server of ours takes, in the order in which they are applied.
pub fn examples() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for seed in ["seed-000", "seed-001", "seed-002", "seed-003", "seed-004"] {
        found.extend(manifests(seed));
    }
    found.extend(manifests("seed-004/original"));
    found
}

/// The claims as their document has them: of a version that no server serves by default.
pub fn examples_of_another_version() -> Vec<PathBuf> {
    manifests("seed-001/original")
}

/// One of them.
pub fn example(name: &str) -> PathBuf {
    let this = std::env::var("CARGO_MANIFEST_DIR").expect("cargo runs the test");
    let path = Path::new(&this).join("../../examples").join(name);
    assert!(path.exists(), "{}", path.display());
    path
}

fn manifests(directory: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(example(directory)).expect("the examples are there");
    let paths = entries.flatten().map(|entry| entry.path());
    let is_yaml = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "yaml");
    let mut found: Vec<PathBuf> = paths.filter(is_yaml).collect();
    assert!(!found.is_empty(), "no manifests in {directory}");
    found.sort();
    found
}

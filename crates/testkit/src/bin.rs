//! Where the binaries under test are.

use std::path::PathBuf;

/// The command line with the agent.
pub const PLEXUS: &str = "plexus";
/// The binary that runtimes execute.
pub const SHIM: &str = "plexus-cni";

/// The path of a built binary: beside the test executable, or `PLEXUS_BIN` / `PLEXUS_CNI_BIN`.
///
/// Panics if it is not there: tests do not build it, `make test` does.
pub fn bin(name: &str) -> PathBuf {
    let variable = format!("{}_BIN", name.to_uppercase().replace('-', "_"));
    let path = match std::env::var_os(&variable).filter(|path| !path.is_empty()) {
        Some(path) => PathBuf::from(path),
        None => {
            let test = std::env::current_exe().expect("the test has a path");
            let built = test
                .ancestors()
                .nth(2)
                .expect("tests are built in <target>/debug/deps");
            built.join(name)
        }
    };
    assert!(
        path.is_file(),
        "{} is missing: run make test, which builds it with the feature faults first",
        path.display()
    );
    path
}

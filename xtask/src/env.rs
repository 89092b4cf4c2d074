//! The variables through which a test finds what it needs. `eval "$(cargo xtask env)"` gives a
//! shell the same ones, for a plain `cargo test`.

use crate::{failed, go_tools, vm, workspace::Workspace};
use anyhow::Result;
use std::path::PathBuf;

/// Name and value, in the order in which they are printed.
pub(crate) fn variables(workspace: &Workspace) -> Result<Vec<(&'static str, PathBuf)>> {
    let tool = |name| go_tools::installed(workspace, name);
    let mut variables = vec![
        ("CARGO_TARGET_DIR", workspace.target.clone()),
        ("PLEXUS_REF_PLUGINS", tool("cni-plugins")?),
        ("PLEXUS_CNITOOL", tool("cnitool")?.join("cnitool")),
        ("PLEXUS_STATIC_SHIM", workspace.shim()),
        ("PLEXUS_TEST_FAILED", failed::dir(workspace)),
    ];
    variables.extend(vm::variables(workspace)?);
    Ok(variables)
}

pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    for (name, value) in variables(workspace)? {
        println!("export {name}={}", quoted(&value.to_string_lossy()));
    }
    Ok(())
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn a_quote_cannot_end_the_string() {
        assert_eq!(quoted("/a b/it's"), r"'/a b/it'\''s'");
    }
}

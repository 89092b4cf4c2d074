//! The name of this machine's Node, kept in the state directory: blocks and records are a Node's by its
//! name, and must stay so when somebody gives the host another name.

use super::host;
use anyhow::{Context, bail};
use std::io::ErrorKind;
use std::path::Path;

/// The name to go by: that of the first start, which may have been given or was the host's then.
pub(super) fn find(file: &Path, requested: Option<&str>) -> anyhow::Result<String> {
    let requested = requested.map(host::node_name).transpose()?;
    match (stored(file)?, requested) {
        (Some(stored), Some(requested)) if stored != requested => bail!(
            "this machine's Node is {stored:?} since the first start, and what is there belongs to it: start without \
             --node {requested}, or remove everything with plexus down first"
        ),
        (Some(stored), _) => Ok(stored),
        (None, Some(requested)) => Ok(requested),
        (None, None) => host::name(),
    }
}

/// Keeps it for the next start.
pub(super) fn store(file: &Path, name: &str) -> anyhow::Result<()> {
    if stored(file)?.is_some() {
        return Ok(());
    }
    let failed = || format!("cannot write {}", file.display());
    let beside = file.with_extension("new");
    std::fs::write(&beside, format!("{name}\n"))
        .and_then(|()| std::fs::File::open(&beside)?.sync_all())
        .and_then(|()| std::fs::rename(&beside, file))
        .with_context(failed)
}

fn stored(file: &Path) -> anyhow::Result<Option<String>> {
    match std::fs::read_to_string(file) {
        Ok(text) => host::node_name(text.trim())
            .map(Some)
            .with_context(|| format!("{} does not have the name of a Node", file.display())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", file.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_name_stays() {
        let dir = std::env::temp_dir().join(format!("px-up-named-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let file = dir.join("node");
        assert_eq!(find(&file, None).unwrap(), host::name().unwrap());
        assert_eq!(find(&file, Some("Old")).unwrap(), "old");
        assert!(!file.exists(), "a start that fails settles nothing");
        store(&file, "old").unwrap();
        store(&file, "other").unwrap();
        for requested in [None, Some("old"), Some("OLD")] {
            assert_eq!(
                find(&file, requested).unwrap(),
                "old",
                "whatever the host is called"
            );
        }
        let error = find(&file, Some("new")).unwrap_err().to_string();
        for word in ["\"old\"", "--node new", "plexus down"] {
            assert!(error.contains(word), "{error}");
        }
        assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 1);
        std::fs::write(&file, "").unwrap();
        let error = find(&file, None).unwrap_err().to_string();
        assert!(error.contains("node does not have the name"), "{error}");
        std::fs::remove_dir_all(dir).unwrap();
    }
}

//! Which labs there are on this machine.

use crate::error::LabError;
use crate::layout::{Layout, ROOT};
use crate::name::LabName;
use crate::part::Part;
use crate::process::Process;
use crate::spec::Spec;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// A lab, in short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LabSummary {
    /// Its name.
    pub lab: String,
    /// Its nodes; none if it is only half made, or half removed.
    pub nodes: Option<usize>,
    /// Its keeper, if that runs.
    pub keeper: Option<i32>,
    /// The directory that has everything of it.
    pub directory: PathBuf,
}

/// All labs of this machine, by name.
pub fn list() -> Result<Vec<LabSummary>, LabError> {
    in_root(Path::new(ROOT))
}

fn in_root(root: &Path) -> Result<Vec<LabSummary>, LabError> {
    let entries = match std::fs::read_dir(root) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(LabError::file("read", root))?,
    };
    let mut names: Vec<LabName> = entries
        .flatten()
        .filter(|entry| entry.path().is_dir())
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    names.sort();
    let each = names.into_iter().map(|name| {
        let layout = Layout::in_root(root, name);
        let spec = Spec::read(&layout)?;
        Ok(LabSummary {
            lab: layout.name().to_string(),
            nodes: spec.map(|spec| spec.nodes.len()),
            keeper: Process::of_part(&layout, Part::Keeper).map(|process| process.pid()),
            directory: layout.dir(),
        })
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_lab_is_not_listed() {
        let root = std::env::temp_dir().join(format!("px-lab-list-{}", std::process::id()));
        assert_eq!(in_root(&root).unwrap(), []);
        for name in ["b", "a", "Not-One"] {
            std::fs::create_dir_all(root.join(name)).unwrap();
        }
        std::fs::write(root.join("c.lock"), "").unwrap();
        let listed = in_root(&root).unwrap();
        let names: Vec<&str> = listed.iter().map(|lab| lab.lab.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!((listed[0].nodes, listed[0].keeper), (None, None));
        std::fs::remove_dir_all(root).unwrap();
    }
}

//! Addresses that host-local keeps for the lab's pods: files below `/var/lib/cni`, which all nodes of the machine share.
//! A DEL removes them; for pods that end with their lab or their node, the lab does. A `dataDir` of a configuration's own is not known here.

use crate::error::LabError;
use crate::layout::Layout;
use crate::sandbox::{self, Sandbox};
use std::collections::BTreeSet;
use std::fs;
use std::net::IpAddr;
use std::path::Path;

const NETWORKS: &str = "/var/lib/cni/networks";

/// Removes those of every sandbox that is recorded.
pub(crate) fn remove(layout: &Layout) -> Result<(), LabError> {
    let all = sandbox::all(layout).into_iter();
    remove_those_of(&all.map(|(_, sandbox)| sandbox).collect::<Vec<_>>())
}

/// Removes those of sandboxes for which nobody calls DEL.
pub(crate) fn remove_those_of(sandboxes: &[Sandbox]) -> Result<(), LabError> {
    let containers = sandboxes.iter().map(|sandbox| sandbox.container.clone());
    remove_of(Path::new(NETWORKS), &containers.collect())
}

fn remove_of(networks: &Path, containers: &BTreeSet<String>) -> Result<(), LabError> {
    if containers.is_empty() {
        return Ok(());
    }
    let below = |dir: &Path| {
        let entries = fs::read_dir(dir).into_iter().flatten().flatten();
        entries.map(|entry| entry.path())
    };
    for file in below(networks).flat_map(|network| below(&network)) {
        let name = file.file_name().and_then(|name| name.to_str());
        if name.is_none_or(|name| name.parse::<IpAddr>().is_err()) {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap_or_default();
        let holder = text.lines().next().unwrap_or_default().trim();
        if containers.contains(holder) {
            fs::remove_file(&file).map_err(LabError::file("remove", &file))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::tests::Scratch;

    #[test]
    fn only_those_of_the_lab() {
        let scratch = Scratch::new();
        let network = scratch.0.join("blue");
        fs::create_dir(&network).unwrap();
        let files = [
            ("10.0.0.2", "ours\r\neth0"),
            ("fd00::2", "ours\r\nnet1"),
            ("10.0.0.3", "others\r\neth0"),
            ("last_reserved_ip.0", "ours"),
            ("lock", ""),
        ];
        for (name, text) in files {
            fs::write(network.join(name), text).unwrap();
        }
        remove_of(&scratch.0, &BTreeSet::from(["ours".to_owned()])).unwrap();
        let mut left: Vec<_> = fs::read_dir(&network)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(left, ["10.0.0.3", "last_reserved_ip.0", "lock"]);
    }
}

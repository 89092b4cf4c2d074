//! The machine's settings that nodes change although they are not theirs alone (kubelet does). The
//! first lab writes down what they were, the last one to go puts them back.

use crate::layout;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::PathBuf;

const CHANGED: [&str; 7] = [
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
    "fs/inotify/max_user_instances",
];
/// Each kubelet, containerd and kube-proxy has several.
const INOTIFY_INSTANCES: u32 = 2048;

/// Held while labs come and go.
pub(crate) fn lock() -> Result<File> {
    let path = layout::root()?.join("lock");
    let take = || -> std::io::Result<File> {
        fs::create_dir_all(layout::root().map_err(std::io::Error::other)?)?;
        let file = File::create(&path)?;
        file.lock()?;
        Ok(file)
    };
    take().with_context(|| format!("cannot lock {}", path.display()))
}

/// Writes the settings down, unless another lab has, and makes room for many nodes.
pub(crate) fn save() -> Result<()> {
    let path = saved()?;
    if path.exists() {
        return Ok(());
    }
    let values: BTreeMap<&str, String> = CHANGED
        .iter()
        .filter_map(|name| {
            Some((
                *name,
                fs::read_to_string(file(name)).ok()?.trim().to_owned(),
            ))
        })
        .collect();
    let partial = path.with_extension("partial");
    fs::write(&partial, serde_json::to_vec_pretty(&values)?)
        .and_then(|()| fs::rename(&partial, &path))
        .with_context(|| format!("cannot write {}", path.display()))?;
    let instances = values.get("fs/inotify/max_user_instances");
    if instances
        .and_then(|text| text.parse().ok())
        .is_some_and(|now: u32| now < INOTIFY_INSTANCES)
    {
        write(
            "fs/inotify/max_user_instances",
            &INOTIFY_INSTANCES.to_string(),
        )?;
    }
    Ok(())
}

/// Puts them back if no lab is left. To be called under the lock.
pub(crate) fn restore() -> Result<()> {
    let path = saved()?;
    let labs = fs::read_dir(layout::root()?)
        .into_iter()
        .flatten()
        .flatten();
    if !path.exists() || labs.into_iter().any(|entry| entry.path().is_dir()) {
        return Ok(());
    }
    let text = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let values: BTreeMap<String, String> = serde_json::from_slice(&text)
        .with_context(|| format!("cannot parse {}", path.display()))?;
    for (name, value) in &values {
        write(name, value)?;
    }
    fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))
}

fn saved() -> Result<PathBuf> {
    Ok(layout::root()?.join("sysctl.json"))
}

fn file(name: &str) -> String {
    format!("/proc/sys/{name}")
}

fn write(name: &str, value: &str) -> Result<()> {
    fs::write(file(name), value).with_context(|| format!("cannot set {name} to {value}"))
}

//! Which file a plugin type stands for. Never a path from a configuration, never ourselves.

use super::{Cause, Options, seen_from_here};
use plexus_api::cni::OWN_TYPES;
use plexus_types::PluginType;
use std::fs::{self, File, Metadata};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// A plugin's file, and what identifies it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PluginFile {
    /// As the plugin's own root has it.
    pub(super) path: PathBuf,
    pub(super) identity: Identity,
}

/// Changes when the file is replaced or rewritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity {
    dev: u64,
    ino: u64,
    size: u64,
    modified: (i64, i64),
}

impl Identity {
    fn of(metadata: &Metadata) -> Self {
        Self {
            dev: metadata.dev(),
            ino: metadata.ino(),
            size: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        }
    }
}

/// Checks the text of a `type`, the administrator's list, and looks through the directories.
pub(super) fn find(options: &Options, text: &str) -> Result<PluginFile, Cause> {
    let plugin = PluginType::new(text).map_err(|error| Cause::Type(Box::new(error)))?;
    if let Some(allowed) = &options.allowed
        && !allowed.contains(&plugin)
    {
        let allowed = allowed
            .iter()
            .map(PluginType::as_str)
            .collect::<Vec<_>>()
            .join(", ");
        return Err(Cause::NotAllowed {
            plugin: plugin.to_string(),
            allowed,
        });
    }
    for dir in &options.plugin_dirs {
        let path = dir.join(plugin.as_str());
        let root = options.root.as_ref().map(|root| root.dir.as_path());
        let Ok(seen) = seen_from_here(root, &path) else {
            continue;
        };
        let Ok(metadata) = fs::metadata(&seen) else {
            continue;
        };
        if !metadata.is_file() || metadata.permissions().mode() & 0o111 == 0 {
            continue;
        }
        if OWN_TYPES.contains(&plugin.as_str()) || is_own(options, &seen, &metadata) {
            return Err(Cause::Ourselves(path));
        }
        return Ok(PluginFile {
            path,
            identity: Identity::of(&metadata),
        });
    }
    let dirs = options
        .plugin_dirs
        .iter()
        .map(|dir| dir.display().to_string());
    let dirs = dirs.collect::<Vec<_>>().join(", ");
    Err(Cause::NotFound {
        plugin: plugin.to_string(),
        dirs,
    })
}

fn is_own(options: &Options, other: &Path, metadata: &Metadata) -> bool {
    let root = options.root.as_ref().map(|root| root.dir.as_path());
    let own = options
        .own
        .iter()
        .filter_map(|own| seen_from_here(root, own).ok());
    own.into_iter().any(|own| same(&own, other, metadata))
}

/// The same file by any name, or a copy of it.
fn same(own: &Path, other: &Path, metadata: &Metadata) -> bool {
    let Ok(ours) = fs::metadata(own) else {
        return false;
    };
    if (ours.dev(), ours.ino()) == (metadata.dev(), metadata.ino()) {
        return true;
    }
    ours.len() == metadata.len() && same_content(own, other).unwrap_or(false)
}

fn same_content(one: &Path, two: &Path) -> std::io::Result<bool> {
    let (mut one, mut two) = (File::open(one)?, File::open(two)?);
    let (mut left, mut right) = ([0; 8192], [0; 8192]);
    loop {
        let read = one.read(&mut left)?;
        if read == 0 {
            return Ok(true);
        }
        let (Some(left), Some(right)) = (left.get(..read), right.get_mut(..read)) else {
            return Ok(false);
        };
        two.read_exact(right)?;
        if left != right {
            return Ok(false);
        }
    }
}

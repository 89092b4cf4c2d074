//! The paths of the working tree, of the cache outside it, and of the build output keyed by the toolchain.

use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

/// The target of the shim: static, with no runtime dependency.
pub(crate) const SHIM_TARGET: &str = "x86_64-unknown-linux-musl";

/// The directories that every verb needs.
pub(crate) struct Workspace {
    /// The root of the working tree.
    pub(crate) root: PathBuf,
    /// `$XDG_CACHE_HOME/plexus` or `~/.cache/plexus`.
    pub(crate) cache: PathBuf,
    /// `CARGO_TARGET_DIR`, or `target-<channel>` in the cache.
    pub(crate) target: PathBuf,
}

impl Workspace {
    pub(crate) fn find() -> Result<Self> {
        // Asked at run time: clones that share a build directory share this binary's path too.
        let manifest_dir = std::env::var_os("CARGO_MANIFEST_DIR")
            .context("CARGO_MANIFEST_DIR is not set: start this as `cargo xtask`")?;
        let root = Path::new(&manifest_dir)
            .parent()
            .context("the xtask crate has no parent directory")?
            .to_path_buf();
        let cache = cache_home()?.join("plexus");
        let target = match absolute_var("CARGO_TARGET_DIR", &root) {
            Some(dir) => dir,
            None => cache.join(format!("target-{}", channel(&root)?)),
        };
        Ok(Self {
            root,
            cache,
            target,
        })
    }

    /// Where tools are installed, one directory per tool and version.
    pub(crate) fn tools(&self) -> PathBuf {
        self.cache.join("tools")
    }

    /// The static shim that `build::static_shim` makes.
    pub(crate) fn shim(&self) -> PathBuf {
        self.target.join(SHIM_TARGET).join("shim/plexus-cni")
    }
}

fn cache_home() -> Result<PathBuf> {
    if let Some(dir) = std::env::var_os("XDG_CACHE_HOME").filter(|dir| !dir.is_empty()) {
        return Ok(PathBuf::from(dir));
    }
    let home = std::env::var_os("HOME")
        .context("neither XDG_CACHE_HOME nor HOME is set: set one, the cache lives there")?;
    Ok(Path::new(&home).join(".cache"))
}

fn absolute_var(name: &str, root: &Path) -> Option<PathBuf> {
    std::env::var_os(name)
        .filter(|dir| !dir.is_empty())
        .map(|dir| root.join(dir))
}

fn channel(root: &Path) -> Result<String> {
    let path = root.join("rust-toolchain.toml");
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("cannot read {}", path.display()))?;
    let table: toml::Table = text
        .parse()
        .with_context(|| format!("cannot parse {}", path.display()))?;
    table
        .get("toolchain")
        .and_then(|toolchain| toolchain.get("channel"))
        .and_then(toml::Value::as_str)
        .map(str::to_owned)
        .with_context(|| format!("no toolchain.channel in {}", path.display()))
}

//! A directory becomes a one-layer image archive in the OCI layout.

use crate::command::run;
use crate::layout::Layout;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// What the image is called, and what it runs unless told otherwise.
pub(super) struct Image<'a> {
    pub(super) names: &'a [&'a str],
    pub(super) entrypoint: &'a [&'a str],
}

/// A root file system in the making.
pub(super) struct Rootfs {
    work: PathBuf,
    archive: PathBuf,
}

impl Rootfs {
    /// Of the image with this name; empty but for `/tmp`, `/etc`, `/proc`, `/sys`, `/dev` and users.
    pub(super) fn new(layout: &Layout, image: &str) -> Result<Self> {
        let file: String = image
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
            .collect();
        let made = Self {
            archive: layout.images().join(format!("{file}.tar")),
            work: layout.images().join(format!("{file}.work")),
        };
        made.skeleton()
            .with_context(|| format!("cannot make {}", made.work.display()))?;
        Ok(made)
    }

    /// Copies a file, executable for all.
    pub(super) fn copy(&self, from: &Path, to: &str) -> Result<()> {
        let to = self.root().join(to);
        let copy = || -> std::io::Result<()> {
            fs::create_dir_all(to.parent().unwrap_or(&to))?;
            fs::copy(from, &to)?;
            fs::set_permissions(&to, fs::Permissions::from_mode(0o755))
        };
        copy().with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))
    }

    /// Copies a file to the path that it has here.
    pub(super) fn copy_in_place(&self, path: &Path) -> Result<()> {
        let text = path.to_str().context("a path that is not text")?;
        self.copy(path, text.trim_start_matches('/'))
    }

    /// A symbolic link.
    pub(super) fn link(&self, target: &str, at: &str) -> Result<()> {
        let at = self.root().join(at);
        symlink(target, &at).with_context(|| format!("cannot link {}", at.display()))
    }

    /// The archive; the directory is gone afterwards.
    pub(super) fn into_archive(self, image: &Image<'_>) -> Result<PathBuf> {
        let failed = || format!("cannot make {}", self.archive.display());
        let blobs = self.work.join("blobs/sha256");
        fs::create_dir_all(&blobs).with_context(failed)?;
        let layer = self.layer(&blobs)?;
        let config = json!({
            "architecture": ARCHITECTURE,
            "os": "linux",
            "config": {"Entrypoint": image.entrypoint, "Env": [PATH]},
            "rootfs": {"type": "layers", "diff_ids": [&layer["digest"]]},
            "history": [{"created_by": "kubekit"}],
        });
        let config = blob(&blobs, "application/vnd.oci.image.config.v1+json", &config)?;
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": config,
            "layers": [layer],
        });
        let manifest = blob(&blobs, MANIFEST, &manifest)?;
        let index = json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.index.v1+json",
            "manifests": image.names.iter().map(|name| named(&manifest, name)).collect::<Vec<_>>(),
        });
        fs::write(self.work.join("index.json"), serde_json::to_vec(&index)?)
            .with_context(failed)?;
        fs::write(
            self.work.join("oci-layout"),
            r#"{"imageLayoutVersion":"1.0.0"}"#,
        )
        .with_context(failed)?;
        let (archive, work) = (
            self.archive.display().to_string(),
            self.work.display().to_string(),
        );
        run(&[
            "tar",
            "-cf",
            &archive,
            "-C",
            &work,
            "oci-layout",
            "index.json",
            "blobs",
        ])?;
        fs::remove_dir_all(&self.work).with_context(failed)?;
        Ok(self.archive)
    }

    fn root(&self) -> PathBuf {
        self.work.join("root")
    }

    fn skeleton(&self) -> std::io::Result<()> {
        if self.work.exists() {
            fs::remove_dir_all(&self.work)?;
        }
        for dir in ["tmp", "etc", "proc", "sys", "dev", "run", "bin"] {
            fs::create_dir_all(self.root().join(dir))?;
        }
        fs::set_permissions(self.root().join("tmp"), fs::Permissions::from_mode(0o1777))?;
        fs::write(
            self.root().join("etc/passwd"),
            "root:x:0:0:root:/:/bin/sh\n",
        )?;
        fs::write(self.root().join("etc/group"), "root:x:0:\n")
    }

    fn layer(&self, blobs: &Path) -> Result<Value> {
        let (tar, root) = (self.work.join("layer.tar"), self.root());
        let (to, from) = (tar.display().to_string(), root.display().to_string());
        run(&[
            "tar",
            "--sort=name",
            "--owner=0",
            "--group=0",
            "--numeric-owner",
            "--mtime=@0",
            "-cf",
            &to,
            "-C",
            &from,
            ".",
        ])?;
        file_blob(blobs, &tar, "application/vnd.oci.image.layer.v1.tar")
    }
}

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const PATH: &str = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
const ARCHITECTURE: &str = if cfg!(target_arch = "aarch64") {
    "arm64"
} else {
    "amd64"
};

fn named(manifest: &Value, name: &str) -> Value {
    let mut entry = manifest.clone();
    entry["platform"] = json!({"architecture": ARCHITECTURE, "os": "linux"});
    entry["annotations"] = json!({"io.containerd.image.name": name});
    entry
}

fn blob(blobs: &Path, media_type: &str, content: &Value) -> Result<Value> {
    let path = blobs.join("partial");
    fs::write(&path, serde_json::to_vec(content)?)
        .with_context(|| format!("cannot write {}", path.display()))?;
    file_blob(blobs, &path, media_type)
}

/// Moves a file among the blobs, and describes it.
fn file_blob(blobs: &Path, file: &Path, media_type: &str) -> Result<Value> {
    let printed = run(&["sha256sum", &file.display().to_string()])?;
    let digest = printed
        .split_whitespace()
        .next()
        .context("sha256sum printed nothing")?;
    let size = fs::metadata(file)
        .with_context(|| format!("no {}", file.display()))?
        .len();
    fs::rename(file, blobs.join(digest))
        .with_context(|| format!("cannot move {}", file.display()))?;
    Ok(json!({"mediaType": media_type, "digest": format!("sha256:{digest}"), "size": size}))
}

//! Finds the programs that a cluster is made of: in the cache, where `make kube-tools` and
//! `make setup` put them, under the versions that `tools/` pins; `runc` and the rest in `PATH`.

use crate::layout;
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};

const KUBERNETES: Pinned = Pinned {
    name: "kubernetes",
    module: "k8s.io/kubernetes",
    go_mod: include_str!("../../../tools/kube/kubernetes/go.mod"),
};
const ETCD: Pinned = Pinned {
    name: "etcd",
    module: "go.etcd.io/etcd/server/v3",
    go_mod: include_str!("../../../tools/kube/etcd/go.mod"),
};
const CONTAINERD: Pinned = Pinned {
    name: "containerd",
    module: "github.com/containerd/containerd/v2",
    go_mod: include_str!("../../../tools/kube/containerd/go.mod"),
};
const CRICTL: Pinned = Pinned {
    name: "crictl",
    module: "sigs.k8s.io/cri-tools",
    go_mod: include_str!("../../../tools/kube/crictl/go.mod"),
};
const NERDCTL: Pinned = Pinned {
    name: "nerdctl",
    module: "github.com/containerd/nerdctl/v2",
    go_mod: include_str!("../../../tools/kube/nerdctl/go.mod"),
};
const MULTUS: Pinned = Pinned {
    name: "multus",
    module: "gopkg.in/k8snetworkplumbingwg/multus-cni.v4",
    go_mod: include_str!("../../../tools/kube/multus/go.mod"),
};
const WHEREABOUTS: Pinned = Pinned {
    name: "whereabouts",
    module: "github.com/k8snetworkplumbingwg/whereabouts",
    go_mod: include_str!("../../../tools/kube/whereabouts/go.mod"),
};
const CNI_PLUGINS: Pinned = Pinned {
    name: "cni-plugins",
    module: "github.com/containernetworking/plugins",
    go_mod: include_str!("../../../tools/go/cni-plugins/go.mod"),
};

/// Directories of programs.
#[derive(Debug, Clone)]
pub struct Tools {
    /// kube-apiserver, kube-controller-manager, kube-scheduler, kubelet, kubectl, kube-proxy.
    pub kubernetes: PathBuf,
    /// etcd.
    pub etcd: PathBuf,
    /// containerd, containerd-shim-runc-v2, ctr.
    pub containerd: PathBuf,
    /// crictl.
    pub crictl: PathBuf,
    /// nerdctl. Nothing in the lab itself uses it.
    pub nerdctl: PathBuf,
    /// multus, multus-daemon, multus-shim. Nothing in the lab itself uses them.
    pub multus: PathBuf,
    /// whereabouts. Nothing in the lab itself uses it.
    pub whereabouts: PathBuf,
    /// The CNI project's own plugins.
    pub cni_plugins: PathBuf,
    /// The program that starts containers.
    pub runc: PathBuf,
}

impl Tools {
    /// All of them, or an error that says how to get what is missing.
    pub fn find() -> Result<Self> {
        let cache = layout::cache()?.join("tools");
        Ok(Self {
            kubernetes: KUBERNETES.directory(&cache)?,
            etcd: ETCD.directory(&cache)?,
            containerd: CONTAINERD.directory(&cache)?,
            crictl: CRICTL.directory(&cache)?,
            nerdctl: NERDCTL.path(&cache)?,
            multus: MULTUS.path(&cache)?,
            whereabouts: WHEREABOUTS.path(&cache)?,
            cni_plugins: CNI_PLUGINS.directory(&cache)?,
            runc: in_path("runc")?,
        })
    }
}

/// `kubectl` alone.
pub(crate) fn kubectl() -> Result<PathBuf> {
    let cache = layout::cache()?.join("tools");
    Ok(KUBERNETES.directory(&cache)?.join("kubectl"))
}

/// A program in `PATH`, or where Debian keeps those of the administrator.
pub(crate) fn in_path(program: &str) -> Result<PathBuf> {
    let path = std::env::var("PATH").unwrap_or_default();
    path.split(':')
        .chain(["/usr/sbin", "/sbin"])
        .map(|dir| Path::new(dir).join(program))
        .find(|file| file.is_file())
        .with_context(|| format!("no {program} in PATH: `make setup` installs it"))
}

struct Pinned {
    name: &'static str,
    module: &'static str,
    go_mod: &'static str,
}

impl Pinned {
    fn path(&self, cache: &Path) -> Result<PathBuf> {
        let version = self
            .go_mod
            .lines()
            .find_map(|line| {
                let mut words = line.trim_start_matches("require ").split_whitespace();
                (words.next()? == self.module).then(|| words.next())?
            })
            .with_context(|| {
                format!(
                    "the go.mod of {} does not require {}",
                    self.name, self.module
                )
            })?;
        Ok(cache.join(format!("{}-{version}", self.name)))
    }

    fn directory(&self, cache: &Path) -> Result<PathBuf> {
        let path = self.path(cache)?;
        if !path.is_dir() {
            bail!("{} is missing: run `make kube-tools`", path.display());
        }
        Ok(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_has_a_version() {
        for pinned in [
            KUBERNETES,
            ETCD,
            CONTAINERD,
            CRICTL,
            NERDCTL,
            MULTUS,
            WHEREABOUTS,
            CNI_PLUGINS,
        ] {
            let path = pinned.path(Path::new("/cache")).unwrap();
            let name = path.file_name().unwrap().to_str().unwrap();
            let version = name.strip_prefix(pinned.name).unwrap();
            assert!(version.starts_with("-v") && version.contains('.'), "{name}");
        }
    }
}

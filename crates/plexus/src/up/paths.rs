//! Where everything of `plexus up` is. One list for `up`, which makes it, and `down`, which removes it.

use crate::context::{self, OurContext};
use clap::Args;
use std::path::{Path, PathBuf};

/// What the context of its API is called.
const CONTEXT: &str = "plexus";

/// The flags about it.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Places")]
pub(crate) struct PathFlags {
    /// Directory that the usual places below are in, instead of /; for several on one machine,
    /// each in a network namespace of its own.
    #[arg(long, default_value = "/")]
    root: PathBuf,
    /// Unix socket that plexus-cni connects to; usually /run/plexus/agent.sock.
    #[arg(long)]
    socket: Option<PathBuf>,
    /// Unix socket of the API, for root; usually /run/plexus/api.sock.
    #[arg(long)]
    api_socket: Option<PathBuf>,
    /// Directory of the journal; usually /var/lib/plexus.
    #[arg(long)]
    state_dir: Option<PathBuf>,
    /// Directory of the API's store and certificates; usually `server` in the state directory.
    #[arg(long)]
    server_dir: Option<PathBuf>,
    /// Directory in which runtimes look for CNI plugins; usually /opt/cni/bin.
    #[arg(long)]
    cni_bin_dir: Option<PathBuf>,
    /// Directory in which runtimes look for CNI configurations; usually /etc/cni/net.d.
    #[arg(long)]
    cni_conf_dir: Option<PathBuf>,
    /// The kubeconfig that gets the context `plexus`; usually that of KUBECONFIG, else ~/.kube/config.
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
}

/// Where everything is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Paths {
    pub(crate) socket: PathBuf,
    pub(crate) api_socket: PathBuf,
    pub(crate) state_dir: PathBuf,
    pub(crate) server_dir: PathBuf,
    pub(crate) cni_bin_dir: PathBuf,
    pub(crate) cni_conf_dir: PathBuf,
    /// None if nobody named it, and there is no home to look in.
    pub(crate) kubeconfig: Option<PathBuf>,
}

impl PathFlags {
    /// What was written, and the usual for the rest.
    pub(crate) fn paths(&self) -> anyhow::Result<Paths> {
        let root = std::path::absolute(&self.root)?;
        let path_of = |flag: &Option<PathBuf>, usual: &str| -> anyhow::Result<PathBuf> {
            Ok(match flag {
                Some(flag) => std::path::absolute(flag)?,
                None => root.join(usual),
            })
        };
        let state_dir = path_of(&self.state_dir, "var/lib/plexus")?;
        let server_dir = match &self.server_dir {
            Some(flag) => std::path::absolute(flag)?,
            None => state_dir.join("server"),
        };
        Ok(Paths {
            socket: path_of(&self.socket, "run/plexus/agent.sock")?,
            api_socket: path_of(&self.api_socket, "run/plexus/api.sock")?,
            state_dir,
            server_dir,
            cni_bin_dir: path_of(&self.cni_bin_dir, "opt/cni/bin")?,
            cni_conf_dir: path_of(&self.cni_conf_dir, "etc/cni/net.d")?,
            kubeconfig: context::kubeconfig_path(self.kubeconfig.as_deref())?,
        })
    }
}

impl Paths {
    /// Who runs.
    pub(crate) fn lock(&self) -> PathBuf {
        self.state_dir.join("up.lock")
    }

    /// What this machine's Node is called.
    pub(crate) fn node(&self) -> PathBuf {
        self.state_dir.join("node")
    }

    /// The context of its API.
    pub(crate) fn context(&self) -> OurContext {
        OurContext {
            name: CONTEXT.to_owned(),
            server: self.server_dir.clone(),
            note: self.state_dir.join("context"),
            place: self.kubeconfig.clone(),
        }
    }

    /// What it said, if it runs in the background.
    pub(crate) fn log(&self) -> PathBuf {
        self.state_dir.join("up.log")
    }

    /// Directories that are nobody else's, deepest first: removed when they are empty. One that merely has
    /// a socket in it, at a place that was given, may be anybody's.
    pub(crate) fn own_directories(&self) -> Vec<&Path> {
        let parents = [&self.socket, &self.api_socket];
        let parents = parents.iter().filter_map(|path| path.parent());
        let parents = parents.filter(|parent| parent.ends_with("plexus"));
        let mut all: Vec<&Path> = parents.chain([self.state_dir.as_path()]).collect();
        all.sort();
        all.dedup();
        all.reverse();
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Just {
        #[command(flatten)]
        flags: PathFlags,
    }

    fn paths(line: &str) -> Paths {
        let words = ["up"].into_iter().chain(line.split_whitespace());
        Just::try_parse_from(words).unwrap().flags.paths().unwrap()
    }

    #[test]
    fn the_usual_places_are_those_that_manifests_and_runtimes_have() {
        let usual = paths("");
        assert_eq!(usual.socket, Path::new("/run/plexus/agent.sock"));
        assert_eq!(usual.state_dir, Path::new("/var/lib/plexus"));
        assert_eq!(usual.cni_bin_dir, Path::new("/opt/cni/bin"));
        assert_eq!(usual.cni_conf_dir, Path::new("/etc/cni/net.d"));
        assert_eq!(usual.socket, Path::new(plexus_cni::shim::DEFAULT_SOCKET));
    }

    #[test]
    fn a_root_moves_all_that_is_not_said() {
        let moved = paths("--root /x --cni-bin-dir /opt/cni/bin --state-dir /y");
        assert_eq!(moved.socket, Path::new("/x/run/plexus/agent.sock"));
        assert_eq!(moved.cni_conf_dir, Path::new("/x/etc/cni/net.d"));
        assert_eq!(moved.cni_bin_dir, Path::new("/opt/cni/bin"));
        assert_eq!(moved.server_dir, Path::new("/y/server"));
        assert!(paths("--root rel").socket.is_absolute());
    }

    #[test]
    fn directories_are_removed_from_the_inside_out() {
        let paths = paths("--root /x");
        let own = paths.own_directories();
        let own: Vec<_> = own.iter().map(|path| path.to_str().unwrap()).collect();
        assert_eq!(own, ["/x/var/lib/plexus", "/x/run/plexus"]);
    }

    #[test]
    fn a_directory_that_only_has_a_socket_of_ours_is_not_ours() {
        let paths = paths("--root /x --socket /mnt/agent.sock");
        assert!(!paths.own_directories().contains(&Path::new("/mnt")));
    }
}

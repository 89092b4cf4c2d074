//! Builds what users get and measures it with `crates/plexus/benches`.

use crate::{build, kube_tools, lock, place::Place, run};
use anyhow::Result;

pub(crate) fn run(place: &Place) -> Result<()> {
    let _alone = lock::build_directory(place)?;
    build::release(place)?;
    run::cargo(place, &["bench", "-p", "plexus", "--bench", "cni"])
}

/// The embedded API against a real API server, whose parts are built first.
pub(crate) fn embedded(place: &Place) -> Result<()> {
    let _alone = lock::build_directory(place)?;
    kube_tools::install_missing(place)?;
    build::release(place)?;
    let program = |tool: &str, name: &str| Ok(kube_tools::installed(place, tool)?.join(name));
    let etcd: Result<_> = program("etcd", "etcd");
    let api_server: Result<_> = program("kubernetes", "kube-apiserver");
    let mut bench = run::cargo_command(place)?;
    bench
        .args(["bench", "-p", "plexus", "--bench", "embedded"])
        .env("PLEXUS_BIN", place.target.join("release/plexus"))
        .env("PLEXUS_CNI_BIN", place.shim())
        .env("PLEXUS_ETCD", etcd?)
        .env("PLEXUS_KUBE_APISERVER", api_server?);
    run::shout(place, &mut bench)
}

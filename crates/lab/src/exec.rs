//! Programs inside the lab: in a pod's network namespace, in a node's, or outside of the cluster. The files
//! are this machine's, but for those that a node's plugins keep.

use crate::control;
use crate::error::LabError;
use crate::layout::{Layout, PLUGIN_FILES};
use crate::name::NodeName;
use crate::sandbox::{self, Sandbox};
use crate::underlay;
use crate::up::need_root;
use plexus_kernel::{Netns, mount};
use std::ffi::OsString;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// Where a program is to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExecTarget {
    /// In a pod.
    Pod {
        /// Its namespace in the API.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// On a node.
    Node(NodeName),
    /// Where only the nodes' addresses are known.
    Outside,
}

/// The network namespace of a target.
pub(crate) fn netns_of(layout: &Layout, target: &ExecTarget) -> Result<Netns, LabError> {
    need_root()?;
    let spec = control::of(layout)?;
    let name = match target {
        ExecTarget::Node(node) => layout.name().node(spec.has(layout, *node)?),
        ExecTarget::Outside => layout.name().fabric(),
        ExecTarget::Pod { namespace, name } => pod(layout, namespace, name)?,
    };
    underlay::open(&name)
}

/// Replaces this process by a program in that place; comes back only if that fails.
pub fn exec(layout: &Layout, target: &ExecTarget, argv: &[OsString]) -> Result<(), LabError> {
    let Some((program, arguments)) = argv.split_first() else {
        return Err(LabError::Refused("no program is given".to_owned()));
    };
    let netns = netns_of(layout, target)?;
    let become_it = || netns.enter(|| Command::new(program).args(arguments).exec());
    let source = match target {
        ExecTarget::Node(node) => {
            let (own, target) = (layout.plugin_files(*node), Path::new(PLUGIN_FILES));
            let failed = LabError::file("show a node's own", target);
            mount::with_own(&own, target, become_it).map_err(failed)??
        }
        ExecTarget::Pod { .. } | ExecTarget::Outside => become_it()?,
    };
    Err(LabError::Start {
        what: program.to_string_lossy().into_owned(),
        source,
    })
}

/// Of a pod that was made again under its name both sandboxes may be there: the one that was recorded last is
/// meant. The API is not asked: it may be away.
fn latest<'s>(
    layout: &Layout,
    all: &'s [(NodeName, Sandbox)],
    matches: impl Fn(&Sandbox) -> bool,
) -> Option<&'s Sandbox> {
    let written = |node: NodeName, sandbox: &Sandbox| {
        let found = fs::metadata(layout.sandbox(node, &sandbox.uid));
        found.and_then(|found| found.modified()).ok()
    };
    let found = all.iter().filter(|(_, sandbox)| matches(sandbox));
    let found = found.max_by_key(|(node, sandbox)| written(*node, sandbox));
    found.map(|(_, sandbox)| sandbox)
}

fn pod(layout: &Layout, namespace: &str, name: &str) -> Result<String, LabError> {
    let all = sandbox::all(layout);
    let ready = latest(layout, &all, |sandbox| {
        sandbox.namespace == namespace && sandbox.name == name && sandbox.is_ready()
    });
    ready.map(|sandbox| sandbox.netns.clone()).ok_or_else(|| {
        let others: Vec<String> = all
            .iter()
            .map(|(_, sandbox)| format!("{}/{}", sandbox.namespace, sandbox.name))
            .collect();
        let has = if others.is_empty() {
            "there is none".to_owned()
        } else {
            format!("there are {}", others.join(", "))
        };
        LabError::NoPod(format!(
            "no pod {namespace}/{name} has a sandbox in lab {}: {has}",
            layout.name()
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::tests::Scratch;
    use serde_json::Map;

    #[test]
    fn a_pod_that_was_made_again_is_the_later_one() {
        let scratch = Scratch::new();
        let layout = Layout::in_root(&scratch.0, "x".parse().unwrap());
        let node: NodeName = "n1".parse().unwrap();
        fs::create_dir_all(layout.sandboxes(node)).unwrap();
        for uid in ["9", "1"] {
            let sandbox = Sandbox::new(&layout, uid, ("default", "web"), Map::new()).unwrap();
            sandbox.write(&layout, node).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        let all = sandbox::all(&layout);
        let found = latest(&layout, &all, |sandbox| sandbox.name == "web");
        assert_eq!(found.map(|sandbox| sandbox.uid.as_str()), Some("1"));
        assert_eq!(latest(&layout, &all, |_| false), None);
    }
}

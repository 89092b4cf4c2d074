//! Programs inside the lab: in a pod's network namespace, in a node's, or outside of the cluster. The files are this machine's.

use crate::control;
use crate::error::LabError;
use crate::layout::Layout;
use crate::name::NodeName;
use crate::sandbox;
use crate::underlay;
use crate::up::need_root;
use plexus_kernel::Netns;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Where a program is to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
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

/// The network namespace of a place.
pub fn netns_of(layout: &Layout, place: &Place) -> Result<Netns, LabError> {
    need_root()?;
    let spec = control::of(layout)?;
    let name = match place {
        Place::Node(node) => layout.name().node(spec.has(layout, *node)?),
        Place::Outside => layout.name().fabric(),
        Place::Pod { namespace, name } => pod(layout, namespace, name)?,
    };
    underlay::open(&name)
}

/// Replaces this process by a program in that place; comes back only if that fails.
pub fn exec(layout: &Layout, place: &Place, argv: &[OsString]) -> Result<(), LabError> {
    let Some((program, arguments)) = argv.split_first() else {
        return Err(LabError::Refused("no program is given".to_owned()));
    };
    let netns = netns_of(layout, place)?;
    let source = netns.enter(|| Command::new(program).args(arguments).exec())?;
    Err(LabError::Start {
        what: program.to_string_lossy().into_owned(),
        source,
    })
}

fn pod(layout: &Layout, namespace: &str, name: &str) -> Result<String, LabError> {
    let all = sandbox::all(layout);
    let mut found = all
        .iter()
        .map(|(_, sandbox)| sandbox)
        .filter(|sandbox| sandbox.namespace == namespace && sandbox.name == name);
    let ready = found.rfind(|sandbox| sandbox.is_ready());
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

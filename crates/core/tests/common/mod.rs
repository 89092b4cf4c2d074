//! The way from a configuration to plans and a result, as the agent goes it, without a kernel: the
//! node's links are given, every address is free.

use crate::cluster::answered;
use plexus_api::cni::{Args, DeviceKey, Error, NetConf, Outcome};
use plexus_core::attach::preview::{Issued, Preview, preview};
use plexus_core::attach::{AttachError, AttachRequest, Sandbox};
use plexus_core::attachment::NativeSpec;
use plexus_core::ipam::{BlockSource, NodeBlocks};
use plexus_core::plan::{
    Device, Facts, LinkFacts, NodePlan, ParentQuery, PodPlan, Underlay, facts_query,
};
use plexus_types::{IfName, NetnsCookie};

/// The node's links; the first has the default route.
pub(crate) struct Node(pub(crate) Vec<LinkFacts>);

/// What became of a configuration.
pub(crate) struct Made {
    pub(crate) pod: PodPlan,
    pub(crate) node: NodePlan,
    pub(crate) result: Outcome,
}

pub(crate) fn make(config: &[u8], node: &Node) -> Result<Made, Error> {
    let conf = NetConf::parse(config, &Args::default())?;
    let request = AttachRequest::of(&conf, sandbox());
    make_request(request, node, &NodeBlocks::default())
}

/// The sandbox of all golden plans.
pub(crate) fn sandbox() -> Sandbox {
    Sandbox {
        container: "5f10db93aabb".parse().unwrap(),
        ifname: "eth0".parse().unwrap(),
        path: "/run/netns/x".to_owned(),
        cookie: NetnsCookie(8),
        node: NetnsCookie(7),
    }
}

/// The same, for any request.
pub(crate) fn make_request(
    request: AttachRequest,
    node: &Node,
    blocks: &dyn BlockSource,
) -> Result<Made, Error> {
    let Preview {
        attach,
        pod,
        node: kept,
    } = preview(
        request,
        &|spec| node.facts(spec),
        blocks,
        &mut Issued::default(),
    )
    .map_err(without_place)?;
    Ok(Made {
        pod,
        node: kept,
        result: attach.answer().map_err(without_place)?,
    })
}

/// The agent says which interface it is.
fn without_place(error: AttachError) -> Error {
    match error {
        AttachError::Plan { source, .. } => answered(&source),
        error => answered(&error),
    }
}

fn device(link: LinkFacts) -> Device {
    Device {
        name: link.name,
        index: link.index,
        altnames: Vec::new(),
        mac: Some("52:54:00:12:34:56".parse().unwrap()),
        mtu: link.mtu,
        up: true,
        promisc: false,
        alias: None,
        kind: link.kind,
        hardware: None,
    }
}

impl Node {
    fn facts(&self, spec: &NativeSpec) -> Facts {
        let Node(links) = self;
        let find = |name: &IfName| links.iter().find(|link| link.name == *name).cloned();
        let first = links.first();
        let query = facts_query(&spec.native);
        // A routed pod takes over the node's MTU; here it is left to the kernel.
        let parent = query.parent.filter(|_| !spec.native.provider.is_routed());
        Facts {
            parent: parent.and_then(|parent| match parent {
                ParentQuery::Named(name) => find(name),
                ParentQuery::DefaultRoute => first.cloned(),
            }),
            bridge: query.bridge.and_then(find),
            underlay: first.filter(|_| query.underlay).map(|first| Underlay {
                node: "n1".to_owned(),
                address: "192.0.2.1".parse().unwrap(),
                mtu: first.mtu,
            }),
            device: query.device.and_then(|query| match query.key.as_ref()? {
                DeviceKey::Name(name) => find(name).map(device),
                _ => None,
            }),
        }
    }
}

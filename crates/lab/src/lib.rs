//! A cluster on one machine without containers: virtual nodes (network namespaces joined by virtual wires), a
//! real agent on each, one server, one controller, and a keeper that is every node's kubelet. Owns all of
//! that from `up` to `down`, and the ping matrix; computes nothing that an agent or the controller should.
//!
//! ```text
//!   this machine: keeper, server
//!   px-NAME-fabric: br0 br1 …   controller, the server's second socket   "outside" on lo
//!                    │   │
//!   px-NAME-n1:    eth0 eth1 …  agent (real)      px-NAME-s…: a pod's sandbox, set up by plexus-cni
//! ```
//!
//! Every process can be killed at any time; the keeper starts the others again, `up` starts the keeper. All
//! state is in the lab's directory, the kernel and the server; `down` needs none of it.

mod address;
mod api;
mod cni;
mod control;
mod down;
mod error;
mod exec;
mod files;
mod keeper;
mod layout;
mod list;
mod lock;
mod logs;
mod name;
mod nic;
mod part;
mod ping;
mod process;
mod report;
mod run;
mod sandbox;
mod settings;
mod spec;
mod status;
mod tail;
mod topology;
mod underlay;
mod up;

pub use api::kubeconfig;
pub use control::{add_node, kill, partition, remove_node, start};
pub use down::{Removal, down};
pub use error::LabError;
pub use exec::{ExecTarget, exec};
pub use keeper::run_keeper;
pub use layout::Layout;
pub use list::{LabSummary, list};
pub use logs::logs;
pub use name::{LabName, NodeName};
pub use nic::Nic;
pub use part::Part;
pub use ping::{Cell, Expected, Matrix, Unseen, ping_all};
pub use report::PartReport;
pub use run::{PodRequest, ReadyPod, run};
pub use spec::{Programs, Spec, UpOptions};
pub use status::{NodeStatus, PodStatus, Status, status};
pub use topology::{Topology, TopologyNodes};
pub use up::{Step, up};

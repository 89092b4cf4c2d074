//! A real Kubernetes cluster on one machine, for tests: control plane, nodes, images, Plexus
//! installed by its own manifest. Never linked into a product.
//!
//! # Using it by hand
//!
//! ```text
//! make kube-tools                           # once per machine: builds the components, 15 minutes
//! make kube-up NODES=2                      # our binaries, Plexus by deploy/install.yaml
//! make kube-up KUBE="--cni bridge"          # the reference plugins instead
//! make kube-down
//!
//! kubelab up --prefix a --nodes 2 --cni bridge --proxy iptables --pod-cidrs none
//! kubelab kubectl --prefix a get pods -A    # or: kubectl --kubeconfig <state>/kubeconfig
//! kubelab node --prefix a n1 crictl pods    # any program, as root on that node
//! kubelab kill --prefix a n1-kubelet        # and stop, start; n1-containerd, apiserver, etcd, …
//! kubelab add-node --prefix a; kubelab remove-node --prefix a n3
//! kubelab power-off --prefix a n2; kubelab power-on --prefix a n2
//! kubelab reload --prefix a                 # our binaries were built anew: new image, new pods
//! kubelab down --prefix a                   # also after a crash, twice does no harm
//! ```
//!
//! `kubelab` is `cargo run -p plexus-kubekit --bin kubelab --`. `up` prints the state directory
//! (`~/.cache/plexus/kube/<prefix>`): `kubeconfig`, `log/`, `nodes/<node>/static-pods` and so on.
//!
//! # Using it in tests
//!
//! Tests in `tests/` are gated by the feature `e2e`. With a lab running:
//!
//! ```text
//! PLEXUS_KUBE_STATE=~/.cache/plexus/kube/lab cargo test -p plexus-kubekit --features e2e --test smoke
//! ```
//!
//! `make test-kube` does all of it. A test says `let kube = test_cluster::shared()?;`, makes a [`Namespace`] of
//! its own, and speaks through [`Cluster`] wherever that is enough. Such a test runs on a lab of
//! `plexus lab` too, which takes seconds to come up:
//!
//! ```text
//! plexus lab up; PLEXUS_LAB=lab cargo test -p plexus-kubekit --features e2e --test networks
//! ```
//!
//! A test that kills agents, the controller or the API server speaks through [`Breakable`]. What only Kubernetes has,
//! it asks [`test_cluster::kubernetes`] for: `kube.lab()` has further faults, and nodes.
//!
//! # What a lab is
//!
//! See `underlay` for the wires and `node` for what a node is. Images: `localhost/busybox:1` (also
//! `busybox`), `localhost/plexus:dev` (`/bin/plexus`, `/bin/plexus-cni`). The addresses
//! 203.0.113.1 and 2001:db8:113::1 are outside of the cluster: [`Cluster::outside`] runs programs there.

pub mod api;
pub mod apply_diff;
pub mod breakable;
pub mod bridge;
pub mod cluster;
mod command;
pub mod consistency;
mod control_plane;
mod down;
pub mod image;
mod install;
pub mod kubernetes;
mod lab;
pub mod layout;
pub mod multus;
mod namespace;
mod node;
mod part;
mod pki;
mod process;
pub mod relay;
pub mod spec;
mod sysctl;
pub mod test_cluster;
pub mod tools;
mod underlay;
pub mod virtual_lab;
pub mod wait;

pub use breakable::Breakable;
pub use cluster::{Cluster, Object, Output};
pub use kubernetes::Kube;
pub use lab::Lab;
pub use namespace::Namespace;
pub use part::Part;
pub use spec::Spec;
pub use virtual_lab::VirtualLab;

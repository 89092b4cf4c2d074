//! A real Kubernetes cluster on one machine, for tests: control plane, nodes, images, Plexus
//! installed by its own manifest. Never linked into a product.

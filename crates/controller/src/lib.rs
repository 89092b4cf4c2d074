//! The cluster: networks from NADs, phases, VNIs, blocks of nodes that are gone, and what users
//! must be told about them. Watches and writes API objects; never touches a kernel and is never in
//! the way of a pod's start.

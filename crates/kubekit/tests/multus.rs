//! Plexus as a plugin: below real Multus, thin and thick, and below a plugin that calls others one
//! after the other. On a lab of its own, whose cluster network is the reference plugins'.
#![cfg(feature = "e2e")]
#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on ends"
)]

#[path = "multus/alone.rs"]
mod alone;
#[path = "multus/below.rs"]
mod below;
mod common;
#[path = "multus/lab.rs"]
mod lab;
#[path = "multus/sequence.rs"]
mod sequence;

use lab::MultusLab;
use plexus_kubekit::multus::Flavour;
use plexus_kubekit::test_cluster;

#[test]
fn plexus_is_a_plugin_of_multus_and_of_a_sequence() {
    let lab = MultusLab::up();
    let networks = below::Networks::make(&lab);
    // Multus calls us alike in both; what differs is its own.
    let flavours: &[Flavour] = match test_cluster::is_long_run() {
        true => &[Flavour::Thin, Flavour::Thick],
        false => &[Flavour::Thick],
    };
    for &flavour in flavours {
        lab.multus(flavour);
        below::check(&lab, &networks, flavour);
    }
    sequence::check(&lab, &networks);
}

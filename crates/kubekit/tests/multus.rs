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

#[test]
fn plexus_is_a_plugin_of_multus_and_of_a_sequence() {
    let lab = MultusLab::up();
    let networks = below::Networks::make(&lab);
    for flavour in [Flavour::Thin, Flavour::Thick] {
        lab.multus(flavour);
        below::check(&lab, &networks, flavour);
    }
    sequence::check(&lab, &networks);
}

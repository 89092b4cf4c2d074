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
#[path = "multus/place.rs"]
mod place;
#[path = "multus/sequence.rs"]
mod sequence;

use place::Place;
use plexus_kubekit::multus::Flavour;

#[test]
fn plexus_is_a_plugin_of_multus_and_of_a_sequence() {
    let place = Place::up();
    let networks = below::Networks::make(&place);
    for flavour in [Flavour::Thin, Flavour::Thick] {
        place.multus(flavour);
        below::check(&place, &networks, flavour);
    }
    sequence::check(&place, &networks);
}

//! Mutated names in the queue's directory, and what a shim would call the file of a container.

use super::drain::{is_ours, is_temporary};
use super::may_concern;
use super::put::{file_name, temporary_name};
use crate::fuzz;
use plexus_fuzz::Kind;
use plexus_types::{ContainerId, IfName};

/// Lines: the name of a file, a container, an interface.
#[test]
fn queued_name() {
    const WORDS: &[&str] = &[
        "01770000000000000000",
        "-",
        ".json",
        ".bad",
        "eth0",
        "c0ffee",
        "/",
        "..",
        ".",
    ];
    fuzz::target("queued_name", Kind::Bytes)
        .words(WORDS)
        .run(|input| {
            let text = String::from_utf8_lossy(input);
            let mut lines = text.split('\n');
            let mut line = || lines.next().unwrap_or_default();
            let (name, container, ifname) = (line(), line(), line());
            assert!(!(is_ours(name) && is_temporary(name)), "{name:?}");
            assert!(
                !is_ours(name) || !name.contains('/'),
                "a name that leads elsewhere"
            );
            let concerns = may_concern(name, container);
            let (Ok(container), Ok(ifname)) = (ContainerId::new(container), IfName::new(ifname))
            else {
                return format!("{} {} {concerns}", is_ours(name), is_temporary(name));
            };
            let own = file_name(input.len() as u128, &container, &ifname);
            assert!(
                is_ours(&own) && may_concern(&own, container.as_str()),
                "{own:?}"
            );
            assert!(is_temporary(&temporary_name(input.len() as u128)));
            format!("a call {} {concerns}", is_ours(name))
        });
}

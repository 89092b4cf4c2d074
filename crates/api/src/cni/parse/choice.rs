//! What a wrong choice is told: the name that was probably meant, and where else it may be written.
//! Never decides whether a choice is right.

use super::REFERENCE_TYPES;
use crate::cni::Provider;
use crate::fields::nearest;
use crate::text::quoted;

/// The values of `type` in the `ipam` of a native network.
const IPAMS: [&str; 3] = ["host-local", "static", "plexus"];

/// What else may be written at the top of a network, where nothing says who makes it.
pub(super) const AT_TOP: &str = "\"plugins\" (a chain to execute) or \"networks\" (several)";
/// The same for an element of `networks`.
pub(super) const IN_ENTRY: &str =
    "\"type\" (a reference plugin's configuration) or \"plugins\" (a chain to execute)";
/// The same for a NAD that has more in it than a network's name.
pub(super) const IN_NAD: &str =
    "or remove the options so that the network is the cluster's by that name";

/// For a network of which nothing says who makes it; `else_write` is one of those above.
pub(super) fn missing(else_write: &str) -> String {
    let natives = natives().join(", ");
    format!("write \"provider\" ({natives}, or delegate with \"plugins\"), {else_write}")
}

/// A provider that there is not. `path` is where the network is written: empty at the top.
pub(crate) fn provider(name: &str, path: &str) -> String {
    let wrong = quoted(name);
    let native = natives().join(", ");
    if REFERENCE_TYPES.contains(&name) {
        let place = match path {
            "" => "write the network as an entry of \"networks\" with",
            _ => "write",
        };
        return format!(
            "{wrong} is not a native provider ({native} and delegate are): {place} \
             \"type\": {wrong} in place of \"provider\", then the plugin is executed"
        );
    }
    match nearest(name, &[&natives()[..], &["delegate"]].concat()) {
        Some(meant) => format!(
            "{wrong} is not a native provider: did you mean {meant:?}? There are {native} and \
             delegate"
        ),
        None => format!("{wrong} is not a native provider: write {native} or delegate"),
    }
}

/// The values of `provider` but `delegate`.
fn natives() -> Vec<&'static str> {
    let kinds = Provider::KINDS.iter().filter(|kind| kind.in_config);
    kinds.map(|kind| kind.name).collect()
}

/// Whether a name is almost that of an IPAM of ours.
pub(super) fn is_near_ipam(name: &str) -> bool {
    nearest(name, &IPAMS).is_some()
}

/// An IPAM that neither we do nor is executed alone, of a network of `provider` that is written at `path`.
pub(super) fn ipam(name: &str, provider: &str, path: &str) -> String {
    let wrong = quoted(name);
    let meant = match did_you_mean(name, &IPAMS) {
        none if none.is_empty() => none,
        question => format!("{question}Else "),
    };
    let real = real_plugin(provider, path);
    format!("{wrong} is not native: {meant}write host-local, static or plexus, or {real}")
}

/// How the network of a native provider is written so that the plugin of that name is executed.
pub(super) fn real_plugin(provider: &str, path: &str) -> String {
    match path {
        "" => format!(
            "put the configuration of the real {provider} plugin into \"plugins\", which is executed"
        ),
        _ => format!(
            "write \"type\": \"{provider}\" in place of \"provider\", so that the real plugin runs"
        ),
    }
}

/// Asks whether the nearest name was meant, before the names are listed; empty if none is near.
pub(crate) fn did_you_mean(name: &str, names: &[&'static str]) -> String {
    let meant = nearest(name, names).map(|meant| format!("did you mean {meant:?}? "));
    meant.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_provider_is_told_what_was_meant() {
        for path in ["", "networks[0]"] {
            for wrong in ["mcvlan", "MACVLAN", "macvlan "] {
                let text = provider(wrong, path);
                assert!(text.contains("did you mean \"macvlan\"?"), "{text}");
                for name in ["macvlan", "bridge", "routed", "delegate"] {
                    assert!(text.contains(name), "{text}");
                }
            }
            let text = provider("overlay", path);
            assert!(!text.contains("did you mean"), "{text}");
            let all = natives().join(", ");
            assert!(text.contains(&format!("write {all}")), "{text}");
            assert!(text.ends_with(" or delegate"), "{text}");
        }
        assert!(provider(&"x".repeat(1 << 16), "").len() < 500);
    }

    #[test]
    fn a_reference_plugin_is_told_where_it_belongs() {
        let text = provider("ptp", "");
        assert!(
            text.contains("an entry of \"networks\" with \"type\": \"ptp\""),
            "{text}"
        );
        let text = provider("ptp", "networks[1]");
        assert!(!text.contains("an entry of"), "{text}");
        assert!(text.contains("write \"type\": \"ptp\""), "{text}");
    }

    #[test]
    fn at_the_top_no_other_type_is_advised() {
        for name in ["hostlocal", "dhcp", "", "host-local\0"] {
            let text = ipam(name, "macvlan", "");
            assert!(!text.contains("in place of"), "{text}");
            assert!(
                text.contains("write host-local, static or plexus"),
                "{text}"
            );
            let text = ipam(name, "macvlan", "networks[0]");
            assert!(text.contains("\"type\": \"macvlan\" in place of"), "{text}");
        }
        let text = ipam("hostlocal", "macvlan", "");
        assert!(text.contains("did you mean \"host-local\"?"), "{text}");
        assert!(!ipam("dhcp", "macvlan", "").contains("did you mean"));
    }

    #[test]
    fn what_is_missing_lists_the_same_choices() {
        for text in [AT_TOP, IN_ENTRY, IN_NAD].map(missing) {
            for name in ["macvlan", "bridge", "routed", "delegate"] {
                assert!(text.contains(name), "{text}");
            }
        }
    }
}

//! The kinds that the command line knows, and the words for them.

use plexus_api::later;
use plexus_api::objects::{GROUP, MULTI_NIC_GROUP, MULTI_NIC_VERSION, VERSION};

/// A kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    /// API group; empty for the core's.
    pub group: &'static str,
    /// Version.
    pub version: &'static str,
    /// As objects write it.
    pub kind: &'static str,
    /// As paths write it.
    pub plural: &'static str,
    /// Other words for it.
    words: &'static [&'static str],
    /// Whether its objects are in namespaces.
    pub namespaced: bool,
}

const KINDS: [Kind; 12] = [
    own("Network", "networks", &["network", "net", "pnet"], true),
    core("Pod", "pods", &["pod", "po"], true),
    own("Block", "blocks", &["block"], false),
    core("Node", "nodes", &["node", "no"], false),
    own(
        "PodAttachments",
        "podattachments",
        &["attachments", "attachment", "patt", "podattachment"],
        true,
    ),
    Kind {
        group: "k8s.cni.cncf.io",
        version: "v1",
        kind: "NetworkAttachmentDefinition",
        plural: "network-attachment-definitions",
        words: &[
            "nads",
            "nad",
            "net-attach-def",
            "net-attach-defs",
            "network-attachment-definition",
        ],
        namespaced: true,
    },
    own(
        "BlockRequest",
        "blockrequests",
        &["blockrequest", "requests"],
        false,
    ),
    core("Namespace", "namespaces", &["namespace", "ns"], false),
    multi_nic("MultiNicNetwork", "multinicnetworks"),
    multi_nic("HostInterface", "hostinterfaces"),
    multi_nic("CIDR", "cidrs"),
    multi_nic("IPPool", "ippools"),
];

const fn multi_nic(kind: &'static str, plural: &'static str) -> Kind {
    plain(MULTI_NIC_GROUP, MULTI_NIC_VERSION, kind, plural, false)
}

const fn own(
    kind: &'static str,
    plural: &'static str,
    words: &'static [&'static str],
    namespaced: bool,
) -> Kind {
    Kind {
        group: GROUP,
        version: VERSION,
        kind,
        plural,
        words,
        namespaced,
    }
}

const fn core(
    kind: &'static str,
    plural: &'static str,
    words: &'static [&'static str],
    namespaced: bool,
) -> Kind {
    Kind {
        group: "",
        version: "v1",
        kind,
        plural,
        words,
        namespaced,
    }
}

/// A kind that only programs list.
pub(crate) const fn plain(
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
    namespaced: bool,
) -> Kind {
    Kind {
        group,
        version,
        kind,
        plural,
        words: &[],
        namespaced,
    }
}

impl Kind {
    /// `plexus.dev/v1alpha1`
    pub fn api_version(&self) -> String {
        match self.group {
            "" => self.version.to_owned(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// `network.plexus.dev/blue`
    pub fn named(&self, name: &str) -> String {
        let kind = self.kind.to_ascii_lowercase();
        match self.group {
            "" => format!("{kind}/{name}"),
            group => format!("{kind}.{group}/{name}"),
        }
    }

    /// Whether later versions serve it.
    pub fn is_later(&self) -> bool {
        later::kind(self.group, self.kind).is_some()
    }
}

/// All, those of later versions last.
pub fn all() -> impl Iterator<Item = Kind> {
    let later = later::KINDS.iter().map(|later| Kind {
        group: later.group,
        version: later.version,
        kind: later.kind,
        plural: later.plural,
        words: &[],
        namespaced: later.namespaced,
    });
    KINDS.into_iter().chain(later)
}

/// The kind that a word means: singular, plural, short, or with its group.
pub fn find(word: &str) -> Result<Kind, String> {
    let lower = word.to_ascii_lowercase();
    let (plain, group) = match lower.split_once('.') {
        Some((plain, group)) => (plain, Some(group)),
        None => (lower.as_str(), None),
    };
    let means = |kind: &Kind| {
        let names = [kind.plural, kind.plural.trim_end_matches('s')];
        let singular = kind.kind.to_ascii_lowercase();
        let named = names.contains(&plain) || kind.words.contains(&plain) || singular == plain;
        named && group.is_none_or(|group| group == kind.group)
    };
    all().find(means).ok_or_else(|| {
        let known: Vec<&str> = all()
            .map(|kind| match kind.kind {
                "PodAttachments" => "attachments",
                "NetworkAttachmentDefinition" => "nads",
                _ => kind.plural,
            })
            .collect();
        let word: String = word.chars().take(64).collect();
        format!(
            "{word:?} is not a kind that is known here: there are {}; for others use kubectl",
            known.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_for_kinds() {
        for (word, kind) in [
            ("networks", "Network"),
            ("Network", "Network"),
            ("networks.plexus.dev", "Network"),
            ("po", "Pod"),
            ("blocks", "Block"),
            ("nodes", "Node"),
            ("attachments", "PodAttachments"),
            ("podattachments", "PodAttachments"),
            ("nads", "NetworkAttachmentDefinition"),
            ("net-attach-def", "NetworkAttachmentDefinition"),
            ("resourceclaims", "ResourceClaim"),
            ("ResourceClaimTemplate", "ResourceClaimTemplate"),
            ("deviceclass", "DeviceClass"),
            ("multinicnetworks", "MultiNicNetwork"),
            ("cniconfig", "CNIConfig"),
            ("hostinterface", "HostInterface"),
            ("cidr", "CIDR"),
        ] {
            assert_eq!(find(word).unwrap().kind, kind, "{word}");
        }
        for word in ["", "service", "networks.example.com", "s", "endpoints"] {
            let error = find(word).unwrap_err();
            assert!(
                error.contains("attachments") && error.contains("kubectl"),
                "{error}"
            );
        }
        assert_eq!(find("networks").unwrap().named("a"), "network.plexus.dev/a");
        assert_eq!(find("pods").unwrap().named("a"), "pod/a");
        assert!(find("cniconfigs").unwrap().is_later() && !find("pods").unwrap().is_later());
    }
}

//! Whose attachments a record in the API tells: a pod's, or, on a machine whose containers are no
//! pods, a container's. Owns how a container's record is named and where it is, and how its
//! interfaces are numbered. From the journal alone, so that it is the same after a restart.

use crate::cluster::PodName;
use crate::journal::{Record, Stored};
use crate::report::view::{View, pod_of, views};
use plexus_api::cni::Args;
use plexus_core::resolve::HOME;
use plexus_types::{ContainerId, Mac};
use std::collections::BTreeMap;

/// Longer than any name that the API takes for part of a host name.
const LONGEST: usize = 253;

/// Whose records are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecordOwners {
    /// Pods': somebody made them in the API.
    Pods,
    /// Containers': the API knows nothing of them but the record.
    Containers,
}

impl RecordOwners {
    /// Whose attachments a record has; none if its networks are not the cluster's, or its pod is not
    /// known.
    pub(crate) fn of(self, record: &Record) -> Option<PodName> {
        record.origins().next()?;
        match self {
            RecordOwners::Pods => {
                let (namespace, name) = pod_of(record)?;
                Some(PodName {
                    namespace: namespace.to_owned(),
                    name: name.to_owned(),
                    uid: record.pod_uid.clone()?,
                    container: false,
                })
            }
            RecordOwners::Containers => {
                let mut namespaces = record.origins().map(|one| one.namespace.as_str());
                let namespace = namespaces.find(|namespace| !namespace.is_empty());
                Some(PodName {
                    namespace: namespace.unwrap_or(HOME).to_owned(),
                    name: name_of(record),
                    uid: record_name(&record.container),
                    container: true,
                })
            }
        }
    }

    /// The attachments of each. A container has a call per network, each of which counts from 0:
    /// here they are counted together, in the order of the interfaces that the runtime named.
    pub(crate) fn views<'s>(
        self,
        stored: impl Iterator<Item = &'s Stored>,
    ) -> Vec<(&'s Stored, Vec<View>)> {
        let mut all: Vec<_> = stored.map(|one| (one, views(one))).collect();
        if self == RecordOwners::Pods {
            return all;
        }
        all.sort_by_key(|(one, _)| {
            let ifname = one.record.ifname.as_str();
            // `eth2` before `eth10`.
            (
                one.record.container.clone(),
                ifname.len(),
                ifname.to_owned(),
            )
        });
        let mut counts: BTreeMap<ContainerId, u32> = BTreeMap::new();
        for (one, views) in &mut all {
            let count = counts.entry(one.record.container.clone()).or_default();
            for view in views {
                view.reference.index = *count;
                *count = count.saturating_add(1);
            }
        }
        for (one, views) in &mut all {
            let total = counts.get(&one.record.container).copied();
            for view in views {
                view.reference.total = total.unwrap_or_default();
            }
        }
        all
    }
}

/// What people call it: the runtime's name for it, if it said one.
fn name_of(record: &Record) -> String {
    let in_pod = pod_of(record).map(|(_, name)| name.to_owned());
    let in_args = || Args::parse(&record.details.args).ok()?.pod_name;
    let short = || record.container.short().to_owned();
    in_pod.or_else(in_args).unwrap_or_else(short)
}

/// The container's id, or what stands for it if the API does not take that as a name.
fn record_name(container: &ContainerId) -> String {
    let id = container.as_str();
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let label = |part: &str| {
        let inner = |byte: u8| plain(byte) || byte == b'-';
        let (first, last) = (part.bytes().next(), part.bytes().last());
        first.is_some_and(plain) && last.is_some_and(plain) && part.bytes().all(inner)
    };
    if id.len() <= LONGEST && id.split('.').all(label) {
        return id.to_owned();
    }
    let bytes = ["a", "b"].map(|salt| Mac::derived(&["record", salt, id]).bytes());
    let hash = bytes.iter().flatten().map(|byte| format!("{byte:02x}"));
    format!("container-{}", hash.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::{AttachmentRecord, BackendRecord, Details, PluginsRecord, State};
    use plexus_core::resolve::Reference;
    use plexus_types::NetnsCookie;

    fn stored(container: &str, ifname: &str, namespaces: &[&str]) -> Stored {
        let reference = |(index, namespace): (usize, &&str)| Reference {
            index: index as u32,
            total: namespaces.len() as u32,
            namespace: (*namespace).to_owned(),
            name: "blue".to_owned(),
            uuid: "u".to_owned(),
            source: String::new(),
            subnets: Vec::new(),
        };
        let attachment = |(index, origin): (usize, Reference)| AttachmentRecord {
            reference: index,
            ordinal: 0,
            network: "blue".parse().unwrap(),
            ifname: format!("{ifname}x{index}").parse().unwrap(),
            origin: Some(origin),
            backend: BackendRecord::Plugins(PluginsRecord {
                version: "1.1.0".to_owned(),
                ipam: false,
                plugins: Vec::new(),
                runtime: Default::default(),
                begun: 1,
                results: Vec::new(),
            }),
        };
        let origins = namespaces.iter().enumerate().map(reference);
        let record = Record {
            container: container.parse().unwrap(),
            ifname: ifname.parse().unwrap(),
            network: "blue".parse().unwrap(),
            pod_uid: None,
            boot: "b".to_owned(),
            cookie: NetnsCookie(1),
            netns: String::new(),
            details: Details {
                args: "IgnoreUnknown=1;K8S_POD_NAME=web".to_owned(),
                ..Details::default()
            },
            attachments: origins.enumerate().map(attachment).collect(),
        };
        Stored {
            record,
            state: State::Done,
            result: None,
        }
    }

    #[test]
    fn a_container_is_where_its_networks_are() {
        let owners = |one: &Stored| RecordOwners::Containers.of(&one.record);
        let named = owners(&stored("0f3a", "eth0", &["team-a"])).unwrap();
        assert_eq!(
            (named.namespace.as_str(), named.name.as_str()),
            ("team-a", "web")
        );
        assert_eq!(named.key(), "team-a/0f3a");
        // The cluster-wide default network is in no namespace.
        let default = owners(&stored("0f3a", "eth0", &[""])).unwrap();
        assert_eq!(default.namespace, "default");
        let pod = owners(&stored("0f3a", "eth0", &["", "team-a", "b"])).unwrap();
        assert_eq!(pod.namespace, "team-a");
        assert_eq!(owners(&stored("0f3a", "eth0", &[])), None);
        assert_eq!(
            RecordOwners::Pods.of(&stored("0f3a", "eth0", &["a"]).record),
            None
        );
    }

    #[test]
    fn any_container_has_a_record_that_the_api_takes() {
        let name = |id: &str| record_name(&id.parse().unwrap());
        assert_eq!(name(&"0f".repeat(32)), "0f".repeat(32));
        assert_eq!(name("cnitool-77.a"), "cnitool-77.a");
        for odd in ["A", "a_b", "a.", "a..b", "a-", "a.-b"] {
            let made = name(odd);
            assert!(made.starts_with("container-"), "{odd}: {made}");
            assert_eq!(made, name(odd));
        }
        assert_ne!(name("A"), name("B"));
    }

    #[test]
    fn the_interfaces_of_a_container_are_counted_together() {
        let all = [
            stored("c1", "eth10", &["a"]),
            stored("c2", "eth0", &["a"]),
            stored("c1", "eth0", &["b"]),
            stored("c1", "eth2", &["a"]),
        ];
        let numbers = |owners: RecordOwners| -> Vec<String> {
            let views = owners.views(all.iter()).into_iter();
            let each = views.flat_map(|(one, views)| {
                let container = one.record.container.to_string();
                views.into_iter().map(move |view| {
                    let reference = &view.reference;
                    format!(
                        "{container} {} {}/{}",
                        view.ifname, reference.index, reference.total
                    )
                })
            });
            each.collect()
        };
        let expected = [
            "c1 eth0x0 0/3",
            "c1 eth2x0 1/3",
            "c1 eth10x0 2/3",
            "c2 eth0x0 0/1",
        ];
        assert_eq!(numbers(RecordOwners::Containers), expected);
        assert_eq!(numbers(RecordOwners::Pods)[0], "c1 eth10x0 0/1");
    }
}

//! Why a NetworkAttachmentDefinition does what it does.

use super::{Answer, Diagnosis, Reason, cluster, reference};
use crate::get;
use crate::snapshot::{ServedBy, Snapshot, find, name, namespace, text, texts};
use plexus_api::cni::{Chain, NetworkBackend, NetworkConfigKind, uncommon_plugins};
use plexus_core::nad_meaning::{self, NadMeaning};
use plexus_core::refusal::Refusal as _;
use plexus_types::chain;
use serde_json::Value;

/// Diagnoses a NAD by what the snapshot has; one that stands for a Network, together with that.
pub fn diagnose_nad(snapshot: &Snapshot, nad: &Value) -> Diagnosis {
    let subject = format!(
        "NetworkAttachmentDefinition {}/{}",
        namespace(nad),
        name(nad)
    );
    let config = nad.pointer("/spec/config").and_then(Value::as_str);
    let mut all = vec![match config.map(NetworkConfigKind::of) {
        None | Some(NetworkConfigKind::Named(_)) => stands_for(snapshot, nad, config),
        Some(kind) => done_by(kind),
    }];
    for event in cluster::warnings(snapshot, nad).into_iter().take(3) {
        let why = format!(
            "{}{}",
            text(event, "/message"),
            cluster::ago(event, snapshot.now)
        );
        let about = format!("event {}", text(event, "/reason"));
        all.push(Answer::waits(Reason::Event, about, why, ""));
    }
    Diagnosis::new(subject, all)
}

/// Diagnoses an object of a kind that later versions serve, by the device classes that the snapshot has.
pub fn diagnose_later(snapshot: &Snapshot, object: &Value) -> Diagnosis {
    let subject = plexus_api::manifest::describe_kind(object);
    let others = || {
        let why = format!("it asks nothing of Plexus: {}", get::OTHERS);
        Answer::good(Reason::Later, "", why)
    };
    let answer = later(snapshot, object, "").unwrap_or_else(others);
    Diagnosis::new(subject, vec![answer])
}

/// What an object of such a kind waits for, or why nobody can tell; none if it is another driver's.
pub(super) fn later(
    snapshot: &Snapshot,
    object: &Value,
    about: impl Into<String>,
) -> Option<Answer> {
    match snapshot.served_by(object) {
        ServedBy::Ours(text) => Some(Answer::waits(Reason::Later, about, text, "")),
        ServedBy::Unclear(why) => {
            let next = "plexus get deviceclasses lists those that are there";
            Some(Answer::waits(Reason::ClassUnknown, about, why, next))
        }
        ServedBy::Others => None,
    }
}

fn done_by(kind: NetworkConfigKind) -> Answer {
    let correct = "correct it; plexus validate shows the line";
    match kind {
        NetworkConfigKind::Unreadable(why) => {
            Answer::wrong(Reason::NadUnreadable, "", why, correct)
        }
        NetworkConfigKind::Invalid(_, why) => Answer::wrong(Reason::NadInvalid, "", why, correct),
        NetworkConfigKind::Waits(_, text) => Answer::waits(Reason::Later, "", text, ""),
        NetworkConfigKind::Named(_) => Answer::good(Reason::NadUsable, "", "names a Network"),
        NetworkConfigKind::MultiNic(_) => Answer::good(
            Reason::NadUsable,
            "",
            "names a MultiNicNetwork: plexus diagnose multinicnetwork says more",
        ),
        NetworkConfigKind::Network(plugins, network) => match network.backend {
            NetworkBackend::Native(native) => {
                let about = format!("type {plugins}");
                let why = format!("done natively, as provider {}", native.provider.name());
                match native.executed_ipam() {
                    Some(ipam) => {
                        let why = format!("{why}, its addresses by executing {}", ipam.name());
                        done_by_plugins(&ipam.chain, about, why)
                    }
                    None => Answer::good(Reason::NadUsable, about, why),
                }
            }
            NetworkBackend::Delegate(chain) => {
                let because = match &chain.unsupported_key {
                    Some(key) => format!(" (because of its key {key:?})"),
                    None => String::new(),
                };
                let why = format!("done by executing {plugins}{because}");
                done_by_plugins(&chain, String::new(), why)
            }
        },
    }
}

fn done_by_plugins(chain: &Chain, about: String, why: String) -> Answer {
    match uncommon_plugins(chain).as_slice() {
        [] => Answer::good(Reason::NadUsable, about, why),
        plugins => Answer::waits(
            Reason::UnknownPlugin,
            about,
            why,
            format!(
                "every node needs {} in its plugin directory",
                plugins.join(", ")
            ),
        ),
    }
}

fn stands_for(snapshot: &Snapshot, nad: &Value, config: Option<&str>) -> Answer {
    let stands_for = reference::of_its_name(snapshot, nad);
    if let Ok(Some(network)) = stands_for {
        let about = format!("Network {}/{}", namespace(network), name(network));
        let state = super::diagnose_network(snapshot, network);
        let worst = state.answers.into_iter().next();
        return match worst {
            Some(answer) => Answer { about, ..answer },
            None => Answer::good(Reason::NadUsable, about, "stands for it"),
        };
    }
    if let Some(why) = snapshot.hidden("networks", None) {
        return super::not_seen("the Network that it stands for", why);
    }
    let reading = nad_meaning::read(&texts(nad, "/metadata/annotations"), Ok(config));
    match reading.meaning {
        NadMeaning::Unclear(why) => Answer::wrong(
            Reason::NadInvalid,
            "",
            why,
            "correct it; plexus validate shows the line",
        ),
        NadMeaning::Network(_) if find(&snapshot.networks, namespace(nad), name(nad)).is_none() => {
            Answer::waits(
                Reason::NadWithoutNetwork,
                "",
                "the controller makes a Network of its name from it, and has not yet",
                cluster::controller(snapshot),
            )
        }
        NadMeaning::Network(_) | NadMeaning::Nothing => {
            let (why, next) = match &stands_for {
                Err(error) => (chain(error), error.remedy()),
                Ok(_) => (
                    "it stands for a Network, and that is not there".to_owned(),
                    "create that Network".into(),
                ),
            };
            Answer::wrong(Reason::NadWithoutNetwork, "", why, next)
        }
    }
}

//! `plexus diagnose`: why a pod or a network is as it is, or what is missing and what to do next.
//! Objects go in, a list of [`Answer`]s comes out; nobody is asked anything.
//!
//! Every kind of answer is a [`Reason`], and each has a test that produces the fault.

mod cluster;
mod multi_nic;
mod nad;
mod network;
mod pod;
mod reference;
#[cfg(test)]
mod tests;

pub use multi_nic::diagnose_multi_nic;
pub use nad::{diagnose_later, diagnose_nad};
pub use network::diagnose_network;
pub use pod::{diagnose_holder, diagnose_pod};

use crate::text::{Paint, Screen};
use serde_json::{Value, json};

/// How an answer counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// It is as it should be.
    Good,
    /// It ends by itself, or when somebody else acts.
    Waits,
    /// Somebody must do something.
    Wrong,
}

crate::listed! {
    /// The kinds of answers.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Reason {
        /// An interface is there.
        Attached,
        /// The pod has the node's interfaces.
        HostNetwork,
        /// The pod has ended.
        Finished,
        /// The pod is being deleted.
        Going,
        /// No node was chosen for it.
        NotScheduled,
        /// Its node is not there any more.
        NodeGone,
        /// Its node does not answer.
        NodeNotReady,
        /// The agent of its node does not run.
        AgentAway,
        /// An annotation cannot be read.
        BadAnnotation,
        /// A NetworkAttachmentDefinition is not there.
        NadMissing,
        /// A NetworkAttachmentDefinition cannot be read.
        NadUnreadable,
        /// Its options are wrong.
        NadInvalid,
        /// It makes a Network, which is not there.
        NadWithoutNetwork,
        /// A NetworkAttachmentDefinition can be used.
        NadUsable,
        /// A plugin that nodes need not have.
        UnknownPlugin,
        /// A Network is not there.
        NetworkMissing,
        /// The controller has not looked at a Network.
        NetworkInitializing,
        /// A Network waits for an external provider.
        ProviderMissing,
        /// A Network waits.
        NetworkPending,
        /// A Network cannot be made.
        NetworkFailed,
        /// A Network is being deleted.
        NetworkTerminating,
        /// A Network can be used.
        NetworkActive,
        /// A Network is not for this namespace.
        NotAllowed,
        /// What is asked of a network cannot be had.
        BadWish,
        /// All references together cannot be had: names that clash, a default route to nowhere.
        BadTogether,
        /// No address is free for it.
        NoAddresses,
        /// Nodes ask each other for addresses.
        Asking,
        /// A subnet is shared with somebody else.
        SubnetConflict,
        /// A Network does not follow its NetworkAttachmentDefinition.
        NadDiffers,
        /// A Network has no subnets though its provider needs them.
        NoSubnets,
        /// A kind, a claim or a plugin that later versions serve.
        Later,
        /// Whose a claim is cannot be told: its DeviceClass is not there, or not shown.
        ClassUnknown,
        /// A claim that the pod names is not there.
        ClaimMissing,
        /// Its node is a machine of `plexus up`, where nobody runs Pods.
        NobodyRunsPods,
        /// The runtime could not make the pod's sandbox.
        SandboxFailed,
        /// Its containers wait for something else than networks.
        ContainersWait,
        /// What it has is not what its annotations ask for.
        Changed,
        /// It runs, but nobody has written down what it has.
        NoRecord,
        /// The server does not show us what would tell.
        NotSeen,
        /// Nothing is missing, it just is not there yet.
        Starting,
        /// Somebody has said something about it.
        Event,
    }
}

impl Reason {
    /// In a word, for programs.
    pub fn word(self) -> String {
        let name = format!("{self:?}");
        let mut word = String::new();
        for (i, letter) in name.chars().enumerate() {
            if letter.is_ascii_uppercase() && i > 0 {
                word.push('-');
            }
            word.push(letter.to_ascii_lowercase());
        }
        word
    }
}

/// One answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Its kind.
    pub reason: Reason,
    /// How it counts.
    pub state: State,
    /// What it is about: an interface, a network, the node.
    pub about: String,
    /// The reason, as a sentence.
    pub why: String,
    /// What to do next; empty if nothing needs doing.
    pub next: String,
}

impl Answer {
    /// It is as it should be.
    pub(crate) fn good(reason: Reason, about: impl Into<String>, why: impl Into<String>) -> Self {
        Self::of(State::Good, reason, about, why, "")
    }

    /// It ends by itself, or when somebody else acts.
    pub(crate) fn waits(
        reason: Reason,
        about: impl Into<String>,
        why: impl Into<String>,
        next: impl Into<String>,
    ) -> Self {
        Self::of(State::Waits, reason, about, why, next)
    }

    /// Somebody must do something.
    pub(crate) fn wrong(
        reason: Reason,
        about: impl Into<String>,
        why: impl Into<String>,
        next: impl Into<String>,
    ) -> Self {
        Self::of(State::Wrong, reason, about, why, next)
    }

    fn of(
        state: State,
        reason: Reason,
        about: impl Into<String>,
        why: impl Into<String>,
        next: impl Into<String>,
    ) -> Self {
        Self {
            reason,
            state,
            about: about.into(),
            why: why.into(),
            next: next.into(),
        }
    }
}

/// What the server does not show us, by its word.
fn not_seen(about: impl Into<String>, why: &str) -> Answer {
    let next = "nothing can be told about it before that";
    Answer::waits(Reason::NotSeen, about, why, next)
}

/// All answers about one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnosis {
    /// The object.
    pub subject: String,
    /// The answers, what is wrong first.
    pub answers: Vec<Answer>,
}

impl Diagnosis {
    fn new(subject: String, mut answers: Vec<Answer>) -> Self {
        answers.sort_by_key(|answer| std::cmp::Reverse(answer.state));
        Self { subject, answers }
    }

    /// The worst of the answers.
    pub fn state(&self) -> State {
        let states = self.answers.iter().map(|answer| answer.state);
        states.max().unwrap_or(State::Good)
    }

    /// For people.
    pub fn render(&self, screen: Screen) -> String {
        let (word, paint) = label(self.state(), true);
        let mut out = format!(
            "{}: {}\n",
            screen.paint(Paint::Strong, &self.subject),
            screen.paint(paint, word)
        );
        for answer in &self.answers {
            let (word, paint) = label(answer.state, false);
            let head = format!(
                "{}{}",
                screen.paint(paint, word),
                " ".repeat(7 - word.len())
            );
            let text = match answer.about.as_str() {
                "" => answer.why.clone(),
                about => format!("{about}: {}", answer.why),
            };
            out.push_str(&screen.wrapped(&head, 7, &text));
            if !answer.next.is_empty() {
                let head = format!("       {} ", screen.paint(Paint::Strong, "next:"));
                out.push_str(&screen.wrapped(&head, 13, &answer.next));
            }
        }
        out
    }

    /// For programs.
    pub fn to_json(&self) -> Value {
        let each = self.answers.iter().map(|answer| {
            json!({
                "kind": answer.reason.word(), "state": label(answer.state, false).0,
                "about": answer.about, "why": answer.why, "next": answer.next,
            })
        });
        json!({
            "subject": self.subject, "state": label(self.state(), false).0,
            "answers": each.collect::<Vec<_>>(),
        })
    }
}

fn label(state: State, whole: bool) -> (&'static str, Paint) {
    match (state, whole) {
        (State::Good, true) => ("as it should be", Paint::Good),
        (State::Waits, true) => ("it waits", Paint::Warn),
        (State::Wrong, true) => ("something must be done", Paint::Bad),
        (State::Good, false) => ("ok", Paint::Good),
        (State::Waits, false) => ("waits", Paint::Warn),
        (State::Wrong, false) => ("wrong", Paint::Bad),
    }
}

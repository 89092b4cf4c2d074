//! Why things are as they are, each reason made to happen on a lab, and asked for by `plexus diagnose`. What a
//! lab cannot have is made to happen elsewhere, and listed here; nothing is left out.

mod away;
mod networks;
mod pods;

use crate::claims;
use crate::machine::Lab;
use crate::output::json;
use plexus_cli::diagnose::Reason;
use plexus_testkit::answers;
use serde_json::Value;
use std::cell::RefCell;
use std::collections::BTreeSet;

/// The kinds of answers that the tests on labs produce; each of these tests checks its own list.
const ON_LABS: [&[Reason]; 4] = [
    pods::LEADS_TO,
    networks::LEADS_TO,
    away::LEADS_TO,
    claims::LEADS_TO,
];

#[test]
fn every_kind_of_answer_is_made_to_happen() {
    let on_labs = ON_LABS.iter().flat_map(|some| some.iter());
    let on_labs = on_labs.map(|reason| reason.word());
    let elsewhere = [answers::ON_A_CLUSTER, answers::ON_UP].concat();
    let produced: BTreeSet<String> = on_labs
        .chain(elsewhere.into_iter().map(str::to_owned))
        .collect();
    let all: BTreeSet<String> = Reason::ALL.iter().map(|reason| reason.word()).collect();
    assert_eq!(produced, all);
}

/// A lab on which faults are made, and what `diagnose` must have said of them in the end.
pub(crate) struct FaultyLab {
    pub(crate) lab: Lab,
    leads_to: &'static [Reason],
    output: RefCell<BTreeSet<Reason>>,
}

impl FaultyLab {
    pub(crate) fn up(letter: char, nodes: u8, leads_to: &'static [Reason]) -> Self {
        Self {
            lab: Lab::up(letter, nodes),
            leads_to,
            output: RefCell::default(),
        }
    }

    /// `plexus apply`, whatever this program thinks of it.
    #[track_caller]
    fn apply(&self, yaml: &str) {
        self.lab.apply_by(&["--skip-validation"], yaml);
    }

    /// A Network of namespace `default`.
    fn network(&self, name: &str, spec: &str) {
        self.apply(&format!(
            "{{apiVersion: plexus.dev/v1alpha1, kind: Network, \
             metadata: {{name: {name}, namespace: default}}, spec: {spec}}}\n"
        ));
    }

    /// A NetworkAttachmentDefinition there, with annotations.
    fn nad(&self, name: &str, annotations: &str, config: &str) {
        self.apply(&format!(
            "{{apiVersion: k8s.cni.cncf.io/v1, kind: NetworkAttachmentDefinition, \
             metadata: {{name: {name}, namespace: default, annotations: {annotations}}}, \
             spec: {{config: '{config}'}}}}\n"
        ));
    }

    /// A Pod there, with one annotation.
    fn pod(&self, name: &str, node: &str, annotation: &str, networks: &str) {
        self.apply(&format!(
            "apiVersion: v1\nkind: Pod\n\
             metadata: {{name: {name}, namespace: default, annotations: {{{annotation}: '{networks}'}}}}\n\
             spec: {{nodeName: {node}, containers: [{{name: a, image: busybox}}]}}\n"
        ));
    }

    /// The answers about an object are of that kind and state, sooner or later; every one that is not ok
    /// says what to do, or waits for somebody else. Gives all of them.
    #[track_caller]
    pub(crate) fn comes_to(&self, about: &[&str], reason: Reason, state: &str) -> Value {
        let words = [&["diagnose"], about, &["-o", "json"]].concat();
        let kind = reason.word();
        let mut last = Value::Null;
        let fits = |answer: &Value| answer["kind"] == kind.as_str() && answer["state"] == state;
        let what = format!("{about:?}: {kind} {state}");
        self.lab.eventually(&what, || {
            last = json(&self.lab, &words);
            last["answers"].as_array().unwrap().iter().any(fits)
        });
        for answer in last["answers"].as_array().unwrap() {
            let is_reported = answer["next"] != "" || answer["state"] != "wrong";
            assert!(is_reported && answer["why"] != "", "{answer:#}");
        }
        self.output.borrow_mut().insert(reason);
        last
    }

    /// Nothing that it was to lead to is missing.
    #[track_caller]
    pub(crate) fn end(self) {
        let leads_to: BTreeSet<Reason> = self.leads_to.iter().copied().collect();
        assert_eq!(*self.output.borrow(), leads_to);
    }
}

const NETWORKS: &str = "plexus.dev/networks";
const NADS: &str = "k8s.v1.cni.cncf.io/networks";

//! Annotations of pods and of definitions.

use super::{refused, sized, target};
use crate::cni::{DefaultGw, FqName};
use crate::nad::{CIDR, Contrail, FORWARDING, SNAT};
use crate::pod::{
    CONTRAIL_NETWORK, DEFAULT_GW, MAX_NETWORKS, NetworkSelection, contrail_networks, default_gw,
    default_network, misspelt, networks, plexus_networks,
};
use crate::{Problems, literal};
use plexus_fuzz::{Kind, bounded};
use serde_json::json;
use std::collections::BTreeMap;

const WORDS: &[&str] = &[
    "name",
    "namespace",
    "interface",
    "interfaceRequest",
    "ips",
    "mac",
    "infiniband-guid",
    "portMappings",
    "hostPort",
    "containerPort",
    "protocol",
    "tcp",
    "hostIP",
    "bandwidth",
    "ingressRate",
    "ingressBurst",
    "egressRate",
    "egressBurst",
    "cni-args",
    "default-route",
    "ipam-claim-reference",
    "deviceID",
    "a.b/c",
    "net-a",
    "team-a/blue",
    "blue@eth1",
    "10.0.0.5",
    "10.0.0.5/24",
    "fd00::5/64",
    "02:00:00:00:00:01",
    "c2:11:22:33:44:55:66:77",
    ",",
    "@",
    "/",
    "domain",
    "project",
    "default-domain",
    "default-project",
    "4",
    "6",
    "True",
    "None",
    "'",
    "u'",
    "[",
    "{",
    "\"",
    "\\",
    "\u{201c}",
];

#[test]
fn selections() {
    target("selections", Kind::Json)
        .words(WORDS)
        .inputs(300)
        .run(|input| {
            let text = String::from_utf8_lossy(input);
            let ours = plexus_networks(&text, "here");
            let one = default_network(&text, "here");
            for problems in [ours.as_ref().err(), one.as_ref().err()]
                .into_iter()
                .flatten()
            {
                refused(problems);
            }
            match networks(&text, "here") {
                Ok(found) => {
                    assert!(found.len() <= MAX_NETWORKS);
                    assert_eq!(
                        ours.as_ref(),
                        Ok(&found),
                        "ours takes whatever the Working Group's does"
                    );
                    assert_eq!(one.is_ok(), found.len() == 1);
                    for one in &found {
                        sized(&format!("{one:?} {:?}", one.runtime_config()), input);
                        named_again(one);
                    }
                    let keys = found
                        .iter()
                        .map(|one| one.runtime_config().keys().cloned().collect());
                    let keys: Vec<Vec<String>> = keys.take(3).collect();
                    format!("{keys:?}").replace('"', "'")
                }
                Err(problems) => refused(&problems),
            }
        });
}

/// What it names is the same when it is written in the short form.
fn named_again(one: &NetworkSelection) {
    let interface = one.interface.as_ref().map(|name| format!("@{name}"));
    let text = format!(
        "{}/{}{}",
        one.namespace,
        one.name,
        interface.unwrap_or_default()
    );
    let plain = NetworkSelection {
        interface: one.interface.clone(),
        ..NetworkSelection::named(&one.namespace, &one.name)
    };
    assert_eq!(networks(&text, "elsewhere"), Ok(vec![plain]), "{text}");
}

#[test]
fn contrail() {
    target("contrail", Kind::Json).words(WORDS).inputs(300).run(|input| {
        let text = String::from_utf8_lossy(input);
        match literal::read(&text) {
            // Not compared: a number with a fraction may be another one in its last digit.
            Ok(value) => assert!(literal::read(&value.to_string()).is_ok()),
            Err(why) => bounded("a cause", &why, 400),
        }
        let annotations = BTreeMap::from([(CONTRAIL_NETWORK.to_owned(), text.clone().into_owned())]);
        let of_nad = Contrail::read(&annotations);
        match contrail_networks(&text) {
            Ok(names) => {
                assert!(names.len() <= MAX_NETWORKS);
                assert_eq!(of_nad.is_ok(), names.len() == 1, "{of_nad:?}");
                let one = |name: &FqName| json!({"domain": "default-domain", "project": name.project, "name": name.name});
                let written: Vec<_> = names.iter().map(one).collect();
                assert_eq!(contrail_networks(&json!(written).to_string()), Ok(names));
                format!("{} names", written.len().min(3))
            }
            Err(problems) => {
                assert!(of_nad.is_err());
                refused(&problems)
            }
        }
    });
}

#[test]
fn default_gateway() {
    target("default_gateway", Kind::Json)
        .words(WORDS)
        .inputs(300)
        .run(|input| match default_gw(&String::from_utf8_lossy(input)) {
            Ok(DefaultGw { v4, v6 }) => {
                let names = [("4", &v4), ("6", &v6)].into_iter();
                let names: BTreeMap<_, _> = names
                    .filter_map(|(key, name)| Some((key, name.as_ref()?)))
                    .collect();
                let again = default_gw(&json!(names).to_string());
                let same = DefaultGw {
                    v4: v4.clone(),
                    v6: v6.clone(),
                };
                assert!(
                    names.is_empty() || again == Ok(same),
                    "{names:?}: {again:?}"
                );
                format!("{} {}", v4.is_some(), v6.is_some())
            }
            Err(problems) => {
                let named = |problems: &Problems| {
                    problems.0.iter().all(|one| one.path.contains(DEFAULT_GW))
                };
                assert!(named(&problems), "{problems}");
                refused(&problems)
            }
        });
}

/// The first line is the key, the rest its text.
#[test]
fn definition_annotations() {
    const KEYS: &[&str] = &[
        CIDR,
        SNAT,
        FORWARDING,
        CONTRAIL_NETWORK,
        DEFAULT_GW,
        "true",
        "FALSE",
        "10.1.1.0/24",
        "fd00::/64",
        "'",
        "\"",
        "[",
        "]",
        ",",
        "\u{201c}10.0.0.0/8\u{201d}",
    ];
    target("definition_annotations", Kind::Bytes)
        .words(KEYS)
        .inputs(600)
        .run(|input| {
            let text = String::from_utf8_lossy(input);
            let (key, value) = text.split_once('\n').unwrap_or((&text, ""));
            let near = misspelt(key).is_some();
            let annotations = BTreeMap::from([(key.to_owned(), value.trim_end().to_owned())]);
            match Contrail::read(&annotations) {
                Ok(read) => {
                    sized(&format!("{read:?}"), input);
                    read.warnings
                        .iter()
                        .for_each(|warning| bounded("a warning", warning, 400));
                    let written: Vec<String> = read.cidrs.iter().map(ToString::to_string).collect();
                    let again = BTreeMap::from([(CIDR.to_owned(), written.join(", "))]);
                    let again = Contrail::read(&again).map(|again| again.cidrs);
                    assert!(
                        written.is_empty() || again == Ok(read.cidrs.clone()),
                        "{again:?}"
                    );
                    let spec = read.spec();
                    assert_eq!(spec.subnets.len(), read.cidrs.len());
                    let Contrail {
                        snat,
                        forwarding,
                        warnings,
                        ..
                    } = read;
                    format!(
                        "{} {snat} {forwarding} {} {near}",
                        written.len().min(2),
                        warnings.len()
                    )
                }
                Err(problems) => refused(&problems),
            }
        });
}

//! What a NetworkAttachmentDefinition means to Plexus: a Network of its own, or nothing. Its annotations
//! and its configuration alone decide; the controller reads them for a cluster, the command line for files.

use plexus_api::nad::{self, Contrail};
use plexus_api::objects::NetworkSpec;
use plexus_api::pod::CONTRAIL_NETWORK;
use std::collections::BTreeMap;

/// What a NAD means.
#[derive(Debug, Clone, PartialEq)]
pub enum NadMeaning {
    /// A Network of its namespace and name.
    Network(Box<NetworkSpec>),
    /// Nothing: another plugin's, a reference to a network that is there, or no configuration.
    Nothing,
    /// It cannot be understood, and why.
    Unclear(String),
}

/// A NAD, understood.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// What it means.
    pub meaning: NadMeaning,
    /// What its author should know all the same.
    pub warnings: Vec<String>,
}

/// Reads `spec.config` and the annotations.
pub fn read(annotations: &BTreeMap<String, String>, config: Result<Option<&str>, &str>) -> Reading {
    let just = |meaning| Reading {
        meaning,
        warnings: Vec::new(),
    };
    let text = match config {
        Ok(Some(text)) => text,
        Ok(None) => return just(NadMeaning::Nothing),
        Err(error) => return just(NadMeaning::Unclear(error.to_owned())),
    };
    let (config, mut warnings) = match nad::config(text) {
        Ok(read) => read,
        Err(problems) => return just(NadMeaning::Unclear(problems.to_string())),
    };
    if !nad::is_named(&config) {
        return Reading {
            meaning: NadMeaning::Nothing,
            warnings,
        };
    }
    let meaning = match (nad::named(&config), Contrail::read(annotations)) {
        (Ok(named), Ok(mut contrail)) => {
            warnings.append(&mut contrail.warnings);
            meaning_of(named.is_some(), contrail)
        }
        (named, contrail) => {
            let problems = [named.err(), contrail.err()].into_iter().flatten();
            let problems: Vec<String> = problems.map(|p| p.to_string()).collect();
            NadMeaning::Unclear(problems.join("; "))
        }
    };
    Reading { meaning, warnings }
}

fn meaning_of(refers: bool, contrail: Contrail) -> NadMeaning {
    if refers || contrail.network.is_some() {
        return if contrail.cidrs.is_empty() {
            NadMeaning::Nothing
        } else {
            NadMeaning::Unclear(format!(
                "it both refers to a network that is there ({CONTRAIL_NETWORK}) and asks for one of its own ({}): remove one",
                nad::CIDR
            ))
        };
    }
    if contrail.cidrs.is_empty() && !contrail.snat && !contrail.forwarding {
        return NadMeaning::Nothing;
    }
    NadMeaning::Network(Box::new(contrail.spec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(contrail: Contrail) -> NetworkSpec {
        match meaning_of(false, contrail) {
            NadMeaning::Network(spec) => *spec,
            other => panic!("{other:?}"),
        }
    }

    fn contrail(cidrs: &[&str], snat: bool, forwarding: bool) -> Contrail {
        Contrail {
            cidrs: cidrs.iter().map(|cidr| cidr.parse().unwrap()).collect(),
            snat,
            forwarding,
            ..Contrail::default()
        }
    }

    #[test]
    fn flags_choose_the_provider_and_forwarding_wins() {
        let plain = spec(contrail(&["10.1.1.0/24", "fd00:1::/64"], false, false));
        assert_eq!(plain.provider_name(), "overlay");
        assert!(!plain.snat && plain.source_check);
        let cidrs = plain.subnets.values().map(|subnet| subnet.cidr.to_string());
        assert_eq!(cidrs.collect::<Vec<_>>(), ["10.1.1.0/24", "fd00:1::/64"]);
        let snat = spec(contrail(&["10.1.1.0/24"], true, false));
        assert_eq!((snat.provider_name(), snat.snat), ("overlay", true));
        let both = spec(contrail(&["10.1.1.0/24"], true, true));
        assert_eq!((both.provider_name(), both.snat), ("routed", false));
    }

    #[test]
    fn no_annotation_makes_no_network() {
        assert_eq!(meaning_of(false, Contrail::default()), NadMeaning::Nothing);
        assert_eq!(meaning_of(true, Contrail::default()), NadMeaning::Nothing);
        assert!(matches!(
            meaning_of(true, contrail(&["10.0.0.0/24"], false, false)),
            NadMeaning::Unclear(_)
        ));
        assert_eq!(
            read(&BTreeMap::new(), Ok(None)).meaning,
            NadMeaning::Nothing
        );
        let not_text = read(&BTreeMap::new(), Err("spec.config is not text"));
        assert_eq!(
            not_text.meaning,
            NadMeaning::Unclear("spec.config is not text".into())
        );
    }
}

//! Mutated answers of plugins: results, errors, versions.

use super::error::excerpt;
use super::run::read_outcome;
use super::version::Spoken;
use crate::fuzz;
use plexus_api::cni::{Error, Executable, Outcome, Version};
use plexus_fuzz::{Kind, bounded};
use serde_json::Value;

const WORDS: &[&str] = &[
    "cniVersion",
    "interfaces",
    "name",
    "mac",
    "sandbox",
    "ips",
    "address",
    "gateway",
    "interface",
    "version",
    "routes",
    "dst",
    "gw",
    "dns",
    "nameservers",
    "code",
    "msg",
    "details",
    "supportedVersions",
    "0.3.1",
    "0.4.0",
    "1.0.0",
    "1.1.0",
    "10.0.0.5/24",
    "fd00::5/64",
    "0.0.0.0/0",
];

#[test]
fn answer() {
    fuzz::target("answer", Kind::Json)
        .words(WORDS)
        .run(|input| {
            let text = String::from_utf8_lossy(input);
            bounded("an excerpt", &excerpt(input), 4 * 502);
            if let Some(error) = Error::from_json(&text) {
                assert!(error.msg.len() + error.details.len() <= text.len());
            }
            let mut came_to = Vec::new();
            for executable in [Executable::Type, Executable::IpamType] {
                match read_outcome(executable, &text, Version::V1_0_0) {
                    Ok(outcome) => {
                        let ipam = executable == Executable::IpamType;
                        assert!(
                            !ipam || outcome.interfaces.is_empty(),
                            "an IPAM plugin made a link"
                        );
                        let written: Value =
                            serde_json::from_str(&outcome.to_json(Version::V1_1_0)).unwrap();
                        assert_eq!(Outcome::from_value(&written).as_ref(), Ok(&outcome));
                        came_to.push(format!(
                            "{} {}",
                            outcome.ips.len().min(2),
                            outcome.routes.len().min(2)
                        ));
                    }
                    Err(cause) => {
                        let why = cause.to_string();
                        bounded("a cause", &why, 12_000 + text.len());
                        came_to.push(why);
                    }
                }
            }
            came_to.join("; ")
        });
}

#[test]
fn versions() {
    fuzz::target("versions", Kind::Json)
        .words(WORDS)
        .run(
            |input| match Spoken::parse(&String::from_utf8_lossy(input)) {
                Ok(spoken) => {
                    let chosen = Version::ALL.map(|wanted| spoken.choose(wanted));
                    for (wanted, chosen) in Version::ALL.into_iter().zip(chosen) {
                        let says = |version: Version| {
                            spoken
                                .all
                                .iter()
                                .any(|text| Version::parse(text) == Some(version))
                        };
                        assert!(chosen.is_none_or(says), "a version that it does not speak");
                        assert!(
                            !says(wanted) || chosen == Some(wanted),
                            "another one than was wanted"
                        );
                    }
                    format!("{chosen:?}")
                }
                Err(why) => {
                    bounded("a cause", &why, 4 * 502);
                    why
                }
            },
        );
}

//! What this kernel can do, tried for real in a namespace that is thrown away.

use super::{Check, Subject, Verdict};
use plexus_api::cni::{Provider, ProviderKind};
use plexus_kernel::{Feature, probe};

pub(super) fn check() -> Vec<Check> {
    let features = probe();
    judge(features.iter())
}

/// Each feature, with the reason if it is missing.
pub(super) fn judge<'a>(features: impl Iterator<Item = (Feature, Option<&'a str>)>) -> Vec<Check> {
    let mut checks = Vec::new();
    let mut there = Vec::new();
    for (feature, missing) in features {
        let Some(why) = missing else {
            there.push(feature.name());
            continue;
        };
        let (verdict, needed) = needed_by(feature);
        let found = format!("{why}; {needed}");
        let next = match feature {
            Feature::NetnsCookie => "use a kernel of 5.14 or later".to_owned(),
            Feature::RouterNetns => {
                "run on the host, or in a privileged container with /run shared".to_owned()
            }
            Feature::Masquerade => "modprobe -a nf_tables nft_chain_nat nft_masq".to_owned(),
            Feature::Vlan => "modprobe 8021q; else use a kernel that has it".to_owned(),
            link => format!("modprobe {}; else use a kernel that has it", link.name()),
        };
        checks.push(Check::of(verdict, Subject::of(feature), found, next));
    }
    checks.push(match there.is_empty() {
        false => Check::pass(Subject::Kernel, format!("has {}", there.join(", "))),
        true => Check::fail(
            Subject::Kernel,
            "has nothing that networks are made of, as far as can be seen from here",
            "run as root on the host: a sandbox hides or refuses all of it",
        ),
    });
    checks
}

pub(super) fn needed_by(feature: Feature) -> (Verdict, String) {
    let (verdict, text) = match feature {
        Feature::Veth => {
            let others = names(|kind| !kind.needs.contains(&feature));
            return (
                Verdict::Fail,
                format!("every network but {others} needs it"),
            );
        }
        Feature::NetnsCookie => (Verdict::Fail, "namespaces are told apart by it"),
        Feature::Bridge | Feature::Macvlan | Feature::Ipvlan | Feature::Vlan => {
            let text = match names(|kind| kind.needs.contains(&feature)) {
                none if none.is_empty() => format!("the plugin {feature} cannot work"),
                providers => format!("networks of provider {providers} are refused"),
            };
            return (Verdict::Warn, text);
        }
        Feature::Vxlan => (Verdict::Warn, "overlay networks are refused"),
        Feature::RouterNetns => (Verdict::Warn, "overlay networks are refused"),
        Feature::Vrf => (
            Verdict::Warn,
            "the plugin vrf cannot work; Plexus does without",
        ),
        Feature::Dummy => (Verdict::Warn, "the plugin dummy cannot work"),
        Feature::Masquerade => (Verdict::Warn, "networks with SNAT or ipMasq are refused"),
    };
    (verdict, text.to_owned())
}

/// Those of the providers that fit.
fn names(fits: impl Fn(&ProviderKind) -> bool) -> String {
    let kinds = Provider::KINDS.iter().filter(|kind| fits(kind));
    kinds.map(|kind| kind.name).collect::<Vec<_>>().join(", ")
}

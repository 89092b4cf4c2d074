//! IPAM by a plugin that is executed: what it answers becomes the addresses of a link that we make.

use super::AllocateError;
use super::allocator::Allocator;
use crate::attachment::{Assigned, AssignedIp};
use crate::plan::is_main_default;
use plexus_api::cni::{ExecutedIpam, Outcome, RouteConf};
use plexus_types::Family;

/// Nothing is known, and nothing chosen, before the plugin is executed.
impl Allocator for ExecutedIpam {}

/// What the plugin answered, with the routes that were asked for beside: those of families that it gave addresses
/// of. A default route that was asked for replaces the plugin's. An answer without addresses is refused.
pub fn assigned_executed(ipam: &ExecutedIpam, answer: &Outcome) -> Result<Assigned, AllocateError> {
    if answer.ips.is_empty() {
        return Err(AllocateError::NoneAnswered(ipam.name().to_owned()));
    }
    let ips = answer.ips.iter().map(|ip| AssignedIp {
        address: ip.address,
        gateway: ip.gateway,
    });
    let has = |family| {
        let mut ips = answer.ips.iter();
        ips.any(|ip| Family::of(ip.address.addr()) == family)
    };
    let added = ipam.routes.iter();
    let added: Vec<&RouteConf> = added
        .filter(|route| has(Family::of(route.dst.addr())))
        .collect();
    let replaced = |route: &RouteConf| {
        let is_other = |family| added.iter().any(|one| is_main_default(one, family));
        let mut families = Family::ALL.into_iter();
        families.any(|family| is_main_default(route, family) && is_other(family))
    };
    let own = answer.routes.iter().filter(|route| !replaced(route));
    Ok(Assigned {
        ips: ips.collect(),
        routes: own.chain(added.iter().copied()).cloned().collect(),
        dns: answer.dns.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use plexus_api::cni::{Chain, Executable, Version};
    use serde_json::{Value, json};

    fn ipam(routes: &[RouteConf]) -> ExecutedIpam {
        let plugin = json!({"type": "macvlan", "ipam": {"type": "whereabouts"}});
        ExecutedIpam {
            chain: Chain {
                executable: Executable::IpamType,
                version: Version::V1_0_0,
                plugins: plugin.as_object().cloned().into_iter().collect(),
                unsupported_key: None,
            },
            routes: routes.to_vec(),
        }
    }

    fn answer(value: Value) -> Outcome {
        Outcome::from_value(&value).unwrap()
    }

    fn routes(value: Value) -> Vec<RouteConf> {
        answer(json!({"cniVersion": "1.0.0", "routes": value})).routes
    }

    #[test]
    fn an_answer_becomes_addresses() {
        let answer = answer(json!({"cniVersion": "1.0.0",
            "ips": [{"address": "10.0.0.5/24", "gateway": "10.0.0.1"}, {"address": "fd00::5/64"}],
            "routes": [{"dst": "10.9.0.0/16"}], "dns": {"nameservers": ["10.0.0.2"]}}));
        let assigned = assigned_executed(&ipam(&[]), &answer).unwrap();
        let ips: Vec<String> = assigned
            .ips
            .iter()
            .map(|ip| ip.address.to_string())
            .collect();
        assert_eq!(ips, ["10.0.0.5/24", "fd00::5/64"]);
        assert_eq!(assigned.ips[0].gateway, Some("10.0.0.1".parse().unwrap()));
        assert_eq!(assigned.routes, answer.routes);
        assert_eq!(assigned.dns, answer.dns);
    }

    #[test]
    fn no_addresses_are_refused() {
        let answer = answer(json!({"cniVersion": "1.0.0", "routes": [{"dst": "10.9.0.0/16"}]}));
        let error = assigned_executed(&ipam(&[]), &answer).unwrap_err();
        assert!(error.to_string().contains("whereabouts"), "{error}");
    }

    #[test]
    fn a_default_route_that_is_asked_for_replaces_the_plugins() {
        let asked = routes(json!([{"dst": "0.0.0.0/0", "gw": "10.0.0.254"}]));
        let answer = answer(
            json!({"cniVersion": "1.0.0", "ips": [{"address": "10.0.0.5/24"}],
            "routes": [{"dst": "0.0.0.0/0", "gw": "10.0.0.1"}, {"dst": "::/0"}, {"dst": "10.9.0.0/16"}]}),
        );
        let assigned = assigned_executed(&ipam(&asked), &answer).unwrap();
        let expected = routes(json!([{"dst": "::/0"}, {"dst": "10.9.0.0/16"},
            {"dst": "0.0.0.0/0", "gw": "10.0.0.254"}]));
        assert_eq!(assigned.routes, expected);
    }

    #[test]
    fn a_route_of_a_family_without_addresses_is_left_out() {
        let asked = routes(json!([{"dst": "fd00:1::/64"}, {"dst": "10.8.0.0/16"}]));
        let answer = answer(json!({"cniVersion": "1.0.0", "ips": [{"address": "10.0.0.5/24"}]}));
        let assigned = assigned_executed(&ipam(&asked), &answer).unwrap();
        assert_eq!(assigned.routes, asked[1..]);
    }
}

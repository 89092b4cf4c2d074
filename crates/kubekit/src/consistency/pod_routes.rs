//! Where a pod's interfaces lead: the routes and rules that its record has, and those of the kernel.
//!
//! Of an interface that plugins made, the record has what they told, which may be less than they did. So only
//! routes and rules with our mark must all be in the record.

use super::observed::{PodRoutes, list, string};
use ipnet::IpNet;
use serde_json::Value;
use std::collections::BTreeSet;
use std::net::IpAddr;

/// Our mark on routes.
const PROTOCOL: &str = "80";
/// Our mark on rules: their priority.
const RULES: u64 = 5080;

/// Destination, next hop, table.
#[derive(Debug, PartialEq, Eq)]
struct Route {
    to: String,
    via: Option<String>,
    table: String,
}

/// What the record of a pod says, against the pod's namespace.
pub(super) fn compare(record: &Value, pod_routes: &PodRoutes, report: &mut dyn FnMut(String)) {
    let attachments = list(&record["status"]["attachments"]);
    for one in attachments {
        routes(one, pod_routes, report);
    }
    let texts = attachments.iter().flat_map(|one| list(&one["rules"]));
    let recorded: BTreeSet<String> = texts.map(string).collect();
    let real: BTreeSet<String> = pod_routes.rules.iter().filter_map(rule).collect();
    let left_out: u64 = attachments
        .iter()
        .filter_map(|one| one["rulesLeftOut"].as_u64())
        .sum();
    let counted = recorded.len() as u64 + left_out;
    if !recorded.is_subset(&real) || counted != real.len() as u64 {
        report(format!(
            "its record has rules {recorded:?} and {left_out} more, it has {real:?}"
        ));
    }
}

fn routes(attachment: &Value, pod_routes: &PodRoutes, report: &mut dyn FnMut(String)) {
    let interface = string(&attachment["interface"]);
    let through = pod_routes.routes.iter();
    let is_unicast = |route: &Value| route["type"].is_null();
    let through = through.filter(|route| route["dev"] == interface.as_str() && is_unicast(route));
    let (ours, others): (Vec<&Value>, Vec<&Value>) =
        through.partition(|route| route["protocol"] == PROTOCOL);
    let texts = list(&attachment["routes"]).iter();
    let recorded: Vec<Route> = texts
        .filter_map(|text| parse_route(text.as_str()?))
        .collect();
    let [ours, others]: [Vec<Route>; 2] =
        [ours, others].map(|all| all.into_iter().map(of_kernel).collect());
    for route in &recorded {
        if !ours.contains(route) && !others.contains(route) {
            report(format!(
                "its record has {route:?} by {interface}, which it has not"
            ));
        }
    }
    let missing = ours.iter().filter(|route| !recorded.contains(route));
    let missing: Vec<&Route> = missing.collect();
    // Some of those that are left out may be others' routes, as plugins told them.
    let left_out = attachment["routesLeftOut"].as_u64().unwrap_or_default();
    if missing.len() as u64 > left_out {
        report(format!(
            "it has {missing:?} by {interface}, which its record has not ({left_out} left out)"
        ));
    }
}

/// `10.1.0.0/16 via 169.254.1.1 table 101 onlink`
fn parse_route(text: &str) -> Option<Route> {
    let words: Vec<&str> = text.split(' ').collect();
    let after = |word: &str| {
        let at = words.iter().position(|found| *found == word)?;
        words.get(at + 1).map(|found| (*found).to_owned())
    };
    Some(Route {
        to: destination(words.first()?),
        via: after("via"),
        table: after("table").unwrap_or_default(),
    })
}

fn of_kernel(route: &Value) -> Route {
    let via = route["gateway"].as_str().or(route["via"]["host"].as_str());
    Route {
        to: destination(route["dst"].as_str().unwrap_or_default()),
        via: via.map(str::to_owned),
        table: string(&route["table"]),
    }
}

/// One way to write it.
fn destination(text: &str) -> String {
    let whole = |net: &IpNet| net.prefix_len() == 0;
    match (text.parse::<IpNet>(), text.parse::<IpAddr>()) {
        (Ok(net), _) if whole(&net) => "default".to_owned(),
        (_, Ok(address)) => IpNet::from(address).to_string(),
        _ => text.to_owned(),
    }
}

/// As a record writes it; none if it is not ours.
fn rule(rule: &Value) -> Option<String> {
    let number = rule["priority"].as_u64().filter(|it| *it == RULES)?;
    let from = match rule["srclen"].as_u64() {
        Some(length) => format!("{}/{length}", string(&rule["src"])),
        None => destination(rule["src"].as_str()?),
    };
    let table = string(&rule["table"]);
    Some(format!("from {from} lookup {table} priority {number}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod_routes() -> PodRoutes {
        PodRoutes {
            routes: vec![
                json!({"dst": "default", "gateway": "169.254.1.1", "dev": "eth0", "protocol": "80"}),
                json!({"dst": "169.254.1.1", "dev": "eth0", "protocol": "80"}),
                json!({"dst": "10.9.0.0/16", "via": {"host": "10.1.0.1"}, "dev": "eth0", "protocol": "80", "table": "101"}),
                json!({"dst": "10.2.0.0/24", "dev": "eth0", "protocol": "kernel"}),
                json!({"dst": "fe80::/64", "dev": "eth0", "protocol": "kernel"}),
                json!({"dst": "10.1.0.5", "dev": "eth0", "type": "local", "table": "local"}),
                json!({"dst": "10.7.0.0/16", "dev": "net1", "protocol": "static"}),
            ],
            rules: vec![
                json!({"priority": 0, "src": "all", "table": "local"}),
                json!({"priority": 5080, "src": "10.1.0.5", "table": "101"}),
                json!({"priority": 100, "src": "10.3.0.5", "table": "102"}),
            ],
        }
    }

    fn disagreements(routes: &[&str], rules: &[&str]) -> Vec<String> {
        let one = json!({"interface": "eth0", "routes": routes, "rules": rules});
        of_record(one)
    }

    fn of_record(one: Value) -> Vec<String> {
        let record = json!({"status": {"attachments": [one]}});
        let mut all = Vec::new();
        compare(&record, &pod_routes(), &mut |text| all.push(text));
        all
    }

    #[test]
    fn routes_and_rules_are_those_of_the_kernel() {
        let routes = [
            "169.254.1.1/32",
            "default via 169.254.1.1 onlink",
            "10.9.0.0/16 via 10.1.0.1 table 101",
            "10.2.0.0/24",
        ];
        let rules = ["from 10.1.0.5/32 lookup 101 priority 5080"];
        assert_eq!(disagreements(&routes, &rules), [""; 0]);
        assert_eq!(disagreements(&routes, &[]).len(), 1);
        let lost = disagreements(&routes[1..], &rules);
        assert!(lost[0].contains("which its record has not"), "{lost:?}");
        // What the kernel adds by itself may be missing.
        assert_eq!(disagreements(&routes[..3], &rules), [""; 0]);
        let without_next_hop = [routes[0], "default", routes[2]];
        assert_eq!(disagreements(&without_next_hop, &rules).len(), 2);
        let mut more = routes.to_vec();
        more.push("0.0.0.0/0 via 10.0.0.9");
        let more = disagreements(&more, &rules);
        assert!(more[0].contains("which it has not"), "{more:?}");
        assert_eq!(more.len(), 1);
    }

    #[test]
    fn what_a_record_leaves_out_is_counted() {
        let two = ["169.254.1.1/32", "default via 169.254.1.1 onlink"];
        let record = |routes: &[&str], left_out: [u64; 2]| {
            of_record(
                json!({"interface": "eth0", "routes": routes, "routesLeftOut": left_out[0],
                "rules": [], "rulesLeftOut": left_out[1]}),
            )
        };
        assert_eq!(record(&two, [1, 1]), [""; 0]);
        assert_eq!(record(&two, [0, 1]).len(), 1, "a route is missing");
        assert_eq!(record(&two, [1, 0]).len(), 1, "a rule is missing");
        assert_eq!(record(&two, [1, 2]).len(), 1, "one rule less than said");
        let wrong = record(&[two[0], "10.99.0.0/16"], [9, 1]);
        assert!(wrong[0].contains("which it has not"), "{wrong:?}");
    }
}

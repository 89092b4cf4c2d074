//! Which prefixes networks may put into the nodes' own routing tables, as `routed` ones do: those within the ranges that
//! the cluster's administrator allows. The controller decides by it what is Active, and each agent by itself what it
//! serves and makes routes for.

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// The ranges that are allowed unless the administrator says others, with commas between them: private and unique local
/// addresses, and those of carriers (RFC 1918, 4193, 6598).
pub const USUAL_RANGES: &str = "10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,100.64.0.0/10,fc00::/7";

/// The ranges, and which network need not be in them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedSubnets {
    ranges: Vec<IpNet>,
    own: Option<(String, String)>,
}

impl Default for AllowedSubnets {
    fn default() -> Self {
        let ranges = USUAL_RANGES.split(',');
        Self::new(ranges.filter_map(|range| range.parse().ok()).collect())
    }
}

impl AllowedSubnets {
    /// What is within one of these ranges.
    pub fn new(ranges: Vec<IpNet>) -> Self {
        Self { ranges, own: None }
    }

    /// Whatever is asked for: for those who look at networks without knowing what the nodes were told.
    pub fn everything() -> Self {
        Self::new(vec![Ipv4Net::default().into(), Ipv6Net::default().into()])
    }

    /// The cluster's own default network, by namespace and name, may have any subnets: the administrator gave them.
    #[must_use]
    pub fn with_own_network(mut self, namespace: &str, name: &str) -> Self {
        self.own = Some((namespace.to_owned(), name.to_owned()));
        self
    }

    /// Why a network may not have these subnets in the nodes' tables, if one is not allowed.
    pub fn refusal(
        &self,
        namespace: &str,
        name: &str,
        subnets: impl IntoIterator<Item = IpNet>,
    ) -> Option<String> {
        let own = self.own.as_ref();
        if own.is_some_and(|own| (own.0.as_str(), own.1.as_str()) == (namespace, name)) {
            return None;
        }
        let mut subnets = subnets.into_iter();
        let outside = subnets.find(|net| !self.ranges.iter().any(|range| range.contains(net)))?;
        let ranges: Vec<String> = self.ranges.iter().map(IpNet::to_string).collect();
        let ranges = match ranges.is_empty() {
            true => "none is".to_owned(),
            false => format!("these are: {}", ranges.join(", ")),
        };
        Some(format!(
            "{} is not within a range that is allowed to networks of the nodes' own routing tables ({ranges}): give it \
             other addresses, or have the administrator add the range to --allowed-subnets of controller and agents",
            outside.trunc()
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(allowed: &AllowedSubnets, cidr: &str) -> Option<String> {
        allowed.refusal("a", "blue", [cidr.parse().unwrap()])
    }

    #[test]
    fn private_space_is_allowed_and_nothing_else() {
        let usual = AllowedSubnets::default();
        for cidr in [
            "10.0.0.0/8",
            "10.1.0.0/16",
            "172.31.0.0/16",
            "192.168.1.0/24",
            "100.127.0.0/26",
            "fd00:1::/64",
        ] {
            assert_eq!(refusal(&usual, cidr), None, "{cidr}");
        }
        for cidr in [
            "8.8.8.0/24",
            "0.0.0.0/0",
            "8.0.0.0/6",
            "172.32.0.0/16",
            "100.0.0.0/8",
            "2001:db8::/32",
            "::/0",
            "fe80::/64",
        ] {
            let why = refusal(&usual, cidr).unwrap_or_default();
            assert!(why.starts_with(cidr), "{cidr}: {why}");
            for word in ["--allowed-subnets", "100.64.0.0/10"] {
                assert!(why.contains(word), "{why} lacks {word}");
            }
        }
    }

    #[test]
    fn the_administrator_says_which() {
        let one = AllowedSubnets::new(vec!["198.51.100.0/24".parse().unwrap()]);
        assert_eq!(refusal(&one, "198.51.100.128/25"), None);
        assert!(refusal(&one, "10.1.0.0/16").is_some());
        assert!(refusal(&AllowedSubnets::new(Vec::new()), "10.1.0.0/16").is_some());
        for cidr in ["8.8.8.0/24", "2001:db8::/32"] {
            assert_eq!(refusal(&AllowedSubnets::everything(), cidr), None);
        }
        let usual = AllowedSubnets::default().with_own_network("plexus-system", "cluster-default");
        let net: IpNet = "203.0.113.0/24".parse().unwrap();
        assert_eq!(
            usual.refusal("plexus-system", "cluster-default", [net]),
            None
        );
        assert!(usual.refusal("team-a", "cluster-default", [net]).is_some());
    }
}

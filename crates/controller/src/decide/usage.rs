//! How full a network is, and who uses it.

use plexus_api::objects::{NetworkSpec, Usage};
use plexus_core::ipam::Pool;

/// From what the owners of its blocks say.
pub(crate) fn usage(spec: &NetworkSpec, allocated: impl Iterator<Item = u64>) -> Usage {
    let capacity = spec.subnets.values().fold(0_u128, |sum, subnet| {
        let gateway = [spec.gateway_of(subnet)];
        let pool = Pool::new(subnet.cidr, &subnet.exclude, &gateway);
        sum.saturating_add(pool.capacity())
    });
    let (blocks, allocated) = allocated.fold((0_u64, 0_u64), |(blocks, sum), one| {
        (blocks.saturating_add(1), sum.saturating_add(one))
    });
    Usage {
        blocks,
        allocated: allocated.min(MOST),
        capacity: u64::try_from(capacity).unwrap_or(MOST).min(MOST),
    }
}

/// The largest number that an int64 of the API can say.
const MOST: u64 = i64::MAX.unsigned_abs();

/// The pods that use a network.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Users {
    /// How many there are.
    pub(crate) count: usize,
    /// The first of them, `namespace/name`, sorted.
    pub(crate) first: Vec<String>,
}

impl Users {
    /// How many are named.
    pub(crate) const NAMED: usize = 10;

    /// For people.
    pub(crate) fn describe(&self) -> String {
        let more = self.count.saturating_sub(self.first.len());
        let pods = if self.count == 1 { "pod" } else { "pods" };
        let mut text = format!("used by {} {pods}: {}", self.count, self.first.join(", "));
        if more > 0 {
            text += &format!(" and {more} more");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn blocks_are_summed_and_large_numbers_bounded() {
        let spec: NetworkSpec = serde_json::from_value(json!({"subnets": {
            "a": {"cidr": "10.1.0.0/24", "gateway": "10.1.0.254", "exclude": ["10.1.0.0/28"]}
        }}))
        .unwrap();
        let usage = super::usage(&spec, [3, 4].into_iter());
        // 256 less the 16 excluded, the broadcast address and the gateway.
        assert_eq!((usage.blocks, usage.allocated, usage.capacity), (2, 7, 238));
        let spec: NetworkSpec = serde_json::from_value(
            json!({"subnets": {"b": {"cidr": "fd00::/16", "gateway": "fd00::1"}}}),
        )
        .unwrap();
        let usage = super::usage(&spec, [u64::MAX, u64::MAX].into_iter());
        assert_eq!((usage.allocated, usage.capacity), (MOST, MOST));
    }

    #[test]
    fn users_are_named_and_counted() {
        let users = Users {
            count: 12,
            first: vec!["a/x".into(), "a/y".into()],
        };
        assert_eq!(users.describe(), "used by 12 pods: a/x, a/y and 10 more");
        let users = Users {
            count: 1,
            first: vec!["a/x".into()],
        };
        assert_eq!(users.describe(), "used by 1 pod: a/x");
    }
}

//! Ages, as everybody who uses Kubernetes reads them.

use k8s_openapi::jiff::Timestamp;

/// Seconds from a time of the API (RFC 3339) until `now`; none if it is no time.
pub fn seconds_since(time: &str, now: i64) -> Option<i64> {
    let then: Timestamp = time.parse().ok()?;
    Some(now.saturating_sub(then.as_second()).max(0))
}

/// `5m3s`, `4h`, `12d`.
pub fn age(seconds: i64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let pair = |large: i64, unit: char, small: i64, lower: char| match small {
        0 => format!("{large}{unit}"),
        small => format!("{large}{unit}{small}{lower}"),
    };
    match seconds {
        ..120 => format!("{seconds}s"),
        120..600 => pair(minutes, 'm', seconds % 60, 's'),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => pair(hours, 'h', minutes % 60, 'm'),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => pair(days, 'd', hours % 24, 'h'),
        691_200..63_072_000 => format!("{days}d"),
        _ => format!("{}y", days / 365),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages() {
        for (seconds, expected) in [
            (0, "0s"),
            (119, "119s"),
            (303, "5m3s"),
            (600, "10m"),
            (10_860, "3h1m"),
            (40_000, "11h"),
            (172_800, "2d"),
            (700_000, "8d"),
            (70_000_000, "2y"),
        ] {
            assert_eq!(age(seconds), expected);
        }
        assert_eq!(seconds_since("1970-01-01T00:01:00Z", 100), Some(40));
        assert_eq!(seconds_since("1970-01-01T00:01:00Z", 10), Some(0));
        assert_eq!(seconds_since("yesterday", 10), None);
    }
}

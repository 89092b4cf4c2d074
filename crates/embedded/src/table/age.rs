//! Times as people say them: `5m`, `3d4h`.

use k8s_openapi::jiff::Timestamp;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// How long ago an RFC 3339 time was.
pub(super) fn since(time: &str, now: i64) -> String {
    match time.parse::<Timestamp>() {
        Ok(then) => duration(now - then.as_second()),
        Err(_) => "<invalid>".to_owned(),
    }
}

/// As `kubectl` writes it: fewer parts, the longer it is.
fn duration(seconds: i64) -> String {
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1..0 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 => two(seconds, MINUTE, "m", 1, "s"),
        600..10_800 => format!("{}m", seconds / MINUTE),
        10_800..28_800 => two(seconds, HOUR, "h", MINUTE, "m"),
        28_800..172_800 => format!("{}h", seconds / HOUR),
        172_800..691_200 => two(seconds, DAY, "d", HOUR, "h"),
        691_200..63_072_000 => format!("{}d", seconds / DAY),
        63_072_000..252_288_000 => two(seconds, YEAR, "y", DAY, "d"),
        _ => format!("{}y", seconds / YEAR),
    }
}

fn two(seconds: i64, large: i64, large_name: &str, small: i64, small_name: &str) -> String {
    let rest = seconds % large / small;
    if rest == 0 {
        format!("{}{large_name}", seconds / large)
    } else {
        format!("{}{large_name}{rest}{small_name}", seconds / large)
    }
}

#[cfg(test)]
mod tests {
    use super::{duration, since};

    #[test]
    fn as_kubectl_says_it() {
        for (seconds, expected) in [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (121, "2m1s"),
            (600, "10m"),
            (10_799, "179m"),
            (10_800, "3h"),
            (10_860, "3h1m"),
            (28_800, "8h"),
            (172_799, "47h"),
            (172_800, "2d"),
            (180_000, "2d2h"),
            (691_200, "8d"),
            (63_072_000, "2y"),
            (63_158_400, "2y1d"),
            (252_288_000, "8y"),
        ] {
            assert_eq!(duration(seconds), expected, "{seconds}");
        }
    }

    #[test]
    fn times_are_read_in_every_form_that_kubernetes_writes() {
        let then = 1_767_225_600;
        assert_eq!(since("2026-01-01T00:00:00Z", then + 5), "5s");
        assert_eq!(since("2026-01-01T00:00:00.123456Z", then + 5), "5s");
        assert_eq!(since("2026-01-01T01:00:00+01:00", then + 5), "5s");
        assert_eq!(since("yesterday", then), "<invalid>");
    }
}

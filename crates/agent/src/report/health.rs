//! `/healthz`: whether background work goes on. The liveness probe asks: what is stuck for minutes is rarely so after
//! a new start. What only fails is no reason: it is tried again, and `/readyz` and the log say what is missing.

use crate::background::progress::Stuck;
use crate::serve::http::Response;
use k8s_openapi::jiff::Timestamp;

/// 503 with what is stuck, where, and since when.
pub(super) fn health(stuck: &[Stuck]) -> Response {
    if stuck.is_empty() {
        return Response::text(200, "ok\n");
    }
    let now = Timestamp::now().as_second();
    let lines = stuck.iter().map(|stuck| describe(stuck, now));
    Response::text(503, lines.collect::<String>())
}

fn describe(stuck: &Stuck, now: i64) -> String {
    let (elapsed, timeout) = (stuck.elapsed.as_secs(), stuck.timeout.as_secs());
    let begun = now.saturating_sub(i64::try_from(elapsed).unwrap_or(i64::MAX));
    let since = Timestamp::from_second(begun).unwrap_or_default();
    let step = stuck.step.as_deref().unwrap_or("its work");
    format!(
        "stuck: {}: {step} has taken {elapsed} s, since {since}; it may take {timeout} s\n",
        stuck.name
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn says_what_is_stuck_and_since_when() {
        let stuck = Stuck {
            name: "removals",
            step: Some("removing eth0 of c1".to_owned()),
            elapsed: Duration::from_secs(700),
            timeout: Duration::from_secs(660),
        };
        assert_eq!(
            describe(&stuck, 1_800_000_000),
            "stuck: removals: removing eth0 of c1 has taken 700 s, since 2027-01-15T07:48:20Z; it may take 660 s\n"
        );
    }
}

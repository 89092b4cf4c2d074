//! Events in both groups: stored as the core has them, shown as `events.k8s.io` has them too.
//!
//! ```text
//!   events.k8s.io/v1                              v1
//!   regarding                            ◄──►     involvedObject
//!   note                                 ◄──►     message
//!   reportingController                  ◄──►     reportingComponent
//!   deprecated{Count,FirstTimestamp,…}   ◄──►     count, firstTimestamp, lastTimestamp, source
//! ```
//!
//! All other fields are the same in both. Pure; knows nothing of who wrote them.

use serde_json::{Map, Value};

/// (`events.k8s.io`, core), wherever the names differ.
const NAMES: &[(&str, &str)] = &[
    ("deprecatedCount", "count"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedSource", "source"),
    ("note", "message"),
    ("regarding", "involvedObject"),
    ("reportingController", "reportingComponent"),
];

/// An event of `events.k8s.io` as the core has it.
#[must_use]
pub fn to_core(event: &Value) -> Value {
    renamed(
        event,
        "v1",
        NAMES.iter().map(|&(events, core)| (events, core)),
    )
}

/// An event of the core as `events.k8s.io` has it.
#[must_use]
pub fn from_core(event: &Value) -> Value {
    let names = NAMES.iter().map(|&(events, core)| (core, events));
    renamed(event, "events.k8s.io/v1", names)
}

fn renamed<'a>(
    event: &Value,
    version: &str,
    names: impl Iterator<Item = (&'a str, &'a str)>,
) -> Value {
    let Some(fields) = event.as_object() else {
        return event.clone();
    };
    let mut new: Map<String, Value> = fields.clone();
    for (from, to) in names {
        if let Some(value) = new.remove(from) {
            new.insert(to.to_owned(), value);
        }
    }
    new.insert("apiVersion".to_owned(), version.into());
    Value::Object(new)
}

#[cfg(test)]
mod tests {
    use super::{from_core, to_core};
    use serde_json::json;

    #[test]
    fn both_views_say_the_same() {
        let events = json!({
            "apiVersion": "events.k8s.io/v1", "kind": "Event",
            "metadata": {"name": "a.1", "namespace": "x"},
            "regarding": {"kind": "Pod", "name": "a"}, "related": {"kind": "Node"},
            "note": "no such network", "reason": "FailedAttach", "action": "Attach", "type": "Warning",
            "reportingController": "plexus-agent", "reportingInstance": "n1",
            "eventTime": "2026-01-01T00:00:00.000000Z",
            "series": {"count": 2, "lastObservedTime": "2026-01-01T00:00:01.000000Z"},
            "deprecatedCount": 1, "deprecatedSource": {"component": "x"},
            "deprecatedFirstTimestamp": "2026-01-01T00:00:00Z",
            "deprecatedLastTimestamp": "2026-01-01T00:00:00Z",
        });
        let core = to_core(&events);
        assert_eq!(core["apiVersion"], "v1");
        assert_eq!(core["involvedObject"]["name"], "a");
        assert_eq!(core["message"], "no such network");
        assert_eq!(core["reportingComponent"], "plexus-agent");
        assert_eq!(
            (&core["count"], &core["source"]["component"]),
            (&json!(1), &json!("x"))
        );
        assert_eq!(core["series"], events["series"]);
        assert!(core.get("note").is_none() && core.get("regarding").is_none());
        assert_eq!(from_core(&core), events);
    }
}

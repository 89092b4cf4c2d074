//! The row of a pod: how many of its containers are ready, and the one word for how it is.

use super::core::{ago, either, text};
use serde_json::Value;

pub(super) const COLUMNS: &[(&str, &str, i64, &str)] = &[
    ("Name", "string", 0, "Unique in its namespace."),
    ("Ready", "string", 0, "Containers that are ready, of all."),
    ("Status", "string", 0, "How it is."),
    (
        "Restarts",
        "string",
        0,
        "How often its containers were started again.",
    ),
    ("Age", "string", 0, "How long ago it was made."),
    ("IP", "string", 1, "Its address."),
    ("Node", "string", 1, "Where it runs."),
    ("Nominated Node", "string", 1, "Where it might run."),
    (
        "Readiness Gates",
        "string",
        1,
        "Conditions that hold, of those it waits for.",
    ),
];

pub(super) fn cells(pod: &Value, now: i64) -> Vec<Value> {
    let none = |text: &str| Value::from(either(text, "<none>"));
    let first = text(pod, "/status/podIPs/0/ip");
    let all = items(pod, "/spec/containers").count();
    let ready = items(pod, "/status/containerStatuses")
        .filter(|status| status["ready"] == true)
        .filter(|status| status.pointer("/state/running").is_some())
        .count();
    vec![
        text(pod, "/metadata/name").into(),
        format!("{ready}/{all}").into(),
        status(pod, ready).into(),
        restarts(pod, now).into(),
        ago(text(pod, "/metadata/creationTimestamp"), now).into(),
        none(either(first, text(pod, "/status/podIP"))),
        none(text(pod, "/spec/nodeName")),
        none(text(pod, "/status/nominatedNodeName")),
        gates(pod).into(),
    ]
}

/// The phase, unless a container, a starter or the deletion has something more telling to say.
fn status(pod: &Value, ready: usize) -> String {
    let phase = text(pod, "/status/phase");
    let mut status = either(text(pod, "/status/reason"), phase).to_owned();
    let starting = starting(pod);
    if let Some(starting) = &starting {
        status.clone_from(starting);
    } else {
        for container in items(pod, "/status/containerStatuses").rev() {
            if let Some(reason) = waiting_or_ended(container) {
                status = reason;
            }
        }
        if status == "Completed" && ready > 0 {
            "Running".clone_into(&mut status);
        }
    }
    let over = matches!(phase, "Succeeded" | "Failed");
    if pod.pointer("/metadata/deletionTimestamp").is_some() && !over {
        return "Terminating".to_owned();
    }
    status
}

/// `Init:1/3` while the containers that prepare a pod are at work.
fn starting(pod: &Value) -> Option<String> {
    let total = items(pod, "/spec/initContainers").count();
    for (index, container) in items(pod, "/status/initContainerStatuses").enumerate() {
        let state = &container["state"];
        if state
            .pointer("/terminated/exitCode")
            .and_then(Value::as_i64)
            == Some(0)
            || container["started"] == true
        {
            continue;
        }
        let reason = waiting_or_ended(container).filter(|reason| reason != "PodInitializing");
        return Some(match reason {
            Some(reason) => format!("Init:{reason}"),
            None => format!("Init:{index}/{total}"),
        });
    }
    None
}

fn waiting_or_ended(container: &Value) -> Option<String> {
    let waiting = text(container, "/state/waiting/reason");
    if !waiting.is_empty() {
        return Some(waiting.to_owned());
    }
    let ended = container.pointer("/state/terminated")?;
    let number = |key: &str| ended[key].as_i64().unwrap_or(0);
    Some(match text(ended, "/reason") {
        "" if number("signal") != 0 => format!("Signal:{}", number("signal")),
        "" => format!("ExitCode:{}", number("exitCode")),
        reason => reason.to_owned(),
    })
}

fn restarts(pod: &Value, now: i64) -> String {
    let count = |status: &Value| status["restartCount"].as_i64().unwrap_or(0);
    let statuses = || items(pod, "/status/containerStatuses");
    let total: i64 = statuses().map(count).sum();
    let last = statuses()
        .map(|status| text(status, "/lastState/terminated/finishedAt"))
        .max()
        .unwrap_or_default();
    if total == 0 || last.is_empty() {
        total.to_string()
    } else {
        format!("{total} ({} ago)", ago(last, now))
    }
}

fn gates(pod: &Value) -> String {
    let all = items(pod, "/spec/readinessGates").count();
    if all == 0 {
        return "<none>".to_owned();
    }
    let holds = |gate: &&Value| {
        let mut conditions = items(pod, "/status/conditions");
        conditions.any(|one| one["type"] == gate["conditionType"] && one["status"] == "True")
    };
    format!(
        "{}/{all}",
        items(pod, "/spec/readinessGates").filter(holds).count()
    )
}

fn items<'a>(object: &'a Value, at: &str) -> std::slice::Iter<'a, Value> {
    let list = object.pointer(at).and_then(Value::as_array);
    list.map(Vec::as_slice).unwrap_or_default().iter()
}

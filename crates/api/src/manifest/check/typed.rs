//! Whether an object has the fields and the types that Kubernetes gives its kind: it goes through the
//! type of `k8s-openapi` and back. What does not come back is unknown. Where the whole is refused, ever
//! smaller parts of it are tried, each alone at its place, so that one wrong value hides no other.

use crate::manifest::finding::{Findings, joined};
use crate::manifest::kinds::RoundTrip;
use serde_json::{Map, Value, json};

/// Fields that are named; who writes another kind's object has many, and finding the line of each takes time.
const SHOWN: usize = 100;

/// Metadata is somebody else's to check.
pub(super) fn check(object: &Value, round_trip: RoundTrip, findings: &mut Findings<'_>) {
    let mut object = object.clone();
    if let Some(map) = object.as_object_mut() {
        map.insert("metadata".to_owned(), json!({}));
    }
    check_at("", &object, round_trip, findings);
}

/// `within` is where the value is; empty for an object.
pub(super) fn check_at(
    within: &str,
    value: &Value,
    round_trip: RoundTrip,
    findings: &mut Findings<'_>,
) {
    let mut search = Search {
        round_trip,
        found: Vec::new(),
    };
    search.look(value, &mut Vec::new());
    tell(within, search.found, findings);
}

/// Paths below `within`, and what is wrong there.
pub(super) fn tell(within: &str, found: Vec<(String, String)>, findings: &mut Findings<'_>) {
    let more = found.len().saturating_sub(SHOWN);
    for (path, text) in found.into_iter().take(SHOWN) {
        findings.problem(&joined(within, &path), text);
    }
    if more > 0 {
        let text = format!(
            "{more} more fields are unknown or wrong: correct those that are named, and look again"
        );
        findings.problem(within, text);
    }
}

/// What is said of a field that there is not.
pub(super) const UNKNOWN: &str = "is not a field of this kind: remove it, or correct its name";

#[derive(Clone, Copy)]
enum Step<'v> {
    Key(&'v str),
    Item(usize),
}

/// What was found so far: paths, and what is wrong there.
struct Search {
    round_trip: RoundTrip,
    found: Vec<(String, String)>,
}

impl Search {
    fn look<'v>(&mut self, here: &'v Value, path: &mut Vec<Step<'v>>) {
        let error = match (self.round_trip)(&alone(path, here)) {
            Ok(back) => return self.compare(here, at(&back, path), path),
            Err(error) => error,
        };
        let before = self.found.len();
        for (step, child) in children(here) {
            path.push(step);
            self.look(child, path);
            path.pop();
        }
        if self.found.len() == before {
            self.add(path, format!("has the wrong type: {error}"));
        }
    }

    /// What was there and did not come back.
    fn compare<'v>(&mut self, before: &'v Value, after: Option<&Value>, path: &mut Vec<Step<'v>>) {
        let length = |value: &Value| value.as_array().map(Vec::len);
        match after {
            None if !before.is_null() || self.is_unknown(path) => {
                self.add(path, UNKNOWN.to_owned());
            }
            Some(after) if length(before) == length(after) => {
                for (step, child) in children(before) {
                    let after = match step {
                        Step::Key(key) if after.is_object() => after.get(key),
                        Step::Item(number) => after.get(number),
                        Step::Key(_) => continue,
                    };
                    path.push(step);
                    self.compare(child, after, path);
                    path.pop();
                }
            }
            _ => {}
        }
    }

    /// Null comes back for no field. A type that takes a map takes no text, and one that takes any value gives it
    /// back.
    fn is_unknown(&self, path: &[Step<'_>]) -> bool {
        [json!({}), json!("")].iter().all(|value| {
            let back = (self.round_trip)(&alone(path, value));
            back.is_ok_and(|back| at(&back, path).is_none())
        })
    }

    fn add(&mut self, path: &[Step<'_>], text: String) {
        let path = path
            .iter()
            .fold(String::new(), |path, step| match (path.as_str(), step) {
                ("", Step::Key(key)) => (*key).to_owned(),
                (path, Step::Key(key)) => format!("{path}.{key}"),
                (path, Step::Item(i)) => format!("{path}[{i}]"),
            });
        self.found.push((path, text));
    }
}

fn children(value: &Value) -> Vec<(Step<'_>, &Value)> {
    match value {
        Value::Object(map) => map.iter().map(|(k, v)| (Step::Key(k), v)).collect(),
        Value::Array(items) => (0..).map(Step::Item).zip(items).collect(),
        _ => Vec::new(),
    }
}

/// A value at a path, with nothing beside it.
fn alone(path: &[Step<'_>], value: &Value) -> Value {
    path.iter()
        .rev()
        .fold(value.clone(), |inner, step| match step {
            Step::Key(key) => Value::Object(Map::from_iter([((*key).to_owned(), inner)])),
            Step::Item(_) => Value::Array(vec![inner]),
        })
}

/// What is at that path again.
fn at<'v>(alone: &'v Value, path: &[Step<'_>]) -> Option<&'v Value> {
    path.iter().try_fold(alone, |here, step| match step {
        Step::Key(key) => here.get(key),
        Step::Item(_) => here.get(0),
    })
}

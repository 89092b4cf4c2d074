//! Whether an object has the types that Kubernetes gives it: it goes through the type of
//! `k8s-openapi` and back. What does not come back is unknown.

use super::Kind;
use crate::path::Path;
use crate::status::MAX_PROBLEMS;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::schemars::{JsonSchema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Through a type and back.
type RoundTrip = fn(&Value) -> Result<Value, String>;

/// What a type of `k8s-openapi` can do for us.
#[derive(Clone, Copy, Debug)]
pub(super) struct Type {
    through: RoundTrip,
    /// The name of its schema.
    pub(super) name: fn() -> String,
    /// Adds its schema to those of a document.
    pub(super) describe: fn(&mut SchemaGenerator),
}

impl Type {
    pub(super) fn of<T: DeserializeOwned + Serialize + JsonSchema>() -> Self {
        Self {
            through: round_trip::<T>,
            name: || T::schema_name().into_owned(),
            describe: |generator| {
                generator.subschema_for::<T>();
            },
        }
    }
}

/// Probes that the search for the culprit may make.
const PROBES: usize = 4096;

fn round_trip<T: DeserializeOwned + Serialize>(object: &Value) -> Result<Value, String> {
    let typed = T::deserialize(object).map_err(|error| error.to_string())?;
    serde_json::to_value(&typed).map_err(|error| error.to_string())
}

/// The object in the form of its types, and the paths of what these do not know.
pub(super) fn settled(kind: &Kind, object: &Value) -> Result<(Value, Vec<String>), String> {
    let refuse = |what: &str| {
        format!(
            "{name} in version {version:?} cannot be handled as a {name}: {what}",
            name = kind.kind,
            version = kind.version,
        )
    };
    if !object.is_object() {
        return Err(refuse("not an object"));
    }
    let through = kind
        .typed
        .map_or(metadata_alone as RoundTrip, |typed| typed.through);
    let typed =
        through(object).map_err(|error| refuse(&at_its_place(through, object).unwrap_or(error)))?;
    let mut unknown = Vec::new();
    let mut settled = object.clone();
    if kind.typed.is_some() {
        let networks = networks_of_pod(kind, object).map_err(|error| refuse(&error))?;
        settle(&mut settled, &typed, &mut Path::default(), &mut unknown);
        if let Some(networks) = networks {
            if let Some(spec) = settled.get_mut("spec").and_then(Value::as_object_mut) {
                spec.insert("networks".to_owned(), networks);
            }
            unknown.retain(|path| path != "spec.networks");
        }
    } else if let Some(metadata) = settled.get_mut("metadata") {
        let typed = typed.get("metadata").unwrap_or(&Value::Null);
        Path::default().member("metadata", |path| {
            settle(metadata, typed, path, &mut unknown);
        });
    }
    Ok((settled, unknown))
}

/// A kind with a schema is typed by that; only its metadata has a type of its own.
fn metadata_alone(object: &Value) -> Result<Value, String> {
    match object.get("metadata") {
        None | Some(Value::Null) => Ok(Value::Object(Map::new())),
        Some(metadata) => {
            let metadata = round_trip::<ObjectMeta>(metadata)?;
            Ok(Value::Object(Map::from_iter([(
                "metadata".to_owned(),
                metadata,
            )])))
        }
    }
}

/// The networks that a pod names in its spec: no field of Kubernetes, taken as written.
fn networks_of_pod(kind: &Kind, object: &Value) -> Result<Option<Value>, String> {
    if kind.kind != "Pod" {
        return Ok(None);
    }
    match object.pointer("/spec/networks") {
        None | Some(Value::Null) => Ok(None),
        Some(networks) => match Vec::<String>::deserialize(networks) {
            Ok(_) => Ok(Some(networks.clone())),
            Err(error) => Err(format!("spec.networks: {error}")),
        },
    }
}

/// Takes values from `typed`, drops what it has not.
fn settle(value: &mut Value, typed: &Value, path: &mut Path, unknown: &mut Vec<String>) {
    match (value, typed) {
        (Value::Object(fields), Value::Object(typed)) => {
            fields.retain(|key, field| match typed.get(key) {
                Some(typed) => {
                    path.member(key, |path| settle(field, typed, path, unknown));
                    true
                }
                None => {
                    if !field.is_null() && unknown.len() <= MAX_PROBLEMS {
                        path.member(key, |path| unknown.push(path.shortened()));
                    }
                    false
                }
            });
        }
        (Value::Array(items), Value::Array(typed)) if items.len() == typed.len() => {
            for (index, (item, typed)) in items.iter_mut().zip(typed).enumerate() {
                path.item(index, |path| settle(item, typed, path, unknown));
            }
        }
        (value, typed) => *value = typed.clone(),
    }
}

/// The error with the path of the deepest value that causes it. The type says only what is wrong,
/// so ever smaller parts of the object are tried; a type takes parts, as it has no required fields.
fn at_its_place(through: RoundTrip, object: &Value) -> Option<String> {
    let mut path: Vec<Step> = Vec::new();
    let mut probes = 0;
    let mut error = None;
    let mut here = object;
    'deeper: loop {
        for step in steps(here) {
            probes += 1;
            if probes > PROBES {
                break 'deeper;
            }
            let Some(child) = step.of(here) else { continue };
            path.push(step);
            match through(&alone(&path, child)) {
                Err(found) => {
                    error = Some(found);
                    here = child;
                    continue 'deeper;
                }
                Ok(_) => {
                    path.pop();
                }
            }
        }
        break;
    }
    let text: String = path.iter().map(Step::text).collect();
    Some(format!("{}: {}", text.trim_start_matches('.'), error?))
}

#[derive(Clone)]
enum Step {
    Key(String),
    Index(usize),
}

impl Step {
    fn of<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        match self {
            Step::Key(key) => value.get(key),
            Step::Index(index) => value.get(index),
        }
    }

    fn text(&self) -> String {
        match self {
            Step::Key(key) => format!(".{key}"),
            Step::Index(index) => format!("[{index}]"),
        }
    }
}

fn steps(value: &Value) -> Vec<Step> {
    match value {
        Value::Object(fields) => fields.keys().cloned().map(Step::Key).collect(),
        Value::Array(items) => (0..items.len()).map(Step::Index).collect(),
        _ => Vec::new(),
    }
}

/// An object that has nothing but this value at this place.
fn alone(path: &[Step], value: &Value) -> Value {
    path.iter()
        .rev()
        .fold(value.clone(), |inner, step| match step {
            Step::Key(key) => Value::Object(Map::from_iter([(key.clone(), inner)])),
            Step::Index(_) => Value::Array(vec![inner]),
        })
}

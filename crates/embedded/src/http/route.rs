//! From a path to what it is about.

use super::query::decoded;
use crate::kinds::{Kind, Kinds};
use crate::status::Refused;
use std::sync::Arc;

/// What a path is about.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) kind: Arc<Kind>,
    /// Empty: the kind has none, or all namespaces are meant.
    pub(crate) namespace: String,
    /// Empty: all objects are meant.
    pub(crate) name: String,
    /// Empty: the object itself.
    pub(crate) subresource: String,
}

/// Parses a path into kind, namespace, name and subresource.
///
/// # Errors
/// The path is of no kind that is served.
pub(crate) fn route(kinds: &Kinds, path: &str) -> Result<Target, Refused> {
    let segments: Option<Vec<String>> = path
        .split('/')
        .skip(1)
        .map(|segment| decoded(segment, false).filter(|segment| !segment.is_empty()))
        .collect();
    let segments = segments.ok_or_else(Refused::no_such_path)?;
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    let (group, version, rest) = match segments.as_slice() {
        ["api", version, rest @ ..] => ("", *version, rest),
        ["apis", group, version, rest @ ..] => (*group, *version, rest),
        _ => return Err(Refused::no_such_path()),
    };
    let kind = |plural: &str| kinds.get(group, version, plural).cloned();
    let (namespace, plural, name, subresource) = match rest {
        // A namespace is an object, and the place of others.
        ["namespaces", namespace, plural, rest @ ..] if kind(plural).is_some() => {
            let (name, subresource) = names(rest)?;
            (*namespace, *plural, name, subresource)
        }
        [plural, rest @ ..] => {
            let (name, subresource) = names(rest)?;
            ("", *plural, name, subresource)
        }
        [] => return Err(Refused::no_such_path()),
    };
    let kind = kind(plural).ok_or_else(Refused::no_such_path)?;
    let somewhere = !namespace.is_empty();
    let fits = match kind.namespaced {
        true => somewhere || name.is_empty(),
        false => !somewhere,
    };
    if !fits {
        return Err(Refused::no_such_path());
    }
    Ok(Target {
        kind,
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        subresource: subresource.to_owned(),
    })
}

fn names<'a>(rest: &[&'a str]) -> Result<(&'a str, &'a str), Refused> {
    match rest {
        [] => Ok(("", "")),
        [name] => Ok((name, "")),
        [name, subresource] => Ok((name, subresource)),
        _ => Err(Refused::no_such_path()),
    }
}

#[cfg(test)]
mod tests {
    use super::route;
    use crate::kinds::Kinds;

    fn routed(path: &str) -> Option<String> {
        let target = route(&Kinds::builtin().unwrap(), path).ok()?;
        Some(format!(
            "{}|{}|{}|{}",
            target.kind.kind, target.namespace, target.name, target.subresource
        ))
    }

    #[test]
    fn paths_name_objects_places_and_parts() {
        for (path, what) in [
            ("/api/v1/namespaces", "Namespace|||"),
            ("/api/v1/namespaces/a", "Namespace||a|"),
            ("/api/v1/namespaces/a/status", "Namespace||a|status"),
            ("/api/v1/namespaces/a/finalize", "Namespace||a|finalize"),
            ("/api/v1/pods", "Pod|||"),
            ("/api/v1/namespaces/a/pods", "Pod|a||"),
            ("/api/v1/namespaces/a/pods/b", "Pod|a|b|"),
            ("/api/v1/namespaces/a/pods/b/status", "Pod|a|b|status"),
            ("/api/v1/nodes/n%31", "Node||n1|"),
            (
                "/apis/coordination.k8s.io/v1/namespaces/a/leases/l",
                "Lease|a|l|",
            ),
        ] {
            assert_eq!(routed(path).as_deref(), Some(what), "{path}");
        }
    }

    #[test]
    fn other_paths_are_none() {
        for path in [
            "",
            "/",
            "/api",
            "/api/v1",
            "/api/v2/pods",
            "/api/v1/pods/b",
            "/api/v1/nothing",
            "/api/v1/namespaces/a/nodes",
            "/api/v1/namespaces/a/pods/b/c/d",
            "/api/v1/namespaces//pods",
            "/apis/x.y/v1/pods",
            "/api/v1/namespaces/%ff/pods",
            "*",
        ] {
            assert_eq!(routed(path), None, "{path}");
        }
    }
}

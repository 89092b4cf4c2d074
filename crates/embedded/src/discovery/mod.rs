//! What a client finds out before its first request: groups, versions and kinds. Serves the form of
//! one answer for everything (aggregated, `apidiscovery.k8s.io/v2`) and the older one of a request
//! per version. The kinds are fixed, so every page is made once.

mod aggregated;
mod legacy;

#[cfg(test)]
mod tests;

use crate::kinds::{Kind, Kinds};
use crate::pages::Page;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The aggregated form; clients compare the parameters.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const PLAIN: &str = "application/json";

/// `/api`, `/apis` and what is below them, in both forms; made once.
#[derive(Clone, Debug)]
pub struct Discovery {
    aggregated: BTreeMap<&'static str, Page>,
    legacy: BTreeMap<String, Page>,
}

/// The versions of a group, the preferred one first, each with its kinds.
type Group<'a> = Vec<(&'a str, Vec<&'a Kind>)>;

impl Discovery {
    /// The pages for these kinds.
    #[must_use]
    pub fn new(kinds: &Kinds) -> Self {
        let groups = grouped(kinds);
        let core: Vec<_> = groups.iter().filter(|(name, _)| name.is_empty()).collect();
        let named: Vec<_> = groups.iter().filter(|(name, _)| !name.is_empty()).collect();
        let page = |groups: &[&(&str, Group<'_>)]| {
            let groups = groups
                .iter()
                .map(|(name, group)| aggregated::group(name, group));
            Page::json(AGGREGATED, &aggregated::list(groups))
        };
        let aggregated = BTreeMap::from([("/api", page(&core)), ("/apis", page(&named))]);
        let mut legacy = BTreeMap::new();
        let mut add = |path: String, document| {
            legacy.insert(path, Page::json(PLAIN, &document));
        };
        add("/api".to_owned(), legacy::versions());
        add(
            "/apis".to_owned(),
            legacy::groups(named.iter().map(|(name, group)| (*name, group))),
        );
        for (name, group) in &groups {
            if !name.is_empty() {
                add(format!("/apis/{name}"), legacy::only_group(name, group));
            }
            for (version, kinds) in group {
                let path = match *name {
                    "" => format!("/api/{version}"),
                    name => format!("/apis/{name}/{version}"),
                };
                add(path, legacy::resources(name, version, kinds));
            }
        }
        Self { aggregated, legacy }
    }

    /// The page at a path in the form asked for; none: nothing of discovery is there.
    #[must_use]
    pub fn page(&self, path: &str, accept: Option<&str>) -> Option<&Page> {
        let path = path.strip_suffix('/').unwrap_or(path);
        let aggregated = self
            .aggregated
            .get(path)
            .filter(|_| wants_aggregated(accept));
        aggregated.or_else(|| self.legacy.get(path))
    }
}

/// Whether the aggregated form is asked for before the plain one.
fn wants_aggregated(accept: Option<&str>) -> bool {
    let media = accept.into_iter().flat_map(|accept| accept.split(','));
    for media in media {
        let mut parts = media.split(';').map(str::trim);
        let json = parts.next() == Some(PLAIN);
        let parameters: BTreeSet<&str> = parts.filter(|part| !part.starts_with("q=")).collect();
        let wanted = ["g=apidiscovery.k8s.io", "v=v2", "as=APIGroupDiscoveryList"];
        if json && parameters == BTreeSet::from(wanted) {
            return true;
        }
        if json && parameters.is_empty() {
            return false;
        }
    }
    false
}

fn grouped(kinds: &Kinds) -> Vec<(&str, Group<'_>)> {
    let mut groups: BTreeMap<&str, BTreeMap<&str, Vec<&Kind>>> = BTreeMap::new();
    for kind in kinds.iter().map(Arc::as_ref) {
        let versions = groups.entry(&kind.group).or_default();
        versions.entry(&kind.version).or_default().push(kind);
    }
    let by_preference = |versions: BTreeMap<_, _>| {
        let mut versions: Group<'_> = versions.into_iter().collect();
        versions.sort_by(|(a, _), (b, _)| preference(a, b));
        versions
    };
    groups
        .into_iter()
        .map(|(name, versions)| (name, by_preference(versions)))
        .collect()
}

/// `v2`, `v1`, `v2beta1`, `v1beta2`, `v1alpha1`, then everything else by name.
fn preference(a: &str, b: &str) -> Ordering {
    match (rank(a), rank(b)) {
        (Some(a), Some(b)) => b.cmp(&a),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => a.cmp(b),
    }
}

/// Stability, major and minor number.
fn rank(version: &str) -> Option<(u8, u32, u32)> {
    let rest = version.strip_prefix('v')?;
    let digits = rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len());
    let major = rest[..digits].parse().ok()?;
    let (stability, minor) = match &rest[digits..] {
        "" => (2, "0"),
        rest => match rest.strip_prefix("beta") {
            Some(minor) => (1, minor),
            None => (0, rest.strip_prefix("alpha")?),
        },
    };
    Some((stability, major, minor.parse().ok()?))
}

//! A Network, field by field, so that every problem has its path; then what must fit together.

use crate::manifest::finding::Findings;
use crate::objects::{
    AllowedNamespaces, BlockSize, From, LabelOperator, LabelRequirement, LabelSelector,
    NetworkSpec, RouteSpec, Subnet,
};
use crate::text::{NetOrAddress, quoted};
use crate::{Fields, Problems};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

pub(super) fn check(map: &Map<String, Value>, findings: &mut Findings<'_>) {
    for key in map.keys() {
        if !["apiVersion", "kind", "metadata", "spec", "status"].contains(&key.as_str()) {
            findings.problem(key, "is not a field of this kind: remove it");
        }
    }
    match map.get("spec") {
        Some(Value::Object(spec)) => {
            let (spec, problems) = as_far_as_can_be_read(spec);
            let further = match problems.0.is_empty() {
                true => spec.problems(),
                false => beside(spec.problems(), &problems),
            };
            findings.problems("", problems);
            findings.problems("", further);
        }
        None | Some(Value::Null) => {
            let text = "is missing: write {} for an overlay without subnets";
            findings.problem("spec", text);
        }
        Some(_) => findings.problem("spec", "must be an object"),
    }
}

/// Fields whose problems do not depend on what others say.
const BY_THEMSELVES: [&str; 4] = ["spec.subnets.", "spec.mtu", "spec.provider", "spec.uuid"];

/// Of what does not fit together, that which holds although some fields could not be read.
fn beside(further: Problems, unreadable: &Problems) -> Problems {
    let further = further.0.into_iter().filter(|problem| {
        let mut fields = BY_THEMSELVES.iter();
        let stands = fields.any(|field| problem.path.starts_with(field));
        let known = unreadable.0.iter().any(|one| one.path == problem.path);
        stands && !known
    });
    Problems(further.collect())
}

/// The spec, or what cannot be read of it.
#[cfg(test)]
pub(in crate::manifest) fn read(spec: &Map<String, Value>) -> (Option<NetworkSpec>, Problems) {
    let (read, problems) = as_far_as_can_be_read(spec);
    (problems.0.is_empty().then_some(read), problems)
}

/// The spec, as far as it can be read, and what cannot.
fn as_far_as_can_be_read(spec: &Map<String, Value>) -> (NetworkSpec, Problems) {
    let mut fields = Fields::new(spec, "spec");
    let read = NetworkSpec {
        provider: text(&mut fields, "provider"),
        uuid: text(&mut fields, "uuid"),
        subnets: subnets(&mut fields),
        block_size: fields.object("blockSize", |fields| BlockSize {
            ipv4: length(fields, "ipv4", 32),
            ipv6: length(fields, "ipv6", 128),
        }),
        mtu: fields.number("mtu"),
        routes: fields
            .objects("routes", |fields, _| route(fields))
            .unwrap_or_default(),
        snat: fields.flag("snat"),
        source_check: !fields.has("sourceCheck") || fields.flag("sourceCheck"),
        allowed_namespaces: fields.object("allowedNamespaces", namespaces).flatten(),
        config: fields.map_of("config").cloned().unwrap_or_default(),
    };
    fields.know(&["sourceCheck"]);
    (read, fields.finish())
}

fn text(fields: &mut Fields<'_>, key: &'static str) -> Option<String> {
    let text = fields.text(key)?;
    if text.is_empty() {
        fields.problem(key, "is empty: write it, or leave it out");
    }
    Some(text.to_owned())
}

fn length(fields: &mut Fields<'_>, key: &'static str, most: u8) -> Option<u8> {
    let number = fields.number(key)?;
    let length = u8::try_from(number).ok().filter(|n| (1..=most).contains(n));
    if length.is_none() {
        let text = format!("is {number}: write a prefix length from 1 to {most}");
        fields.problem(key, text);
    }
    length
}

fn subnets(fields: &mut Fields<'_>) -> BTreeMap<String, Subnet> {
    let mut subnets = BTreeMap::new();
    let Some(map) = fields.map_of("subnets") else {
        return subnets;
    };
    for (key, value) in map {
        let path = format!("{}.{key}", fields.path_of("subnets"));
        let Value::Object(map) = value else {
            let what = format!("subnets.{key}");
            fields.problem(&what, "must be an object with a cidr");
            continue;
        };
        let mut inner = Fields::new(map, path);
        let subnet = subnet(&mut inner);
        fields.absorb(inner.finish());
        subnets.extend(subnet.map(|subnet| (key.clone(), subnet)));
    }
    subnets
}

fn subnet(fields: &mut Fields<'_>) -> Option<Subnet> {
    fields.require("cidr", "write the subnet, such as 10.1.0.0/16");
    let cidr = fields.parsed("cidr");
    let gateway = fields.parsed("gateway");
    let exclude = fields.parsed_list::<NetOrAddress>("exclude");
    Some(Subnet {
        cidr: cidr?,
        gateway,
        exclude: exclude.into_iter().map(|NetOrAddress(net)| net).collect(),
    })
}

fn route(fields: &mut Fields<'_>) -> Option<RouteSpec> {
    fields.require("dst", "write where the route leads, such as 192.168.0.0/16");
    let (dst, gw) = (fields.parsed("dst"), fields.parsed("gw"));
    Some(RouteSpec { dst: dst?, gw })
}

fn namespaces(fields: &mut Fields<'_>) -> Option<AllowedNamespaces> {
    let from = choice::<From>(fields, "from", "All, Same or Selector");
    let selector = fields.object("selector", labels);
    Some(AllowedNamespaces {
        from: from?,
        selector,
    })
}

/// Takes one of a few words; `all` lists them.
fn choice<T: DeserializeOwned>(fields: &mut Fields<'_>, key: &'static str, all: &str) -> Option<T> {
    let written = fields.text(key);
    let choice = written.and_then(|word| serde_json::from_value(word.into()).ok());
    match (written, &choice) {
        (Some(word), None) => fields.problem(key, format!("is {}: write {all}", quoted(word))),
        (None, _) if !fields.has(key) => fields.missing(key, &format!("write {all}")),
        _ => {}
    }
    choice
}

fn labels(fields: &mut Fields<'_>) -> LabelSelector {
    let mut labels = BTreeMap::new();
    for (key, value) in fields.map_of("matchLabels").into_iter().flatten() {
        match value.as_str() {
            Some(value) => {
                labels.insert(key.clone(), value.to_owned());
            }
            None => {
                let path = format!("matchLabels.{key}");
                fields.problem(&path, format!("must be text, not {value}: quote it"));
            }
        }
    }
    LabelSelector {
        match_labels: labels,
        match_expressions: fields
            .objects("matchExpressions", |one, _| requirement(one))
            .unwrap_or_default(),
    }
}

fn requirement(fields: &mut Fields<'_>) -> Option<LabelRequirement> {
    let key = fields.text("key").map(str::to_owned);
    fields.require("key", "write the label");
    let operators = "In, NotIn, Exists or DoesNotExist";
    let operator = choice::<LabelOperator>(fields, "operator", operators);
    let values = fields.parsed_list("values");
    Some(LabelRequirement {
        key: key?,
        operator: operator?,
        values,
    })
}

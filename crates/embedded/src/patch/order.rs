//! The order of the items of a list after a strategic merge patch. Items are known by their key, or by
//! what they are. Every list is gone through once and looked up by name: a list may have as many items as
//! fit into a request.

use serde_json::Value;
use std::collections::BTreeMap;

/// By what an item is known: the member that is its key, or, in a list of scalars, itself. `None`: it has
/// no key.
pub(super) fn name(item: &Value, by: Option<&str>) -> Option<String> {
    let known = match by {
        Some(by) => return item.get(by).map(Value::to_string),
        None => item,
    };
    Some(match known {
        // 1 and 1.0 are one.
        Value::Number(number) => format!("{:?}", number.as_f64()),
        other => other.to_string(),
    })
}

/// Where each item stands first.
pub(super) fn indexes(list: &[Value], by: Option<&str>) -> BTreeMap<String, usize> {
    let mut indexes = BTreeMap::new();
    for (index, item) in list.iter().enumerate() {
        if let Some(name) = name(item, by) {
            let _ = indexes.entry(name).or_insert(index);
        }
    }
    indexes
}

/// A list in which the items named in `order` are in that order, and the others stay where they were
/// between them, as well as that can be told from the list as it was.
pub(super) fn ordered(
    list: Vec<Value>,
    order: &[Value],
    live: &[Value],
    by: Option<&str>,
) -> Vec<Value> {
    let (order, live) = (indexes(order, by), indexes(live, by));
    let (mut named, mut others) = (Vec::new(), Vec::new());
    for item in list {
        let name = name(&item, by);
        let index = |among: &BTreeMap<String, usize>| Some(*among.get(name.as_ref()?)?);
        let before = index(&live);
        match index(&order) {
            Some(index) => named.push((index, before, item)),
            None => others.push((before, item)),
        }
    }
    named.sort_by_key(|(index, ..)| *index);
    others.sort_by_key(|(before, _)| *before);
    let mut result = Vec::new();
    let mut others = others.into_iter().peekable();
    for (_, here, item) in named {
        let comes_before = |other: &(Option<usize>, Value)| match (other.0, here) {
            (Some(other), Some(here)) => other < here,
            _ => false,
        };
        while let Some((_, other)) = others.next_if(comes_before) {
            result.push(other);
        }
        result.push(item);
    }
    result.extend(others.map(|(_, item)| item));
    result
}

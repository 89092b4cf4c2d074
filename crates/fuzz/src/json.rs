//! Changes to JSON that leave it JSON, mostly: values of other types, keys in another case or twice, elements
//! of other inputs, depth. A string that is JSON itself is changed inside too, as in annotations.

use crate::Rng;
use crate::mutate::Material;
use serde_json::{Map, Value, json};

/// Changes a place of it; none if it is no JSON.
pub(crate) fn change(input: &[u8], material: &Material<'_>, rng: &mut Rng) -> Option<Vec<u8>> {
    let mut value: Value = serde_json::from_slice(input).ok()?;
    let at = rng.position(count(&value));
    let node = nth(&mut value, &mut { at })?;
    change_node(node, material, rng);
    let text = value.to_string();
    Some(match rng.below(12) {
        0 => spelt_otherwise(&text, material, rng).into_bytes(),
        _ => text.into_bytes(),
    })
}

fn change_node(node: &mut Value, material: &Material<'_>, rng: &mut Rng) {
    match node {
        Value::Object(map) if rng.below(4) > 0 => change_map(map, material, rng),
        Value::Array(list) if rng.below(4) > 0 => change_list(list, material, rng),
        Value::String(text) if rng.below(4) > 0 => {
            match change(text.as_bytes(), material, rng) {
                Some(inner) if text.starts_with(['{', '[']) => {
                    *text = String::from_utf8_lossy(&inner).into_owned();
                }
                _ => change_text(text, material, rng),
            };
        }
        _ if rng.below(5) == 0 => {
            let inner = node.take();
            *node = wrapped(inner, rng);
        }
        _ => *node = any(material, rng),
    }
}

fn change_map(map: &mut Map<String, Value>, material: &Material<'_>, rng: &mut Rng) {
    let keys: Vec<String> = map.keys().cloned().collect();
    let key = match keys.is_empty() {
        true => material.word(rng),
        false => rng.one_of(&keys).clone(),
    };
    match rng.below(7) {
        0 => drop(map.remove(&key)),
        1 => {
            // Beside the one that is there, which differs by its case alone.
            let value = map.get(&key).cloned().unwrap_or_default();
            map.insert(folded(&key, rng), value);
        }
        2 => {
            let value = map.remove(&key).unwrap_or_default();
            map.insert(folded(&key, rng), value);
        }
        3 => {
            let value = map.remove(&key).unwrap_or_default();
            map.insert(material.word(rng), value);
        }
        4 => {
            let value = map.get(&key).cloned().unwrap_or_default();
            for i in 0..times(value.to_string().len(), 8, material, rng) {
                map.insert(format!("{key}{i}"), value.clone());
            }
        }
        _ => drop(map.insert(material.word(rng), any(material, rng))),
    }
}

fn change_list(list: &mut Vec<Value>, material: &Material<'_>, rng: &mut Rng) {
    if list.is_empty() || rng.below(4) == 0 {
        list.push(any(material, rng));
        return;
    }
    let at = rng.position(list.len());
    match rng.below(4) {
        0 => drop(list.remove(at)),
        1 => list.insert(at, list[at].clone()),
        2 => {
            let other = rng.position(list.len());
            list.swap(at, other);
        }
        _ => {
            let copy = list[at].clone();
            let times = times(copy.to_string().len(), 9, material, rng);
            list.extend(std::iter::repeat_n(copy, times));
        }
    }
}

fn change_text(text: &mut String, material: &Material<'_>, rng: &mut Rng) {
    let at = text.floor_char_boundary(rng.position(text.len() + 1));
    match rng.below(8) {
        0 => text.insert_str(at, &material.word(rng)),
        1 => text.truncate(at),
        2 => *text = folded(text, rng),
        3 => *text = text.repeat(times(text.len(), 8, material, rng)),
        4 => text.push_str(&material.word(rng)),
        5 => drop(text.drain(..at)),
        6 => *text = material.word(rng),
        _ => {
            let mut bytes = std::mem::take(text).into_bytes();
            if !bytes.is_empty() {
                let at = rng.position(bytes.len());
                bytes[at] = bytes[at].wrapping_add(1);
            }
            *text = String::from_utf8_lossy(&bytes).into_owned();
        }
    }
}

/// A value: a simple one, a part of another input, or one that is large or deep.
fn any(material: &Material<'_>, rng: &mut Rng) -> Value {
    match rng.below(14) {
        0 => Value::Null,
        1 => json!(rng.below(2) == 0),
        2 => json!(rng.below(300)),
        3 => json!(1_u64 << rng.below(64)),
        4 => json!((1_u64 << rng.below(64)) - 1),
        5 => json!(-((1_i64 << rng.below(63)) - 1)),
        6 => json!(*rng.one_of(&[0.5, -0.0, 1e300, 4_294_967_296.0, 1e-300])),
        7 => json!({}),
        8 => json!([]),
        9 => {
            let depth = rng.below(140);
            (0..depth).fold(Value::Null, |inner, at| match at % 3 {
                0 => json!({ "a": inner }),
                _ => json!([inner]),
            })
        }
        10 => Value::String("\u{e9}x".repeat(1 << rng.below(13))),
        11 => part(material, rng).unwrap_or_default(),
        _ => Value::String(material.word(rng)),
    }
}

/// How often something of that length is repeated: a power of two, and no more than an input may have of it.
fn times(length: usize, bits: u64, material: &Material<'_>, rng: &mut Rng) -> usize {
    (material.most / length.max(1)).clamp(1, 1 << rng.below(bits))
}

/// A part of another input.
fn part(material: &Material<'_>, rng: &mut Rng) -> Option<Value> {
    let mut other: Value = serde_json::from_slice(material.any(rng)).ok()?;
    let at = rng.position(count(&other));
    nth(&mut other, &mut { at }).map(Value::take)
}

fn wrapped(inner: Value, rng: &mut Rng) -> Value {
    match rng.below(3) {
        0 => json!({ "a": inner }),
        1 => json!([inner]),
        _ => Value::String(inner.to_string()),
    }
}

/// The same word in another case, or with letters that fold into the same.
fn folded(text: &str, rng: &mut Rng) -> String {
    let fold = |c: char, rng: &mut Rng| match (c, rng.below(4)) {
        (c, 0) if c.is_ascii_lowercase() => c.to_ascii_uppercase(),
        (c, 0) => c.to_ascii_lowercase(),
        ('k' | 'K', 1) => '\u{212a}',
        ('s' | 'S', 1) => '\u{17f}',
        ('i', 1) => '\u{131}',
        _ => c,
    };
    text.chars().map(|c| fold(c, rng)).collect()
}

/// The text as few write it: a key twice, white space, escapes, something after the end.
fn spelt_otherwise(text: &str, material: &Material<'_>, rng: &mut Rng) -> String {
    match rng.below(6) {
        0 => {
            let word = Value::String(material.word(rng)).to_string();
            text.replacen('{', &format!("{{{word}:1,{word}:1,"), 1)
        }
        1 => match text.split_once("\",\"") {
            Some((before, after)) => format!("{before}\",\"{after},\"{after}"),
            None => format!("{text},"),
        },
        2 => text.replace(',', "\u{a0}, \n"),
        3 => text.replace('a', "\\u0061"),
        4 => format!("\u{feff}{text}"),
        _ => {
            let quotes = ["'", "\u{201c}", "\\\""];
            text.replace('"', quotes[rng.position(quotes.len())])
        }
    }
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(list) => list.iter().map(count).sum(),
        Value::Object(map) => map.values().map(count).sum(),
        _ => 0,
    }
}

/// The node with that number, in order of depth first.
fn nth<'a>(value: &'a mut Value, at: &mut usize) -> Option<&'a mut Value> {
    if *at == 0 {
        return Some(value);
    }
    *at -= 1;
    match value {
        Value::Array(list) => list.iter_mut().find_map(|inner| nth(inner, at)),
        Value::Object(map) => map.values_mut().find_map(|inner| nth(inner, at)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_node_has_a_number() {
        let mut value = json!({"a": [1, {"b": 2}], "c": "d"});
        assert_eq!(count(&value), 6);
        let found: Vec<Value> = (0..6)
            .map(|at| nth(&mut value, &mut { at }).unwrap().clone())
            .collect();
        assert_eq!(
            found[2..],
            [json!(1), json!({"b": 2}), json!(2), json!("d")]
        );
        assert!(nth(&mut value, &mut 6).is_none());
    }
}

//! One YAML or JSON document as a value, read as `kubectl` reads it: keys become text, `<<` merges
//! another map. A key that occurs twice is an error, as everywhere here.

use crate::text::shown;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::fmt;

/// The key that merges another map into this one.
const MERGE: &str = "<<";

/// What aliases may add to a document, besides as much as its text.
const ADDED: usize = 1 << 20;

/// Reads one document. An alias of three bytes can stand for megabytes: what comes out is counted.
pub(super) fn read<'de, D: Deserializer<'de>>(text: &str, from: D) -> Result<Value, D::Error> {
    let mut left = ADDED.saturating_add(text.len().saturating_mul(2));
    Reader { left: &mut left }.deserialize(from)
}

/// Reads a value.
struct Reader<'a> {
    /// Values, and bytes of texts, that the document may still have.
    left: &'a mut usize,
}

impl Reader<'_> {
    /// Counts a value, or a key, before it is made.
    fn count<E: Error>(&mut self, text: usize) -> Result<(), E> {
        let left = self.left.checked_sub(1 + text);
        *self.left =
            left.ok_or_else(|| E::custom("its aliases stand for far more than its text"))?;
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Reader<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reader<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a plain value without a tag")
    }

    fn visit_bool<E: Error>(mut self, value: bool) -> Result<Value, E> {
        self.count(0)?;
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(mut self, value: i64) -> Result<Value, E> {
        self.count(0)?;
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E: Error>(mut self, value: u64) -> Result<Value, E> {
        self.count(0)?;
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: Error>(mut self, value: f64) -> Result<Value, E> {
        self.count(0)?;
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: Error>(mut self, value: &str) -> Result<Value, E> {
        self.count(value.len())?;
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E: Error>(mut self, value: String) -> Result<Value, E> {
        self.count(value.len())?;
        Ok(Value::String(value))
    }

    fn visit_unit<E: Error>(mut self) -> Result<Value, E> {
        self.count(0)?;
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<Value, A::Error> {
        self.count(0)?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(Reader { left: self.left })? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut entries: A) -> Result<Value, A::Error> {
        self.count(0)?;
        let mut map = Map::new();
        let mut merged = Vec::new();
        while let Some(key) = entries.next_key_seed(Key)? {
            self.count(key.len())?;
            let value = entries.next_value_seed(Reader { left: self.left })?;
            if key == MERGE {
                merged.push(value);
            } else if map.contains_key(&key) {
                let text = format_args!("the key {} occurs twice in one map", shown(&key));
                return Err(A::Error::custom(text));
            } else {
                map.insert(key, value);
            }
        }
        for source in merged {
            merge(&mut map, source).map_err(A::Error::custom)?;
        }
        Ok(Value::Object(map))
    }
}

/// What is written in a map wins over what it merges, an earlier source over a later one.
fn merge(map: &mut Map<String, Value>, source: Value) -> Result<(), &'static str> {
    match source {
        Value::Object(entries) => {
            for (key, value) in entries {
                map.entry(key).or_insert(value);
            }
            Ok(())
        }
        Value::Array(sources) => {
            sources
                .into_iter()
                .try_for_each(|source| match source.is_object() {
                    true => merge(map, source),
                    false => Err("<< merges maps, and one of its list is none"),
                })
        }
        Value::Null => Ok(()),
        _ => Err("<< merges a map, or a list of maps"),
    }
}

/// A key, whatever it is written as.
pub(super) struct Key;

impl<'de> DeserializeSeed<'de> for Key {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<String, D::Error> {
        from.deserialize_any(self)
    }
}

impl Visitor<'_> for Key {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key, which is text")
    }

    fn visit_str<E>(self, value: &str) -> Result<String, E> {
        Ok(value.to_owned())
    }

    fn visit_bool<E>(self, value: bool) -> Result<String, E> {
        Ok(value.to_string())
    }

    fn visit_i64<E>(self, value: i64) -> Result<String, E> {
        Ok(value.to_string())
    }

    fn visit_u64<E>(self, value: u64) -> Result<String, E> {
        Ok(value.to_string())
    }

    fn visit_f64<E>(self, value: f64) -> Result<String, E> {
        Ok(value.to_string())
    }

    fn visit_unit<E>(self) -> Result<String, E> {
        Ok("null".to_owned())
    }
}

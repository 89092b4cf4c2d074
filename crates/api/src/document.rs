//! Reads JSON text into a value, and refuses what a plain reader would let pass: a key that occurs
//! twice in one object. Depth is bounded by the reader's own limit of 128.

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::fmt;

/// The one value that the text holds.
pub(crate) fn read(bytes: &[u8]) -> Result<Value, serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = Strict.deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

struct Strict;

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(Strict)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let value = entries.next_value_seed(Strict)?;
            if map.contains_key(&key) {
                let key = crate::text::quoted(&key);
                return Err(A::Error::custom(format_args!("the key {key} occurs twice")));
            }
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_serde_json_reads() {
        let text = r#"{"a":[1,-2,1.5,true,null,"x\u00e9\n",{}],"b":{"c":18446744073709551615}}"#;
        let plain: Value = serde_json::from_str(text).unwrap();
        assert_eq!(read(text.as_bytes()).unwrap(), plain);
    }

    #[test]
    fn refuses_ambiguous_and_broken_text() {
        for (text, cause) in [
            (r#"{"a":1,"a":2}"#, "occurs twice"),
            (r#"{"x":[{"a":1,"b":0,"a":2}]}"#, "occurs twice"),
            ("{} {}", "trailing"),
            ("", "EOF"),
            (r#"{"a":1e999}"#, "out of range"),
            ("\u{201c}a\u{201d}", "expected value"),
        ] {
            let error = read(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(cause), "{text}: {error}");
        }
        assert!(read(b"\"\xff\"").is_err());
        let deep = "[".repeat(100_000);
        assert!(
            read(deep.as_bytes())
                .unwrap_err()
                .to_string()
                .contains("recursion")
        );
        let deep = r#"{"a":"#.repeat(100_000);
        assert!(
            read(deep.as_bytes())
                .unwrap_err()
                .to_string()
                .contains("recursion")
        );
    }
}

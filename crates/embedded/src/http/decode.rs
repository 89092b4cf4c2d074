//! From the bytes of a body to a value. Sees fields that are there twice, which a plain reader would
//! silently take the last of, and gives up where YAML means much more than it says: an alias of three bytes
//! can stand for a megabyte.

use crate::bounds::{MAX_NAME_BYTES, MAX_OBJECT_BYTES, long_name};
use crate::path::Path;
use crate::protobuf::{self, Unreadable};
use crate::status::Refused;
use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::fmt;

/// More repeated fields than these are not listed.
const MAX_REPEATED: usize = 32;
/// Bytes that a body of YAML may become, if each value is counted as [`VALUE_BYTES`] and its text.
const MAX_DECODED_BYTES: usize = 4 * MAX_OBJECT_BYTES;
/// Bytes of a value, besides its text.
const VALUE_BYTES: usize = 32;

/// A body that has been read.
#[derive(Debug, Default)]
pub(crate) struct Decoded {
    pub(crate) value: Value,
    /// The places of fields that are there more than once.
    pub(crate) repeated: Vec<String>,
}

/// Reads a body by its media type; none is JSON.
///
/// # Errors
/// The type is not understood, the body is not of it, or a field's name is no name.
pub(crate) fn decode(media: Option<&str>, body: &[u8]) -> Result<Decoded, Refused> {
    let decoded = read(media, body)?;
    match long_name(&decoded.value) {
        None => Ok(decoded),
        Some(length) => Err(Refused::bad_request(format!(
            "the name of a field has {length} bytes, and may have {MAX_NAME_BYTES}"
        ))),
    }
}

fn read(media: Option<&str>, body: &[u8]) -> Result<Decoded, Refused> {
    match media {
        None | Some("application/json") => json(body),
        Some("application/yaml" | "application/apply-patch+yaml") => {
            json(body).or_else(|_| yaml(body))
        }
        Some("application/vnd.kubernetes.protobuf") => {
            let value = protobuf::decode(body).map_err(|error| match error {
                Unreadable::Kind { .. } => Refused::unsupported_media(error.to_string()),
                Unreadable::Malformed(_) => Refused::bad_request(error.to_string()),
            })?;
            Ok(Decoded {
                value,
                repeated: Vec::new(),
            })
        }
        Some(_) => Err(Refused::unsupported_media(
            "the body of the request was in an unknown format - accepted media types include: \
             application/json, application/yaml, application/vnd.kubernetes.protobuf",
        )),
    }
}

fn json(body: &[u8]) -> Result<Decoded, Refused> {
    let mut decoded = Decoded::default();
    let mut reader = serde_json::Deserializer::from_slice(body);
    let seed = ValueSeed {
        path: &mut Path::default(),
        repeated: &mut decoded.repeated,
        // JSON is what it says.
        left: &mut { usize::MAX },
    };
    let read = seed.deserialize(&mut reader).and_then(|value| {
        reader.end()?;
        Ok(value)
    });
    let wrong = |error| format!("the body of the request is not valid JSON: {error}");
    decoded.value = read.map_err(|error| Refused::bad_request(wrong(error)))?;
    Ok(decoded)
}

fn yaml(body: &[u8]) -> Result<Decoded, Refused> {
    let mut decoded = Decoded::default();
    let seed = ValueSeed {
        path: &mut Path::default(),
        repeated: &mut decoded.repeated,
        left: &mut { MAX_DECODED_BYTES },
    };
    let read = seed.deserialize(serde_yaml_ng::Deserializer::from_slice(body));
    let wrong = |error| format!("error decoding YAML: {error}");
    decoded.value = read.map_err(|error| Refused::bad_request(wrong(error)))?;
    Ok(decoded)
}

/// Decodes one value: its path, the repeated fields so far, and the bytes that are left.
struct ValueSeed<'a> {
    path: &'a mut Path,
    repeated: &'a mut Vec<String>,
    /// Bytes that the value may still become.
    left: &'a mut usize,
}

impl ValueSeed<'_> {
    /// Counts a value, or the name of one, before it is made.
    fn count<E: Error>(&mut self, text: usize) -> Result<(), E> {
        let left = self.left.checked_sub(VALUE_BYTES + text);
        *self.left = left.ok_or_else(|| {
            let most = MAX_DECODED_BYTES >> 20;
            E::custom(format_args!("its aliases stand for more than {most} MiB"))
        })?;
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for ValueSeed<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueSeed<'_> {
    type Value = Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("any JSON value")
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

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut reader: A) -> Result<Value, A::Error> {
        self.count(0)?;
        let ValueSeed {
            path,
            repeated,
            left,
        } = self;
        let mut items = Vec::new();
        loop {
            let next = path.item(items.len(), |path| {
                reader.next_element_seed(ValueSeed {
                    path,
                    repeated,
                    left,
                })
            });
            match next? {
                Some(item) => items.push(item),
                None => return Ok(Value::Array(items)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut reader: A) -> Result<Value, A::Error> {
        self.count(0)?;
        let mut fields = Map::new();
        while let Some(name) = reader.next_key::<String>()? {
            self.count(name.len())?;
            let ValueSeed {
                path,
                repeated,
                left,
            } = &mut self;
            let value = path.member(&name, |path| {
                reader.next_value_seed(ValueSeed {
                    path,
                    repeated,
                    left,
                })
            })?;
            if repeated.len() < MAX_REPEATED && fields.contains_key(&name) {
                path.member(&name, |path| repeated.push(path.shortened()));
            }
            let _ = fields.insert(name, value);
        }
        Ok(Value::Object(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::decode;
    use serde_json::json;

    #[test]
    fn a_field_that_is_there_twice_is_seen() {
        let body = br#"{"a": 1, "spec": {"x": [{"y": 1, "y": 2}], "z": 1, "z": {"q": null}}}"#;
        let decoded = decode(None, body).unwrap();
        let value = json!({"a": 1, "spec": {"x": [{"y": 2}], "z": {"q": null}}});
        assert_eq!(decoded.value, value);
        assert_eq!(decoded.repeated, ["spec.x[0].y", "spec.z"]);
    }

    #[test]
    fn what_is_applied_may_be_yaml() {
        let body = b"kind: A\nspec:\n- x: 1\n";
        let decoded = decode(Some("application/apply-patch+yaml"), body).unwrap();
        assert_eq!(decoded.value, json!({"kind": "A", "spec": [{"x": 1}]}));
        assert_eq!(decode(None, body).unwrap_err().code(), 400);
        assert_eq!(decode(Some("text/html"), body).unwrap_err().code(), 415);
    }

    #[test]
    fn yaml_that_says_a_field_twice_is_seen_too() {
        let body = b"spec:\n  x:\n  - y: 1\n    y: 2\n  z: 1\n";
        let decoded = decode(Some("application/yaml"), body).unwrap();
        assert_eq!(decoded.value, json!({"spec": {"x": [{"y": 2}], "z": 1}}));
        assert_eq!(decoded.repeated, ["spec.x[0].y"]);
        let long = format!("{{\"{}\": {{\"a\": 1, \"a\": 2}}}}", "x".repeat(10_000));
        let decoded = decode(None, long.as_bytes()).unwrap();
        assert!(decoded.repeated[0].len() < 5000);
    }

    #[test]
    fn aliases_may_stand_for_a_little_but_not_for_gigabytes() {
        let media = Some("application/yaml");
        let little = decode(media, b"a: &a [1, 2]\nb: {c: *a, d: *a}\n").unwrap();
        let value = json!({"a": [1, 2], "b": {"c": [1, 2], "d": [1, 2]}});
        assert_eq!(little.value, value);
        let text = format!(
            "a: &a {}\nb: [{}]\n",
            "x".repeat(1 << 20),
            "*a,".repeat(600_000)
        );
        let refused = decode(media, text.as_bytes()).unwrap_err();
        assert!(refused.message().contains("aliases"), "{refused}");
    }

    #[test]
    fn hostile_bodies_are_refused() {
        let deep = "[".repeat(100_000);
        let name = format!("{{\"{}\": 1}}", "x".repeat(20_000));
        let bomb = "a: &a [x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\n\
                    c: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c]\n\
                    e: &e [*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e]\n\
                    g: &g [*f,*f,*f,*f,*f,*f,*f,*f]\nh: [*g,*g,*g,*g,*g,*g,*g,*g]\n";
        for body in [
            &b"\xff\xfe"[..],
            b"{",
            b"{}x",
            b"",
            deep.as_bytes(),
            name.as_bytes(),
            bomb.as_bytes(),
        ] {
            for media in [
                "application/json",
                "application/apply-patch+yaml",
                "application/vnd.kubernetes.protobuf",
            ] {
                let empty_yaml = body.is_empty() && media.contains("yaml");
                let decoded = decode(Some(media), body);
                assert!(decoded.is_err() || empty_yaml, "{media} {}", body.len());
            }
        }
    }
}

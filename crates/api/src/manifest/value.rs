//! One YAML document as a value, read as `kubectl` reads it: keys become text, `<<` merges another map, tags of
//! one's own say nothing. Of a key that occurs twice the last counts, and that it does is told.

use super::scalars::{self, Style};
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess, VariantAccess, Visitor,
};
use serde_json::{Map, Number, Value};
use std::collections::BTreeSet;
use std::fmt;

/// What aliases may add to a document, besides as much as its text.
const ADDED: usize = 1 << 20;

/// What was read.
pub(super) struct Read {
    pub(super) value: Value,
    /// Keys that occur more than once in a map: line, from 1, and key.
    pub(super) twice: BTreeSet<(usize, String)>,
}

/// Reads one document. An alias of three bytes can stand for megabytes: what comes out is counted.
pub(super) fn read<'de, D: Deserializer<'de>>(text: &'de str, from: D) -> Result<Read, D::Error> {
    let mut state = State {
        text,
        left: ADDED.saturating_add(text.len().saturating_mul(2)),
        twice: BTreeSet::new(),
    };
    let value = state.reader().deserialize(from)?;
    let twice = state.twice;
    Ok(Read { value, twice })
}

/// What is known of the whole document.
struct State<'t> {
    text: &'t str,
    /// Values, and bytes of texts, that the document may still have.
    left: usize,
    twice: BTreeSet<(usize, String)>,
}

impl<'t> State<'t> {
    fn reader(&mut self) -> Reader<'_, 't> {
        Reader {
            state: self,
            as_text: false,
        }
    }
}

/// Reads a value.
struct Reader<'a, 't> {
    state: &'a mut State<'t>,
    /// What has a tag of somebody's own is text, whatever it looks like.
    as_text: bool,
}

impl Reader<'_, '_> {
    /// Counts a value, or a key, before it is made.
    fn count<E: Error>(&mut self, text: usize) -> Result<(), E> {
        let left = self.state.left.checked_sub(1 + text);
        self.state.left =
            left.ok_or_else(|| E::custom("its aliases stand for far more than its text"))?;
        Ok(())
    }

    fn scalar<E: Error>(mut self, value: impl Into<Value>) -> Result<Value, E> {
        self.count(0)?;
        Ok(match value.into() {
            Value::Null if self.as_text => Value::String(String::new()),
            value if self.as_text => Value::String(value.to_string()),
            value => value,
        })
    }

    fn number<E: Error>(self, number: Option<Number>) -> Result<Value, E> {
        let number = number.ok_or_else(|| {
            E::custom("a number that is infinite, or none, is nothing that JSON can have: quote it")
        })?;
        self.scalar(number)
    }
}

impl<'de> DeserializeSeed<'de> for Reader<'_, '_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reader<'_, '_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        self.scalar(value)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        self.scalar(value)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        self.number(scalars::whole(value))
    }

    fn visit_i128<E: Error>(self, value: i128) -> Result<Value, E> {
        self.number(scalars::number(value as f64))
    }

    fn visit_u128<E: Error>(self, value: u128) -> Result<Value, E> {
        self.number(scalars::number(value as f64))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        self.number(scalars::number(value))
    }

    /// What the reader had to put together: quoted, or of several lines.
    fn visit_str<E: Error>(mut self, value: &str) -> Result<Value, E> {
        self.count(value.len())?;
        Ok(Value::String(value.to_owned()))
    }

    /// A piece of the document.
    fn visit_borrowed_str<E: Error>(self, value: &'de str) -> Result<Value, E> {
        match scalars::style(self.state.text, value) {
            Style::Plain if !self.as_text => {
                let meant = scalars::meant(value);
                match meant {
                    Value::String(_) => self.visit_str(value),
                    meant => self.scalar(meant),
                }
            }
            _ => self.visit_str(value),
        }
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        self.scalar(Value::Null)
    }

    fn visit_none<E: Error>(self) -> Result<Value, E> {
        self.visit_unit()
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<Value, A::Error> {
        self.count(0)?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self.state.reader())? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    /// What comes later in a map wins, also over what was merged before; and what is merged over what is before it.
    fn visit_map<A: MapAccess<'de>>(mut self, mut entries: A) -> Result<Value, A::Error> {
        self.count(0)?;
        let mut map = Map::new();
        let mut own = BTreeSet::new();
        let text = self.state.text;
        while let Some(key) = entries.next_key_seed(Key::of(text))? {
            self.count(key.text.len())?;
            let value = entries.next_value_seed(self.state.reader())?;
            if key.merges {
                merge(&mut map, value).map_err(A::Error::custom)?;
                continue;
            }
            if !own.insert(key.text.clone()) {
                let line = key.at.and_then(|at| text.get(..at));
                let line = 1 + line.map_or(0, |before| before.matches('\n').count());
                self.state.twice.insert((line, key.text.clone()));
            }
            map.insert(key.text, value);
        }
        Ok(Value::Object(map))
    }

    /// A tag of somebody's own.
    fn visit_enum<A: EnumAccess<'de>>(self, tagged: A) -> Result<Value, A::Error> {
        let (_, value) = tagged.variant_seed(Key::of(self.state.text))?;
        value.newtype_variant_seed(Reader {
            state: self.state,
            as_text: true,
        })
    }
}

/// Of several sources the first wins.
fn merge(map: &mut Map<String, Value>, source: Value) -> Result<(), &'static str> {
    match source {
        Value::Object(entries) => {
            map.extend(entries);
            Ok(())
        }
        Value::Array(sources) if sources.iter().all(Value::is_object) => sources
            .into_iter()
            .rev()
            .try_for_each(|source| merge(map, source)),
        _ => Err("<< merges a map, or a list of maps"),
    }
}

/// What is said where reading stops on purpose, and nowhere else.
pub(super) const STOPPED: &str = "\u{1}the field that is looked for\u{1}";

/// Reads a key, whatever it is written as.
#[derive(Clone, Copy)]
pub(super) struct Key<'t> {
    /// The document.
    pub(super) text: &'t str,
    /// The key that reading stops at, with an error that says where that is.
    pub(super) stop_at: Option<&'t str>,
}

/// A key.
pub(super) struct ReadKey {
    pub(super) text: String,
    /// Where it is in the document, if that can be told.
    at: Option<usize>,
    /// Whether it merges another map into this one.
    merges: bool,
}

impl<'t> Key<'t> {
    fn of(text: &'t str) -> Self {
        let stop_at = None;
        Self { text, stop_at }
    }

    fn read<E: Error>(self, text: String) -> Result<ReadKey, E> {
        if self.stop_at.is_some_and(|key| key == text) {
            return Err(E::custom(STOPPED));
        }
        let (at, merges) = (None, false);
        Ok(ReadKey { text, at, merges })
    }
}

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = ReadKey;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<ReadKey, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Key<'_> {
    type Value = ReadKey;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key, which is text")
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<ReadKey, E> {
        self.read(value.to_owned())
    }

    fn visit_borrowed_str<E: Error>(self, value: &'de str) -> Result<ReadKey, E> {
        let plain = scalars::style(self.text, value) == Style::Plain;
        let text = match scalars::meant(value) {
            Value::Number(number) if plain && number.is_f64() => {
                scalars::as_key(number.as_f64().unwrap_or_default())
            }
            meant @ (Value::Bool(_) | Value::Number(_)) if plain => meant.to_string(),
            _ => value.to_owned(),
        };
        Ok(ReadKey {
            at: scalars::offset(self.text, value),
            merges: plain && value == "<<",
            ..self.read(text)?
        })
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<ReadKey, E> {
        self.read(value.to_string())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<ReadKey, E> {
        self.read(value.to_string())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<ReadKey, E> {
        match i64::try_from(value) {
            Ok(value) => self.visit_i64(value),
            Err(_) => Err(E::custom(format_args!(
                "the number {value} is too large for a key"
            ))),
        }
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<ReadKey, E> {
        self.read(scalars::as_key(value))
    }

    fn visit_unit<E: Error>(self) -> Result<ReadKey, E> {
        Err(E::custom("null cannot be a key: quote it, or write one"))
    }
}

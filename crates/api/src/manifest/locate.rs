//! Where in the text a field is. The text is read once more up to the field, and there the reading
//! is stopped by an error of our own: the reader's errors say where they happened.

use super::value::{Key, STOPPED};
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_yaml_ng::Location;
use std::fmt;

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    Key(String),
    Item(usize),
}

/// What of a field is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Its key; for an item of a list, the item.
    Key,
    /// Its value.
    Value,
}

/// Where a field is in YAML; none if it is not there.
pub(super) fn in_yaml(text: &str, steps: &[Step], part: Part) -> Option<Location> {
    let document = serde_yaml_ng::Deserializer::from_str(text).next()?;
    let error = Seek { text, steps, part }.deserialize(document).err()?;
    let location = error.location();
    location.filter(|_| error.to_string().contains(STOPPED))
}

/// The line of a field in JSON at the beginning of a text, from 1; none if it is not there.
pub(super) fn in_json(text: &str, steps: &[Step]) -> Option<usize> {
    let part = Part::Key;
    let mut reader = serde_json::Deserializer::from_str(text);
    let error = Seek { text, steps, part }.deserialize(&mut reader).err()?;
    error.to_string().contains(STOPPED).then(|| error.line())
}

/// The steps of a path as problems write it (`spec.subnets.a.cidr`, `networks[0].name`), as far as
/// the object has them. Keys may have dots themselves: the longest that fits is taken. The rest is
/// what the object has not, or what is inside of a text.
pub(super) fn steps<'p>(object: &Value, path: &'p str) -> (Vec<Step>, &'p str) {
    let mut here = object;
    let mut rest = path;
    let mut steps = Vec::new();
    loop {
        rest = rest.strip_prefix('.').unwrap_or(rest);
        let next = match here {
            Value::Object(map) => {
                let fits = map.iter().filter(|(key, _)| {
                    let after = rest.strip_prefix(key.as_str());
                    after.is_some_and(|after| after.is_empty() || after.starts_with(['.', '[']))
                });
                let longest = fits.max_by_key(|(key, _)| key.len());
                longest.map(|(key, value)| (Step::Key(key.clone()), key.len(), value))
            }
            Value::Array(items) => item(rest).and_then(|(number, length)| {
                Some((Step::Item(number), length, items.get(number)?))
            }),
            _ => None,
        };
        let Some((step, length, value)) = next else {
            return (steps, rest);
        };
        steps.push(step);
        rest = rest.get(length..).unwrap_or_default();
        here = value;
    }
}

/// `[7]…`: the number, and how long that is.
fn item(text: &str) -> Option<(usize, usize)> {
    let (number, _) = text.strip_prefix('[')?.split_once(']')?;
    Some((number.parse().ok()?, number.len() + 2))
}

/// Goes down the steps and stops at the last.
struct Seek<'a> {
    text: &'a str,
    steps: &'a [Step],
    part: Part,
}

impl<'a> Seek<'a> {
    fn below(&self, steps: &'a [Step]) -> Self {
        Self { steps, ..*self }
    }
}

impl<'de> DeserializeSeed<'de> for Seek<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        match self.steps.is_empty() {
            true => from.deserialize_any(Stop),
            false => from.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for Seek<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map or a list")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        let Some((Step::Key(wanted), rest)) = self.steps.split_first() else {
            return Ok(());
        };
        let (text, part) = (self.text, self.part);
        let is_last = rest.is_empty() && part == Part::Key;
        let stop_at = is_last.then_some(wanted.as_str());
        while let Some(key) = entries.next_key_seed(Key { text, stop_at })? {
            match key.text == *wanted {
                true => entries.next_value_seed(self.below(rest))?,
                false => drop(entries.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let Some((Step::Item(wanted), rest)) = self.steps.split_first() else {
            return Ok(());
        };
        for _ in 0..*wanted {
            if items.next_element::<IgnoredAny>()?.is_none() {
                return Ok(());
            }
        }
        items.next_element_seed(self.below(rest))?;
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }
}

/// Takes no value whatever: every visit is an error, which says what was expected.
struct Stop;

impl<'de> Visitor<'de> for Stop {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(STOPPED)
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Err(E::custom(STOPPED))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, _: A) -> Result<(), A::Error> {
        Err(A::Error::custom(STOPPED))
    }

    fn visit_map<A: MapAccess<'de>>(self, _: A) -> Result<(), A::Error> {
        Err(A::Error::custom(STOPPED))
    }
}

//! A reader over one JSON object: takes the keys that are known, each with its type, collects every
//! problem with the path of its field, and at the end reports the keys that nobody asked for.
//!
//! `null` counts as absent everywhere, empty text as absent where a value is parsed from it.
//! Never stops at the first problem.

use crate::text::{FromText, go_folds, quoted};
use crate::{Problem, Problems};
use serde_json::{Map, Value};

/// The reader. [`Fields::finish`] gives its problems; nested readers hand theirs to their parent.
pub struct Fields<'a> {
    map: &'a Map<String, Value>,
    path: String,
    known: Vec<&'static str>,
    rest_accepted: bool,
    any_case: bool,
    problems: Problems,
}

impl<'a> Fields<'a> {
    /// Reads `map`, which is found at `path` (empty at the top).
    pub fn new(map: &'a Map<String, Value>, path: impl Into<String>) -> Self {
        Self {
            map,
            path: path.into(),
            known: Vec::new(),
            rest_accepted: false,
            any_case: false,
            problems: Problems::default(),
        }
    }

    /// Reads keys without regard to case, as Go programs write them.
    pub fn any_case(map: &'a Map<String, Value>, path: impl Into<String>) -> Self {
        Self {
            any_case: true,
            ..Self::new(map, path)
        }
    }

    /// The object itself.
    pub fn map(&self) -> &'a Map<String, Value> {
        self.map
    }

    /// The path of a key.
    pub fn path_of(&self, key: &str) -> String {
        let key = match key.len() {
            0..=64 => key.to_owned(),
            _ => quoted(key),
        };
        match self.path.as_str() {
            "" => key,
            path => format!("{path}.{key}"),
        }
    }

    /// The path of this object.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Whether the key is there with a value; does not take it.
    pub fn has(&self, key: &str) -> bool {
        self.find(key).is_some()
    }

    /// Whether the key is absent, or empty text.
    pub fn lacks(&self, key: &str) -> bool {
        self.find(key)
            .is_none_or(|value| value.as_str() == Some(""))
    }

    /// Takes any value.
    pub fn value(&mut self, key: &'static str) -> Option<&'a Value> {
        self.known.push(key);
        if self.any_case && self.matching(key).count() > 1 {
            self.problem(key, "occurs more than once, in different case: keep one");
        }
        self.find(key)
    }

    /// Takes text; empty text is text.
    pub fn text(&mut self, key: &'static str) -> Option<&'a str> {
        let value = self.value(key)?;
        self.expect(key, value, "a string", Value::as_str)
    }

    /// Takes a boolean; absent is false.
    pub fn flag(&mut self, key: &'static str) -> bool {
        let value = self.value(key);
        let flag = value.and_then(|value| self.expect(key, value, "true or false", Value::as_bool));
        flag.unwrap_or(false)
    }

    /// Takes a number from 0 to 4294967295.
    pub fn number(&mut self, key: &'static str) -> Option<u32> {
        let value = self.value(key)?;
        self.expect(key, value, "a whole number from 0 to 4294967295", |value| {
            value.as_u64().and_then(|number| u32::try_from(number).ok())
        })
    }

    /// Takes a whole number of any size that JSON readers agree on.
    pub fn count(&mut self, key: &'static str) -> Option<u64> {
        let value = self.value(key)?;
        self.expect(key, value, "a whole number, not negative", Value::as_u64)
    }

    /// Takes a value that is written as text; empty text counts as absent.
    pub fn parsed<T: FromText>(&mut self, key: &'static str) -> Option<T> {
        let text = self.text(key).filter(|text| !text.is_empty())?;
        self.read(key, T::from_text(text))
    }

    /// Takes a list; absent is `None`.
    pub fn list(&mut self, key: &'static str) -> Option<&'a [Value]> {
        let value = self.value(key)?;
        self.expect(key, value, "a list", |value| {
            value.as_array().map(Vec::as_slice)
        })
    }

    /// Takes a list of values that are written as text; absent is empty.
    pub fn parsed_list<T: FromText>(&mut self, key: &'static str) -> Vec<T> {
        let items = self.list(key).unwrap_or_default();
        let mut list = Vec::new();
        for (i, item) in items.iter().enumerate() {
            let at = format!("{key}[{i}]");
            let text = self.expect(&at, item, "a string", Value::as_str);
            list.extend(text.and_then(|text| self.read(&at, T::from_text(text))));
        }
        list
    }

    /// Takes an object as it is.
    pub fn map_of(&mut self, key: &'static str) -> Option<&'a Map<String, Value>> {
        let value = self.value(key)?;
        self.expect(key, value, "an object", Value::as_object)
    }

    /// Takes an object with a reader of its own, whose unknown keys are reported.
    pub fn object<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&mut Fields<'a>) -> T,
    ) -> Option<T> {
        let map = self.map_of(key)?;
        Some(self.read_object(key, map, read))
    }

    /// Takes a list of objects, each with a reader of its own; absent is `None`. What a reader
    /// returns `None` for is left out: it has reported why.
    pub fn objects<T>(
        &mut self,
        key: &'static str,
        mut read: impl FnMut(&mut Fields<'a>, usize) -> Option<T>,
    ) -> Option<Vec<T>> {
        let items = self.list(key)?;
        Some(self.read_objects(key, items, &mut read))
    }

    /// Takes a list of lists of objects; absent is `None`.
    pub fn object_lists<T>(
        &mut self,
        key: &'static str,
        mut read: impl FnMut(&mut Fields<'a>, usize) -> Option<T>,
    ) -> Option<Vec<Vec<T>>> {
        let mut lists = Vec::new();
        for (i, item) in self.list(key)?.iter().enumerate() {
            let at = format!("{key}[{i}]");
            let get = |value: &'a Value| value.as_array();
            if let Some(items) = self.expect(&at, item, "a list of objects", get) {
                lists.push(self.read_objects(&at, items, &mut read));
            }
        }
        Some(lists)
    }

    /// Marks keys as known that someone else reads.
    pub fn know(&mut self, keys: &[&'static str]) {
        self.known.extend_from_slice(keys);
    }

    /// Takes all keys that are left: they go to someone who knows them.
    pub fn accept_rest(&mut self) {
        self.rest_accepted = true;
    }

    /// Reports a problem of a key.
    pub fn problem(&mut self, key: &str, text: impl Into<String>) {
        self.problems.add(self.path_of(key), text);
    }

    /// Reports a key, or a value of it, that is legal but not ours to do.
    pub fn unsupported(&mut self, key: &str, text: impl Into<String>) {
        self.problems.0.push(Problem {
            path: self.path_of(key),
            text: text.into(),
            unknown_key: true,
        });
    }

    /// Reports a key that must be there and is not.
    pub fn missing(&mut self, key: &str, remedy: &str) {
        self.problem(key, format!("is missing: {remedy}"));
    }

    /// Reports a key that must be there, if it is absent or empty text.
    pub(crate) fn require(&mut self, key: &str, remedy: &str) {
        if self.lacks(key) {
            self.missing(key, remedy);
        }
    }

    /// Takes over the problems of someone who read a part of this object.
    pub fn absorb(&mut self, problems: Problems) {
        self.problems.0.extend(problems.0);
    }

    /// Whether anything was wrong so far.
    pub fn is_sound(&self) -> bool {
        self.problems.0.is_empty()
    }

    /// All that is wrong, unknown keys last.
    pub fn finish(mut self) -> Problems {
        if !self.rest_accepted {
            for (key, value) in self.map {
                if !value.is_null() && !self.known.iter().any(|known| self.is(key, known)) {
                    let text = match nearest(key, &self.known) {
                        Some(known) => format!("is not a known key: did you mean {known:?}?"),
                        None => "is not a known key: remove it, or correct its name".to_owned(),
                    };
                    self.unsupported(key, text);
                }
            }
        }
        self.problems
    }

    fn is(&self, key: &str, known: &str) -> bool {
        key == known || self.any_case && go_folds(known, key)
    }

    fn matching(&self, key: &str) -> impl Iterator<Item = &'a Value> {
        let named = |(name, value): &(&String, &Value)| !value.is_null() && go_folds(key, name);
        self.map.iter().filter(named).map(|(_, value)| value)
    }

    fn find(&self, key: &str) -> Option<&'a Value> {
        match self.any_case {
            true => self.matching(key).next(),
            false => self.map.get(key).filter(|value| !value.is_null()),
        }
    }

    fn expect<T>(
        &mut self,
        key: &str,
        value: &'a Value,
        wanted: &str,
        get: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Option<T> {
        let got = get(value);
        if got.is_none() {
            self.problem(key, format!("must be {wanted}, not {}", described(value)));
        }
        got
    }

    /// Reads an object that is found at `key`, whose unknown keys are reported.
    pub(crate) fn read_object<T>(
        &mut self,
        key: &str,
        map: &'a Map<String, Value>,
        read: impl FnOnce(&mut Fields<'a>) -> T,
    ) -> T {
        let mut fields = Fields::new(map, self.path_of(key));
        fields.any_case = self.any_case;
        let value = read(&mut fields);
        self.absorb(fields.finish());
        value
    }

    fn read_objects<T>(
        &mut self,
        key: &str,
        items: &'a [Value],
        read: &mut impl FnMut(&mut Fields<'a>, usize) -> Option<T>,
    ) -> Vec<T> {
        let mut list = Vec::with_capacity(items.len());
        for (i, item) in items.iter().enumerate() {
            let at = format!("{key}[{i}]");
            if let Some(map) = self.expect(&at, item, "an object", Value::as_object) {
                list.extend(self.read_object(&at, map, |fields| read(fields, i)));
            }
        }
        list
    }

    fn read<T>(&mut self, key: &str, read: Result<T, String>) -> Option<T> {
        read.map_err(|text| self.problem(key, text)).ok()
    }
}

/// A value for a message: what it is, and itself if it is short.
fn described(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(value) => value.to_string(),
        Value::String(value) => quoted(value),
        Value::Array(items) => format!("a list of {}", items.len()),
        Value::Object(_) => "an object".to_owned(),
    }
}

/// The known key that was probably meant.
pub(crate) fn nearest(key: &str, known: &[&'static str]) -> Option<&'static str> {
    if key.len() > 40 {
        return None;
    }
    let close = |name: &&'static str| {
        let distance = distance(&key.to_ascii_lowercase(), &name.to_ascii_lowercase());
        (distance <= 2 && distance < name.len().min(key.len())).then_some((distance, *name))
    };
    known.iter().filter_map(close).min().map(|(_, name)| name)
}

/// Levenshtein's.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut corner = i;
        let mut left = i + 1;
        for (y, above) in b.iter().zip(row.iter_mut().skip(1)) {
            let cost = corner + usize::from(x != *y);
            corner = *above;
            left = cost.min(left + 1).min(corner + 1);
            *above = left;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
#[path = "fields_tests.rs"]
mod tests;

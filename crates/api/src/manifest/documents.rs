//! A file as objects: documents between `---`, JSON one after the other, lists taken apart. Each
//! object keeps its place, so that a field can be found in the text again.

use super::locate::{self, Part, Step};
use super::scalars;
use super::value;
use crate::document;
use crate::text::quoted;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use std::sync::Arc;

/// More than any manifest has.
const DEEPEST: usize = 1000;

/// What a file has.
#[derive(Debug, Clone, Default)]
pub struct Manifest {
    /// In order.
    pub objects: Vec<Written>,
    /// What cannot be read.
    pub faults: Vec<Fault>,
}

/// A part of a file that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Where, from 1.
    pub line: usize,
    /// What is wrong there.
    pub text: String,
}

/// An object, and where it is written.
#[derive(Debug, Clone)]
pub struct Written {
    /// The object.
    pub object: Value,
    /// The document that it is in.
    text: Arc<str>,
    /// The line that the document begins with, from 1.
    first: usize,
    /// Where in the document it is: items of a list.
    within: Vec<Step>,
}

/// Reads a file: YAML documents, JSON, or lists of objects in either.
pub fn read(text: &str) -> Manifest {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut manifest = Manifest::default();
    if text.trim_start().starts_with('{')
        && let Some(objects) = json(text)
    {
        manifest.objects = objects;
        return manifest;
    }
    for (first, text) in documents(text, &mut manifest.faults) {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let (value, faults) = yaml(text);
        let faults = faults.into_iter().map(|(line, text)| Fault {
            line: first + line.saturating_sub(1),
            text,
        });
        manifest.faults.extend(faults);
        if let Some(value) = value {
            add(&mut manifest, value, &Arc::from(text), first);
        }
    }
    manifest
}

impl Written {
    /// The line of a field; of what is nearest to it where the object does not have it.
    pub fn line(&self, path: &str) -> usize {
        let (steps, inner) = locate::steps(&self.object, path);
        let mut all = self.within.clone();
        all.extend(steps);
        loop {
            if let Some(spot) = locate::in_yaml(&self.text, &all, Part::Key) {
                let inside = self.inside(&all, inner).unwrap_or(spot.line());
                return self.first + inside.saturating_sub(1);
            }
            if all.pop().is_none() {
                return self.first;
            }
        }
    }

    /// The line of a field of JSON that is a text of this object, if it can be told.
    fn inside(&self, steps: &[Step], inner: &str) -> Option<usize> {
        let mut steps_within = steps.get(self.within.len()..)?.iter();
        let value = steps_within.try_fold(&self.object, |here, step| match step {
            Step::Key(key) => here.get(key),
            Step::Item(number) => here.get(number),
        });
        let json = document::read(value?.as_str()?.as_bytes()).ok()?;
        let (wanted, _) = locate::steps(&json, inner);
        let spot = locate::in_yaml(&self.text, steps, Part::Value)?;
        let (before, column) = (spot.line().checked_sub(1)?, spot.column().checked_sub(1)?);
        let line = self.text.lines().nth(before)?;
        let mut value = line.chars().skip(column);
        let (from, begun) = match value.next()? {
            '|' | '>' => (spot.line(), None),
            '\'' => (before, Some(value.collect::<String>())),
            _ => return None,
        };
        let more = self.text.lines().skip(spot.line());
        let rest: Vec<&str> = begun.as_deref().into_iter().chain(more).collect();
        let rest = rest.join("\n");
        let mut wanted = wanted.as_slice();
        while !wanted.is_empty() {
            if let Some(line) = locate::in_json(&rest, wanted) {
                return Some(from + line);
            }
            wanted = wanted.split_last()?.1;
        }
        None
    }
}

/// A list is its items.
fn add(manifest: &mut Manifest, value: Value, text: &Arc<str>, first: usize) {
    let kind = value.get("kind").and_then(Value::as_str);
    let is_list = kind.is_some_and(|kind| kind.ends_with("List"));
    let items = value.get("items").and_then(Value::as_array);
    let written = |object: Value, within: Vec<Step>| Written {
        object,
        text: Arc::clone(text),
        first,
        within,
    };
    match items.filter(|_| is_list) {
        Some(items) => {
            for (i, item) in items.iter().enumerate() {
                let within = vec![Step::Key("items".to_owned()), Step::Item(i)];
                manifest.objects.push(written(item.clone(), within));
            }
        }
        None => manifest.objects.push(written(value, Vec::new())),
    }
}

/// JSON values one after the other, if that is what the text is.
fn json(text: &str) -> Option<Vec<Written>> {
    let mut manifest = Manifest::default();
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    loop {
        let rest = text.get(values.byte_offset()..)?;
        let blank = rest.len() - rest.trim_start().len();
        let start = values.byte_offset() + blank;
        if rest.trim_start().is_empty() {
            return Some(manifest.objects);
        }
        values.next()?.ok()?;
        let own = text.get(start..values.byte_offset())?;
        let mut value = document::read(own.as_bytes()).ok()?;
        scalars::settle(&mut value);
        let first = 1 + text.get(..start)?.matches('\n').count();
        add(&mut manifest, value, &Arc::from(own), first);
    }
}

/// The documents, each with the number of its first line. `---` at the beginning of a line divides them, whatever
/// is around it.
fn documents<'t>(text: &'t str, faults: &mut Vec<Fault>) -> Vec<(usize, &'t str)> {
    let mut found = Vec::new();
    let (mut first, mut start, mut end) = (1, 0, 0);
    for (line, written) in (1..).zip(text.split_inclusive('\n')) {
        let begins = end;
        end += written.len();
        let Some(after) = written.strip_prefix("---").map(str::trim) else {
            continue;
        };
        found.push((first, text.get(start..begins).unwrap_or_default()));
        (first, start) = (line + 1, end);
        if is_text(after) {
            let text = format!(
                "--- divides documents, and {} stands behind it: write that into the next line",
                quoted(after)
            );
            faults.push(Fault { line, text });
        }
    }
    found.push((first, text.get(start..).unwrap_or_default()));
    found
}

fn is_text(line: &str) -> bool {
    !line.trim().is_empty() && !line.trim_start().starts_with('#')
}

/// What is wrong in a document: lines within, and texts.
type Faults = Vec<(usize, String)>;

/// One document: its value, if it has one, and what is wrong with it.
fn yaml(text: &str) -> (Option<Value>, Faults) {
    let is_end = |line: &str| line.split('#').next().unwrap_or("").trim() == "...";
    if !text.lines().any(|line| is_text(line) && !is_end(line)) {
        return (None, Vec::new());
    }
    if let Some(line) = too_deep(text) {
        let text = format!("has more than {DEEPEST} brackets in each other");
        return (None, vec![(line, text)]);
    }
    let mut documents = serde_yaml_ng::Deserializer::from_str(text);
    let Some(document) = documents.next() else {
        return (None, Vec::new());
    };
    let read = match value::read(text, document) {
        Ok(read) => read,
        Err(error) => return (None, vec![explained(&error, text)]),
    };
    let twice = read.twice.iter().map(|(line, key)| {
        let key = quoted(key);
        let text = format!("the key {key} occurs twice in one map: only the last counts");
        (*line, text)
    });
    let mut faults: Faults = twice.collect();
    let ends = text.lines().position(|line| line.trim_end() == "...");
    let is_rest = |line: &str| is_text(line) && !line.starts_with('%');
    match (ends, documents.next().map(IgnoredAny::deserialize)) {
        (Some(at), _) if text.lines().skip(at + 1).any(is_rest) => {
            let text = "... ends the document, and what follows is not read: remove that line, or \
                        write --- where a new one begins";
            faults.push((at + 1, text.to_owned()));
        }
        (None, Some(Err(error))) => faults.push(explained(&error, text)),
        _ => {}
    }
    (Some(read.value).filter(|value| !value.is_null()), faults)
}

/// Reading takes the square of the depth; brackets in texts count too, but nobody has so many.
fn too_deep(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (number, line) in (1..).zip(text.lines()) {
        for byte in line.bytes() {
            match byte {
                b'[' | b'{' => depth += 1,
                b']' | b'}' => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        if depth > DEEPEST {
            return Some(number);
        }
    }
    None
}

/// The line of an error, and what it says.
fn explained(error: &serde_yaml_ng::Error, text: &str) -> (usize, String) {
    let mut line = error.location().map_or(1, |location| location.line());
    let mut near = text.lines().take(line).skip(line.saturating_sub(2));
    let mut hint = match near.any(|line| line.trim_start_matches(' ').starts_with('\t')) {
        true => "; tabs do not indent, write blanks",
        false => "",
    };
    if let Some(at) = text.lines().position(|line| line.starts_with('%')) {
        line = at + 1;
        hint = "; lines that begin with % are not for manifests, remove them";
    }
    let mut text = error.to_string();
    // The place is said beside the text; this one counts from the beginning of the document.
    if let Some(at) = text.find(" at line ") {
        text.truncate(at);
    }
    (line, format!("is not YAML: {text}{hint}"))
}

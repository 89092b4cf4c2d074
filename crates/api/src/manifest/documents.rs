//! A file as objects: documents between `---`, JSON one after the other, lists taken apart. Each
//! object keeps its place, so that a field can be found in the text again.

use super::place::{self, Part, Step};
use super::scalars;
use super::value;
use crate::document;
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
    for (first, text) in documents(text) {
        match yaml(text) {
            Ok(Value::Null) => {}
            Ok(value) => add(&mut manifest, value, &Arc::from(text), first),
            Err((line, text)) => manifest.faults.push(Fault {
                line: first + line.saturating_sub(1),
                text,
            }),
        }
    }
    manifest
}

impl Written {
    /// The line of a field; of what is nearest to it where the object does not have it.
    pub fn line(&self, path: &str) -> usize {
        let (steps, inner) = place::steps(&self.object, path);
        let mut all = self.within.clone();
        all.extend(steps);
        loop {
            if let Some(spot) = place::in_yaml(&self.text, &all, Part::Key) {
                let inside = self.inside(&all, inner).unwrap_or(spot.line);
                return self.first + inside.saturating_sub(1);
            }
            if all.pop().is_none() {
                return self.first;
            }
        }
    }

    /// The line of a field of JSON that is a text of this object, if it can be told.
    fn inside(&self, steps: &[Step], inner: &str) -> Option<usize> {
        let value = steps
            .get(self.within.len()..)?
            .iter()
            .try_fold(&self.object, |here, step| match step {
                Step::Key(key) => here.get(key),
                Step::Item(number) => here.get(number),
            });
        let json = document::read(value?.as_str()?.as_bytes()).ok()?;
        let (wanted, _) = place::steps(&json, inner);
        let spot = place::in_yaml(&self.text, steps, Part::Value)?;
        let line = self.text.lines().nth(spot.line.checked_sub(1)?)?;
        let begins = line.chars().nth(spot.column.checked_sub(1)?)?;
        let from = match begins {
            '|' | '>' => spot.line,
            '\'' => spot.line.checked_sub(1)?,
            _ => return None,
        };
        let rest: String = match begins {
            '\'' => {
                let line: String = line.chars().skip(spot.column).collect();
                let more = self.text.lines().skip(spot.line);
                [line.as_str()]
                    .into_iter()
                    .chain(more)
                    .collect::<Vec<_>>()
                    .join("\n")
            }
            _ => self
                .text
                .lines()
                .skip(spot.line)
                .collect::<Vec<_>>()
                .join("\n"),
        };
        let mut wanted = wanted.as_slice();
        loop {
            let found = match wanted.is_empty() {
                true => return None,
                false => place::in_json(&rest, wanted),
            };
            if let Some(line) = found {
                return Some(from + line);
            }
            wanted = wanted.split_last()?.1;
        }
    }
}

/// A list is its items.
fn add(manifest: &mut Manifest, value: Value, text: &Arc<str>, first: usize) {
    let is_list = value
        .get("kind")
        .and_then(Value::as_str)
        .is_some_and(|kind| kind.ends_with("List"));
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
        let value = document::read(own.as_bytes()).ok()?;
        let first = 1 + text.get(..start)?.matches('\n').count();
        add(&mut manifest, value, &Arc::from(own), first);
    }
}

/// The documents, each with the number of its first line. `---` at the beginning of a line divides
/// them, whatever is around it; what has only directives belongs to what follows.
fn documents(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let (mut first, mut start, mut end) = (1, 0, 0);
    for (number, line) in (1..).zip(text.split_inclusive('\n')) {
        let divides = line
            .strip_prefix("---")
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace));
        let before = text.get(start..end).unwrap_or_default();
        if divides && !is_only_directives(before) {
            found.push((first, before));
            (first, start) = (number, end);
        }
        end += line.len();
    }
    found.push((first, text.get(start..).unwrap_or_default()));
    found
}

fn is_only_directives(text: &str) -> bool {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    text.lines().any(|line| line.starts_with('%')) && lines.all(|line| line.starts_with(['%', '#']))
}

/// One document; the error has its line within.
fn yaml(text: &str) -> Result<Value, (usize, String)> {
    let fault = |error: serde_yaml_ng::Error| {
        let line = error.location().map_or(1, |location| location.line());
        (line, explained(&error, text, line))
    };
    let is_text = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    let marks = ["---", "..."];
    if !text
        .lines()
        .any(|line| is_text(&line) && !marks.contains(&line.split('#').next().unwrap_or("").trim()))
    {
        return Ok(Value::Null);
    }
    if let Some(line) = too_deep(text) {
        return Err((
            line,
            format!("has more than {DEEPEST} brackets in each other"),
        ));
    }
    let mut documents = serde_yaml_ng::Deserializer::from_str(text);
    let mut value = match documents.next() {
        Some(document) => value::read(text, document).map_err(fault)?,
        None => return Ok(Value::Null),
    };
    scalars::settle(text, &mut value);
    let ends = text.lines().position(|line| line.trim_end() == "...");
    let rest = ends.map(|at| (at, text.lines().skip(at + 1).collect::<Vec<_>>()));
    match rest {
        Some((at, rest)) if rest.iter().any(is_text) => Err((
            at + 1,
            "... ends the document, and what follows is not read: remove that line, or write --- \
             where a new one begins"
                .to_owned(),
        )),
        _ => Ok(value),
    }
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

fn explained(error: &serde_yaml_ng::Error, text: &str, line: usize) -> String {
    let near = text.lines().take(line).skip(line.saturating_sub(2));
    let tab = near
        .map(|line| line.trim_start_matches(' '))
        .any(|line| line.starts_with('\t'));
    let mut text = error.to_string();
    // The place is said beside the text; this one counts from the beginning of the document.
    if let Some(at) = text.find(" at line ") {
        text.truncate(at);
    }
    match tab {
        true => format!("is not YAML: {text}; tabs do not indent, write blanks"),
        false => format!("is not YAML: {text}"),
    }
}

//! `plexus describe`: everything about one object, with where it came from. Objects go in, titled lines
//! come out, as a text or for programs.

mod holder;
mod network;
mod pod;
#[cfg(test)]
mod tests;

pub use holder::describe_holder;
pub use network::describe_network;
pub use pod::describe_pod;

use crate::snapshot::{Snapshot, text};
use crate::text::{Paint, Screen};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A title, and lines of a word and what belongs to it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Section {
    title: String,
    lines: Vec<(String, String)>,
}

impl Section {
    fn new(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            lines: Vec::new(),
        }
    }

    /// Adds a line; nothing to say is nothing said.
    fn line(&mut self, word: &str, value: impl Into<String>) {
        let value = value.into();
        if !value.is_empty() {
            self.lines.push((word.to_owned(), value));
        }
    }

    /// Adds lines under one word.
    fn lines(&mut self, word: &str, value: impl IntoIterator<Item = impl Into<String>>) {
        for (number, value) in value.into_iter().enumerate() {
            let word = if number == 0 { word } else { "" };
            self.lines.push((word.to_owned(), value.into()));
        }
    }

    fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }
}

/// The description of an object, in sections.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Description(Vec<Section>);

impl Description {
    /// For programs: the object's title, and its sections with the values under each word.
    pub fn to_json(&self) -> Value {
        let each = self.0.iter().map(|section| {
            let mut value: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
            let mut under = "";
            for (word, text) in &section.lines {
                if !word.is_empty() {
                    under = word;
                }
                value.entry(under).or_default().push(text);
            }
            json!({"title": section.title, "said": value})
        });
        let title = self.0.first().map_or("", |head| head.title.as_str());
        json!({"title": title, "sections": each.collect::<Vec<_>>()})
    }

    /// For people.
    pub fn render(&self, screen: Screen) -> String {
        render(&self.0, screen)
    }
}

fn render(sections: &[Section], screen: Screen) -> String {
    let width = sections
        .iter()
        .flat_map(|section| &section.lines)
        .map(|(word, _)| word.chars().count())
        .max()
        .unwrap_or_default();
    let mut out = String::new();
    for section in sections {
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(&screen.paint(Paint::Strong, &section.title));
        out.push('\n');
        for (word, value) in &section.lines {
            let blanks = width - word.chars().count() + 2;
            let head = format!(
                "  {}{}",
                screen.paint(Paint::Faint, word),
                " ".repeat(blanks)
            );
            out.push_str(&screen.wrapped(&head, width + 4, value));
        }
    }
    out
}

/// The Events about an object.
fn events(snapshot: &Snapshot, kind: &str, object: &Value) -> Section {
    let mut section = Section::new("Events");
    let involved = |event: &&Value| {
        let same = |key: &str, of: &str| text(event, &format!("/involvedObject/{key}")) == of;
        same("kind", kind)
            && same("name", crate::snapshot::name(object))
            && same("namespace", crate::snapshot::namespace(object))
    };
    for event in snapshot.events.iter().filter(involved) {
        let when = ["/lastTimestamp", "/eventTime"]
            .into_iter()
            .map(|pointer| text(event, pointer))
            .find(|time| !time.is_empty())
            .and_then(|time| crate::text::seconds_since(time, snapshot.now))
            .map(|seconds| format!("{} ago: ", crate::text::age(seconds)))
            .unwrap_or_default();
        section.line(
            text(event, "/reason"),
            format!("{when}{}", text(event, "/message")),
        );
    }
    section
}

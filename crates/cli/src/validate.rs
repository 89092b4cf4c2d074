//! `plexus validate`: all that there is to say about files, offline, as `file:line: …`.

use crate::input::Source;
use crate::text::{Paint, Screen};
use plexus_api::later::Classes;
use plexus_api::manifest::{Finding, Level, Written, check, check_all, describe_kind};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What was found in some files.
#[derive(Debug, Clone, Default)]
pub struct Report {
    lines: Vec<Line>,
    files: usize,
    objects: usize,
}

#[derive(Debug, Clone)]
struct Line {
    file: String,
    object: String,
    finding: Finding,
}

/// Looks at every object by itself, knowing the device classes of all, then at all together. `namespace` is where objects
/// go that name none.
pub fn validate(sources: &[Source], namespace: &str) -> Report {
    let mut report = Report {
        files: sources.len(),
        ..Report::default()
    };
    let mut all: Vec<(&str, &Written)> = Vec::new();
    for source in sources {
        for fault in &source.faults {
            report.lines.push(Line {
                file: source.name.clone(),
                object: String::new(),
                finding: Finding {
                    level: Level::Problem,
                    path: String::new(),
                    line: fault.line,
                    text: fault.text.clone(),
                },
            });
        }
        all.extend(source.objects.iter().map(|one| (source.name.as_str(), one)));
    }
    report.objects = all.len();
    let classes = Classes::of(all.iter().map(|(_, written)| &written.object));
    for (file, written) in &all {
        for finding in check(written, &classes) {
            report.add(file, written, finding);
        }
    }
    let objects: Vec<&Written> = all.iter().map(|(_, written)| *written).collect();
    for (number, finding) in check_all(&objects, namespace) {
        if let Some((file, written)) = all.get(number) {
            report.add(file, written, finding);
        }
    }
    let order: BTreeMap<&str, usize> = sources
        .iter()
        .enumerate()
        .map(|(number, source)| (source.name.as_str(), number))
        .collect();
    report
        .lines
        .sort_by_key(|line| (order.get(line.file.as_str()).copied(), line.finding.line));
    report
}

impl Report {
    fn add(&mut self, file: &str, written: &Written, finding: Finding) {
        self.lines.push(Line {
            file: file.to_owned(),
            object: describe_kind(&written.object),
            finding,
        });
    }

    /// How many there are of a level.
    pub fn count(&self, level: Level) -> usize {
        let of = |line: &&Line| line.finding.level == level;
        self.lines.iter().filter(of).count()
    }

    /// Whether everything can be applied.
    pub fn is_valid(&self) -> bool {
        self.count(Level::Problem) == 0
    }

    /// Those findings alone.
    pub fn only(&self, levels: &[Level]) -> Self {
        let mut some = self.clone();
        some.lines
            .retain(|line| levels.contains(&line.finding.level));
        some
    }

    /// One line a finding, then a sum.
    pub fn render(&self, screen: Screen) -> String {
        let mut out = String::new();
        for line in &self.lines {
            let Finding {
                level,
                path,
                line: number,
                text,
            } = &line.finding;
            let location = format!("{}:{number}: ", line.file);
            let (word, paint) = word(*level);
            let object = match line.object.as_str() {
                "" => String::new(),
                object => format!("{object}: "),
            };
            // Some texts begin with their field.
            let text = text
                .strip_prefix(path.as_str())
                .unwrap_or(text)
                .trim_start();
            let path = match path.as_str() {
                "" => String::new(),
                path => format!("{path}: "),
            };
            let (location, word) = (
                screen.paint(Paint::Faint, &location),
                screen.paint(paint, word),
            );
            let head = format!("{location}{word}: ");
            out.push_str(&screen.wrapped(&head, 4, &format!("{object}{path}{text}")));
        }
        out.push_str(&self.sum());
        out
    }

    fn sum(&self) -> String {
        let counted = |count: usize, one: &str, many: &str| match count {
            1 => format!("1 {one}"),
            count => format!("{count} {many}"),
        };
        let objects = counted(self.objects, "object", "objects");
        let files = counted(self.files, "file", "files");
        let mut counts = vec![match self.count(Level::Problem) {
            0 => "no problem".to_owned(),
            problems => counted(problems, "problem", "problems"),
        }];
        for (level, one, many) in [
            (Level::Warning, "warning", "warnings"),
            (Level::Waiting, "waiting", "waiting"),
            (Level::Note, "note", "notes"),
        ] {
            match self.count(level) {
                0 => {}
                count => counts.push(counted(count, one, many)),
            }
        }
        format!("{objects} in {files}: {}\n", counts.join(", "))
    }

    /// For programs.
    pub fn to_json(&self) -> Value {
        let each = self.lines.iter().map(|line| {
            json!({
                "file": line.file, "line": line.finding.line, "object": line.object,
                "level": word(line.finding.level).0, "field": line.finding.path,
                "message": line.finding.text,
            })
        });
        json!({"valid": self.is_valid(), "objects": self.objects, "findings": each.collect::<Vec<_>>()})
    }
}

fn word(level: Level) -> (&'static str, Paint) {
    match level {
        Level::Problem => ("problem", Paint::Bad),
        Level::Warning => ("warning", Paint::Warn),
        Level::Waiting => ("waits", Paint::Warn),
        Level::Note => ("note", Paint::Faint),
    }
}

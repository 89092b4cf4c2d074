//! Label selectors: `a=1,b!=2,c in (3,4),d notin (5),e,!f,g>1`.

use serde_json::Value;
use std::collections::BTreeSet;

/// A parsed label selector: all of its requirements must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels(Vec<Requirement>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    test: Test,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    In(BTreeSet<String>),
    NotIn(BTreeSet<String>),
    Exists,
    Absent,
    Above(i64),
    Below(i64),
}

impl Labels {
    /// Reads a selector; an empty text selects everything.
    ///
    /// # Errors
    /// The text of a `BadRequest`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parser = Parser { rest: text };
        let mut requirements = Vec::new();
        if parser.look() == Token::End {
            return Ok(Self::default());
        }
        loop {
            requirements.push(parser.requirement()?);
            match parser.take() {
                Token::End => return Ok(Self(requirements)),
                Token::Comma => {}
                other => return Err(unexpected(other, "',' or 'end of string'")),
            }
        }
    }

    /// Whether it selects everything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether an object is selected, by its `metadata.labels`.
    #[must_use]
    pub fn matches(&self, object: &Value) -> bool {
        let labels = object.pointer("/metadata/labels");
        self.matches_with(&|key| labels?.get(key)?.as_str())
    }

    /// Whether something with these labels is selected.
    pub fn matches_with<'a>(&self, get: &dyn Fn(&str) -> Option<&'a str>) -> bool {
        self.0
            .iter()
            .all(|requirement| requirement.holds(get(&requirement.key)))
    }
}

impl Requirement {
    fn holds(&self, value: Option<&str>) -> bool {
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match &self.test {
            Test::In(wanted) => value.is_some_and(|value| wanted.contains(value)),
            Test::NotIn(unwanted) => value.is_none_or(|value| !unwanted.contains(value)),
            Test::Exists => value.is_some(),
            Test::Absent => value.is_none(),
            Test::Above(bound) => number().is_some_and(|number| number > *bound),
            Test::Below(bound) => number().is_some_and(|number| number < *bound),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    End,
    Comma,
    Open,
    Close,
    Not,
    Equal,
    NotEqual,
    Above,
    Below,
    Word(&'a str),
}

struct Parser<'a> {
    rest: &'a str,
}

const SIGNS: &[(&str, Token<'static>)] = &[
    ("==", Token::Equal),
    ("!=", Token::NotEqual),
    ("=", Token::Equal),
    ("!", Token::Not),
    (",", Token::Comma),
    ("(", Token::Open),
    (")", Token::Close),
    (">", Token::Above),
    ("<", Token::Below),
];

impl<'a> Parser<'a> {
    fn look(&self) -> Token<'a> {
        Parser { rest: self.rest }.take()
    }

    fn take(&mut self) -> Token<'a> {
        self.rest = self.rest.trim_start();
        if self.rest.is_empty() {
            return Token::End;
        }
        for (sign, token) in SIGNS {
            if let Some(rest) = self.rest.strip_prefix(sign) {
                self.rest = rest;
                return *token;
            }
        }
        let ends = |c: char| c.is_whitespace() || "=!,()<>".contains(c);
        let (word, rest) = self
            .rest
            .split_at(self.rest.find(ends).unwrap_or(self.rest.len()));
        self.rest = rest;
        Token::Word(word)
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let absent = self.look() == Token::Not;
        if absent {
            self.take();
        }
        let key = match self.take() {
            Token::Word(key) => {
                check_key(key)?;
                key.to_owned()
            }
            other => return Err(unexpected(other, "identifier")),
        };
        if absent {
            return Ok(Requirement {
                key,
                test: Test::Absent,
            });
        }
        let test = match self.look() {
            Token::End | Token::Comma => Test::Exists,
            _ => self.test(&key)?,
        };
        Ok(Requirement { key, test })
    }

    fn test(&mut self, key: &str) -> Result<Test, String> {
        Ok(match self.take() {
            Token::Equal => Test::In(BTreeSet::from([self.exact_value(key)?])),
            Token::NotEqual => Test::NotIn(BTreeSet::from([self.exact_value(key)?])),
            Token::Word("in") => Test::In(self.values(key)?),
            Token::Word("notin") => Test::NotIn(self.values(key)?),
            Token::Above => Test::Above(self.bound(key)?),
            Token::Below => Test::Below(self.bound(key)?),
            other => {
                return Err(unexpected(other, "in, notin, =, ==, !=, gt, lt"));
            }
        })
    }

    /// What stands behind `=`; nothing is the empty value.
    fn exact_value(&mut self, key: &str) -> Result<String, String> {
        match self.look() {
            Token::End | Token::Comma => Ok(String::new()),
            _ => match self.take() {
                Token::Word(value) => {
                    check_value(key, value)?;
                    Ok(value.to_owned())
                }
                other => Err(unexpected(other, "identifier")),
            },
        }
    }

    fn bound(&mut self, key: &str) -> Result<i64, String> {
        let value = self.exact_value(key)?;
        value.parse().map_err(|_| {
            format!("values[0][{key}]: Invalid value: {value:?}: for 'Gt', 'Lt' operators, the value must be an integer")
        })
    }

    fn values(&mut self, key: &str) -> Result<BTreeSet<String>, String> {
        match self.take() {
            Token::Open => {}
            other => return Err(unexpected(other, "'('")),
        }
        let mut values = BTreeSet::new();
        // An empty place between commas is the empty value.
        let mut value = "";
        loop {
            match self.take() {
                Token::Word(word) if value.is_empty() => {
                    check_value(key, word)?;
                    value = word;
                }
                Token::Comma => {
                    values.insert(std::mem::take(&mut value).to_owned());
                }
                Token::Close => {
                    values.insert(value.to_owned());
                    return Ok(values);
                }
                other => return Err(unexpected(other, "',', ')' or identifier")),
            }
        }
    }
}

fn unexpected(found: Token<'_>, expected: &str) -> String {
    let found = match found {
        Token::End => "",
        Token::Comma => ",",
        Token::Open => "(",
        Token::Close => ")",
        Token::Not => "!",
        Token::Equal => "=",
        Token::NotEqual => "!=",
        Token::Above => ">",
        Token::Below => "<",
        Token::Word(word) => word,
    };
    format!("unable to parse requirement: found '{found}', expected: {expected}")
}

fn check_key(key: &str) -> Result<(), String> {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    let prefix_fine = prefix.is_none_or(|prefix| {
        !prefix.is_empty()
            && prefix.len() <= 253
            && prefix.split('.').all(|part| {
                let inside = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
                !part.is_empty()
                    && part.chars().all(inside)
                    && !part.starts_with('-')
                    && !part.ends_with('-')
            })
    });
    if prefix_fine && !name.is_empty() && is_name(name) {
        return Ok(());
    }
    Err(format!(
        "unable to parse requirement: key: Invalid value: {key:?}: name part must consist of \
         alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric \
         character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
         '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
    ))
}

fn check_value(key: &str, value: &str) -> Result<(), String> {
    if is_name(value) {
        return Ok(());
    }
    Err(format!(
        "unable to parse requirement: values[0][{key}]: Invalid value: {value:?}: a valid label \
         must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must \
         start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or \
         '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
    ))
}

fn is_name(text: &str) -> bool {
    let edge = |c: Option<char>| c.is_none_or(|c| c.is_ascii_alphanumeric());
    text.len() <= 63
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
        && edge(text.chars().next())
        && edge(text.chars().next_back())
}

#[cfg(test)]
#[path = "labels_tests.rs"]
mod tests;

//! Reads a value as JSON, or else as Python writes it: `{'a': ['b', True, None]}`. Contrail's users
//! write both. Refuses keys that occur twice; depth is bounded. Never evaluates anything.

use crate::document;
use crate::text::quoted;
use serde_json::{Map, Number, Value};
use std::iter::Peekable;
use std::str::CharIndices;

/// Deeper than any annotation.
const MAX_DEPTH: usize = 16;

/// The one value that the text holds; the error says what is wrong and where.
pub(crate) fn read(text: &str) -> Result<Value, String> {
    let cause = match document::read(text.as_bytes()) {
        Ok(value) => return Ok(value),
        Err(cause) => cause,
    };
    if !text.contains('\'') && !["True", "False", "None"].iter().any(|w| text.contains(w)) {
        return Err(format!("is not valid JSON: {cause}"));
    }
    let mut reader = Reader {
        text,
        rest: text.char_indices().peekable(),
    };
    let value = reader.value(0)?;
    match reader.next_visible() {
        None => Ok(value),
        Some((at, _)) => Err(format!("has more after its end, at byte {at}")),
    }
}

struct Reader<'a> {
    text: &'a str,
    rest: Peekable<CharIndices<'a>>,
}

impl Reader<'_> {
    fn value(&mut self, depth: usize) -> Result<Value, String> {
        if depth > MAX_DEPTH {
            return Err(format!("is nested deeper than {MAX_DEPTH}"));
        }
        match self.next_visible() {
            Some((_, '{')) => self.dictionary(depth),
            Some((_, '[')) => self.list(depth),
            Some((_, quote @ ('\'' | '"'))) => self.string(quote).map(Value::String),
            Some((at, _)) => self.word(at),
            None => Err("ends where a value should be".to_owned()),
        }
    }

    fn dictionary(&mut self, depth: usize) -> Result<Value, String> {
        let mut map = Map::new();
        while !self.closed_by('}') {
            let key = match self.value(depth + 1)? {
                Value::String(key) => key,
                _ => return Err("has a key that is not text".to_owned()),
            };
            self.expect(':')?;
            let value = self.value(depth + 1)?;
            if map.insert(key.clone(), value).is_some() {
                return Err(format!("has the key {} twice", quoted(&key)));
            }
            if !self.more('}')? {
                break;
            }
        }
        Ok(Value::Object(map))
    }

    fn list(&mut self, depth: usize) -> Result<Value, String> {
        let mut list = Vec::new();
        while !self.closed_by(']') {
            list.push(self.value(depth + 1)?);
            if !self.more(']')? {
                break;
            }
        }
        Ok(Value::Array(list))
    }

    fn string(&mut self, quote: char) -> Result<String, String> {
        let mut string = String::new();
        while let Some((at, c)) = self.rest.next() {
            match c {
                '\\' => match self.rest.next() {
                    Some((_, 'n')) => string.push('\n'),
                    Some((_, 't')) => string.push('\t'),
                    Some((_, c @ ('\\' | '\'' | '"' | '/'))) => string.push(c),
                    _ => return Err(format!("has an escape that is not known, at byte {at}")),
                },
                c if c == quote => return Ok(string),
                c => string.push(c),
            }
        }
        Err("has a string without an end".to_owned())
    }

    /// A constant, a number, or the `u` of an old Python's string.
    fn word(&mut self, start: usize) -> Result<Value, String> {
        let mut end = start + 1;
        while let Some((at, _)) = self.rest.next_if(|(_, c)| is_of_word(*c)) {
            end = at + 1;
        }
        let word = self.text.get(start..end).unwrap_or_default();
        match word {
            "True" | "true" => Ok(Value::Bool(true)),
            "False" | "false" => Ok(Value::Bool(false)),
            "None" | "null" => Ok(Value::Null),
            "u" => match self.rest.next_if(|(_, c)| matches!(c, '\'' | '"')) {
                Some((_, quote)) => self.string(quote).map(Value::String),
                None => Err(format!("has {word:?} at byte {start}, which means nothing")),
            },
            _ => match word.parse::<Number>() {
                Ok(number) => Ok(Value::Number(number)),
                Err(_) => Err(format!(
                    "has something at byte {start} that is neither JSON nor a Python literal: put \
                     text into quotes"
                )),
            },
        }
    }

    fn next_visible(&mut self) -> Option<(usize, char)> {
        while self.rest.next_if(|(_, c)| c.is_whitespace()).is_some() {}
        self.rest.next()
    }

    fn closed_by(&mut self, end: char) -> bool {
        while self.rest.next_if(|(_, c)| c.is_whitespace()).is_some() {}
        self.rest.next_if(|(_, c)| *c == end).is_some()
    }

    fn expect(&mut self, wanted: char) -> Result<(), String> {
        match self.next_visible() {
            Some((_, c)) if c == wanted => Ok(()),
            Some((at, _)) => Err(format!("lacks {wanted:?} at byte {at}")),
            None => Err(format!("ends where {wanted:?} should be")),
        }
    }

    /// After an element: whether a comma announces another.
    fn more(&mut self, end: char) -> Result<bool, String> {
        match self.next_visible() {
            Some((_, ',')) => Ok(true),
            Some((_, c)) if c == end => Ok(false),
            Some((at, _)) => Err(format!("lacks ',' or {end:?} at byte {at}")),
            None => Err(format!("ends where {end:?} should be")),
        }
    }
}

fn is_of_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '+' | '-' | '_')
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn json_and_python_say_the_same() {
        let wanted = json!([{"domain": "d", "n": [1, -2, true, false, null], "e": {}}]);
        for text in [
            r#"[{"domain":"d","n":[1,-2,true,false,null],"e":{}}]"#,
            "[{'domain': 'd', 'n': [1, -2, True, False, None], 'e': {}}]",
            "[{u'domain': u\"d\", 'n': [1, -2, True, False, None,], 'e': {},},]",
            " [ { 'domain' : 'd' , 'n':[1,-2,true,false,null],\n'e':{ } } ] ",
        ] {
            assert_eq!(read(text).unwrap(), wanted, "{text}");
        }
        assert_eq!(read(r"'a\'b\\\n'").unwrap(), json!("a'b\\\n"));
    }

    #[test]
    fn hostile_literals_are_refused() {
        let deep = format!("{}'x'", "[".repeat(100_000));
        for text in [
            "",
            "{",
            "{'a'",
            "{'a':",
            "{'a':1",
            "{'a':1,,}",
            "{'a' 1}",
            "{1:'a'}",
            "{'a':1,'a':1}",
            "{'a':'b",
            "'a' 'b'",
            "[,'a']",
            "['a' 'b']",
            "__import__('os')",
            "{'a': os}",
            "'\\x41'",
            "'\\",
            "u",
            "None None",
            "ü'x'",
            "['a')",
            "{'a': 1e999}",
            &deep,
        ] {
            let error = read(text).unwrap_err();
            assert!(error.len() < 300, "{error}");
        }
    }
}

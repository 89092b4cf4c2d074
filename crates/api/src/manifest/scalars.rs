//! Plain scalars as `kubectl` reads them. It keeps to YAML 1.1, where `yes` is true, `0644` is octal
//! and `1e3` is text; our reader keeps to 1.2. What the two read differently is read again here.

use super::place::{Part, Step, in_yaml};
use serde_json::{Number, Value};

/// More doubtful scalars than any manifest has; looking each up reads the text again.
const MOST: usize = 1024;

/// Corrects the value that was read from a YAML text.
pub(super) fn settle(text: &str, value: &mut Value) {
    let mut found = Vec::new();
    doubtful(value, &mut Vec::new(), &mut found);
    for steps in found {
        let Some(source) = source(text, &steps) else {
            continue;
        };
        let Some(place) = at(value, &steps) else {
            continue;
        };
        match place {
            Value::String(read) if source.starts_with(read.as_str()) => {
                if let Some(meant) = meant(read) {
                    *place = meant;
                }
            }
            Value::Number(_) => {
                let end = source.find(|c: char| !c.is_ascii_alphanumeric() && !"+-._".contains(c));
                let written = source.get(..end.unwrap_or(source.len()));
                if let Some(written) = written.filter(|written| !is_float(written)) {
                    *place = Value::String(written.to_owned());
                }
            }
            _ => {}
        }
    }
}

/// Paths of what may be read differently: texts that 1.1 knows, and numbers with a fraction.
fn doubtful(value: &Value, path: &mut Vec<Step>, found: &mut Vec<Vec<Step>>) {
    let is_doubtful = match value {
        Value::String(text) => meant(text).is_some(),
        Value::Number(number) => number.is_f64(),
        _ => false,
    };
    if is_doubtful && found.len() < MOST {
        found.push(path.clone());
    }
    match value {
        Value::Array(items) => {
            for (i, item) in items.iter().enumerate() {
                path.push(Step::Item(i));
                doubtful(item, path, found);
                path.pop();
            }
        }
        Value::Object(map) => {
            for (key, item) in map {
                path.push(Step::Key(key.clone()));
                doubtful(item, path, found);
                path.pop();
            }
        }
        _ => {}
    }
}

/// The line from where the scalar begins; a quoted one begins with its quote.
fn source(text: &str, steps: &[Step]) -> Option<String> {
    let spot = in_yaml(text, steps, Part::Value)?;
    let line = text.lines().nth(spot.line.checked_sub(1)?)?;
    Some(line.chars().skip(spot.column.checked_sub(1)?).collect())
}

fn at<'v>(value: &'v mut Value, steps: &[Step]) -> Option<&'v mut Value> {
    steps.iter().try_fold(value, |here, step| match step {
        Step::Key(key) => here.get_mut(key),
        Step::Item(number) => here.get_mut(number),
    })
}

/// What an unquoted text means in 1.1, if not that text.
fn meant(text: &str) -> Option<Value> {
    match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => return Some(Value::Bool(true)),
        "n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => return Some(Value::Bool(false)),
        _ => {}
    }
    if text.len() > 40 || !text.starts_with(|c: char| c.is_ascii_digit() || "+-".contains(c)) {
        return None;
    }
    let plain = text.replace('_', "");
    if let Some(number) = integer(&plain) {
        return Some(Value::Number(number.into()));
    }
    let number = is_float(&plain).then(|| plain.parse().ok())?;
    number.and_then(Number::from_f64).map(Value::Number)
}

/// With the prefixes of C: a leading zero is octal.
fn integer(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (radix, digits) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, digits.get(2..)?),
        [b'0', b'o' | b'O', ..] => (8, digits.get(2..)?),
        [b'0', b'b' | b'B', ..] => (2, digits.get(2..)?),
        [b'0', _, ..] => (8, digits.get(1..)?),
        _ => (10, digits),
    };
    if digits.starts_with(['+', '-']) {
        return None;
    }
    let number = i64::from_str_radix(digits, radix).ok()?;
    Some(if negative { -number } else { number })
}

/// `[-+]?[0-9]*\.?[0-9]+([eE][-+][0-9]+)?`: an exponent without a sign makes it text.
fn is_float(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let text = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or(("", mantissa));
    let whole = whole.is_empty() || digits(whole);
    let exponent =
        exponent.is_none_or(|exponent| exponent.strip_prefix(['-', '+']).is_some_and(digits));
    whole && digits(fraction) && exponent
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(text: &str) -> Value {
        let read = crate::manifest::read(text);
        assert!(read.faults.is_empty(), "{:?}", read.faults);
        read.objects[0].object.clone()
    }

    #[test]
    fn plain_scalars_of_yaml_1_1() {
        let text = "a: yes\nb: \"yes\"\nc: off\nd: [0644, '0644', 0o644, 1_000]\ne: 1e3\nf: 1.5\n\
                    g: {h: n, i: no way}\nj: 0x1F\nk: !!str yes\nl: |\n  yes\nm: 08\nn: 1.5e+3\n";
        let value = json!({
            "a": true, "b": "yes", "c": false, "d": [420, "0644", 420, 1000], "e": "1e3",
            "f": 1.5, "g": {"h": false, "i": "no way"}, "j": 31, "k": "yes", "l": "yes\n",
            "m": 8.0, "n": 1500.0,
        });
        assert_eq!(read(text), value);
    }

    #[test]
    fn what_is_no_number_stays() {
        for text in [
            "1.2.3", "10.0.0.1", "1e", "+", "-", "0x", "0xg", "1_0a", "--1", "0-1", "1e+",
        ] {
            assert_eq!(meant(text), None, "{text}");
        }
        for text in ["1e3", "1.", "e+3", ".", "1e+", "0x1p-2"] {
            assert!(!is_float(text), "{text}");
        }
        assert!(is_float(".5") && is_float("-1.5E-7") && is_float("12"));
    }
}

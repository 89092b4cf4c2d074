//! Plain scalars as `kubectl` reads them. It keeps to YAML 1.1, where `yes` is true and `0644` is octal,
//! and then to JSON, where a number with nothing behind its point is a whole one; our reader keeps to 1.2.

use serde_json::{Number, Value};

/// How a text is written that the reader lent us: it knows, but does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// Without quotes and without a tag.
    Plain,
    /// In quotes, with a tag, or in a way that cannot be told: it is that text.
    Text,
}

/// Where in the document a piece of it begins.
pub(super) fn offset(document: &str, piece: &str) -> Option<usize> {
    let at = piece
        .as_ptr()
        .addr()
        .checked_sub(document.as_ptr().addr())?;
    let same = document.get(at..at.checked_add(piece.len())?)?;
    (same == piece).then_some(at)
}

/// How a piece of the document is written there.
pub(super) fn style(document: &str, piece: &str) -> Style {
    let before = offset(document, piece).and_then(|at| document.get(..at));
    match before {
        Some(before) if !before.ends_with(['"', '\'']) && !is_tagged(before) => Style::Plain,
        _ => Style::Text,
    }
}

/// Whether a tag stands before a scalar, in the same line; an anchor may be between.
fn is_tagged(before: &str) -> bool {
    let mut rest = before.trim_end_matches([' ', '\t']);
    loop {
        let ends = |c: char| c.is_whitespace() || "[{,".contains(c);
        let (earlier, word) = match rest.char_indices().rfind(|(_, c)| ends(*c)) {
            Some((at, c)) => rest.split_at(at + c.len_utf8()),
            None => ("", rest),
        };
        if !word.starts_with('&') {
            return word.starts_with('!');
        }
        rest = earlier.trim_end_matches([' ', '\t']);
    }
}

/// What a plain scalar means that our reader takes for text.
pub(super) fn meant(text: &str) -> Value {
    let number = || {
        let first = |c: char| c.is_ascii_digit() || "+-.".contains(c);
        let plain = Some(text).filter(|text| text.len() <= 400 && text.starts_with(first))?;
        let plain = plain.replace('_', "");
        integer(&plain).or_else(|| {
            let float: f64 = plain.parse().ok().filter(|_| is_float(&plain))?;
            Some(float)
                .filter(|float| float.is_finite())
                .and_then(number)
        })
    };
    match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => Value::Bool(true),
        "n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => Value::Bool(false),
        _ => number().map_or_else(|| Value::String(text.to_owned()), Value::Number),
    }
}

/// A number as JSON has it: whole ones are signed and of 64 bits, others are floating.
pub(super) fn number(float: f64) -> Option<Number> {
    const END: f64 = 9_223_372_036_854_775_808.0;
    match float.fract() == 0.0 && (-END..END).contains(&float) {
        true => format!("{float:.0}").parse::<i64>().ok().map(Number::from),
        false => Number::from_f64(float),
    }
}

/// A whole number that may be too large.
pub(super) fn whole(number: u64) -> Option<Number> {
    match i64::try_from(number) {
        Ok(signed) => Some(signed.into()),
        Err(_) => Number::from_f64(number as f64),
    }
}

/// The numbers of what was read as JSON.
pub(super) fn settle(value: &mut Value) {
    match value {
        Value::Number(read) if read.as_i64().is_none() => {
            if let Some(settled) = read.as_f64().and_then(number) {
                *read = settled;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(settle),
        Value::Object(map) => map.values_mut().for_each(settle),
        _ => {}
    }
}

/// A floating number as a key: Go's `%g`, of 32 bits.
pub(super) fn as_key(float: f64) -> String {
    let float = float as f32;
    let written = format!("{float:e}");
    let Some((digits, exponent)) = written.split_once('e') else {
        return written;
    };
    match exponent.parse::<i32>() {
        Ok(exponent) if !(-4..6).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
        }
        _ => float.to_string(),
    }
}

/// With the prefixes of C: a leading zero is octal.
fn integer(text: &str) -> Option<Number> {
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
    let number = u64::from_str_radix(digits, radix).ok()?;
    match negative {
        true => 0_i64.checked_sub_unsigned(number).map(Number::from),
        false => whole(number),
    }
}

/// `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`
fn is_float(text: &str) -> bool {
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let text = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let exponent = exponent.is_none_or(|exponent| {
        let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        !exponent.is_empty() && digits(exponent)
    });
    digits(whole) && digits(fraction) && !(whole.is_empty() && fraction.is_empty()) && exponent
}

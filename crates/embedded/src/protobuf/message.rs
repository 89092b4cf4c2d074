//! A message as JSON, by the table of its fields. What the table does not have is skipped.

use super::tables::{FieldType, Table};
use super::wire::{Fields, WireValue, text};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Map, Value};

pub(super) fn read(table: Table, message: &[u8]) -> Result<Map<String, Value>, String> {
    let mut object = Map::new();
    let mut fields = Fields::of(message);
    while let Some((number, found)) = fields.next()? {
        let known = table.iter().find(|(known, ..)| *known == number);
        if let Some((_, name, of)) = known {
            put(&mut object, name, *of, found).map_err(|error| format!("{name}: {error}"))?;
        }
    }
    Ok(object)
}

fn put(
    object: &mut Map<String, Value>,
    name: &str,
    of: FieldType,
    found: WireValue<'_>,
) -> Result<(), String> {
    let bytes = match (of, found) {
        (FieldType::Count, WireValue::Number(0)) => return Ok(()),
        (FieldType::Number | FieldType::Count, WireValue::Number(number)) => {
            // Negative numbers stand there as their two's complement.
            object.insert(name.to_owned(), number.cast_signed().into());
            return Ok(());
        }
        (FieldType::Flag, WireValue::Number(number)) => {
            object.insert(name.to_owned(), (number != 0).into());
            return Ok(());
        }
        (FieldType::Number | FieldType::Count | FieldType::Flag, _)
        | (_, WireValue::Number(_) | WireValue::Fixed) => {
            return Err("it has another wire type".to_owned());
        }
        (_, WireValue::Bytes(bytes)) => bytes,
    };
    let value = match of {
        FieldType::Text if bytes.is_empty() => return Ok(()),
        FieldType::Text => text(bytes)?.into(),
        FieldType::Time => match time(bytes)? {
            Some(time) => time,
            None => return Ok(()),
        },
        FieldType::Json => json(bytes)?,
        FieldType::One(table) => Value::Object(read(table, bytes)?),
        FieldType::Many(table) => {
            return append(object, name, Value::Object(read(table, bytes)?));
        }
        FieldType::Texts => return append(object, name, text(bytes)?.into()),
        FieldType::TextMap => return entry(object, name, bytes, |bytes| Ok(text(bytes)?.into())),
        FieldType::BytesMap => {
            return entry(object, name, bytes, |bytes| {
                Ok(STANDARD.encode(bytes).into())
            });
        }
        FieldType::Number | FieldType::Count | FieldType::Flag => return Ok(()),
    };
    object.insert(name.to_owned(), value);
    Ok(())
}

fn append(object: &mut Map<String, Value>, name: &str, value: Value) -> Result<(), String> {
    match object
        .entry(name)
        .or_insert_with(|| Value::Array(Vec::new()))
    {
        Value::Array(items) => items.push(value),
        _ => return Err("it is no list".to_owned()),
    }
    Ok(())
}

/// An entry of a map is a message of key and value.
fn entry(
    object: &mut Map<String, Value>,
    name: &str,
    bytes: &[u8],
    value_of: impl Fn(&[u8]) -> Result<Value, String>,
) -> Result<(), String> {
    let (mut key, mut value): (&str, &[u8]) = ("", &[]);
    let mut fields = Fields::of(bytes);
    while let Some((number, found)) = fields.next()? {
        match (number, found) {
            (1, WireValue::Bytes(bytes)) => key = text(bytes)?,
            (2, WireValue::Bytes(bytes)) => value = bytes,
            _ => {}
        }
    }
    let value = value_of(value)?;
    match object
        .entry(name)
        .or_insert_with(|| Value::Object(Map::new()))
    {
        Value::Object(entries) => entries.insert(key.to_owned(), value),
        _ => return Err("it is no map".to_owned()),
    };
    Ok(())
}

/// Seconds and nanoseconds since 1970; only the seconds are written.
fn time(bytes: &[u8]) -> Result<Option<Value>, String> {
    let mut seconds = 0;
    let mut fields = Fields::of(bytes);
    while let Some((number, found)) = fields.next()? {
        if let (1, WireValue::Number(number)) = (number, found) {
            seconds = number.cast_signed();
        }
    }
    if seconds == 0 {
        return Ok(None);
    }
    let time = Timestamp::from_second(seconds).map_err(|error| error.to_string())?;
    Ok(Some(time.to_string().into()))
}

fn json(bytes: &[u8]) -> Result<Value, String> {
    let mut fields = Fields::of(bytes);
    while let Some((number, found)) = fields.next()? {
        if let (1, WireValue::Bytes(text)) = (number, found) {
            return serde_json::from_slice(text).map_err(|error| error.to_string());
        }
    }
    Ok(Value::Object(Map::new()))
}

//! Names of Kubernetes objects.

use crate::text::quoted;

/// The name of an object: a DNS subdomain.
pub(crate) fn object(text: &str) -> Result<(), String> {
    if text.len() <= 253 && text.split('.').all(is_label) {
        return Ok(());
    }
    Err(format!(
        "{} is not the name of an object: use at most 253 of a-z 0-9 - and . between",
        quoted(text)
    ))
}

/// The name of a namespace: a DNS label.
pub(crate) fn namespace(text: &str) -> Result<(), String> {
    if text.len() <= 63 && is_label(text) {
        return Ok(());
    }
    Err(format!(
        "{} is not the name of a namespace: use at most 63 of a-z 0-9 and - between",
        quoted(text)
    ))
}

/// `[namespace/]name`, both checked.
pub(crate) fn qualified(text: &str) -> Result<(Option<&str>, &str), String> {
    let (in_namespace, name) = match text.split_once('/') {
        Some((namespace, name)) => (Some(namespace), name),
        None => (None, text),
    };
    if let Some(in_namespace) = in_namespace {
        namespace(in_namespace)?;
    }
    object(name)?;
    Ok((in_namespace, name))
}

fn is_label(text: &str) -> bool {
    let legal = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    !text.is_empty() && text.bytes().all(legal) && !text.starts_with('-') && !text.ends_with('-')
}

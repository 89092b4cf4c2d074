//! How things may be called: names, labels, keys. The sentences are those of Kubernetes.

use std::fmt::Write;

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
     characters, '-' or '.', and must start and end with an alphanumeric character (e.g. \
     'example.com', regex used for validation is \
     '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters \
     or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or \
     '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const NAME_PART: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and \
     must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or \
     '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, \
     '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or \
     'my_value',  or '12345', regex used for validation is \
     '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// Characters of the end of a generated name: none that makes a word.
const ENDS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
const END: usize = 5;
const GENERATED: usize = 63;

/// What is wrong with the name of most objects.
pub(super) fn subdomain(name: &str) -> Option<String> {
    if name.len() > 253 {
        return Some("must be no more than 253 bytes".to_owned());
    }
    let good = name.split('.').all(is_label);
    (!good).then(|| SUBDOMAIN.to_owned())
}

/// What is wrong with the name of a namespace.
pub(super) fn label(name: &str) -> Option<String> {
    if name.len() > 63 {
        return Some("must be no more than 63 bytes".to_owned());
    }
    (!is_label(name)).then(|| LABEL.to_owned())
}

/// What is wrong with a key of labels or annotations, or with a finalizer.
pub(super) fn key(key: &str) -> Option<String> {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    if let Some(prefix) = prefix {
        if prefix.is_empty() {
            return Some("prefix part must be non-empty".to_owned());
        }
        if let Some(problem) = subdomain(prefix) {
            return Some(format!("prefix part {problem}"));
        }
    }
    if name.is_empty() {
        return Some("name part must be non-empty".to_owned());
    }
    if name.len() > 63 {
        return Some("name part must be no more than 63 bytes".to_owned());
    }
    (!is_word(name)).then(|| NAME_PART.to_owned())
}

/// What is wrong with the value of a label.
pub(super) fn value(value: &str) -> Option<String> {
    if value.len() > 63 {
        return Some("must be no more than 63 bytes".to_owned());
    }
    (!value.is_empty() && !is_word(value)).then(|| VALUE.to_owned())
}

/// What is wrong with the beginning of a generated name; its end will be good.
pub(super) fn beginning(prefix: &str, check: fn(&str) -> Option<String>) -> Option<String> {
    check(&format!("{}a", prefix.strip_suffix('-').unwrap_or(prefix)))
}

/// A name that begins like this.
pub(super) fn generated(prefix: &str) -> String {
    let mut name: String = prefix.chars().take(GENERATED - END).collect();
    for byte in crate::random::bytes::<END>() {
        let index = usize::from(byte) % ENDS.len();
        let _ = name.write_char(ENDS.get(index).copied().map_or('x', char::from));
    }
    name
}

fn is_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && text.bytes().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}

fn is_word(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let ends = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
    text.bytes().all(inner) && ends(text.bytes().next()) && ends(text.bytes().last())
}

#[cfg(test)]
mod tests {
    use super::{beginning, generated, key, label, subdomain, value};

    #[test]
    fn names_are_as_in_kubernetes() {
        for good in ["a", "a-b", "a.b", "1", "kube-root-ca.crt"] {
            assert_eq!(subdomain(good), None, "{good}");
        }
        for bad in [
            "",
            "A",
            "a_b",
            "-a",
            "a-",
            "a..b",
            "a/b",
            ".a",
            "é",
            &"a".repeat(254),
        ] {
            assert!(subdomain(bad).is_some(), "{bad}");
        }
        assert!(label("a.b").is_some() && label(&"a".repeat(64)).is_some());
        assert_eq!(beginning("made-", subdomain), None);
        assert!(beginning("Made-", subdomain).is_some());
    }

    #[test]
    fn keys_and_values_are_as_in_kubernetes() {
        for good in ["a", "A_b.c", "example.com/A", "foregroundDeletion"] {
            assert_eq!(key(good), None, "{good}");
        }
        for bad in ["", "/a", "a/", "a/b/c", "A.com/x", "-a", "a b"] {
            assert!(key(bad).is_some(), "{bad}");
        }
        assert_eq!(value(""), None);
        assert!(value("-").is_some() && value(&"a".repeat(64)).is_some());
    }

    #[test]
    fn a_generated_name_is_never_too_long() {
        let name = generated(&"x".repeat(200));
        assert_eq!(name.len(), 63);
        assert_ne!(generated("a-"), generated("a-"));
        assert_eq!(subdomain(&generated("a-")), None);
    }
}

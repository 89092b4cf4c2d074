//! What `format` says about a text. Unknown formats say nothing.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Whether the text is of that format; `true` if nobody here knows it.
pub(super) fn fits(format: &str, text: &str) -> bool {
    // Dashes do not count, but in names of newer formats.
    match format {
        "k8s-short-name" => return is_label(text),
        "k8s-long-name" => return is_subdomain(text),
        _ => {}
    }
    match format.replace('-', "").as_str() {
        "date" => is_date(text),
        "datetime" => is_date_time(text),
        "ipv4" => text.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => is_cidr(text),
        "mac" => is_mac(text),
        "uuid" => uuid_version(text).is_some(),
        "uuid3" => uuid_version(text) == Some('3'),
        "uuid4" => uuid_version(text) == Some('4') && has_variant(text),
        "uuid5" => uuid_version(text) == Some('5') && has_variant(text),
        "byte" => is_base64(text),
        "hostname" => is_hostname(text),
        "email" => is_email(text),
        "uri" => is_uri(text),
        "duration" => is_duration(text),
        _ => true,
    }
}

/// Whether the server looks at this format of a text at all.
pub(super) fn is_known(format: &str) -> bool {
    const KNOWN: [&str; 24] = [
        "bsonobjectid",
        "uri",
        "email",
        "hostname",
        "ipv4",
        "ipv6",
        "cidr",
        "mac",
        "uuid",
        "uuid3",
        "uuid4",
        "uuid5",
        "isbn",
        "isbn10",
        "isbn13",
        "creditcard",
        "ssn",
        "hexcolor",
        "rgbcolor",
        "byte",
        "password",
        "date",
        "duration",
        "datetime",
    ];
    matches!(format, "k8s-short-name" | "k8s-long-name")
        || KNOWN.contains(&format.replace('-', "").as_str())
}

fn is_date(text: &str) -> bool {
    let digits = |range: std::ops::Range<usize>| -> Option<u32> {
        let part = text.get(range)?;
        part.bytes()
            .all(|byte| byte.is_ascii_digit())
            .then(|| part.parse().ok())?
    };
    let parts = (digits(0..4), digits(5..7), digits(8..10));
    let (Some(year), Some(month), Some(day)) = parts else {
        return false;
    };
    let dashes = text.get(4..5) == Some("-") && text.get(7..8) == Some("-");
    let leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    let days = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return false,
    };
    text.len() == 10 && dashes && (1..=days).contains(&day)
}

/// RFC 3339: a date, `T`, a time with an optional fraction, and `Z` or an offset.
fn is_date_time(text: &str) -> bool {
    let Some((date, time)) = text.split_at_checked(10) else {
        return false;
    };
    let Some(time) = time.strip_prefix(['T', 't']) else {
        return false;
    };
    let Some((clock, rest)) = time.split_at_checked(8) else {
        return false;
    };
    let rest = match rest.strip_prefix('.') {
        Some(fraction) => {
            let end = fraction.trim_start_matches(|digit: char| digit.is_ascii_digit());
            if end.len() == fraction.len() {
                return false;
            }
            end
        }
        None => rest,
    };
    let zone = rest.eq_ignore_ascii_case("z")
        || rest
            .strip_prefix(['+', '-'])
            .is_some_and(|offset| offset.len() == 5 && is_clock(offset, &[23, 59]));
    is_date(date) && is_clock(clock, &[23, 59, 60]) && zone
}

/// Two digits each, with colons between, none above its limit.
fn is_clock(text: &str, limits: &[u32]) -> bool {
    let parts: Vec<&str> = text.split(':').collect();
    parts.len() == limits.len()
        && parts.iter().zip(limits).all(|(part, limit)| {
            part.len() == 2
                && part.bytes().all(|byte| byte.is_ascii_digit())
                && part.parse::<u32>().is_ok_and(|value| value <= *limit)
        })
}

fn is_cidr(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else {
        return false;
    };
    let at_most = |most: u8| {
        !length.starts_with('+')
            && (length == "0" || !length.starts_with('0'))
            && length.parse::<u8>().is_ok_and(|length| length <= most)
    };
    (address.parse::<Ipv4Addr>().is_ok() && at_most(32))
        || (address.parse::<Ipv6Addr>().is_ok() && at_most(128))
}

/// 6, 8 or 20 octets, with one kind of separator.
fn is_mac(text: &str) -> bool {
    let octets = |separator: char| {
        let parts: Vec<&str> = text.split(separator).collect();
        let hex = |part: &&str| part.len() == 2 && is_hex(part);
        matches!(parts.len(), 6 | 8 | 20) && parts.iter().all(hex)
    };
    let words = || {
        let parts: Vec<&str> = text.split('.').collect();
        let hex = |part: &&str| part.len() == 4 && is_hex(part);
        matches!(parts.len(), 3 | 4 | 10) && parts.iter().all(hex)
    };
    octets(':') || octets('-') || words()
}

/// The version digit of a UUID, whose dashes may be left out.
fn uuid_version(text: &str) -> Option<char> {
    let digits: String = text.split('-').collect();
    let lengths: Vec<usize> = text.split('-').map(str::len).collect();
    // A dash may stand at any of its four places, or not.
    let mut at = 0;
    let placed = lengths
        .iter()
        .take(lengths.len().saturating_sub(1))
        .all(|length| {
            at += length;
            matches!(at, 8 | 12 | 16 | 20)
        });
    if digits.len() != 32 || !is_hex(&digits) || !placed || lengths.contains(&0) {
        return None;
    }
    digits.chars().nth(12)
}

fn has_variant(text: &str) -> bool {
    let digit = text.chars().filter(|digit| *digit != '-').nth(16);
    digit.is_some_and(|digit| matches!(digit, '8' | '9' | 'a' | 'b' | 'A' | 'B'))
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_base64(text: &str) -> bool {
    use base64::Engine;
    let standard = &base64::engine::general_purpose::STANDARD;
    !text.is_empty() && standard.decode(text).is_ok()
}

fn is_hostname(text: &str) -> bool {
    let label = |label: &str| {
        let inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        (1..=63).contains(&label.len())
            && label.bytes().all(inner)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    // A name of several labels ends with letters.
    let top = |(_, top): (&str, &str)| top.len() >= 2 && top.chars().all(char::is_alphabetic);
    text.len() <= 253 && text.split('.').all(label) && text.rsplit_once('.').is_none_or(top)
}

fn is_label(text: &str) -> bool {
    text.len() <= 63 && is_subdomain(text) && !text.contains('.')
}

fn is_subdomain(text: &str) -> bool {
    let segment = |segment: &str| {
        let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        !segment.is_empty()
            && segment.bytes().all(inner)
            && !segment.starts_with('-')
            && !segment.ends_with('-')
    };
    text.len() <= 253 && text.split('.').all(segment)
}

fn is_email(text: &str) -> bool {
    match text.rsplit_once('@') {
        Some((local, host)) => {
            !local.is_empty() && !local.contains(char::is_whitespace) && is_hostname(host)
        }
        None => false,
    }
}

/// Absolute, or a path from the root.
fn is_uri(text: &str) -> bool {
    if text.starts_with('/') {
        return true;
    }
    let Some((scheme, rest)) = text.split_once(':') else {
        return false;
    };
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(inner)
        && !rest.is_empty()
        && !rest.contains(char::is_whitespace)
}

/// `1h30m`, `-2.5s`, `300 ms`, `1 day`.
fn is_duration(text: &str) -> bool {
    const UNITS: [&str; 26] = [
        "ns", "us", "µs", "ms", "s", "m", "h", "d", "w", "nano", "nanos", "micro", "micros",
        "milli", "millis", "sec", "secs", "second", "seconds", "minute", "minutes", "hour",
        "hours", "day", "days", "weeks",
    ];
    let mut rest = text.trim_start_matches(['+', '-']).trim();
    if rest == "0" {
        return true;
    }
    if rest.is_empty() {
        return false;
    }
    while !rest.is_empty() {
        let number = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        if number.len() == rest.len() {
            return false;
        }
        let number = number.trim_start();
        let after = number.trim_start_matches(char::is_alphabetic);
        let unit = number.get(..number.len() - after.len()).unwrap_or_default();
        if !UNITS.contains(&unit) {
            return false;
        }
        rest = after.trim_start();
    }
    true
}

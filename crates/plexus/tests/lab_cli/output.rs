//! What a command said, with what differs between runs taken out.

use crate::machine::{Lab, TIMEOUT};
use plexus_testkit::within;
use serde_json::Value;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::Output;

/// Exit code, standard output, standard error.
#[derive(Debug)]
pub(crate) struct CommandOutput {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) error: String,
}

/// `plexus …` against a lab.
pub(crate) fn plexus(lab: &Lab, words: &[&str]) -> CommandOutput {
    captured(lab.plexus(words).output().unwrap())
}

pub(crate) fn captured(output: Output) -> CommandOutput {
    CommandOutput {
        code: output.status.code(),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        error: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// One that must succeed; gives what it printed.
#[track_caller]
pub(crate) fn ok(lab: &Lab, words: &[&str]) -> String {
    let output = plexus(lab, words);
    assert_eq!(output.code, Some(0), "{words:?}: {output:#?}");
    output.out
}

/// One that must fail with those words.
#[track_caller]
pub(crate) fn fails(lab: &Lab, words: &[&str], wanted: &str) {
    let output = plexus(lab, words);
    assert_eq!(output.code, Some(1), "{words:?}: {output:#?}");
    assert!(output.error.contains(wanted), "{words:?}: {output:#?}");
}

/// JSON that it printed.
#[track_caller]
pub(crate) fn json(lab: &Lab, words: &[&str]) -> Value {
    let output = plexus(lab, words);
    let parsed = serde_json::from_str(&output.out);
    parsed.unwrap_or_else(|error| panic!("{words:?}: {error}: {output:#?}"))
}

/// A file of the examples.
pub(crate) fn example(name: &str) -> String {
    let here: PathBuf = std::env::var_os("CARGO_MANIFEST_DIR").unwrap().into();
    let path = here.join("../../examples").join(name);
    path.display().to_string()
}

/// What a command says, compared with a file of `golden/` as soon as it says that: what agents and the controller
/// write about pods comes a moment after the pods.
#[track_caller]
pub(crate) fn golden_soon(lab: &Lab, name: &str, words: &[&str]) {
    let wanted = std::fs::read_to_string(golden_path(name)).unwrap_or_default();
    let blessing = std::env::var_os("PLEXUS_BLESS").is_some();
    let mut text = String::new();
    within(TIMEOUT, || {
        text = ok(lab, words);
        blessing || plain(&text) == wanted
    });
    golden(name, &text);
}

fn golden_path(name: &str) -> PathBuf {
    let here: PathBuf = std::env::var_os("CARGO_MANIFEST_DIR").unwrap().into();
    here.join("tests/lab_cli/golden").join(name)
}

/// Compares with a file of `golden/`, whose lines have neither addresses nor ages nor columns. With
/// `PLEXUS_BLESS` set the file is written instead.
#[track_caller]
pub(crate) fn golden(name: &str, text: &str) {
    let path = golden_path(name);
    let text = plain(text);
    if std::env::var_os("PLEXUS_BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let wanted = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, wanted, "{}:\n{text}", path.display());
}

/// Words that differ between runs become what they are.
fn plain(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let mut words: Vec<String> = line.split_whitespace().map(word).collect();
        if let Some(vni) = words.iter().position(|word| word == "VNI") {
            words.truncate(vni + 1);
        }
        out.push_str(&words.join(" "));
        out.push('\n');
    }
    out
}

fn word(word: &str) -> String {
    let mut out = String::new();
    let part_of_one = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | ':' | '/' | '-');
    let mut rest = word;
    while !rest.is_empty() {
        let end = rest.find(|c| !part_of_one(c)).unwrap_or(rest.len());
        let (token, after) = rest.split_at(end);
        out.push_str(&kind_of(token.trim_end_matches(':')));
        out.push_str(&token[token.trim_end_matches(':').len()..]);
        let mut letters = after.chars();
        out.extend(letters.next());
        rest = letters.as_str();
    }
    out
}

fn kind_of(token: &str) -> String {
    let hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let address = token.split('/').next().unwrap_or_default();
    let length = token.split_once('/').map(|(_, length)| length);
    let is_uuid = token.len() == 36 && token.split('-').count() == 5;
    let is_mac = token.len() == 17 && token.split(':').count() == 6;
    let is_age = token.starts_with(|c: char| c.is_ascii_digit())
        && token.ends_with(['s', 'm'])
        && token
            .bytes()
            .all(|b| b.is_ascii_digit() || b"smh".contains(&b));
    // Subnets, gateways and link-local addresses are the same each time.
    let fixed = [
        "0.0/16",
        "::/",
        "255.254",
        "169.254.1.1",
        "fe80::1",
        ":fffe",
        "10.200.0.",
        "fd00:200",
    ];
    match () {
        () if fixed.iter().any(|part| token.contains(part)) => token.to_owned(),
        () if is_uuid => "UUID".to_owned(),
        () if is_mac => "MAC".to_owned(),
        () if token.len() == 64 && hex(token) => "SANDBOX".to_owned(),
        () if is_age => "AGE".to_owned(),
        () if address.parse::<IpAddr>().is_ok() => match length {
            Some(length) => format!("IP/{length}"),
            None => "IP".to_owned(),
        },
        () if token.len() >= 6 && token.bytes().all(|b| b.is_ascii_digit()) => "NUMBER".to_owned(),
        () => token.to_owned(),
    }
}

#[test]
fn what_differs_is_taken_out() {
    assert_eq!(
        plain("a   10.1.2.3/16,fd00::5  3s  2m10s 12345678 (06:68:ae:64:bd:34) fd00:1::/48:"),
        "a IP/16,IP AGE AGE NUMBER (MAC) fd00:1::/48:\n"
    );
}

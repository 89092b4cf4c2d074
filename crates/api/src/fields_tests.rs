//! The field reader: all problems, each with its path.

use super::*;
use plexus_types::{IfName, IpNet};
use serde_json::json;

fn map(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn texts(problems: &Problems) -> Vec<String> {
    problems.0.iter().map(ToString::to_string).collect()
}

#[test]
fn every_problem_is_reported_with_its_path() {
    let map = map(json!({
        "ok": "x", "list": ["10.0.0.0/24", 5, "bad"], "flag": "yes", "number": -1, "nme": "x",
        "inner": {"name": "a/b", "zzz": 1}, "items": [{"n": 1}, "no", {"n": "x", "deep": {}}],
    }));
    let mut fields = Fields::new(&map, "top");
    assert_eq!(fields.text("ok"), Some("x"));
    assert_eq!(fields.parsed_list::<IpNet>("list").len(), 1);
    assert!(!fields.flag("flag"));
    assert_eq!(fields.number("number"), None);
    assert_eq!(fields.text("name"), None);
    fields.object("inner", |inner| inner.parsed::<IfName>("name"));
    let items = fields.objects("items", |item, _| item.number("n")).unwrap();
    assert_eq!(items, [1]);
    let problems = fields.finish();
    let text = problems.to_string();
    for part in [
        "top.list[1]: must be a string, not 5",
        "top.list[2]: \"bad\" is not an address with a prefix length",
        "top.flag: must be true or false, not \"yes\"",
        "top.number: must be a whole number from 0 to 4294967295, not -1",
        "top.inner.name: interface name \"a/b\" is not valid",
        "top.inner.zzz: is not a known key",
        "top.items[1]: must be an object, not \"no\"",
        "top.items[2].n: must be a whole number",
        "top.items[2].deep: is not a known key",
        "top.nme: is not a known key: did you mean \"name\"?",
    ] {
        assert!(
            text.contains(part),
            "{part:?} is not in {:#?}",
            texts(&problems)
        );
    }
    assert_eq!(problems.0.len(), 10, "{:#?}", texts(&problems));
    assert_eq!(problems.0.iter().filter(|p| p.unknown_key).count(), 3);
}

#[test]
fn null_is_absent_everywhere() {
    let map = map(json!({"a": null, "b": null, "unknown": null}));
    let mut fields = Fields::new(&map, "");
    assert!(!fields.has("a"));
    assert_eq!(fields.text("a"), None);
    assert_eq!(fields.parsed_list::<String>("b"), Vec::<String>::new());
    assert_eq!(fields.objects("b", |_, _| Some(())), None);
    assert!(fields.finish().0.is_empty());
}

#[test]
fn empty_text_is_absent_where_it_is_parsed() {
    let map = map(json!({"a": ""}));
    let mut fields = Fields::new(&map, "");
    assert_eq!(fields.parsed::<IfName>("a"), None);
    assert!(fields.finish().0.is_empty());
}

#[test]
fn any_case() {
    let map = map(json!({"IPs": ["10.0.0.1"], "MAC": "x", "mac": "y", "DNS": {"SERVERS": ["a"]}}));
    let mut fields = Fields::any_case(&map, "runtimeConfig");
    assert_eq!(fields.parsed_list::<String>("ips"), ["10.0.0.1"]);
    fields.text("mac");
    let servers = fields.object("dns", |dns| dns.parsed_list::<String>("servers"));
    assert_eq!(servers, Some(vec!["a".to_owned()]));
    let problems = fields.finish();
    assert_eq!(problems.0.len(), 1, "{problems}");
    assert_eq!(problems.0[0].path, "runtimeConfig.mac");
}

#[test]
fn huge_keys_do_not_flood_the_message() {
    let map = map(json!({"k".repeat(100_000): 1}));
    let problems = Fields::new(&map, "").finish();
    assert!(problems.to_string().len() < 300);
}

#[test]
fn distances() {
    for (a, b, d) in [
        ("", "", 0),
        ("abc", "", 3),
        ("kitten", "sitting", 3),
        ("mode", "mdoe", 2),
    ] {
        assert_eq!(distance(a, b), d, "{a} {b}");
        assert_eq!(distance(b, a), d, "{b} {a}");
    }
    assert_eq!(nearest("Master", &["mode", "master"]), Some("master"));
    assert_eq!(nearest("x", &["y"]), None);
}

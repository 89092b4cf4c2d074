//! What kubectl makes of a file, and we too. The answers are those of kubectl 1.37.0, by
//! `kubectl label --local -f FILE zz=b -o json`.

use super::scalars::settle;
use super::*;
use crate::later::Classes;
use serde_json::{Value, json};

/// kubectl reads nothing of it.
const REFUSED: &str = "";

/// What follows an object's metadata, and what kubectl takes its `v` for.
const VALUES: &[(&str, &str)] = &[
    ("v: 1\nv: 2\n", "2"),
    ("v: {a: 1, b: 2, a: 3}\n", "{\"a\": 3, \"b\": 2}"),
    ("v: !secret x\n", "\"x\""),
    ("v: !secret {a: 1}\n", "{\"a\": 1}"),
    ("v: !!str 5\n", "\"5\""),
    ("v: !!int \"5\"\n", "5"),
    ("v: !!float 5\n", "5"),
    ("v: !!timestamp 2001-01-01\n", "\"2001-01-01\""),
    ("v: 2001-01-01\n", "\"2001-01-01\""),
    ("v: 2001-01-01T00:00:00Z\n", "\"2001-01-01T00:00:00Z\""),
    (
        "v: {y: 1, n: 2, on: 3, off: 4, yes: 5, No: 6}\n",
        "{\"false\": 6, \"true\": 5}",
    ),
    ("v: {y: 1, yes: 2}\n", "{\"true\": 2}"),
    ("v: {true: 1}\n", "{\"true\": 1}"),
    (
        "v: {1: a, 1.5: b, 0x10: c, 010: d, 0o17: e, 1e3: f, -1: g, ~: h}\n",
        REFUSED,
    ),
    ("v: {null: h}\n", REFUSED),
    ("v: {: h}\n", REFUSED),
    ("v: {1.0: a}\n", "{\"1\": \"a\"}"),
    ("v: {1.5: a}\n", "{\"1.5\": \"a\"}"),
    ("v: {1e20: a}\n", "{\"1e+20\": \"a\"}"),
    (
        "v: {0x10: a, 010: b, 0b11: c}\n",
        "{\"16\": \"a\", \"3\": \"c\", \"8\": \"b\"}",
    ),
    ("v: {18446744073709551615: a}\n", REFUSED),
    ("v: {2001-01-01: a}\n", "{\"2001-01-01\": \"a\"}"),
    ("v: {[1]: a}\n", REFUSED),
    ("v: {\"1\": a, 1: b}\n", "{\"1\": \"b\"}"),
    ("v: {\"y\": a, y: b}\n", "{\"true\": \"b\", \"y\": \"a\"}"),
    ("v: 0o17\n", "15"),
    ("v: 0x1F\n", "31"),
    ("v: 017\n", "15"),
    ("v: 08\n", "8"),
    ("v: 0b11\n", "3"),
    ("v: -0x1F\n", "-31"),
    ("v: -017\n", "-15"),
    ("v: +12\n", "12"),
    ("v: 1_000\n", "1000"),
    ("v: 0x_1F\n", "31"),
    ("v: 1__0\n", "10"),
    ("v: _1\n", "\"_1\""),
    ("v: 1_\n", "1"),
    ("v: 190:20:30\n", "\"190:20:30\""),
    ("v: 18446744073709551615\n", "18446744073709552000"),
    ("v: 18446744073709551616\n", "18446744073709552000"),
    ("v: 9223372036854775808\n", "9223372036854776000"),
    ("v: -9223372036854775808\n", "-9223372036854775808"),
    ("v: -9223372036854775809\n", "-9223372036854776000"),
    ("v: 0xFFFFFFFFFFFFFFFF\n", "18446744073709552000"),
    ("v: 0x8000000000000000\n", "9223372036854776000"),
    ("v: -0b1\n", "-1"),
    ("v: 0O17\n", "15"),
    ("v: 0X1F\n", "31"),
    ("v: 0B1\n", "1"),
    ("v: -0o17\n", "-15"),
    ("v: +0x1F\n", "31"),
    ("v: 00\n", "0"),
    ("v: -0\n", "0"),
    ("v: 0.\n", "0"),
    ("v: 1.\n", "1"),
    ("v: .5\n", "0.5"),
    ("v: -.5\n", "-0.5"),
    ("v: 1e3\n", "1000"),
    ("v: 1E3\n", "1000"),
    ("v: 1e+3\n", "1000"),
    ("v: 1.5e3\n", "1500"),
    ("v: 1.5e-3\n", "0.0015"),
    ("v: 1e-400\n", "0"),
    ("v: 1e+400\n", "\"1e+400\""),
    ("v: .inf\n", REFUSED),
    ("v: -.inf\n", REFUSED),
    ("v: .nan\n", REFUSED),
    ("v: .Inf\n", REFUSED),
    ("v: inf\n", "\"inf\""),
    ("v: NaN\n", "\"NaN\""),
    ("v: 0.1\n", "0.1"),
    ("v: 1.0\n", "1"),
    ("v: 100000000000000000000.0\n", "100000000000000000000"),
    ("v: 1e+20\n", "100000000000000000000"),
    ("v: 1e+21\n", "1e+21"),
    ("v: 1_000.5\n", "1000.5"),
    ("v: 1_0.5_0\n", "10.5"),
    ("v: y\n", "true"),
    ("v: Y\n", "true"),
    ("v: yes\n", "true"),
    ("v: Yes\n", "true"),
    ("v: YES\n", "true"),
    ("v: yEs\n", "\"yEs\""),
    ("v: on\n", "true"),
    ("v: OFF\n", "false"),
    ("v: n\n", "false"),
    ("v: true\n", "true"),
    ("v: TRUE\n", "true"),
    ("v: True\n", "true"),
    ("v: tRue\n", "\"tRue\""),
    ("v: ~\n", "null"),
    ("v: null\n", "null"),
    ("v: Null\n", "null"),
    ("v: NULL\n", "null"),
    ("v: nUll\n", "\"nUll\""),
    ("v:\n", "null"),
    ("v: \"y\"\n", "\"y\""),
    ("v: 'no'\n", "\"no\""),
    ("v: !!null x\n", REFUSED),
    ("v: !!str yes\n", "\"yes\""),
    ("v: !!str 010\n", "\"010\""),
    ("v: !!str\n", "\"\""),
    ("v: !!str ~\n", "\"~\""),
    ("v: ! 5\n", "\"5\""),
    ("v: !!map {a: 1}\n", "{\"a\": 1}"),
    ("v: !!seq [1]\n", "[1]"),
    ("v: !!set {a, b}\n", "{\"a\": null, \"b\": null}"),
    ("v: !!omap [a: 1]\n", "[{\"a\": 1}]"),
    ("v: !foo [1]\n", "[1]"),
    ("v: !!foo 5\n", "\"5\""),
    ("v: !!int 5\n", "5"),
    ("v: !!int x\n", REFUSED),
    ("v: !!float \"x\"\n", REFUSED),
    ("v: !!float 1e3\n", "1000"),
    ("v: !!int 1.5\n", REFUSED),
    ("v: !local 5\n", "\"5\""),
    ("v: !local yes\n", "\"yes\""),
    ("v: !local \"\"\n", "\"\""),
    ("v: !local\n", "\"\""),
    (
        "base: &b {x: 1, y: 2}\nv: {<<: *b, y: 3}\n",
        "{\"true\": 3, \"x\": 1}",
    ),
    (
        "base: &b {x: 1}\nc: &c {x: 2, z: 3}\nv: {<<: [*b, *c]}\n",
        "{\"x\": 1, \"z\": 3}",
    ),
    ("base: &b {x: 1}\nv: {x: 5, <<: *b}\n", "{\"x\": 1}"),
    ("v: {<<: 5}\n", REFUSED),
    ("v: {<<: null}\n", REFUSED),
    ("v: {<<: [1]}\n", REFUSED),
    ("v: {\"<<\": {a: 1}}\n", "{\"<<\": {\"a\": 1}}"),
    (
        "base: &b {x: 1}\nv: {<<: *b, <<: {z: 1}}\n",
        "{\"x\": 1, \"z\": 1}",
    ),
    ("v: &a [1, *a]\n", REFUSED),
    ("v: *nobody\n", REFUSED),
    ("a: &x 1\nb: &x 2\nv: *x\n", "2"),
    ("v: {? a : 1}\n", "{\"a\": 1}"),
    ("v: {? a, b}\n", "{\"a\": null, \"b\": null}"),
    ("v: |\n  a\n   b\n", "\"a\\n b\\n\""),
    ("v: >-\n  a\n  b\n", "\"a b\""),
    ("v: a\n  b\n", "\"a b\""),
    ("v: \"a\n  b\"\n", "\"a b\""),
    ("v: [a,\n\tb]\n", "[\"a\", \"b\"]"),
    ("v:\n\ta: 1\n", REFUSED),
    ("v: {\ta: 1}\n", "{\"a\": 1}"),
    ("v:\ta\n", "\"a\""),
    ("v: a\t# c\n", "\"a\""),
    ("v: a #b\n", "\"a\""),
    ("v: a#b\n", "\"a#b\""),
    ("v: -\n", REFUSED),
    ("v: =\n", "\"=\""),
    ("v: 1,2\n", "\"1,2\""),
    ("v: [a:b, c: d]\n", "[\"a:b\", {\"c\": \"d\"}]"),
    ("v: [1,,2]\n", REFUSED),
    ("v: {a}\n", "{\"a\": null}"),
    ("v: @a\n", REFUSED),
    ("v: `a\n", REFUSED),
    ("v: %a\n", REFUSED),
    ("v: a: b\n", REFUSED),
    ("v: \"\t\"\n", "\"\\t\""),
    ("v: \"\u{1}\"\n", REFUSED),
    ("v: \u{7f}\n", REFUSED),
    ("v: \u{85}x\n", REFUSED),
    ("v: a\u{2028}b\n", REFUSED),
    ("v: 'a''b'\n", "\"a'b\""),
    ("v: \"a\\zb\"\n", REFUSED),
    ("v: 12e03\n", "12000"),
    ("v: 0x\n", "\"0x\""),
    ("v: 0xg\n", "\"0xg\""),
    ("v: 1.5.2\n", "\"1.5.2\""),
    ("v: 1e\n", "\"1e\""),
    ("v: +\n", "\"+\""),
    ("v: +.5\n", "0.5"),
    ("v: +.inf\n", REFUSED),
    ("v: 0_8\n", "8"),
    ("v: 0_7\n", "7"),
    ("v: 1:2\n", "\"1:2\""),
    ("v: {a:1}\n", "{\"a:1\": null}"),
    ("v: {\"a\":1}\n", "{\"a\": 1}"),
    ("v: [{\"a\":1, b: 2}]\n", "[{\"a\": 1, \"b\": 2}]"),
    ("v: .1_5\n", "0.15"),
    ("v: 0x1p-2\n", "\"0x1p-2\""),
    ("v: 0x1.8p1\n", "\"0x1.8p1\""),
    ("v: infinity\n", "\"infinity\""),
    ("v: 1e5_0\n", "1e+50"),
    ("v: 0777777777777777777777777\n", "7.777777777777778e+23"),
    ("v: -18446744073709551615\n", "-18446744073709552000"),
    (
        "v: 123456789012345678901234567890\n",
        "1.2345678901234568e+29",
    ),
    ("v: 1.e3\n", "1000"),
    ("v: 5.0\n", "5"),
    ("v: -0.0\n", "0"),
    ("v: 1e6\n", "1000000"),
    (
        "v: {1e6: a, 1000000.5: b, 0.00001: c, 123456789.0: d}\n",
        "{\"1.0000005e+06\": \"b\", \"1.2345679e+08\": \"d\", \"1e+06\": \"a\", \"1e-05\": \"c\"}",
    ),
    ("v: &a !!str yes\n", "\"yes\""),
    ("v: !!str &a yes\n", "\"yes\""),
    ("v: [!!str yes, yes]\n", "[\"yes\", true]"),
    ("v: {a: !x no, b: no}\n", "{\"a\": \"no\", \"b\": false}"),
    ("a: hello !x\nyes: 1\nv: yes\n", "true"),
    ("v: [y, \"y\", 'y', Y]\n", "[true, \"y\", \"y\", true]"),
    ("v: {'on': 1, \"off\": 2}\n", "{\"off\": 2, \"on\": 1}"),
    ("v: *x\n", REFUSED),
    ("a: &x yes\nv: *x\n", "true"),
    ("a: &x \"yes\"\nv: *x\n", "\"yes\""),
    ("v: >-\n  yes\n", "\"yes\""),
    ("v: |-\n  yes\n", "\"yes\""),
    ("v: \"010\"\n", "\"010\""),
    ("v: ye\\\n  s\n", "\"ye\\\\ s\""),
    ("v: -1_000\n", "-1000"),
    ("v: 0x1_F\n", "31"),
    ("v: 1e-7\n", "1e-7"),
    ("v: 0.30000000000000004\n", "0.30000000000000004"),
    ("v: 123456789.123\n", "123456789.123"),
    ("v: -1.5e+300\n", "-1.5e+300"),
    ("v: [0777, 0o777, 777]\n", "[511, 511, 777]"),
    ("v: \"<<\"\n", "\"<<\""),
    ("v: {? y : 1}\n", "{\"true\": 1}"),
    (
        "v: {a: {b: [yes, {c: 0x10}]}}\n",
        "{\"a\": {\"b\": [true, {\"c\": 16}]}}",
    ),
    ("v: ++1\n", "\"++1\""),
    ("v: 1-1\n", "\"1-1\""),
    ("v: ...\n", "\"...\""),
    ("v: .\n", "\".\""),
    ("v: ..\n", "\"..\""),
    ("v: .e3\n", "\".e3\""),
    ("v: .5e3\n", "500"),
    ("v: 1e+\n", "\"1e+\""),
    ("v: 0b2\n", "\"0b2\""),
    ("v: 0o8\n", "\"0o8\""),
    ("v: 09.5\n", "9.5"),
    ("v: 1_e3\n", "1000"),
    ("v: !!str {a: 1}\n", "{\"a\": 1}"),
    ("v: !!map [1]\n", "[1]"),
    ("v: !!bool x\n", REFUSED),
    ("v: {1: a, 1: b}\n", "{\"1\": \"b\"}"),
    ("v: {1: a, 01: b}\n", "{\"1\": \"b\"}"),
    ("v: {yes: a, true: b}\n", "{\"true\": \"b\"}"),
    ("v: {a: 1, \"a\": 2}\n", "{\"a\": 2}"),
    ("v: [{a: 1, a: 2}, {a: 1}]\n", "[{\"a\": 2}, {\"a\": 1}]"),
];

/// The same where we differ, and what we take it for: tags that nobody writes, an escape of JSON, numbers that no field
/// can have.
const DIFFERENT: &[(&str, &str, &str)] = &[
    ("v: !!binary aGk=\n", "\"hi\"", "\"aGk=\""),
    ("v: !!bool y\n", "true", REFUSED),
    ("v: !!bool \"y\"\n", "true", REFUSED),
    ("v: !!bool yes\n", "true", REFUSED),
    ("v: !<tag:yaml.org,2002:str> 5\n", "\"5\"", "5"),
    ("v: \"a\\x41\\u00e9\\/\"\n", REFUSED, "\"aA\u{e9}/\""),
    ("v: ._5\n", "\"._5\"", "0.5"),
    ("v: !local 0x10\n", "\"0x10\"", "\"16\""),
    ("v: !local True\n", "\"True\"", "\"true\""),
    ("v: !!int 010\n", "8", REFUSED),
    (
        "v: 0xFFFFFFFFFFFFFFFFFF\n",
        "\"0xFFFFFFFFFFFFFFFFFF\"",
        "4.722366482869645e21",
    ),
    ("v: !local ~\n", "\"~\"", "\"\""),
    ("v: !!str\n  yes\n", "\"yes\"", "true"),
];

/// Files, the names of the objects that kubectl finds, and whether it then gives up. `<a>` is a YAML object of that
/// name, `<ja>` a JSON one.
const STREAMS: &[(&str, &str, bool)] = &[
    ("<a>...\n<b>", "a", false),
    ("<a>...\n---\n<b>", "a b", false),
    ("<a>...\n", "a", false),
    ("<a>...\n# x\n", "a", false),
    ("<a>v: 1\n...\nb: 2\n", "a", false),
    ("<a>---   \n<b>", "a b", false),
    ("<a>--- # c\n<b>", "a b", false),
    (
        "<a>--- {apiVersion: x/v1, kind: X, metadata: {name: b}}\n",
        "",
        true,
    ),
    ("<a>--- !x\n<b>", "", true),
    ("<a>---", "a", false),
    ("<a>----\n<b>", "", true),
    ("<a>---x: 1\n<b>", "", true),
    ("---\n---\n<a>---\n---\n", "a", false),
    ("# c\n---\n<a>", "a", false),
    ("\u{feff}<a>", "a", false),
    ("<a>---\n\u{feff}<b>", "a b", false),
    ("\u{feff}<ja>", "a", false),
    (
        "apiVersion: x/v1\r\nkind: X\r\nmetadata: {name: a}\r\n---\r\napiVersion: x/v1\r\nkind: X\r\nmetadata: {name: b}\r\n",
        "a b",
        false,
    ),
    (
        "apiVersion: x/v1\rkind: X\rmetadata: {name: a}\r",
        "a",
        false,
    ),
    ("<ja><jb>", "a b", false),
    ("<ja>\n<jb>\n", "a b", false),
    ("<ja>\n---\n<jb>\n", "a b", false),
    ("<ja>\n---\n<b>\n", "a b", false),
    ("<a>\n---\n<jb>\n", "a b", false),
    ("<ja>\nfoo\n", "a", true),
    ("# c\n<ja>\n", "a", false),
    ("<ja>\n# c\n", "a", false),
    (
        "{\"apiVersion\": \"x/v1\", \"kind\": \"X\", \"metadata\": {\"name\": \"a\",},}",
        "a",
        false,
    ),
    (
        "{apiVersion: x/v1, kind: X, metadata: {name: a}}",
        "a",
        false,
    ),
    (
        "{apiVersion: x/v1, kind: X, metadata: {name: a}}\n---\n{apiVersion: x/v1, kind: X, metadata: {name: b}}\n",
        "a b",
        false,
    ),
    (
        "{\"apiVersion\": \"x/v1\", \"kind\": \"X\", \"metadata\": {\"name\": \"a\"}, \"v\": 1, \"v\": 2}",
        "a",
        false,
    ),
    (
        "{\"apiVersion\": \"x/v1\", \"kind\": \"X\", \"metadata\": {\"name\": \"a\"}, \"v\": 1.0}",
        "a",
        false,
    ),
    (
        "{\"apiVersion\": \"x/v1\", \"kind\": \"X\", \"metadata\": {\"name\": \"a\"}, \"v\": 1e3}",
        "a",
        false,
    ),
    (
        "{\"apiVersion\": \"x/v1\", \"kind\": \"X\", \"metadata\": {\"name\": \"a\"}, \"v\": 18446744073709551615}",
        "a",
        false,
    ),
    ("[<ja>,<jb>]", "", true),
    (
        "- apiVersion: x/v1\n  kind: X\n  metadata: {name: a}\n",
        "",
        true,
    ),
    (
        "apiVersion: v1\nkind: List\nitems:\n- apiVersion: x/v1\n  kind: X\n  metadata: {name: a}\n- apiVersion: x/v1\n  kind: X\n  metadata: {name: b}\n",
        "a b",
        false,
    ),
    (
        "apiVersion: v1\nkind: PodList\nitems:\n- metadata: {name: a}\n- metadata: {name: b}\n",
        "a b",
        false,
    ),
    ("%YAML 1.1\n---\n<a>", "", true),
    ("%YAML 1.2\n---\n<a>", "", true),
    ("%TAG !e! tag:e.com,2000:\n---\n<a>v: !e!x 5\n", "", true),
    ("<a>---\n%YAML 1.1\n---\n<b>", "a", true),
    ("<a>...\n%YAML 1.1\n---\n<b>", "a b", false),
    ("hello\n", "", true),
    ("", "", false),
    ("null\n---\n<a>", "a", false),
    ("~\n---\n<a>", "a", false),
    ("{}\n---\n<a>", "a", true),
    ("<a>v: |\n  x\n  ---\n  y\n", "a", false),
    ("<a>v: |\n  x\n---\n  y\n", "a", true),
    ("<a>v: \"x\n---\n  y\"\n", "", true),
    (
        "apiVersion: x/v1\nkind: X\nmetadata:\n\tname: a\n",
        "",
        true,
    ),
    ("<a>v: x   \n", "a", false),
    ("<a>v: \"\\0\"\n", "a", false),
    ("a: [1\n---\n<b>", "", true),
    ("<a> ---\n<b>", "", true),
    ("\n\n  <ja>", "a", false),
    ("apiVersion: x/v1\nkind: X\nmetadata: {name: a}", "a", false),
    ("<a>v: '[\n  {\"a\": 1}\n]'\n", "a", false),
    ("<a>v: \u{0}\n", "", true),
    (
        "<a>---\napiVersion: v1\nkind: List\nitems: []\n---\n<b>",
        "a b",
        false,
    ),
    ("<a>---\n# only\n---\n<b>", "a b", false),
    ("<a>---\t\n<b>", "a b", false),
    (
        "{\"apiVersion\": \"x/v1\",\n\t\"kind\": \"X\", \"metadata\": {\"name\": \"a\"}}",
        "a",
        false,
    ),
    (
        "{\t\"apiVersion\": \"x/v1\", \"kind\": \"X\", \"metadata\": {\"name\": \"a\"}}",
        "a",
        false,
    ),
    (
        "{\"apiVersion\": \"x/v1\", \"kind\": \"X\", \"metadata\": {\"name\": \"a\"}, \"v\": \"a\\/b\"}",
        "a",
        false,
    ),
    ("<a>... \n<b>", "a", false),
    ("<a>v: x\n...x: 1\n", "a", false),
];

fn yaml(name: &str) -> String {
    format!("apiVersion: x/v1\nkind: X\nmetadata: {{name: {name}}}\n")
}

/// `v` of the only object; none if there is a fault other than a key that occurs twice.
fn value(text: &str) -> Option<Value> {
    let manifest = read(&format!("{}{text}", yaml("a")));
    let is_reported = |fault: &&Fault| !fault.text.contains("occurs twice");
    if manifest.faults.iter().any(|fault| is_reported(&fault)) {
        return None;
    }
    let object = &manifest.objects.first()?.object;
    Some(object.get("v").cloned().unwrap_or_default())
}

#[test]
fn values_are_those_of_kubectl() {
    let mut wrong = Vec::new();
    let different = DIFFERENT.iter().map(|(text, theirs, ours)| {
        assert_ne!(theirs, ours, "{text:?}");
        (text, ours)
    });
    let same = VALUES.iter().map(|(text, theirs)| (text, theirs));
    for (text, wanted) in same.chain(different) {
        let mut wanted: Option<Value> = serde_json::from_str(wanted).ok();
        wanted.iter_mut().for_each(settle);
        let found = value(text);
        if found != wanted {
            wrong.push(format!("{text:?}: {found:?}, not {wanted:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn files_have_the_objects_that_kubectl_finds() {
    let mut wrong = Vec::new();
    for (text, names, fails) in STREAMS {
        let json = |name| {
            json!({"apiVersion": "x/v1", "kind": "X", "metadata": {"name": name}}).to_string()
        };
        let text = text.replace("<a>", &yaml("a")).replace("<b>", &yaml("b"));
        let text = text.replace("<ja>", &json("a")).replace("<jb>", &json("b"));
        let manifest = read(&text);
        let classes = Classes::default();
        let problems = manifest.objects.iter().any(|one| {
            let found = check(one, &classes);
            found.iter().any(|one| one.level == Level::Problem)
        });
        let fault = problems || !manifest.faults.is_empty();
        let found: Vec<&str> = manifest
            .objects
            .iter()
            .filter_map(|one| one.object.pointer("/metadata/name")?.as_str())
            .collect();
        // Where kubectl gives up, we go on; where it leaves something out, we say so.
        let same = match fails {
            true => fault,
            false => found.join(" ") == *names,
        };
        if !same {
            wrong.push(format!(
                "{text:?}: {found:?} {:?}, not {names:?}",
                manifest.faults
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

//! Label selectors: every operator, and what is refused.

use super::Labels;
use serde_json::json;

fn matches(selector: &str) -> bool {
    let object = json!({"metadata": {"labels": {"a": "1", "b.c/d": "x", "e": ""}}});
    Labels::parse(selector).unwrap().matches(&object)
}

#[test]
fn every_operator_holds_or_does_not() {
    for selector in [
        "",
        " ",
        "a",
        "a=1",
        "a==1",
        " a = 1 , b.c/d = x ",
        "a!=2",
        "z!=2",
        "a in (1,2)",
        "a in ( 2 , 1 )",
        "a notin (2)",
        "z notin (1)",
        "!z",
        "! z",
        "e=",
        "e,a",
        "e in ()",
        "e in (,x)",
        "a>0",
        "a<2",
        "b.c/d in (x)",
        "a=1,a!=2",
    ] {
        assert!(matches(selector), "{selector}");
    }
    for selector in [
        "z",
        "a=2",
        "z=1",
        "a!=1",
        "a in (2,3)",
        "z in (1)",
        "a notin (1)",
        "!a",
        "a=",
        "a>1",
        "a<1",
        "z>0",
        "b.c/d>0",
        "a=1,z",
    ] {
        assert!(!matches(selector), "{selector}");
    }
}

#[test]
fn what_is_no_selector_is_refused() {
    for selector in [
        "x in",
        "x in 1",
        "x in (1",
        "x in (1 2)",
        "=1",
        "a,,b",
        ",",
        "a b",
        "a=1 b=2",
        "!",
        "!a=1",
        "a=b=c",
        "a in (1),",
        "-a",
        "a=-",
        "a/b/c",
        "/a",
        "A.b/c",
        "a=b/c",
        "a>x",
    ] {
        assert!(Labels::parse(selector).is_err(), "{selector}");
    }
    let error = Labels::parse("x in").unwrap_err();
    assert_eq!(
        error,
        "unable to parse requirement: found '', expected: '('"
    );
}

#[test]
fn an_object_without_labels_has_none() {
    assert!(Labels::parse("!a").unwrap().matches(&json!({})));
    assert!(
        !Labels::parse("a")
            .unwrap()
            .matches(&json!({"metadata": {"labels": {"a": 1}}}))
    );
}

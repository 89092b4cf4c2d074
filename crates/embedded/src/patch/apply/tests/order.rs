//! The order of merged lists: shared items as applied, others behind their neighbours. Each row was seen
//! on the real implementation.

use crate::patch::apply::merged::merged;
use crate::patch::shape::core_kind;
use serde_json::json;

fn merge(live: &str, applied: &str) -> String {
    let (shape, _) = core_kind("", "ConfigMap").member("metadata").unwrap();
    let (finalizers, _) = shape.member("finalizers").unwrap();
    let list = |text: &str| json!(text.chars().map(String::from).collect::<Vec<_>>());
    let merged = merged(finalizers, &list(live), &list(applied));
    let items = merged.as_array().unwrap().iter();
    items.map(|item| item.as_str().unwrap()).collect()
}

#[test]
fn shared_items_come_as_applied_and_others_stay_beside_their_neighbours() {
    for (live, applied, result) in [
        ("abc", "abc", "abc"),
        ("abc", "cba", "cba"),
        ("abc", "d", "abcd"),
        ("abc", "cb", "acb"),
        ("abcde", "ec", "abdec"),
        ("", "ba", "ba"),
        ("ab", "cbad", "cbad"),
        ("abc", "xbyaz", "xbcyaz"),
        ("abab", "a", "abb"),
        ("abcd", "db", "acdb"),
        ("aabb", "b", "aab"),
    ] {
        assert_eq!(merge(live, applied), result, "{applied} over {live}");
    }
}

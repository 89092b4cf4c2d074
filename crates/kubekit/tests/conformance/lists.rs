//! Lists in pieces.

use crate::test_namespace::{refusal, test};
use kube::ResourceExt;
use kube::api::ListParams;

#[test]
fn pieces_make_up_the_whole_as_it_was() {
    test("pieces", |ns| async move {
        for name in ["a", "b", "c", "d", "e"] {
            ns.map(name).await;
        }
        let wanted = ListParams::default()
            .fields("metadata.name!=kube-root-ca.crt")
            .limit(2);
        let mut names = Vec::new();
        let mut versions = Vec::new();
        let mut list = ns.maps().list(&wanted).await.unwrap();
        ns.map("f").await;
        loop {
            names.extend(list.iter().map(ResourceExt::name_any));
            versions.push(list.metadata.resource_version.clone());
            match list.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => {
                    list = ns
                        .maps()
                        .list(&wanted.clone().continue_token(&token))
                        .await
                        .unwrap()
                }
                None => break,
            }
        }
        assert_eq!(names, ["a", "b", "c", "d", "e"]);
        assert!(
            versions.iter().all(|version| *version == versions[0]),
            "{versions:?}"
        );
    });
}

#[test]
fn a_token_that_nobody_gave_is_refused() {
    test("token", |ns| async move {
        let answer = ns
            .maps()
            .list(&ListParams::default().limit(1).continue_token("nonsense"))
            .await;
        assert_eq!(refusal(answer).code, 400);
    });
}

#[test]
fn versions_can_be_asked_for() {
    use kube::core::params::VersionMatch;
    test("asked", |ns| async move {
        let made = ns.map("a").await;
        let version = made.resource_version().unwrap();
        ns.map("b").await;
        let names = |list: kube::api::ObjectList<_>| -> Vec<String> {
            let names = list
                .iter()
                .map(|map: &k8s_openapi::api::core::v1::ConfigMap| map.name_any());
            names.filter(|name| name != "kube-root-ca.crt").collect()
        };
        let at_least = ListParams::default()
            .at(&version)
            .matching(VersionMatch::NotOlderThan);
        assert!(names(ns.maps().list(&at_least).await.unwrap()).contains(&"a".to_owned()));
        let exactly = ListParams::default()
            .at(&version)
            .matching(VersionMatch::Exact);
        assert_eq!(names(ns.maps().list(&exactly).await.unwrap()), ["a"]);
    });
}

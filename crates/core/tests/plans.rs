//! A directory is a case: `config.json` as a runtime would send it, or `pod.json` with a pod's
//! annotations and what the cluster knows of its networks; `links.json` with the links of
//! the node (the first has its default route), and `expected.txt` with everything that comes of
//! it. To write `expected.txt` anew, and then read the diff: `UPDATE=1 cargo test --test plans`.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that fails panics"
)]

mod cluster;
mod common;

use cluster::Case;
use common::{Made, Node, make, make_request, sandbox};
use plexus_api::cni::Error;
use plexus_core::plan::{LinkFacts, node_text, pod_text};
use serde_json::Value;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn every_case_gives_what_is_expected() {
    let mut wrong = Vec::new();
    let cases = cases();
    assert!(cases.len() >= 10, "the cases have gone");
    for case in cases {
        let text = render(&case);
        let expected = case.join("expected.txt");
        if std::env::var_os("UPDATE").is_some() {
            fs::write(&expected, &text).unwrap();
        }
        if fs::read_to_string(&expected).unwrap_or_default() != text {
            wrong.push(format!("{}:\n{text}", case.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn making_it_twice_gives_the_same_bytes() {
    for case in cases() {
        assert_eq!(render(&case), render(&case), "{}", case.display());
        if let (Ok(one), Ok(two)) = (made(&case), made(&case)) {
            let bytes = |made: &Made| format!("{:?}", (&made.pod, &made.node));
            assert_eq!(bytes(&one), bytes(&two), "{}", case.display());
        }
    }
}

fn cases() -> Vec<PathBuf> {
    let directory = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR").unwrap()).join("tests/plans");
    let mut cases: Vec<PathBuf> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    cases.sort();
    cases
}

fn made(case: &Path) -> Result<Made, Error> {
    let node = links(case);
    match fs::read(case.join("pod.json")) {
        Ok(pod) => {
            let pod = Case::read(&pod);
            make_request(pod.request(sandbox())?, &node, &pod)
        }
        Err(_) => make(&fs::read(case.join("config.json")).unwrap(), &node),
    }
}

fn links(case: &Path) -> Node {
    let links = fs::read(case.join("links.json")).unwrap_or_else(|_| b"[]".to_vec());
    let links: Vec<Value> = serde_json::from_slice(&links).unwrap();
    let links = links.iter().map(|link| LinkFacts {
        name: link["name"].as_str().unwrap().parse().unwrap(),
        index: u32::try_from(link["index"].as_u64().unwrap()).unwrap(),
        mtu: u32::try_from(link["mtu"].as_u64().unwrap()).unwrap(),
        kind: link["kind"].as_str().unwrap_or_default().to_owned(),
    });
    Node(links.collect())
}

fn render(case: &Path) -> String {
    let made = match made(case) {
        Ok(made) => made,
        Err(error) => {
            return format!(
                "error {}: {}\n{}\n",
                error.code.number(),
                error.msg,
                error.details
            );
        }
    };
    let mut text = String::new();
    for (title, part) in [
        ("node", node_text(&made.node)),
        ("pod", pod_text(&made.pod)),
    ] {
        write!(text, "# {title}\n{part}\n").unwrap();
    }
    text.push_str("# result\n");
    for (index, interface) in made.result.interfaces.iter().enumerate() {
        let place = interface.sandbox.as_deref().unwrap_or("the node");
        let mac = interface.mac.as_deref().unwrap_or("unknown");
        writeln!(
            text,
            "interface {index}: {} in {place}, MAC {mac}",
            interface.name
        )
        .unwrap();
    }
    for ip in &made.result.ips {
        let gateway = ip
            .gateway
            .map_or_else(|| "none".to_owned(), |gateway| gateway.to_string());
        let interface = ip.interface.unwrap();
        writeln!(
            text,
            "address {} on interface {interface}, gateway {gateway}",
            ip.address
        )
        .unwrap();
    }
    for route in &made.result.routes {
        let gw = route
            .gw
            .map_or_else(|| "none".to_owned(), |gw| gw.to_string());
        writeln!(text, "route {}, gateway {gw}", route.dst).unwrap();
    }
    if !made.result.dns.is_empty() {
        writeln!(text, "dns {:?}", made.result.dns).unwrap();
    }
    text
}

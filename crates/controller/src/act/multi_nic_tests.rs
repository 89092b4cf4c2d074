//! What is written of a MultiNicNetwork when the API server refuses a part of it.

use super::*;
use crate::Options;
use crate::cache::{BlockView, HostNicsView, Identity, NamespaceView, NodeView};
use crate::metrics::Metrics;
use http::{Method, Request, Response};
use kube::client::Body;
use plexus_api::objects::{MultiNicNetworkSpec, MultiNicNetworkStatus};
use plexus_core::multinic::Nic;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

const UID: &str = "0c0ffee0-0000-4000-8000-000000000001";

/// Requests, as method, last part of the path, and body.
type Requests = Arc<Mutex<Vec<(Method, String, Value)>>>;

/// An API server that answers a request with this status; it takes what it does not refuse.
fn server(
    code: impl Fn(&Method, &str, &Value) -> u16 + Clone + Send + 'static,
) -> (kube::Client, Requests) {
    let requests = Requests::default();
    let seen = Arc::clone(&requests);
    let service = tower::service_fn(move |request: Request<Body>| {
        let (code, seen) = (code.clone(), Arc::clone(&seen));
        async move {
            let (parts, body) = request.into_parts();
            let bytes = body.collect_bytes().await.unwrap();
            let mut body: Value = serde_json::from_slice(&bytes).unwrap_or_default();
            let path = parts.uri.path().to_owned();
            let code = code(&parts.method, &path, &body);
            seen.lock()
                .unwrap()
                .push((parts.method, path.clone(), body.clone()));
            if code >= 300 {
                body = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
                    "reason": "Invalid", "message": "no such thing here"});
            } else if path.contains("/multinicnetworks/") {
                let status = body["status"].clone();
                body = json!({"apiVersion": API_VERSION, "kind": KIND, "spec": spec(), "status": status,
                    "metadata": {"name": "rails", "uid": UID, "finalizers": [IN_USE_FINALIZER]}});
            }
            let response = Response::builder().status(code);
            Ok::<_, Infallible>(
                response
                    .body(Body::from(body.to_string().into_bytes()))
                    .unwrap(),
            )
        }
    });
    (kube::Client::new(service, "default"), requests)
}

fn spec() -> Value {
    let ipam =
        r#"{"type": "multi-nic-ipam", "hostBlock": 6, "interfaceBlock": 2, "vlanMode": "l2"}"#;
    json!({"subnet": "192.168.0.0/16", "ipam": ipam})
}

fn id(uid: &str) -> Identity {
    Identity {
        uid: uid.to_owned(),
        finalizers: vec![IN_USE_FINALIZER.to_owned()],
        ..Identity::default()
    }
}

/// A network with two hosts of one NIC, and one namespace.
fn engine(client: kube::Client) -> Engine {
    let mut engine = Engine::new(client, &[], Options::new("test"), Arc::<Metrics>::default());
    for (n, host) in [(1, "a"), (2, "b")] {
        let node = NodeView {
            id: id(host),
            pod_cidrs: Vec::new(),
            addresses: Vec::new(),
        };
        let nic = Nic {
            name: "eth1".to_owned(),
            addresses: vec![format!("10.0.1.{n}/24").parse().unwrap()],
        };
        let nics = HostNicsView {
            id: id(host),
            nics: vec![nic],
        };
        let name = Name::new("", host);
        engine.feed(Update::Node(Event::Apply((name.clone(), node))));
        engine.feed(Update::HostNics(Event::Apply((name, nics))));
    }
    let namespace = NamespaceView { id: id("default") };
    engine.feed(Update::Namespace(Event::Apply((
        Name::new("", "default"),
        namespace,
    ))));
    let spec: MultiNicNetworkSpec = serde_json::from_value(spec()).unwrap();
    let view = MultiNicView {
        id: id(UID),
        spec: Ok(spec),
        status: MultiNicNetworkStatus::default(),
    };
    engine.cache_multi_nic(&rails(), &view);
    engine
}

fn rails() -> Name {
    Name::new("", "rails")
}

/// Acts once on a network that was prepared; what was written, as method and what it is about, and the condition `Placed`.
fn act(
    code: impl Fn(&Method, &str, &Value) -> u16 + Clone + Send + 'static,
    prepare: impl FnOnce(&mut Engine),
) -> (Result<(), Failure>, Vec<String>, String) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build().unwrap();
    let (engine, result, requests) = runtime.block_on(async {
        let (client, requests) = server(code);
        let mut engine = engine(client);
        prepare(&mut engine);
        let result = engine.multi_nic(&rails()).await;
        (engine, result, requests)
    });
    let requests = requests.lock().unwrap();
    let written = requests.iter().map(|(method, path, body)| {
        let reason = body["reason"].as_str().unwrap_or_default();
        let last = path.rsplit('/').next().unwrap_or_default();
        format!("{method} {last} {reason}").trim().to_owned()
    });
    let net = engine.cache.multi_nics.get(&rails()).unwrap();
    let mut conditions = net.status.conditions.iter();
    let placed = conditions.find(|one| one.kind == "Placed");
    let placed = placed.map_or(String::new(), |one| {
        format!("{} {}: {}", one.status, one.reason, one.message)
    });
    (result, written.collect(), placed)
}

fn all_but(
    at: &'static str,
    refused: u16,
) -> impl Fn(&Method, &str, &Value) -> u16 + Clone + Send + 'static {
    move |_, path, body| {
        let named = path.ends_with(at)
            || body["metadata"]["name"]
                .as_str()
                .is_some_and(|name| name.contains(at));
        if named { refused } else { 201 }
    }
}

const BOTH: [&str; 4] = [
    "POST blocks",
    "POST blocks",
    "POST network-attachment-definitions",
    "PATCH status",
];

#[test]
fn a_block_that_is_refused_keeps_nobody_from_the_rest() {
    let (result, written, placed) = act(all_but("-c0a80000-24", 422), |_| {});
    assert!(matches!(result, Err(Failure::Refused { .. })), "{result:?}");
    assert_eq!(written[..4], BOTH);
    assert_eq!(written[4..], ["POST events NotWritten"]);
    assert!(
        placed.starts_with("False NotWritten:") && placed.contains("no such thing here"),
        "{placed}"
    );
}

#[test]
fn a_block_of_somebody_else_under_its_name_is_named() {
    let squatted = |engine: &mut Engine| {
        let view = BlockView {
            id: id("squat"),
            network: UID.to_owned(),
            of: rails(),
            cidr: "192.168.0.0/24".parse().ok(),
            node: "b".to_owned(),
            node_uid: "b".to_owned(),
            allocated: 0,
            closed: false,
            given: Vec::new(),
            untouched: false,
            nic: None,
        };
        let name = Name::new("", format!("{UID}-c0a80000-24"));
        engine.feed(Update::Block(Event::Apply((name, view))));
    };
    let (result, written, placed) = act(all_but("-c0a80000-24", 409), squatted);
    assert!(matches!(result, Err(Failure::Changed { .. })), "{result:?}");
    assert_eq!(written[..4], BOTH);
    assert!(
        placed.starts_with("False NotWritten:") && placed.contains("delete it"),
        "{placed}"
    );
}

#[test]
fn news_that_the_watch_will_bring_are_tried_again_without_a_word() {
    let (result, written, placed) = act(all_but("-c0a80000-24", 409), |_| {});
    assert!(matches!(result, Err(Failure::Changed { .. })), "{result:?}");
    assert_eq!(
        (written, placed.as_str()),
        (BOTH.map(str::to_owned).to_vec(), "True Placed: ")
    );
}

#[test]
fn a_definition_that_is_refused_does_not_hide_the_status() {
    let (result, written, placed) = act(all_but("network-attachment-definitions", 403), |_| {});
    assert!(matches!(result, Err(Failure::Request { .. })), "{result:?}");
    assert_eq!(written[..4], BOTH);
    assert_eq!(written[4..], ["POST events NotWritten"]);
    assert_eq!(placed, "True Placed: ");
}

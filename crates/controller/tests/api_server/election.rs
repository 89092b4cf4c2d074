//! Several replicas, of which one acts; and what each says of itself.

use crate::environment::{until, with_environment};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Patch, PatchParams};
use plexus_api::objects::Phase;
use serde_json::json;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

#[test]
fn one_leads_and_another_follows_at_once_when_it_stops() {
    with_environment("election", async |environment| {
        let holder = async || {
            let lease = environment
                .api::<Lease>()
                .get_opt("plexus-controller")
                .await
                .unwrap();
            lease
                .and_then(|lease| lease.spec?.holder_identity)
                .unwrap_or_default()
        };
        let first = environment.start(environment.options("a"));
        until("a leads", async || holder().await == "a").await;
        let second = environment.start(environment.options("b"));
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert_eq!(holder().await, "a");
        let begun = Instant::now();
        first.stop().unwrap();
        until("b leads", async || holder().await == "b").await;
        assert!(begun.elapsed() < Duration::from_secs(10));
        environment
            .network("blue", json!({"subnets": {"a": {"cidr": "10.1.0.0/24"}}}))
            .await;
        environment.until_phase("blue", Phase::Active).await;

        // Somebody takes it away, and gives it back: the leader stops, and leads again.
        let give = async |holder: &str, seconds: u32| {
            let spec = json!({"holderIdentity": holder, "leaseDurationSeconds": seconds});
            let patch = Patch::Merge(json!({"spec": spec}));
            let (api, how) = (environment.api::<Lease>(), PatchParams::default());
            api.patch("plexus-controller", &how, &patch).await.unwrap();
        };
        give("c", 3600).await;
        tokio::time::sleep(Duration::from_secs(4)).await;
        let subnets = json!({"subnets": {"a": {"cidr": "10.2.0.0/24"}}});
        environment.network("green", subnets).await;
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(holder().await, "c");
        assert_eq!(environment.status("green").await.phase, None);
        give("", 1).await;
        until("b leads again", async || holder().await == "b").await;
        environment.until_phase("green", Phase::Active).await;
        give("c", 3600).await;
        tokio::time::sleep(Duration::from_secs(4)).await;
        second.stop().unwrap();
        assert_eq!(holder().await, "c", "what is another's is not given back");
    });
}

#[test]
fn health_is_served() {
    with_environment("health", async |environment| {
        let address = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        let mut options = environment.options("a");
        options.health = Some(address);
        let _running = environment.start(options);
        until("ready", async || {
            get(address, "/readyz").starts_with("HTTP/1.1 200")
        })
        .await;
        assert!(get(address, "/healthz").contains("200 OK"));
        until("leading", async || {
            get(address, "/metrics").contains("plexus_controller_leading 1\n")
        })
        .await;
    });
}

fn get(address: SocketAddr, path: &str) -> String {
    let Ok(mut stream) = TcpStream::connect(address) else {
        return String::new();
    };
    let mut answer = String::new();
    let _ = write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
    let _ = stream.read_to_string(&mut answer);
    answer
}

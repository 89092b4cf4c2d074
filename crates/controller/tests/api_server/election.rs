//! Several replicas, of which one acts; and what each says of itself.

use crate::setting::{until, with_setting};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Patch, PatchParams};
use plexus_api::objects::Phase;
use plexus_controller::Error;
use serde_json::json;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

#[test]
fn one_leads_and_another_follows_at_once_when_it_stops() {
    with_setting("election", async |setting| {
        let holder = async || {
            let lease = setting
                .api::<Lease>()
                .get_opt("plexus-controller")
                .await
                .unwrap();
            lease
                .and_then(|lease| lease.spec?.holder_identity)
                .unwrap_or_default()
        };
        let first = setting.start(setting.options("a"));
        until("a leads", async || holder().await == "a").await;
        let second = setting.start(setting.options("b"));
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert_eq!(holder().await, "a");
        let begun = Instant::now();
        first.stop().unwrap();
        until("b leads", async || holder().await == "b").await;
        assert!(begun.elapsed() < Duration::from_secs(10));
        setting
            .network("blue", json!({"subnets": {"a": {"cidr": "10.1.0.0/24"}}}))
            .await;
        setting.until_phase("blue", Phase::Active).await;

        // Somebody takes it away: the leader ends, with the reason.
        let patch = json!({"spec": {"holderIdentity": "c", "leaseDurationSeconds": 3600}});
        let api = setting.api::<Lease>();
        api.patch(
            "plexus-controller",
            &PatchParams::default(),
            &Patch::Merge(&patch),
        )
        .await
        .unwrap();
        tokio::time::sleep(Duration::from_secs(4)).await;
        let error = second.stop().unwrap_err();
        assert!(matches!(error, Error::LeaseLost { .. }), "{error}");
        assert_eq!(holder().await, "c");
    });
}

#[test]
fn health_is_served() {
    with_setting("health", async |setting| {
        let address = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        let mut options = setting.options("a");
        options.health = Some(address);
        let _running = setting.start(options);
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

//! Whoever waits for a network resolves once, and once more for each change: never by the clock.

use super::*;
use crate::cluster::kinds::{Nads, Networks, Pods};
use crate::cluster::shared::Shared;
use crate::cluster::tests::fake_hooks::{FakeHooks, shared};
use crate::cluster::watch;
use plexus_api::cni::Code;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// Longer than any test should take: a test that waits so long fails by its count.
const TIMEOUT: Duration = Duration::from_secs(30);

struct Fixture {
    _runtime: tokio::runtime::Runtime,
    shared: Shared,
    directory: PathBuf,
}

impl Fixture {
    fn new(name: &str) -> Self {
        let name = format!("plexus-changes-{}-{name}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        // What a test that was killed has left.
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir_all(&directory).unwrap();
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().unwrap();
        let shared = shared(&runtime, &directory, &Arc::new(FakeHooks::default()));
        Self {
            _runtime: runtime,
            shared,
            directory,
        }
    }

    /// The watch brings a network.
    fn network(&self, name: &str, status: &Value) {
        let object = json!({"metadata": {"namespace": "a", "name": name, "uid": name},
            "spec": {"subnets": {"a": {"cidr": "10.0.0.0/16"}}}, "status": status});
        watch::take::<Networks>(&self.shared, serde_json::from_value(object).unwrap());
    }

    fn nad(&self, name: &str) {
        let object = json!({"metadata": {"namespace": "a", "name": name, "uid": name}, "spec": {}});
        watch::take::<Nads>(&self.shared, serde_json::from_value(object).unwrap());
    }

    fn pod(&self, name: &str) {
        let object = json!({"metadata": {"namespace": "a", "name": name, "uid": name}});
        watch::take::<Pods>(&self.shared, serde_json::from_value(object).unwrap());
    }

    /// What an ADD for a pod on network `blue` makes of it.
    fn blue(&self) -> Result<String, Error> {
        let blue = self.shared.state().networks.get("a/blue");
        let blue = blue.filter(|blue| blue.unusable.is_none());
        blue.map(|blue| blue.uid.clone()).ok_or_else(pending)
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        // What is left is in the directory for what is temporary.
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn pending() -> Error {
    Error::new(Code::TryAgainLater, "it is not there", "")
}

#[test]
fn a_change_while_one_resolves_is_not_missed() {
    let fixture = Fixture::new("missed");
    let mut attempts = 0;
    let found = fixture.shared.changes.retry(TIMEOUT, || {
        attempts += 1;
        let found = fixture.blue();
        // It comes when this attempt has looked, and before it waits.
        match attempts {
            1 => fixture.nad("green"),
            2 => fixture.network("blue", &json!({"phase": "Pending"})),
            3 => fixture.network("blue", &json!({"phase": "Active"})),
            _ => {}
        }
        found
    });
    assert_eq!((found.unwrap().as_str(), attempts), ("blue", 4));
}

#[test]
fn one_who_waits_resolves_once_for_each_change() {
    let fixture = &Fixture::new("waits");
    let attempts = &AtomicUsize::new(0);
    let until = |count: usize| {
        let end = Instant::now() + TIMEOUT;
        while attempts.load(SeqCst) < count && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    std::thread::scope(|scope| {
        let add = scope.spawn(|| {
            fixture.shared.changes.retry(TIMEOUT, || {
                let found = fixture.blue();
                attempts.fetch_add(1, SeqCst);
                found
            })
        });
        until(1);
        fixture.network("red", &json!({"phase": "Active"}));
        until(2);
        // Neither what nobody resolves by nor what is as it was is a change.
        fixture.pod("web");
        fixture.network("red", &json!({"phase": "Active"}));
        fixture.network("blue", &json!({"phase": "Active"}));
        assert_eq!(add.join().unwrap().unwrap(), "blue");
    });
    assert_eq!(attempts.load(SeqCst), 3);
}

#[test]
fn only_what_ends_by_itself_is_waited_for_and_not_for_ever() {
    let changes = Changes::default();
    let mut attempts = 0;
    let refused = changes.retry(TIMEOUT, || {
        attempts += 1;
        Err::<(), _>(Error::new(Code::InvalidConfig, "it is wrong", ""))
    });
    assert_eq!(
        (refused.unwrap_err().code, attempts),
        (Code::InvalidConfig, 1)
    );
    let late = changes.retry(Duration::ZERO, || {
        attempts += 1;
        Err::<(), _>(pending())
    });
    assert_eq!((late.unwrap_err().code, attempts), (Code::TryAgainLater, 2));
}

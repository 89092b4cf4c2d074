//! Each check, with the fault that it is about: in a directory that is thrown away, in a namespace,
//! or given to the judge; and that no check is without.

mod host;
mod leftovers;
mod services;

use super::*;
use plexus_core::plan::{HostPort, Protocol};
use plexus_kernel::Feature;
use plexus_testkit::NetNs;
use plexus_types::RouterName;
use serde_json::json;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("plexus-doctor-{name}-{}-{count}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn machine(&self) -> Machine {
        for name in ["bin", "conf"] {
            fs::create_dir_all(self.0.join(name)).unwrap();
        }
        Machine {
            socket: self.0.join("agent.sock"),
            state_dir: self.0.join("state"),
            cni_bin_dir: self.0.join("bin"),
            delegate_bin_dir: None,
            cni_conf_dir: self.0.join("conf"),
            pools: self.0.join("pools"),
            netns: self.0.join("netns"),
            labs: self.0.join("labs"),
        }
    }

    fn file(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

thread_local! {
    /// The faults that tests which ran in this thread have produced.
    static PRODUCED: RefCell<BTreeSet<Subject>> = const { RefCell::new(BTreeSet::new()) };
}

/// The checks have one about that, with that verdict and those words.
#[track_caller]
fn finds(checks: &[Check], subject: Subject, verdict: Verdict, words: &str) {
    let found = checks.iter().filter(|check| check.subject == subject);
    let found: Vec<&Check> = found.collect();
    let fits = |check: &&&Check| {
        check.verdict == verdict && format!("{} {}", check.found, check.next).contains(words)
    };
    assert!(
        found.iter().any(|check| fits(&check)),
        "{subject} {verdict:?} {words:?}: {checks:#?}"
    );
    let silent = |check: &&&Check| check.verdict != Verdict::Pass && check.next.is_empty();
    assert!(
        !found.iter().any(|check| silent(&check)),
        "no next step: {found:#?}"
    );
    if verdict != Verdict::Pass {
        PRODUCED.with(|produced| produced.borrow_mut().insert(subject));
    }
}

/// The test that produces the fault of each check: one without does not compile.
fn test_of(subject: Subject) -> fn() {
    match subject {
        Subject::Root | Subject::Capabilities => host::rights,
        Subject::Kernel
        | Subject::Veth
        | Subject::Bridge
        | Subject::Macvlan
        | Subject::Ipvlan
        | Subject::Vlan
        | Subject::Vxlan
        | Subject::Vrf
        | Subject::Dummy
        | Subject::Masquerade
        | Subject::NetnsCookie
        | Subject::RouterNetns => host::kernel_features,
        Subject::Sysctls | Subject::PodNamespaces | Subject::RouterMounts => {
            host::mounts_of_a_container
        }
        Subject::StateDirectory | Subject::StateRoom | Subject::Journal => {
            host::the_state_directory
        }
        Subject::AgentSocket
        | Subject::AgentReady
        | Subject::AgentWarning
        | Subject::AgentQueue => services::the_socket_and_who_is_behind_it,
        Subject::Plugin
        | Subject::PluginSocket
        | Subject::FirstConfiguration
        | Subject::Configuration => services::plugins_and_configurations,
        Subject::ApiServer | Subject::Definitions | Subject::Controller | Subject::Node => {
            services::the_api_server
        }
        Subject::Leaks => leftovers::without_an_agent_leaks_cannot_be_told,
        Subject::LeakedLinks => leftovers::links_that_nobody_knows,
        Subject::LeakedPorts | Subject::LeakedRouters => {
            leftovers::ports_and_routers_that_nobody_knows
        }
        Subject::LeakedAddresses => leftovers::files_of_host_local_that_nobody_knows,
        Subject::LeakedLabs => leftovers::namespaces_of_labs_that_are_gone,
    }
}

#[test]
fn every_check_has_a_fault_that_a_test_produces() {
    let mut names = BTreeSet::new();
    for subject in Subject::ALL {
        PRODUCED.with(|produced| produced.borrow_mut().clear());
        test_of(*subject)();
        let produced = PRODUCED.with(|produced| produced.borrow().clone());
        assert!(produced.contains(subject), "{subject}: {produced:?}");
        assert!(names.insert(subject.name()), "{subject} is there twice");
    }
}

fn facts(snapshot: crate::snapshot::Snapshot) -> ApiFacts {
    ApiFacts {
        server: "https://x:6443".to_owned(),
        version: Ok("v1.34.0".to_owned()),
        snapshot,
        node: Some("n1".to_owned()),
    }
}

#[test]
fn the_report_has_a_verdict() {
    let mut report = Report::default();
    assert_eq!(report.verdict(), Verdict::Pass);
    report.extend([
        Check::pass(Subject::Root, "fine"),
        Check::warn(Subject::Plugin, "hm", "look"),
    ]);
    assert_eq!(report.verdict(), Verdict::Warn);
    report.extend([Check::fail(Subject::StateDirectory, "bad", "do")]);
    assert_eq!(report.verdict(), Verdict::Fail);
    let text = report.render(crate::text::Screen::PIPE, false);
    assert!(
        !text.contains("fine") && text.contains("fail  state.directory  bad"),
        "{text}"
    );
    assert!(
        text.ends_with("1 passed, 1 to look at, 1 failed\n"),
        "{text}"
    );
    assert_eq!(report.to_json()["checks"].as_array().unwrap().len(), 3);
}

//! Files that come and go with Networks, and those that are not ours.

use super::*;
use crate::host::atomic_file::tests::Scratch;
use crate::host::cluster_network::Stamp;
use plexus_api::cni::{Args, Body, FqName, NetConf};
use plexus_cni::shim::DEFAULT_SOCKET;

fn conflists(scratch: &Scratch) -> Conflists {
    Conflists {
        directory: scratch.0.clone(),
        root: None,
        socket: DEFAULT_SOCKET.into(),
        own_namespace: "plexus-system".to_owned(),
        foreign: Mutex::default(),
    }
}

fn networks(names: &[&str]) -> Vec<Arc<NetworkObject>> {
    let one = |full: &&str| {
        let (namespace, name) = full.split_once('/').unwrap();
        Arc::new(NetworkObject {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            uid: format!("uid-{full}"),
            spec: Default::default(),
            earlier_subnets: Vec::new(),
            vni: None,
            made_from: None,
            unusable: None,
            going: false,
            parsed: Default::default(),
        })
    };
    names.iter().map(one).collect()
}

#[test]
fn a_file_is_what_the_agent_itself_reads() {
    let text = text("team-a.blue", "team-a/blue", Path::new("/run/x/a.sock"));
    let list: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (&list["cniVersion"], &list["name"]),
        (&json!("1.0.0"), &json!("team-a.blue"))
    );
    let mut plugin = list["plugins"][0].clone();
    assert_eq!(plugin["agentSocket"], "/run/x/a.sock");
    plugin["cniVersion"] = "1.1.0".into();
    plugin["name"] = list["name"].clone();
    let conf = NetConf::parse(plugin.to_string().as_bytes(), &Args::default()).unwrap();
    let (project, name) = ("team-a".to_owned(), "blue".to_owned());
    assert_eq!(conf.body, Body::Named(Some(FqName { project, name })));
}

#[test]
fn files_come_and_go_with_networks() {
    let scratch = Scratch::new("conflists");
    let ours = conflists(&scratch);
    let all = [
        "default/blue",
        "team-a/blue",
        "plexus-system/cluster-default",
    ];
    ours.write_files(&networks(&all), true).unwrap();
    let both = ["plexus-blue.conflist", "plexus-team-a.blue.conflist"];
    assert_eq!(scratch.names(), both);
    // Nothing is written again while nothing changes.
    let stamp = Stamp::of(&scratch.join(both[0])).unwrap();
    ours.write_files(&networks(&all), true).unwrap();
    assert_eq!(Stamp::of(&scratch.join(both[0])).unwrap(), stamp);
    // What vanishes comes back.
    fs::remove_file(scratch.join(both[0])).unwrap();
    ours.write_files(&networks(&all), true).unwrap();
    assert_eq!(scratch.names(), both);
    // What is only not known yet stays.
    ours.write_files(&networks(&["default/blue"]), false)
        .unwrap();
    assert_eq!(scratch.names(), both);
    ours.write_files(&networks(&["default/blue"]), true)
        .unwrap();
    assert_eq!(scratch.names(), both[..1]);
    assert_eq!(written(&scratch.0).unwrap(), [scratch.join(both[0])]);
    assert!(written(&scratch.join("absent")).unwrap().is_empty());
}

#[test]
fn what_is_not_ours_is_left_alone() {
    let scratch = Scratch::new("conflists");
    let ours = conflists(&scratch);
    let theirs = [
        (
            "plexus-blue.conflist",
            "{\"name\": \"blue\", \"plugins\": []}",
        ),
        ("plexus-old.conflist", "not JSON"),
        ("00-plexus.conflist", "{}"),
    ];
    for (name, text) in theirs {
        fs::write(scratch.join(name), text).unwrap();
    }
    ours.write_files(&networks(&["default/blue"]), true)
        .unwrap();
    ours.write_files(&[], true).unwrap();
    assert!(written(&scratch.0).unwrap().is_empty());
    for (name, text) in theirs {
        assert_eq!(fs::read_to_string(scratch.join(name)).unwrap(), text);
    }
}

#[test]
fn a_network_that_was_made_anew_elsewhere_has_the_file() {
    let scratch = Scratch::new("conflists");
    let ours = conflists(&scratch);
    ours.write_files(&networks(&["default/a.b"]), true).unwrap();
    // Another agent's directory, another start: the files are all that is known.
    let next = conflists(&scratch);
    next.write_files(&networks(&["a/b"]), true).unwrap();
    assert_eq!(scratch.names(), ["plexus-a.b.conflist"]);
}

#[test]
fn a_name_that_somebody_elses_file_has_is_left_to_it() {
    let scratch = Scratch::new("conflists");
    let ours = conflists(&scratch);
    let both = ["default/blue", "default/lan"];
    ours.write_files(&networks(&both), true).unwrap();
    assert_eq!(scratch.names().len(), 2);
    // Somebody else's comes later: two of one name would be one too many.
    let theirs = "{\"cniVersion\": \"0.4.0\", \"name\": \"lan\", \"plugins\": []}";
    fs::write(scratch.join("87-lan.conflist"), theirs).unwrap();
    ours.write_files(&networks(&both), true).unwrap();
    let left = ["87-lan.conflist", "plexus-blue.conflist"];
    assert_eq!(scratch.names(), left);
    let text = fs::read_to_string(scratch.join(left[0])).unwrap();
    assert_eq!(text, theirs);
}

/// Counts what is logged on this thread.
#[derive(Clone, Default)]
struct Warnings(Arc<Mutex<Vec<u8>>>);

impl io::Write for Warnings {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_name_that_is_taken_is_said_once_and_again_when_more_are() {
    let scratch = Scratch::new("conflists-once");
    let ours = conflists(&scratch);
    let own = "{\"name\": \"plexus\", \"plugins\": []}";
    fs::write(scratch.join(conflist::NAME), own).unwrap();
    let take = |name: &str| {
        let text = format!("{{\"name\": \"{name}\", \"plugins\": []}}");
        fs::write(scratch.join(&format!("9-{name}.conflist")), text).unwrap();
    };
    let all = networks(&["default/blue", "default/green"]);
    let warnings = Warnings::default();
    let log = warnings.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::WARN)
        .with_writer(move || log.clone())
        .finish();
    let said = || {
        let text = warnings.0.lock().unwrap().clone();
        String::from_utf8(text).unwrap().lines().count()
    };
    tracing::subscriber::with_default(subscriber, || {
        take("blue");
        // Every look is at everything.
        for _ in 0..5 {
            ours.write_files(&all, false).unwrap();
        }
        assert_eq!(said(), 1);
        take("green");
        for _ in 0..5 {
            ours.write_files(&all, false).unwrap();
        }
        assert_eq!(said(), 2);
    });
    let theirs = names_of_others(&scratch.0).unwrap();
    assert!(!theirs.contains("plexus"), "that one is ours");
}

//! The journal against a real file: what is written is read, also by the next one.

use super::*;
use plexus_core::attach::Lease;
use plexus_core::attachment::{Assigned, AssignedIp};
use plexus_core::plan::{HostPort, Protocol};
use plexus_types::NetnsCookie;

struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("plexus-journal-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("journal.db")
    }

    fn open(&self) -> Journal {
        Journal::open(&self.file()).unwrap()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn record(container: &str, address: &str) -> Record {
    let ips = vec![AssignedIp {
        address: address.parse().unwrap(),
        gateway: None,
    }];
    Record {
        container: container.parse().unwrap(),
        ifname: "eth0".parse().unwrap(),
        network: "blue".parse().unwrap(),
        pod_uid: Some("uid-1".to_owned()),
        boot: "boot".to_owned(),
        cookie: NetnsCookie(u64::MAX),
        netns: "/run/netns/x".to_owned(),
        details: Details {
            config: "{}".to_owned(),
            group: 7,
            ..Details::default()
        },
        attachments: vec![native("eth0", ips, Lease::Pool("plexus: blue".to_owned()))],
    }
}

fn native(ifname: &str, ips: Vec<AssignedIp>, lease: Lease) -> AttachmentRecord {
    AttachmentRecord {
        reference: 0,
        ordinal: 0,
        network: "blue".parse().unwrap(),
        ifname: ifname.parse().unwrap(),
        origin: None,
        backend: BackendRecord::Native(Box::new(NativeRecord {
            provider: "bridge".to_owned(),
            addresses: Assigned {
                ips,
                ..Assigned::default()
            },
            lease: Some(lease),
            preparations: Vec::new(),
            link: None,
            node: NodePlan::default(),
            outcome: None,
        })),
    }
}

#[test]
fn a_record_lives_and_ends() {
    let fixture = Directory::new("life");
    let one = record("c1", "10.0.0.2/24");
    let journal = fixture.open();
    journal.begin(&one).unwrap();
    let stored = journal.find(&one.container, &one.ifname).unwrap().unwrap();
    assert_eq!((&stored.record, stored.state), (&one, State::Intent));
    assert_eq!(journal.addresses().unwrap()[0].2, "c1/eth0/eth0");
    journal.done(&one, "result").unwrap();
    drop(journal);

    let journal = fixture.open();
    let stored = journal.of_pod("uid-1").unwrap().remove(0);
    assert_eq!(
        (stored.state, stored.result.as_deref()),
        (State::Done, Some("result"))
    );
    journal.deleting(&one.container, &one.ifname).unwrap();
    assert_eq!(journal.all().unwrap()[0].state, State::Deleting);
    journal.forget(&one.container, &one.ifname).unwrap();
    assert!(journal.all().unwrap().is_empty() && journal.addresses().unwrap().is_empty());
}

/// A thread that panics in a transaction leaves nothing of it, and the journal to everybody else.
#[test]
fn a_transaction_that_panics_is_rolled_back() {
    let fixture = Directory::new("panic");
    let journal = fixture.open();
    for flush in [false, true] {
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let connection = journal.lock();
            durable(&connection, flush, |tx| -> rusqlite::Result<()> {
                tx.execute("INSERT INTO directory (path) VALUES ('/half')", [])?;
                panic!("in the middle")
            })
        }));
        assert!(panicked.is_err());
        assert_eq!(journal.directories().unwrap(), Vec::<PathBuf>::new());
        let flushes: i64 = journal
            .lock()
            .pragma_query_value(None, "synchronous", |row| row.get(0))
            .unwrap();
        assert_eq!(flushes, 1, "NORMAL again: not every later ADD is flushed");
    }
    let one = record("c1", "10.0.0.2/24");
    journal.begin(&one).unwrap();
    drop(journal);
    assert_eq!(fixture.open().all().unwrap()[0].record, one);
}

/// Ports of the node are decided with the links, after an IPAM plugin has given the addresses.
#[test]
fn ports_that_are_decided_later_are_written_with_the_links() {
    let fixture = Directory::new("ports");
    let mut one = record("c1", "10.0.0.2/24");
    let journal = fixture.open();
    journal.begin(&one).unwrap();
    one.details.host_ports = vec![HostPort {
        protocol: Protocol::Tcp,
        host_ip: None,
        port: 8080,
        to: "10.0.0.2:80".parse().unwrap(),
    }];
    journal.update(&one, 0..1).unwrap();
    journal.done(&one, "result").unwrap();
    drop(journal);
    let stored = fixture.open().find(&one.container, &one.ifname);
    assert_eq!(stored.unwrap().unwrap().record, one);
}

#[test]
fn directories_of_host_local_are_known_when_no_record_names_them_any_more() {
    let fixture = Directory::new("directories");
    let mut one = record("c1", "10.0.0.2/24");
    let lease = Lease::HostLocal {
        directory: "/var/lib/cni/networks/blue".into(),
        ifname: "eth0".parse().unwrap(),
    };
    one.attachments = vec![native("eth0", Vec::new(), lease)];
    let journal = fixture.open();
    assert!(journal.directories().unwrap().is_empty());
    journal.begin(&one).unwrap();
    journal.update(&one, 0..1).unwrap();
    journal.forget(&one.container, &one.ifname).unwrap();
    drop(journal);
    let known = fixture.open().directories().unwrap();
    assert_eq!(known, [PathBuf::from("/var/lib/cni/networks/blue")]);
}

#[test]
fn an_address_is_never_journaled_twice() {
    let fixture = Directory::new("twice");
    let journal = fixture.open();
    journal.begin(&record("c1", "10.0.0.2/24")).unwrap();
    assert!(journal.begin(&record("c2", "10.0.0.2/24")).is_err());
    assert_eq!(
        journal.all().unwrap().len(),
        1,
        "the refused record left nothing"
    );
    journal.update(&record("c1", "10.0.0.2/24"), 0..1).unwrap();
    assert_eq!(journal.addresses().unwrap().len(), 1);
}

#[test]
fn what_networks_keep_is_of_this_boot() {
    let fixture = Directory::new("kept");
    let journal = fixture.open();
    let network = "blue".parse().unwrap();
    journal
        .put_node_plan(&network, "one", &NodePlan::default())
        .unwrap();
    assert_eq!(journal.node_plans("one").unwrap().len(), 1);
    assert!(journal.node_plans("two").unwrap().is_empty());
    assert!(
        journal.node_plans("one").unwrap().is_empty(),
        "the older boot's rows were dropped"
    );
}

#[test]
fn what_a_network_keeps_is_quarantined_until_it_is_written_anew() {
    let fixture = Directory::new("kept-newer");
    let journal = fixture.open();
    let network = "blue".parse().unwrap();
    let put = || journal.put_node_plan(&network, "one", &NodePlan::default());
    put().unwrap();
    let newer = "UPDATE network SET plan = '{\"tunnels\":[]}'";
    journal.lock().execute_batch(newer).unwrap();
    assert!(journal.node_plans("one").unwrap().is_empty());
    assert!(journal.quarantined_networks().contains_key("blue"));
    assert!(journal.quarantined().is_empty(), "every request is known");
    put().unwrap();
    assert!(journal.quarantined_networks().is_empty());
    assert_eq!(journal.node_plans("one").unwrap().len(), 1);
}

#[test]
fn a_row_that_cannot_be_read_is_quarantined_and_stops_nobody_else() {
    let fixture = Directory::new("quarantine");
    let journal = fixture.open();
    let (one, mut two) = (record("c1", "10.0.0.2/24"), record("c2", "10.0.0.3/24"));
    let mut second = native("net1", Vec::new(), Lease::Pool("plexus: blue".to_owned()));
    (second.reference, second.ordinal) = (1, 2);
    two.attachments.push(second);
    for record in [&one, &two] {
        journal.begin(record).unwrap();
    }
    assert_eq!(journal.all().unwrap()[1].record, two);
    for damage in [
        "UPDATE attachment SET version = 99 WHERE container = 'c2' AND ordinal = 2",
        "UPDATE attachment SET version = 1, body = '{' WHERE container = 'c2' AND ordinal = 2",
        "UPDATE request SET details = '[]' WHERE container = 'c2'",
    ] {
        journal.lock().execute_batch(damage).unwrap();
        let all = journal.all().unwrap();
        assert_eq!(all.len(), 1, "{damage}");
        assert_eq!(all[0].record, one);
        let error = journal.find(&two.container, &two.ifname).unwrap_err();
        assert!(matches!(error, JournalError::Unreadable { .. }), "{error}");
        assert!(error.to_string().contains("c2/eth0"), "{error}");
        assert!(journal.quarantined().contains_key("c2/eth0"));
        assert!(!journal.quarantined().contains_key("c1/eth0"));
    }
    // Its addresses stay taken until its DEL is done.
    assert_eq!(journal.addresses().unwrap().len(), 2);
    let taken = journal.addresses_of(&two.container, &two.ifname).unwrap();
    assert_eq!(taken[0].1.to_string(), "10.0.0.3");
    journal.forget(&two.container, &two.ifname).unwrap();
    assert!(journal.quarantined().is_empty());
    assert_eq!(journal.addresses().unwrap().len(), 1);
    assert_eq!(journal.find(&two.container, &two.ifname).unwrap(), None);
}

/// What a newer agent may write without another version.
#[test]
fn a_row_with_a_field_or_a_kind_of_link_that_is_not_known_is_quarantined_alone() {
    let fixture = Directory::new("newer-row");
    let journal = fixture.open();
    let one = record("c1", "10.0.0.2/24");
    journal.begin(&one).unwrap();
    journal.begin(&record("c2", "10.0.0.3/24")).unwrap();
    let update = "UPDATE attachment SET body = ?1 WHERE container = 'c2'";
    let put = |body: &str| journal.lock().execute(update, [body]).unwrap();
    let stacked = include_str!("row/golden/stacked.json");
    put(stacked);
    assert_eq!(journal.all().unwrap().len(), 2);
    for (known, newer, word) in [
        ("{\"stacked\":", "{\"tunnel\":", "tunnel"),
        ("\"index\":3", "\"index\":3,\"queues\":4", "queues"),
    ] {
        assert!(stacked.contains(known));
        put(&stacked.replace(known, newer));
        let all = journal.all().unwrap();
        assert_eq!(all.len(), 1, "{newer}");
        assert_eq!(all[0].record, one);
        let quarantined = journal.quarantined();
        assert!(quarantined["c2/eth0"].contains(word), "{quarantined:?}");
    }
}

#[test]
fn a_newer_older_or_damaged_journal_is_refused_and_left_alone() {
    let fixture = Directory::new("newer");
    drop(fixture.open());
    let set = |format: i64| {
        let connection = Connection::open(fixture.file()).unwrap();
        connection
            .pragma_update(None, "user_version", format)
            .unwrap();
    };
    set(99);
    let error = Journal::open(&fixture.file()).unwrap_err();
    assert!(
        matches!(error, JournalError::Newer { found: 99, .. }),
        "{error}"
    );
    set(2);
    let error = Journal::open(&fixture.file()).unwrap_err();
    assert!(
        matches!(error, JournalError::Older { found: 2, .. }),
        "{error}"
    );
    let remedy = crate::failure::journal(&error).details;
    assert!(remedy.contains("adopts the interfaces"), "{remedy}");

    let fixture = Directory::new("damaged");
    std::fs::write(
        fixture.file(),
        b"this is not a database, but it is long enough to be one .........",
    )
    .unwrap();
    let error = Journal::open(&fixture.file()).unwrap_err();
    assert!(matches!(error, JournalError::Damaged { .. }), "{error}");
    assert!(
        std::fs::read(fixture.file())
            .unwrap()
            .starts_with(b"this is not")
    );
}

#[test]
fn a_checkpoint_keeps_everything() {
    let fixture = Directory::new("checkpoint");
    let journal = fixture.open();
    for i in 0..50 {
        journal
            .begin(&record(&format!("c{i}"), &format!("10.0.0.{i}/24")))
            .unwrap();
    }
    journal.checkpoint().unwrap();
    journal.begin(&record("last", "10.0.0.77/24")).unwrap();
    assert_eq!(journal.all().unwrap().len(), 51);
}

#[test]
fn what_is_left_of_a_record_is_being_removed_and_has_no_ports() {
    let place = Directory::new("some");
    let journal = place.open();
    let mut one = record("c1", "10.0.0.2/24");
    let mut second = native("net1", Vec::new(), Lease::Pool("plexus: blue".to_owned()));
    second.reference = 1;
    one.attachments.push(second);
    one.details.host_ports = vec![plexus_core::plan::HostPort {
        protocol: plexus_core::plan::Protocol::Tcp,
        host_ip: None,
        port: 80,
        to: "10.0.0.2:8080".parse().unwrap(),
    }];
    assert_eq!(one.plan().host_ports.len(), 1);
    journal.begin(&one).unwrap();
    journal.done(&one, "result").unwrap();
    journal
        .forget_attachments(&one, &[&one.attachments[0]])
        .unwrap();
    let left = journal.find(&one.container, &one.ifname).unwrap().unwrap();
    assert_eq!(left.state, State::Deleting);
    assert_eq!(left.record.attachments, one.attachments[1..]);
    // Its address may be another pod's by now, and so may its ports.
    assert!(left.record.plan().host_ports.is_empty());
    assert!(journal.addresses().unwrap().is_empty());
}

#[test]
fn of_a_record_with_a_row_that_cannot_be_read_the_others_can() {
    let place = Directory::new("part");
    let journal = place.open();
    let mut one = record("c1", "10.0.0.2/24");
    let mut second = native("net1", Vec::new(), Lease::Pool("plexus: blue".to_owned()));
    second.reference = 1;
    one.attachments.push(second);
    journal.begin(&one).unwrap();
    let part = || journal.readable_part(&one.container, &one.ifname).unwrap();
    assert_eq!(part(), Some((one.clone(), true)));
    let damage = "UPDATE attachment SET version = 99 WHERE reference = 0";
    journal.lock().execute_batch(damage).unwrap();
    let (record, are_all) = part().unwrap();
    assert_eq!((record.attachments.len(), are_all), (1, false));
    assert_eq!(record.attachments[0].ifname.as_str(), "net1");
    let damage = "UPDATE request SET version = 99";
    journal.lock().execute_batch(damage).unwrap();
    assert_eq!(part(), None);
}

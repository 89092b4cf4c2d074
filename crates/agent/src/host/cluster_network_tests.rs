//! Reading another CNI's configuration: which one, when, and what is refused.

use super::*;
use crate::host::atomic_file;
use crate::host::atomic_file::tests::Scratch;
use serde_json::json;

const OURS: &str = "00-plexus.conflist";

fn write(scratch: &Scratch, name: &str, value: &Value) {
    atomic_file::put(&scratch.join(name), value.to_string().as_bytes(), 0o644).unwrap();
}

fn list(name: &str, plugin: &str) -> Value {
    json!({"cniVersion": "0.3.1", "name": name, "plugins": [{"type": plugin}, {"type": "portmap", "capabilities": {"portMappings": true}}]})
}

fn reason(other: &OtherCni) -> String {
    let error = other.chain().unwrap_err();
    assert_eq!(error.code, Code::NotAvailable);
    error.to_string()
}

#[test]
fn waits_for_a_file_and_takes_the_first_that_is_not_ours() {
    let scratch = Scratch::new("conf");
    let other = OtherCni::new(&scratch.0, None, OURS);
    assert!(reason(&other).contains("no other CNI"));
    write(&scratch, OURS, &list("plexus", "plexus-cni"));
    write(
        &scratch,
        "05-again.conf",
        &json!({"name": "x", "type": "contrail-k8s-cni"}),
    );
    write(&scratch, "aaa.conflist.disabled", &list("no", "no"));
    assert!(reason(&other).contains("no other CNI"));
    write(
        &scratch,
        "10-calico.conflist",
        &list("k8s-pod-network", "calico"),
    );
    write(&scratch, "20-flannel.conflist", &list("cbr0", "flannel"));
    let (name, chain) = other.chain().unwrap();
    assert_eq!(
        (name.as_str(), chain.version),
        ("k8s-pod-network", Version::V0_3_1)
    );
    assert_eq!(
        chain.plugins[0],
        json!({"type": "calico"}).as_object().unwrap().clone()
    );
    assert_eq!(chain.plugins[1]["capabilities"]["portMappings"], true);
}

#[test]
fn changes_count_at_once() {
    let scratch = Scratch::new("conf");
    let other = OtherCni::new(&scratch.0, None, OURS);
    let name = || other.chain().unwrap().0.to_string();
    write(&scratch, "20-b.conflist", &list("b", "x"));
    assert_eq!(name(), "b");
    // In place: the directory does not change.
    fs::write(scratch.join("20-b.conflist"), list("bb", "x").to_string()).unwrap();
    assert_eq!(name(), "bb");
    write(
        &scratch,
        "10-a.conf",
        &json!({"cniVersion": "1.0.0", "name": "a", "type": "ptp", "mtu": 9000}),
    );
    assert_eq!(name(), "a");
    let plugin = &other.chain().unwrap().1.plugins[0];
    assert_eq!(
        *plugin,
        json!({"type": "ptp", "mtu": 9000})
            .as_object()
            .unwrap()
            .clone()
    );
    fs::write(scratch.join("10-a.conf"), "{\"na").unwrap();
    assert!(
        reason(&other).contains("10-a.conf"),
        "half a file is no reason to take the next"
    );
    fs::remove_file(scratch.join("10-a.conf")).unwrap();
    assert_eq!(name(), "bb");
    fs::remove_dir_all(&scratch.0).unwrap();
    assert!(reason(&other).contains("--cni-conf-dir"));
}

#[test]
fn hostile_configurations_are_refused_with_the_file() {
    for (value, said) in [
        (json!({"type": "x"}), "no \"name\""),
        (json!({"name": "../x", "type": "x"}), "../x"),
        (json!({"name": "x"}), "no \"type\""),
        (json!({"name": "x", "type": "../../bin/sh"}), "../../bin/sh"),
        (json!({"name": "x", "plugins": []}), "at least one"),
        (json!({"name": "x", "plugins": {}}), "not a list"),
        (json!({"name": "x", "plugins": ["y"]}), "at least one"),
        (
            json!({"name": "x", "plugins": [{"type": 7}]}),
            "no \"type\"",
        ),
        (
            json!({"name": "x", "type": "multus"}),
            "--cluster-network=none",
        ),
        (json!([1]), "10-x.conf"),
        (
            json!({"name": "x", "type": "x", "pad": "x".repeat(2 << 20)}),
            "bytes",
        ),
    ] {
        let scratch = Scratch::new("conf");
        write(&scratch, "10-x.conf", &value);
        let other = OtherCni::new(&scratch.0, None, OURS);
        let text = reason(&other);
        assert!(text.contains(said) && text.contains("10-x.conf"), "{text}");
    }
}

#[test]
fn versions_that_we_speak_are_preferred() {
    let of = |value: Value| version(value.as_object().unwrap());
    assert_eq!(of(json!({})), Version::V0_3_0);
    assert_eq!(of(json!({"cniVersion": "0.2.0"})), Version::V0_3_0);
    assert_eq!(
        of(json!({"cniVersion": "1.0.0", "cniVersions": ["0.4.0", "1.1.0", "9.0.0"]})),
        Version::V1_1_0
    );
}

#[test]
fn the_hosts_links_lead_where_they_lead_on_the_host() {
    let root = Scratch::new("root");
    let conf = root.join("etc/cni/net.d");
    fs::create_dir_all(&conf).unwrap();
    fs::create_dir_all(root.join("var/lib/other")).unwrap();
    fs::write(
        root.join("var/lib/other/real"),
        list("hosts", "x").to_string(),
    )
    .unwrap();
    std::os::unix::fs::symlink("/var/lib/other/real", conf.join("10-other.conflist")).unwrap();
    let directory = Path::new("/etc/cni/net.d");
    let other = OtherCni::new(directory, Some(&root.0), OURS);
    assert_eq!(other.chain().unwrap().0.as_str(), "hosts");
    let text = on_disk(directory, Some(&root.0), "hosts").unwrap();
    assert!(text.contains("portmap"));
    fs::write(
        root.join("var/lib/other/real"),
        list("others", "x").to_string(),
    )
    .unwrap();
    assert_eq!(other.chain().unwrap().0.as_str(), "others");
}

#[test]
fn by_name_lists_come_first() {
    let scratch = Scratch::new("conf");
    write(
        &scratch,
        "10-x.conf",
        &json!({"name": "blue", "type": "single"}),
    );
    assert!(
        on_disk(&scratch.0, None, "blue")
            .unwrap()
            .contains("single")
    );
    write(&scratch, "99-x.conflist", &list("blue", "chained"));
    fs::write(scratch.join("00-broken.conflist"), "{").unwrap();
    assert!(
        on_disk(&scratch.0, None, "blue")
            .unwrap()
            .contains("chained")
    );
    assert_eq!(on_disk(&scratch.0, None, "red"), None);
    assert_eq!(on_disk(&scratch.join("absent"), None, "blue"), None);
}

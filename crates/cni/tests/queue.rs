//! DELs without an agent: what the shim leaves behind is what the agent finds.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

mod common;

use common::{Agent, Dir, Shim, answer};
use plexus_cni::queue;
use serde_json::{Value, json};
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, Instant};

const CONFIG: &[u8] = br#"{"cniVersion":"1.0.0","name":"blue","type":"plexus-cni"}"#;

fn del(socket: &Path) -> Shim {
    Shim::new("DEL").socket(socket).wait_ms(30)
}

#[test]
fn a_del_is_queued_and_succeeds() {
    let dir = Dir::new();
    // Not even the socket's directory is there: nobody has started an agent since the boot.
    let socket = dir.join("plexus/agent.sock");
    let said = del(&socket).run(CONFIG);
    assert_eq!((said.code, said.stdout.as_str()), (0, ""));
    let said = del(&socket)
        .env("CNI_CONTAINERID", "a-b.c_d")
        .env("CNI_IFNAME", "net1-0")
        .run(CONFIG);
    assert_eq!(said.code, 0);

    let queue = queue::dir(&socket);
    assert_eq!(queue, dir.join("plexus/agent.sock.queue"));
    let metadata = fs::metadata(&queue).unwrap();
    assert_eq!((metadata.uid(), metadata.mode() & 0o7777), (0, 0o700));
    let names = queue::list(&queue).unwrap();
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(names[0].ends_with("-c1-eth0.json") && names[1].ends_with("-a-b.c_d-net1-0.json"));
    assert_eq!(names[0].find('-'), Some(20));
    assert!(queue::may_concern(&names[0], "c1") && !queue::may_concern(&names[0], "c"));
    assert!(queue::may_concern(&names[1], "a-b.c_d"));

    let body: Value = serde_json::from_str(&queue::read(&queue, &names[0]).unwrap()).unwrap();
    let config: Value = serde_json::from_slice(CONFIG).unwrap();
    assert_eq!(
        (&body["containerId"], &body["config"]),
        (&json!("c1"), &config)
    );

    queue::remove(&queue, &names[0]).unwrap();
    queue::remove(&queue, &names[0]).unwrap();
    assert_eq!(queue::list(&queue).unwrap(), names[1..]);
}

#[test]
fn a_del_waits_and_tries_twice() {
    let dir = Dir::new();
    let socket = dir.join("agent.sock");
    let agent = Agent::start(&socket, vec![vec![], answer(200, "")]);
    let said = del(&socket).wait_ms(0).run(CONFIG);
    assert_eq!(said.code, 0);
    assert_eq!(agent.requests().len(), 2);
    assert!(!queue::dir(&socket).exists());

    let begun = Instant::now();
    assert_eq!(Shim::new("DEL").socket(&socket).run(CONFIG).code, 0);
    assert!(
        (2..5).contains(&begun.elapsed().as_secs()),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(queue::list(&queue::dir(&socket)).unwrap().len(), 1);
}

#[test]
fn a_restarted_agent_gets_the_del_itself() {
    let dir = Dir::new();
    let socket = dir.join("agent.sock");
    let shim = Shim::new("DEL").socket(&socket);
    let waiting = std::thread::spawn(move || shim.run(CONFIG));
    std::thread::sleep(Duration::from_millis(100));
    let agent = Agent::start(&socket, vec![answer(200, "{}")]);
    assert_eq!(waiting.join().unwrap().code, 0);
    agent.requests();
    assert!(!queue::dir(&socket).exists());
}

#[test]
fn a_queue_that_is_not_roots_own_is_refused() {
    let dir = Dir::new();
    let socket = dir.join("agent.sock");
    let queue = queue::dir(&socket);
    let refused = || {
        let text = del(&socket).run(CONFIG).error(11);
        assert!(
            text.contains("could not be queued") && text.contains("agent.sock.queue"),
            "{text}"
        );
        assert!(queue::list(&queue).is_err());
    };

    fs::create_dir(dir.join("elsewhere")).unwrap();
    symlink(dir.join("elsewhere"), &queue).unwrap();
    refused();
    assert_eq!(fs::read_dir(dir.join("elsewhere")).unwrap().count(), 0);
    fs::remove_file(&queue).unwrap();

    fs::write(&queue, "a file").unwrap();
    refused();
    fs::remove_file(&queue).unwrap();

    fs::create_dir(&queue).unwrap();
    std::os::unix::fs::chown(&queue, Some(65534), None).unwrap();
    refused();
    std::os::unix::fs::chown(&queue, Some(0), None).unwrap();
    fs::set_permissions(&queue, Permissions::from_mode(0o777)).unwrap();
    refused();
    fs::set_permissions(&queue, Permissions::from_mode(0o700)).unwrap();
    assert_eq!(del(&socket).run(CONFIG).code, 0);
}

#[test]
fn a_del_that_names_nothing_is_not_queued() {
    let dir = Dir::new();
    let socket = dir.join("agent.sock");
    let long = "x".repeat(201);
    for (name, bad) in [
        ("CNI_CONTAINERID", "../../etc/passwd"),
        ("CNI_CONTAINERID", ""),
        ("CNI_CONTAINERID", &long),
        ("CNI_IFNAME", "../x"),
        ("CNI_IFNAME", ""),
        ("CNI_IFNAME", "1234567890123456"),
    ] {
        let text = del(&socket).wait_ms(0).env(name, bad).run(CONFIG).error(4);
        assert!(text.contains("could not be queued"), "{text}");
    }
    assert!(!queue::dir(&socket).exists());
}

#[test]
fn the_longest_names_fit() {
    let dir = Dir::new();
    let socket = dir.join("agent.sock");
    let (container, ifname) = ("x".repeat(200), "123456789012345");
    let said = del(&socket)
        .env("CNI_CONTAINERID", &container)
        .env("CNI_IFNAME", ifname)
        .run(CONFIG);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(queue::list(&queue::dir(&socket)).unwrap().len(), 1);
}

#[test]
fn only_whole_files_of_roots_are_taken() {
    let dir = Dir::new();
    let queue = dir.join("q");
    assert_eq!(queue::list(&queue).unwrap(), Vec::<String>::new());
    fs::create_dir(&queue).unwrap();
    fs::set_permissions(&queue, Permissions::from_mode(0o700)).unwrap();
    let stamp = |n: u32| format!("{n:020}");
    for name in [
        ".00000000000000000001-7",
        "readme",
        "1-c-eth0.json",
        "x.json",
    ] {
        fs::write(queue.join(name), "{}").unwrap();
    }
    assert_eq!(queue::list(&queue).unwrap(), Vec::<String>::new());

    let good = format!("{}-c-eth0.json", stamp(2));
    let (foreign, large) = (
        format!("{}-c-a.json", stamp(3)),
        format!("{}-c-b.json", stamp(4)),
    );
    let (link, fifo) = (
        format!("{}-c-c.json", stamp(5)),
        format!("{}-c-d.json", stamp(1)),
    );
    fs::write(queue.join(&good), "{}").unwrap();
    fs::write(queue.join(&foreign), "{}").unwrap();
    std::os::unix::fs::chown(queue.join(&foreign), Some(65534), None).unwrap();
    fs::write(queue.join(&large), vec![b' '; (3 << 20) + 1]).unwrap();
    symlink("/etc/passwd", queue.join(&link)).unwrap();
    let made = std::process::Command::new("mkfifo")
        .arg(queue.join(&fifo))
        .status()
        .unwrap();
    assert!(made.success());

    let names = queue::list(&queue).unwrap();
    assert_eq!(
        names,
        [&fifo, &good, &foreign, &large, &link].map(String::clone)
    );
    assert_eq!(queue::read(&queue, &good).unwrap(), "{}");
    for name in [&foreign, &large, &link, &fifo] {
        assert!(queue::read(&queue, name).is_err(), "{name}");
    }
    for name in [
        "../x",
        "readme",
        "/etc/passwd",
        "00000000000000000002-../x.json",
        "",
    ] {
        assert!(queue::read(&queue, name).is_err(), "{name}");
        assert!(queue::remove(&queue, name).is_err(), "{name}");
    }
}

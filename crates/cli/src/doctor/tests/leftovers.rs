//! What is left over.

use super::*;

fn known(container: &str) -> leaks::AgentState {
    leaks::AgentState::of(&[json!({"container": container, "ips": ["10.1.0.5/24"]})])
}

/// One that another run of the same test does not have.
fn namespace() -> NetNs {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    NetNs::create(&format!("px-test-{}-doctor{count}", std::process::id()))
}

#[test]
pub(super) fn links_that_nobody_knows() {
    let (node, pod) = (namespace(), namespace());
    let cookie = node.enter(|| plexus_kernel::Netns::current().unwrap().cookie().unwrap());
    let cookie = cookie.to_string();
    let number: String = cookie.chars().filter(char::is_ascii_digit).collect();
    pod.ip(&format!(
        "link add eth7 type bridge\nlink set eth7 alias \"plexus {number} lost eth0 blue eth7 -\"\n\
         link add eth8 type bridge\nlink set eth8 alias \"plexus 1 other eth0 blue eth8 -\""
    ));
    node.ip("link add px1 type bridge\nlink set px1 alias \"somebody else\"");
    let (links, complete) = node.enter(|| leaks::marked_links().unwrap());
    assert_eq!(links.len(), 1, "{links:?}");
    let check = leaks::links_without_record(&links, &known("mine"), complete);
    finds(&[check], Subject::LeakedLinks, Verdict::Warn, "eth7");
    let check = leaks::links_without_record(&links, &known("lost"), complete);
    finds(
        &[check],
        Subject::LeakedLinks,
        Verdict::Pass,
        "1 marked links",
    );
}

/// A pod that is attached while namespaces are gone through, and one that is detached.
#[test]
fn who_comes_or_goes_meanwhile_is_not_accused() {
    use std::io::{Read, Write};
    let (node, pod) = (namespace(), namespace());
    let cookie = node.enter(|| plexus_kernel::Netns::current().unwrap().cookie().unwrap());
    let number: String = cookie.to_string();
    let number: String = number.chars().filter(char::is_ascii_digit).collect();
    for (link, container) in [("eth7", "coming"), ("eth8", "going"), ("eth9", "lost")] {
        let alias = format!("plexus {number} {container} eth0 blue {link} -");
        pod.ip(&format!(
            "link add {link} type bridge\nlink set {link} alias \"{alias}\""
        ));
    }
    let dir = Dir::new("meanwhile");
    let machine = dir.machine();
    let listener = UnixListener::bind(&machine.socket).unwrap();
    let answering = std::thread::spawn(move || {
        // Ready, what there was, what there is.
        for body in [
            "ready\n",
            r#"[{"container":"going"}]"#,
            r#"[{"container":"coming"}]"#,
        ] {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 1024]);
            let length = body.len();
            let _ = write!(
                stream,
                "HTTP/1.1 200 X\r\nContent-Length: {length}\r\n\r\n{body}"
            );
        }
    });
    let agent = agent::look(&machine.socket);
    let checks = node.enter(|| leaks::check(&machine, &agent, None));
    answering.join().unwrap();
    finds(
        &checks,
        Subject::LeakedLinks,
        Verdict::Warn,
        "1 marked links have no record: eth9",
    );
}

#[test]
pub(super) fn files_of_host_local_that_nobody_knows() {
    let dir = Dir::new("pools");
    dir.file("blue/10.1.0.5", "mine\r\neth0");
    dir.file("blue/10.1.0.6", "lost\r\neth0");
    dir.file("blue/last_reserved_ip.0", "10.1.0.6");
    dir.file("blue/lock", "");
    let files = leaks::host_local(&dir.0);
    assert_eq!(files.len(), 2);
    let check = leaks::files_without_container(&files, &known("mine"));
    finds(
        &[check],
        Subject::LeakedAddresses,
        Verdict::Warn,
        "10.1.0.6 (container lost)",
    );
    let check = leaks::files_without_container(&files[..1], &known("mine"));
    finds(
        &[check],
        Subject::LeakedAddresses,
        Verdict::Pass,
        "1 addresses",
    );
    assert!(leaks::host_local(&dir.0.join("none")).is_empty());
}

#[test]
pub(super) fn ports_and_routers_that_nobody_knows() {
    let port = |to: &str| HostPort {
        protocol: Protocol::Tcp,
        host_ip: None,
        port: 8080,
        to: to.parse().unwrap(),
    };
    let check = leaks::ports_to_nobody(&[port("10.1.0.9:80")], &known("mine"));
    finds(
        &[check],
        Subject::LeakedPorts,
        Verdict::Warn,
        "8080 to 10.1.0.9:80",
    );
    let check = leaks::ports_to_nobody(&[port("10.1.0.5:80")], &known("mine"));
    finds(&[check], Subject::LeakedPorts, Verdict::Pass, "1 ports");
    let snapshot = crate::snapshot::Snapshot {
        networks: vec![json!({"metadata": {"name": "blue", "uid": "uid-blue"}})],
        ..Default::default()
    };
    let (kept, lost) = (RouterName::of("uid-blue"), RouterName::of("uid-gone"));
    let check =
        leaks::routers_without_network(&[kept.clone(), lost.clone()], &facts(snapshot.clone()));
    finds(
        &[check],
        Subject::LeakedRouters,
        Verdict::Warn,
        lost.as_ref(),
    );
    let check = leaks::routers_without_network(&[kept], &facts(snapshot));
    finds(&[check], Subject::LeakedRouters, Verdict::Pass, "1 routers");
}

#[test]
pub(super) fn without_an_agent_leaks_cannot_be_told() {
    let dir = Dir::new("leaks");
    let machine = dir.machine();
    let agent = agent::look(&machine.socket);
    finds(
        &leaks::check(&machine, &agent, None),
        Subject::Leaks,
        Verdict::Warn,
        "start the agent",
    );
}

#[test]
pub(super) fn namespaces_of_labs_that_are_gone() {
    let dir = Dir::new("labs");
    let machine = dir.machine();
    finds(
        &[labs::check(&machine)],
        Subject::LeakedLabs,
        Verdict::Pass,
        "0 labs",
    );
    for name in [
        "px-here-n1",
        "px-here-fabric",
        "px-0123456789abcdef",
        "cni-1",
        "px-x-y",
    ] {
        dir.file(&format!("netns/{name}"), "");
    }
    fs::create_dir_all(machine.labs.join("here")).unwrap();
    finds(
        &[labs::check(&machine)],
        Subject::LeakedLabs,
        Verdict::Pass,
        "1 labs",
    );
    // A sandbox alone.
    dir.file("netns/px-left-s0123456789ab", "");
    finds(
        &[labs::check(&machine)],
        Subject::LeakedLabs,
        Verdict::Warn,
        "plexus lab down --lab left",
    );
    fs::remove_file(machine.netns.join("px-left-s0123456789ab")).unwrap();
    dir.file("netns/px-gone-n12", "");
    finds(
        &[labs::check(&machine)],
        Subject::LeakedLabs,
        Verdict::Warn,
        "plexus lab down --lab gone",
    );
}

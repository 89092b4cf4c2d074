//! Each check, with the fault that it is about: in a directory that is thrown away, in a namespace,
//! or given to the judge.

use super::*;
use plexus_core::plan::{HostPort, Protocol};
use plexus_kernel::Feature;
use plexus_testkit::NetNs;
use plexus_types::RouterName;
use serde_json::json;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;

struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Self {
        let name = format!("plexus-doctor-{name}-{}", std::process::id());
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

#[track_caller]
fn finds(checks: &[Check], name: &str, verdict: Verdict, words: &str) {
    let found = checks.iter().filter(|check| check.name == name);
    let found: Vec<&Check> = found.collect();
    let fits = |check: &&&Check| {
        check.verdict == verdict && format!("{} {}", check.found, check.next).contains(words)
    };
    assert!(
        found.iter().any(|check| fits(&check)),
        "{name} {verdict:?} {words:?}: {checks:#?}"
    );
    let silent = |check: &&&Check| check.verdict != Verdict::Pass && check.next.is_empty();
    assert!(
        !found.iter().any(|check| silent(&check)),
        "no next step: {found:#?}"
    );
}

#[test]
fn rights() {
    let status = |uid: &str, caps: &str| {
        format!("Name:\tx\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\nCapEff:\t{caps}\n")
    };
    finds(
        &rights::judge(&status("1000", "0")),
        "rights.root",
        Verdict::Fail,
        "user 1000",
    );
    finds(
        &rights::judge(&status("0", "0000000000001000")),
        "rights.capabilities",
        Verdict::Fail,
        "CAP_SYS_ADMIN",
    );
    finds(
        &rights::judge(&status("0", "000001ffffffffff")),
        "rights.root",
        Verdict::Pass,
        "every capability",
    );
    finds(
        &rights::judge(""),
        "rights.root",
        Verdict::Fail,
        "user unknown",
    );
}

#[test]
fn kernel_features() {
    let all = || Feature::ALL.into_iter();
    let lacking = |missing: Feature| {
        let each = all().map(move |feature| {
            (
                feature,
                (feature == missing).then_some("not in this kernel"),
            )
        });
        kernel::judge(each.collect::<Vec<_>>().into_iter())
    };
    finds(
        &lacking(Feature::Vxlan),
        "kernel.vxlan",
        Verdict::Warn,
        "overlay networks are refused",
    );
    finds(
        &lacking(Feature::Veth),
        "kernel.veth",
        Verdict::Fail,
        "modprobe veth",
    );
    finds(
        &lacking(Feature::NetnsCookie),
        "kernel.network-namespace-cookies",
        Verdict::Fail,
        "5.14",
    );
    finds(
        &lacking(Feature::Masquerade),
        "kernel.nftables-masquerade",
        Verdict::Warn,
        "SNAT",
    );
    for feature in all() {
        let checks = lacking(feature);
        let name = format!("kernel.{}", feature.name().replace(' ', "-"));
        assert!(checks.iter().any(|check| check.name == name), "{name}");
    }
    let none = kernel::judge(all().map(|feature| (feature, None)));
    finds(&none, "kernel", Verdict::Pass, "veth, bridge");
    assert_eq!(none.len(), 1);
}

#[test]
fn mounts_of_a_container() {
    let dir = Dir::new("mounts");
    let read_only = mounts::sysctls(&dir.0.join("nothing"));
    finds(&[read_only], "mounts.sysctl", Verdict::Fail, "privileged");
    finds(
        &[mounts::sysctls(&dir.file("x", ""))],
        "mounts.sysctl",
        Verdict::Pass,
        "",
    );
    finds(
        &[mounts::pods(true, Some((false, false)))],
        "mounts.netns",
        Verdict::Fail,
        "HostToContainer",
    );
    finds(
        &[mounts::pods(true, None)],
        "mounts.netns",
        Verdict::Fail,
        "is not there",
    );
    finds(
        &[mounts::pods(true, Some((false, true)))],
        "mounts.netns",
        Verdict::Pass,
        "",
    );
    finds(
        &[mounts::pods(false, None)],
        "mounts.netns",
        Verdict::Pass,
        "",
    );
    let path = Path::new("/run/plexus");
    finds(
        &[mounts::routers(true, path, Some((false, true)))],
        "mounts.routers",
        Verdict::Fail,
        "Bidirectional",
    );
    finds(
        &[mounts::routers(true, path, Some((true, true)))],
        "mounts.routers",
        Verdict::Pass,
        "",
    );
}

#[test]
fn the_state_directory() {
    let dir = Dir::new("state");
    finds(
        &state::check(&dir.0.join("none")),
        "state.directory",
        Verdict::Warn,
        "no agent has run",
    );
    let file = dir.file("file", "x");
    finds(
        &state::check(&file),
        "state.directory",
        Verdict::Fail,
        "is not a directory",
    );
    symlink(dir.0.join("loop"), dir.0.join("loop")).unwrap();
    finds(
        &state::check(&dir.0.join("loop")),
        "state.directory",
        Verdict::Fail,
        "cannot look at",
    );
    let checks = state::check(&dir.0);
    finds(&checks, "state.directory", Verdict::Pass, "can be written");
    finds(&checks, "state.journal", Verdict::Warn, "no agent has run");
    let read_only = state::writable(&dir.0, Err(rustix::io::Errno::ROFS));
    finds(
        &[read_only],
        "state.directory",
        Verdict::Fail,
        "cannot be written",
    );
    finds(
        &[state::room(&dir.0, 0)],
        "state.room",
        Verdict::Fail,
        "is full",
    );
    finds(
        &[state::room(&dir.0, 1 << 20)],
        "state.room",
        Verdict::Warn,
        "1 MiB left",
    );
    let journal = dir.file("state/journal.db", "this is not a database at all");
    finds(
        &[state::journal(&journal)],
        "state.journal",
        Verdict::Fail,
        "is damaged",
    );
    let cut = dir.file("state/cut.db", "SQLite");
    finds(
        &[state::journal(&cut)],
        "state.journal",
        Verdict::Fail,
        "cut off",
    );
    let whole = dir.file("state/whole.db", b"SQLite format 3\0 and so on");
    finds(
        &[state::journal(&whole)],
        "state.journal",
        Verdict::Pass,
        "",
    );
}

#[test]
fn the_socket_and_who_is_behind_it() {
    let dir = Dir::new("agent");
    let socket = dir.0.join("agent.sock");
    let checks = || {
        let agent = agent::look(&socket);
        agent::judge(&agent, &socket)
    };
    finds(&checks(), "agent.socket", Verdict::Fail, "no agent runs");
    fs::write(&socket, "x").unwrap();
    finds(&checks(), "agent.socket", Verdict::Fail, "is not a socket");
    fs::remove_file(&socket).unwrap();
    let listener = UnixListener::bind(&socket).unwrap();
    drop(listener);
    finds(&checks(), "agent.ready", Verdict::Fail, "an agent has died");
    fs::create_dir_all(dir.0.join("agent.sock.queue")).unwrap();
    fs::write(dir.0.join("agent.sock.queue/1"), "x").unwrap();
    finds(
        &checks(),
        "agent.queue",
        Verdict::Warn,
        "1 DELs wait for the agent",
    );
    fs::remove_file(&socket).unwrap();
    let loose = answering(&socket, 503, "not ready: the journal is damaged\n");
    fs::set_permissions(&socket, fs::Permissions::from_mode(0o666)).unwrap();
    let found = checks();
    finds(&found, "agent.socket", Verdict::Warn, "open to others");
    finds(
        &found,
        "agent.ready",
        Verdict::Fail,
        "the journal is damaged",
    );
    finds(
        &found,
        "agent.queue",
        Verdict::Warn,
        "although the agent answers",
    );
    drop(loose);
    let text = "ready\nwarning: the runtime uses 00-a.conflist\n";
    let _well = answering(&socket, 200, text);
    let found = checks();
    finds(&found, "agent.ready", Verdict::Pass, "ready");
    finds(&found, "agent.warning", Verdict::Warn, "00-a.conflist");
}

/// A server that gives every connection the same answer, until it is dropped.
struct Answering(PathBuf);

impl Drop for Answering {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn answering(socket: &Path, status: u16, text: &str) -> Answering {
    use std::io::{Read, Write};
    let _ = fs::remove_file(socket);
    let listener = UnixListener::bind(socket).unwrap();
    fs::set_permissions(socket, fs::Permissions::from_mode(0o600)).unwrap();
    let answer = format!(
        "HTTP/1.1 {status} X\r\nContent-Length: {}\r\n\r\n{text}",
        text.len()
    );
    let path = socket.to_owned();
    std::thread::spawn(move || {
        // Enough for every question of a test; a listener whose file is gone gets no more.
        for stream in listener.incoming().take(8) {
            let Ok(mut stream) = stream else { return };
            let mut request = [0; 1024];
            let _ = stream.read(&mut request);
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    Answering(path)
}

#[test]
fn plugins_and_configurations() {
    let dir = Dir::new("cni");
    let machine = dir.machine();
    let checks = || cni::check(&machine);
    finds(&checks(), "cni.plugin", Verdict::Fail, "is not there");
    finds(&checks(), "cni.first", Verdict::Warn, "no configuration");
    let shim = dir.file("bin/plexus-cni", "something else");
    finds(&checks(), "cni.plugin", Verdict::Fail, "cannot be executed");
    fs::set_permissions(&shim, fs::Permissions::from_mode(0o755)).unwrap();
    finds(&checks(), "cni.plugin", Verdict::Fail, "some other program");
    fs::write(&shim, b"\x7fELF PLEXUS_AGENT_SOCKET").unwrap();
    finds(&checks(), "cni.plugin", Verdict::Pass, "is there");
    dir.file("bin/plexus-cni.socket", "/elsewhere/agent.sock\n");
    finds(
        &checks(),
        "cni.socket",
        Verdict::Warn,
        "/elsewhere/agent.sock",
    );
    dir.file(
        "bin/plexus-cni.socket",
        machine.socket.display().to_string(),
    );
    finds(&checks(), "cni.socket", Verdict::Pass, "names this agent");
    dir.file(
        "conf/00-plexus.conflist",
        r#"{"plugins": [{"type": "plexus-cni"}]}"#,
    );
    finds(&checks(), "cni.first", Verdict::Pass, "00-plexus.conflist");
    dir.file(
        "conf/00-a.conf",
        r#"{"type": "calico", "ipam": {"type": "calico-ipam"}}"#,
    );
    let found = checks();
    finds(&found, "cni.first", Verdict::Fail, "uses 00-a.conf");
    finds(
        &found,
        "cni.configuration",
        Verdict::Warn,
        "calico, calico-ipam",
    );
    dir.file("conf/10-broken.conflist", "{");
    finds(
        &checks(),
        "cni.configuration",
        Verdict::Fail,
        "10-broken.conflist is not JSON",
    );
    fs::remove_file(dir.0.join("conf/00-plexus.conflist")).unwrap();
    finds(
        &checks(),
        "cni.first",
        Verdict::Warn,
        "there is no 00-plexus.conflist",
    );
    let nowhere = Machine {
        cni_conf_dir: dir.0.join("none"),
        ..machine.clone()
    };
    finds(
        &cni::check(&nowhere),
        "cni.configuration",
        Verdict::Warn,
        "cannot read",
    );
    let own = r#"{"plugins": [{"type": "plexus-cni", "ipam": {"type": "host-local"}}]}"#;
    dir.file("conf/20-own.conflist", own);
    let found = checks();
    assert!(
        found.iter().all(|check| !check.found.contains("20-own")),
        "{found:#?}"
    );
}

fn facts(world: crate::world::World) -> ApiFacts {
    ApiFacts {
        server: "https://x:6443".to_owned(),
        version: Ok("v1.34.0".to_owned()),
        world,
        node: Some("n1".to_owned()),
    }
}

#[test]
fn the_api_server() {
    let now = 1_700_000_000;
    let lease = |ago: i64| {
        let time = k8s_openapi::jiff::Timestamp::from_second(now - ago).unwrap();
        vec![json!({"spec": {"renewTime": time.to_string()}})]
    };
    let world = |leases| crate::world::World {
        now,
        leases,
        nodes: vec![json!({"metadata": {"name": "n1"}})],
        ..Default::default()
    };
    finds(
        &api::judge(None),
        "api.server",
        Verdict::Pass,
        "inline configurations only",
    );
    let away = ApiFacts {
        version: Err("connection refused".to_owned()),
        ..facts(world(vec![]))
    };
    finds(
        &api::judge(Some(&away)),
        "api.server",
        Verdict::Fail,
        "connection refused",
    );
    finds(
        &api::judge(Some(&facts(world(vec![])))),
        "api.controller",
        Verdict::Fail,
        "ever run",
    );
    finds(
        &api::judge(Some(&facts(world(lease(900))))),
        "api.controller",
        Verdict::Fail,
        "15m ago",
    );
    let well = api::judge(Some(&facts(world(lease(3)))));
    assert!(
        well.iter().all(|check| check.verdict == Verdict::Pass),
        "{well:#?}"
    );
    let mut bare = world(lease(3));
    bare.unknown
        .insert("networks", "it knows no Network".to_owned());
    bare.unknown.insert("leases", "forbidden".to_owned());
    bare.nodes.clear();
    let found = api::judge(Some(&facts(bare)));
    finds(
        &found,
        "api.definitions",
        Verdict::Fail,
        "deploy/install.yaml",
    );
    finds(&found, "api.controller", Verdict::Warn, "cannot be seen");
    finds(&found, "api.node", Verdict::Fail, "there is no Node n1");
}

fn known(container: &str) -> leaks::Known {
    leaks::Known::of(&[json!({"container": container, "ips": ["10.1.0.5/24"]})])
}

#[test]
fn links_that_nobody_knows() {
    let node = NetNs::create("doctor-node");
    let pod = NetNs::create("doctor-pod");
    let cookie = node.enter(|| plexus_kernel::Netns::current().unwrap().cookie().unwrap());
    let cookie = cookie.to_string();
    let number: String = cookie.chars().filter(char::is_ascii_digit).collect();
    pod.ip(&format!(
        "link add eth7 type dummy\nlink set eth7 alias \"plexus {number} lost eth0 blue eth7 -\"\n\
         link add eth8 type dummy\nlink set eth8 alias \"plexus 1 other eth0 blue eth8 -\""
    ));
    node.ip("link add px1 type dummy\nlink set px1 alias \"somebody else\"");
    let (links, complete) = node.enter(|| leaks::marked_links().unwrap());
    assert_eq!(links.len(), 1, "{links:?}");
    let check = leaks::links_without_record(&links, &known("mine"), complete);
    finds(&[check], "leaks.links", Verdict::Warn, "eth7");
    let check = leaks::links_without_record(&links, &known("lost"), complete);
    finds(&[check], "leaks.links", Verdict::Pass, "1 marked links");
}

#[test]
fn files_of_host_local_that_nobody_knows() {
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
        "leaks.host-local",
        Verdict::Warn,
        "10.1.0.6 (container lost)",
    );
    let check = leaks::files_without_container(&files[..1], &known("mine"));
    finds(&[check], "leaks.host-local", Verdict::Pass, "1 addresses");
    assert!(leaks::host_local(&dir.0.join("none")).is_empty());
}

#[test]
fn ports_and_routers_that_nobody_knows() {
    let port = |to: &str| HostPort {
        protocol: Protocol::Tcp,
        host_ip: None,
        port: 8080,
        to: to.parse().unwrap(),
    };
    let check = leaks::ports_to_nobody(&[port("10.1.0.9:80")], &known("mine"));
    finds(
        &[check],
        "leaks.ports",
        Verdict::Warn,
        "8080 to 10.1.0.9:80",
    );
    let check = leaks::ports_to_nobody(&[port("10.1.0.5:80")], &known("mine"));
    finds(&[check], "leaks.ports", Verdict::Pass, "1 ports");
    let world = crate::world::World {
        networks: vec![json!({"metadata": {"name": "blue", "uid": "uid-blue"}})],
        ..Default::default()
    };
    let (kept, lost) = (RouterName::of("uid-blue"), RouterName::of("uid-gone"));
    let check =
        leaks::routers_without_network(&[kept.clone(), lost.clone()], &facts(world.clone()));
    finds(&[check], "leaks.routers", Verdict::Warn, &lost.to_string());
    let check = leaks::routers_without_network(&[kept], &facts(world));
    finds(&[check], "leaks.routers", Verdict::Pass, "1 routers");
}

#[test]
fn without_an_agent_leaks_cannot_be_told() {
    let dir = Dir::new("leaks");
    let machine = dir.machine();
    let agent = agent::look(&machine.socket);
    finds(
        &leaks::check(&machine, &agent, None),
        "leaks",
        Verdict::Warn,
        "start the agent",
    );
}

#[test]
fn the_report_has_a_verdict() {
    let mut report = Report::default();
    assert_eq!(report.verdict(), Verdict::Pass);
    report.extend([Check::pass("a", "fine"), Check::warn("b", "hm", "look")]);
    assert_eq!(report.verdict(), Verdict::Warn);
    report.extend([Check::fail("long.name", "bad", "do")]);
    assert_eq!(report.verdict(), Verdict::Fail);
    let text = report.render(crate::text::Screen::PIPE, false);
    assert!(
        !text.contains("fine") && text.contains("fail  long.name  bad"),
        "{text}"
    );
    assert!(
        text.ends_with("1 passed, 1 to look at, 1 failed\n"),
        "{text}"
    );
    assert_eq!(report.to_json()["checks"].as_array().unwrap().len(), 3);
}

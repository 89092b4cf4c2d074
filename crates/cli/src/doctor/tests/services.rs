//! Who must run: the agent, the plugin and its configurations, the API server.

use super::*;

#[test]
pub(super) fn the_socket_and_who_is_behind_it() {
    let dir = Dir::new("agent");
    let socket = dir.0.join("agent.sock");
    let checks = || {
        let agent = agent::look(&socket);
        agent::judge(&agent, &socket)
    };
    finds(
        &checks(),
        Subject::AgentSocket,
        Verdict::Fail,
        "no agent runs",
    );
    fs::write(&socket, "x").unwrap();
    finds(
        &checks(),
        Subject::AgentSocket,
        Verdict::Fail,
        "is not a socket",
    );
    fs::remove_file(&socket).unwrap();
    let listener = UnixListener::bind(&socket).unwrap();
    drop(listener);
    finds(
        &checks(),
        Subject::AgentReady,
        Verdict::Fail,
        "an agent has died",
    );
    fs::create_dir_all(dir.0.join("agent.sock.queue")).unwrap();
    let queued = |name: &str| fs::write(dir.0.join("agent.sock.queue").join(name), "x").unwrap();
    queued(".00000000000000000001-7");
    queued("00000000000000000001-c-eth0.json.bad");
    finds(
        &checks(),
        Subject::AgentQueue,
        Verdict::Pass,
        "no DEL waits",
    );
    let refused = "1 DELs could not be read";
    finds(&checks(), Subject::AgentQueue, Verdict::Warn, refused);
    queued("00000000000000000002-c-eth0.json");
    finds(
        &checks(),
        Subject::AgentQueue,
        Verdict::Warn,
        "1 DELs wait for the agent",
    );
    fs::remove_file(&socket).unwrap();
    let loose = answering(&socket, 503, "not ready: the journal is damaged\n");
    fs::set_permissions(&socket, fs::Permissions::from_mode(0o666)).unwrap();
    let found = checks();
    finds(
        &found,
        Subject::AgentSocket,
        Verdict::Warn,
        "open to others",
    );
    finds(
        &found,
        Subject::AgentReady,
        Verdict::Fail,
        "the journal is damaged",
    );
    finds(
        &found,
        Subject::AgentQueue,
        Verdict::Warn,
        "although the agent answers",
    );
    drop(loose);
    let text = "ready\nwarning: the runtime uses 00-a.conflist\n";
    let _well = answering(&socket, 200, text);
    let found = checks();
    finds(&found, Subject::AgentReady, Verdict::Pass, "ready");
    finds(
        &found,
        Subject::AgentWarning,
        Verdict::Warn,
        "00-a.conflist",
    );
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
pub(super) fn plugins_and_configurations() {
    let dir = Dir::new("cni");
    let machine = dir.machine();
    let checks = || cni::check(&machine);
    finds(&checks(), Subject::Plugin, Verdict::Fail, "is not there");
    finds(
        &checks(),
        Subject::FirstConfiguration,
        Verdict::Warn,
        "no configuration",
    );
    let shim = dir.file("bin/plexus-cni", "something else");
    finds(
        &checks(),
        Subject::Plugin,
        Verdict::Fail,
        "cannot be executed",
    );
    fs::set_permissions(&shim, fs::Permissions::from_mode(0o755)).unwrap();
    finds(
        &checks(),
        Subject::Plugin,
        Verdict::Fail,
        "some other program",
    );
    fs::write(&shim, b"\x7fELF PLEXUS_AGENT_SOCKET").unwrap();
    finds(&checks(), Subject::Plugin, Verdict::Pass, "is there");
    dir.file("bin/plexus-cni.socket", "/elsewhere/agent.sock\n");
    finds(
        &checks(),
        Subject::PluginSocket,
        Verdict::Warn,
        "/elsewhere/agent.sock",
    );
    dir.file(
        "bin/plexus-cni.socket",
        machine.socket.display().to_string(),
    );
    finds(
        &checks(),
        Subject::PluginSocket,
        Verdict::Pass,
        "names this agent",
    );
    dir.file(
        "conf/00-plexus.conflist",
        r#"{"plugins": [{"type": "plexus-cni"}]}"#,
    );
    finds(
        &checks(),
        Subject::FirstConfiguration,
        Verdict::Pass,
        "00-plexus.conflist",
    );
    dir.file(
        "conf/00-a.conf",
        r#"{"type": "calico", "ipam": {"type": "calico-ipam"}}"#,
    );
    let found = checks();
    finds(
        &found,
        Subject::FirstConfiguration,
        Verdict::Fail,
        "uses 00-a.conf",
    );
    finds(
        &found,
        Subject::Configuration,
        Verdict::Warn,
        "calico, calico-ipam",
    );
    dir.file("conf/10-broken.conflist", "{");
    finds(
        &checks(),
        Subject::Configuration,
        Verdict::Fail,
        "10-broken.conflist is not JSON",
    );
    fs::remove_file(dir.0.join("conf/00-plexus.conflist")).unwrap();
    finds(
        &checks(),
        Subject::FirstConfiguration,
        Verdict::Warn,
        "there is no 00-plexus.conflist",
    );
    let nowhere = Machine {
        cni_conf_dir: dir.0.join("none"),
        ..machine.clone()
    };
    finds(
        &cni::check(&nowhere),
        Subject::Configuration,
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

#[test]
pub(super) fn the_api_server() {
    let now = 1_700_000_000;
    let lease = |ago: i64| {
        let time = k8s_openapi::jiff::Timestamp::from_second(now - ago).unwrap();
        vec![json!({"spec": {"renewTime": time.to_string()}})]
    };
    let snapshot = |leases| crate::snapshot::Snapshot {
        now,
        leases,
        nodes: vec![json!({"metadata": {"name": "n1"}})],
        ..Default::default()
    };
    finds(
        &api::judge(None),
        Subject::ApiServer,
        Verdict::Pass,
        "inline configurations only",
    );
    let away = ApiFacts {
        version: Err("connection refused".to_owned()),
        ..facts(snapshot(vec![]))
    };
    finds(
        &api::judge(Some(&away)),
        Subject::ApiServer,
        Verdict::Fail,
        "connection refused",
    );
    let unsaid = ApiFacts {
        server: String::new(),
        version: Err("several labs run".to_owned()),
        ..facts(snapshot(vec![]))
    };
    finds(
        &api::judge(Some(&unsaid)),
        Subject::ApiServer,
        Verdict::Fail,
        "several labs run",
    );
    finds(
        &api::judge(Some(&facts(snapshot(vec![])))),
        Subject::Controller,
        Verdict::Fail,
        "ever run",
    );
    finds(
        &api::judge(Some(&facts(snapshot(lease(900))))),
        Subject::Controller,
        Verdict::Fail,
        "15m ago",
    );
    let well = api::judge(Some(&facts(snapshot(lease(3)))));
    assert!(
        well.iter().all(|check| check.verdict == Verdict::Pass),
        "{well:#?}"
    );
    let mut bare = snapshot(lease(3));
    bare.unknown
        .insert("networks", "it knows no Network".to_owned());
    bare.unknown.insert("leases", "forbidden".to_owned());
    bare.nodes.clear();
    let found = api::judge(Some(&facts(bare)));
    finds(
        &found,
        Subject::Definitions,
        Verdict::Fail,
        "deploy/install.yaml",
    );
    finds(&found, Subject::Controller, Verdict::Warn, "cannot be seen");
    finds(&found, Subject::Node, Verdict::Fail, "there is no Node n1");
    let mut hidden = snapshot(lease(3));
    hidden.unknown.insert("nodes", "forbidden".to_owned());
    hidden.nodes.clear();
    let found = api::judge(Some(&facts(hidden)));
    finds(&found, Subject::Node, Verdict::Warn, "forbidden");
}

//! The shim as a runtime sees it: the real binary, against an agent that the test plays.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

mod common;

use common::{Agent, Dir, Shim, answer};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const CONFIG: &[u8] =
    br#"{"cniVersion":"1.0.0","name":"blue","type":"plexus-cni","x":[1,{"y":null}]}"#;

#[test]
fn version_needs_no_agent() {
    let shim = Shim::new("VERSION").env("PLEXUS_AGENT_SOCKET", "/nowhere/at/all");
    let all = json!(["0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"]);
    for (stdin, version) in [
        (&br#"{"cniVersion":"0.4.0"}"#[..], "0.4.0"),
        (br#"{"cniVersion":"9.9.9"}"#, "1.1.0"),
        (b"{}", "1.1.0"),
        (b"", "1.1.0"),
        (b"no json", "1.1.0"),
        (br#"{"cniVersion":7}"#, "1.1.0"),
    ] {
        let said = shim.run(stdin);
        assert_eq!(said.code, 0);
        assert_eq!(
            said.json(),
            json!({"cniVersion": version, "supportedVersions": all})
        );
    }
}

#[test]
fn every_verb_reaches_the_agent() {
    for verb in ["ADD", "DEL", "CHECK", "GC", "STATUS"] {
        let dir = Dir::new();
        let socket = dir.join("agent.sock");
        let result = r#"{"cniVersion":"1.0.0","ips":[]}"#;
        let agent = Agent::start(&socket, vec![answer(200, result)]);
        let said = Shim::new(verb).socket(&socket).run(CONFIG);
        assert_eq!(said.code, 0, "{verb}: {said:?}");
        let expected = if verb == "ADD" {
            format!("{result}\n")
        } else {
            String::new()
        };
        assert_eq!(said.stdout, expected, "{verb}");

        let requests = agent.requests();
        let (head, body) = requests[0].split_once("\r\n\r\n").unwrap();
        let path = verb.to_ascii_lowercase();
        assert!(
            head.starts_with(&format!("POST /cni/{path} HTTP/1.1\r\n")),
            "{head}"
        );
        for line in [
            "Host: plexus",
            "Connection: close",
            "Content-Type: application/json",
        ] {
            assert!(head.split("\r\n").any(|l| l == line), "{line} in {head}");
        }
        let body: Value = serde_json::from_str(body).unwrap();
        let config: Value = serde_json::from_slice(CONFIG).unwrap();
        let expected = json!({"containerId":"c1","netns":"/run/netns/c1","ifname":"eth0",
            "args":"IgnoreUnknown=1;K8S_POD_NAME=p","path":"/opt/cni/bin","config":config});
        assert_eq!(body, expected);
    }
}

#[test]
fn hostile_variables_stay_inside_their_strings() {
    let dir = Dir::new();
    let socket = dir.join("agent.sock");
    let agent = Agent::start(&socket, vec![answer(200, "{}")]);
    let evil = "c1\",\"config\":{\"type\":\"evil\"},\"x\":\"\r\nX-Evil: 1";
    let said = Shim::new("ADD")
        .socket(&socket)
        .env("CNI_CONTAINERID", evil)
        .run(CONFIG);
    assert_eq!(said.code, 0);
    let requests = agent.requests();
    let (head, body) = requests[0].split_once("\r\n\r\n").unwrap();
    assert!(!head.contains("X-Evil"));
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!(body["containerId"], evil);
    assert_eq!(body["config"]["type"], "plexus-cni");
}

#[test]
fn the_agents_error_is_printed_as_it_is() {
    for verb in ["ADD", "DEL", "CHECK", "GC", "STATUS"] {
        let dir = Dir::new();
        let socket = dir.join("agent.sock");
        let error = r#"{"cniVersion":"1.0.0","code":103,"msg":"no such \"master\"","details":"d"}"#;
        let agent = Agent::start(&socket, vec![answer(500, error)]);
        let said = Shim::new(verb).socket(&socket).run(CONFIG);
        assert_eq!(
            (said.code, said.stdout),
            (1, format!("{error}\n")),
            "{verb}"
        );
        agent.requests();
    }
}

#[test]
fn an_answer_without_a_length_ends_with_the_connection() {
    let dir = Dir::new();
    let socket = dir.join("agent.sock");
    let agent = Agent::start(
        &socket,
        vec![b"HTTP/1.1 200 OK\r\n\r\n{\"ips\":[]}".to_vec()],
    );
    let said = Shim::new("ADD").socket(&socket).run(CONFIG);
    assert_eq!((said.code, said.stdout.as_str()), (0, "{\"ips\":[]}\n"));
    agent.requests();
}

#[test]
fn a_bad_command_is_code_4() {
    for verb in ["", "add", "Add", "UPDATE", "ADD ", "ADD\nDEL"] {
        let text = Shim::new(verb).run(CONFIG).error(4);
        assert!(text.contains("CNI_COMMAND"), "{text}");
    }
    let text = Shim::new("").without("CNI_COMMAND").run(b"").error(4);
    assert!(text.contains("CNI_COMMAND is not set"), "{text}");
}

#[test]
fn what_is_not_json_is_code_6() {
    let deep = "[".repeat(200_000);
    for stdin in [
        "",
        "  \n",
        "{",
        "{} {}",
        "[]",
        "\"x\"",
        "7",
        "{\"a\":01}",
        "{\"a\":\"\n\"}",
        &deep,
    ] {
        Shim::new("ADD")
            .env("PLEXUS_AGENT_SOCKET", "/nowhere")
            .run(stdin.as_bytes())
            .error(6);
    }
    Shim::new("ADD")
        .env("PLEXUS_AGENT_SOCKET", "/nowhere")
        .run(b"{\"a\":\"\xff\"}")
        .error(6);
    let twice = br#"{"agentSocket":"/a","agentSocket":"/b"}"#;
    let text = Shim::new("ADD").run(twice).error(6);
    assert!(text.contains("duplicate field `agentSocket`"), "{text}");
}

#[test]
fn too_large_is_code_7_and_names_the_limit() {
    let config = format!(r#"{{"a":"{}"}}"#, "x".repeat(10 << 20));
    let text = Shim::new("ADD").run(config.as_bytes()).error(7);
    assert!(text.contains("2097152"), "{text}");
}

#[test]
fn a_large_configuration_is_carried_whole() {
    let dir = Dir::new();
    let socket = dir.join("agent.sock");
    let agent = Agent::start(&socket, vec![answer(200, "{}")]);
    let config = format!(r#"{{"a":"{}"}}"#, "x".repeat((2 << 20) - 8));
    assert_eq!(config.len(), 2 << 20);
    let said = Shim::new("ADD").socket(&socket).run(config.as_bytes());
    assert_eq!(said.code, 0, "{said:?}");
    assert!(agent.requests()[0].len() > 2 << 20);
}

#[test]
fn the_error_has_the_configurations_version() {
    let said = Shim::new("ADD")
        .wait_ms(0)
        .env("PLEXUS_AGENT_SOCKET", "/nowhere/a")
        .run(CONFIG);
    assert_eq!(said.json()["cniVersion"], "1.0.0");
}

#[test]
fn an_agent_that_is_away_is_code_11_after_the_wait() {
    let dir = Dir::new();
    let socket = dir.join("agent.sock");
    for verb in ["ADD", "CHECK", "GC"] {
        let begun = Instant::now();
        let text = Shim::new(verb)
            .socket(&socket)
            .wait_ms(150)
            .run(CONFIG)
            .error(11);
        let took = begun.elapsed();
        assert!(took >= Duration::from_millis(150), "{verb} {took:?}");
        assert!(
            text.contains(socket.to_str().unwrap()) && text.contains("systemctl"),
            "{text}"
        );
    }
    assert!(!dir.join("agent.sock.queue").exists());
}

#[test]
fn a_socket_that_nobody_listens_on_is_away_too() {
    let dir = Dir::new();
    let socket = dir.join("agent.sock");
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    Shim::new("ADD")
        .socket(&socket)
        .wait_ms(30)
        .run(CONFIG)
        .error(11);
}

#[test]
fn status_never_waits() {
    let dir = Dir::new();
    let begun = Instant::now();
    Shim::new("STATUS")
        .socket(&dir.join("agent.sock"))
        .wait_ms(5000)
        .run(CONFIG)
        .error(50);
    assert!(begun.elapsed() < Duration::from_secs(2));
}

#[test]
fn an_add_survives_a_restart_of_the_agent() {
    let dir = Dir::new();
    let socket = dir.join("agent.sock");
    let shim = Shim::new("ADD").socket(&socket).wait_ms(10_000);
    let waiting = std::thread::spawn(move || shim.run(CONFIG));
    std::thread::sleep(Duration::from_millis(100));
    // The first agents take the request and die in different ways before they have answered.
    let cut = answer(200, "{\"ips\":[]}");
    let cut = cut[..cut.len() - 3].to_vec();
    let garbage = vec![
        vec![],
        cut,
        b"\0\xff\xfe garbage\r\n\r\n".to_vec(),
        answer(200, "not json"),
        answer(200, ""),
        answer(503, "{\"message\":\"not a CNI error\"}"),
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".to_vec(),
        answer(200, "{\"ips\":[1]}"),
    ];
    let agent = Agent::start(&socket, garbage);
    let said = waiting.join().unwrap();
    assert_eq!((said.code, said.stdout.as_str()), (0, "{\"ips\":[1]}\n"));
    let requests = agent.requests();
    assert_eq!(requests.len(), 8);
    assert!(requests.iter().all(|request| *request == requests[0]));
}

#[test]
fn an_endless_answer_is_not_read_for_ever() {
    let dir = Dir::new();
    let socket = dir.join("agent.sock");
    let mut endless = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
    endless.resize(8 << 20, b'x');
    let agent = Agent::start(&socket, vec![endless, vec![b'y'; 1 << 20]]);
    let text = Shim::new("ADD")
        .socket(&socket)
        .wait_ms(60)
        .run(CONFIG)
        .error(11);
    assert!(text.contains("does not answer"), "{text}");
    agent.requests();
}

#[test]
fn a_refusal_before_everything_was_read_is_still_heard() {
    let dir = Dir::new();
    let socket = dir.join("agent.sock");
    let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let agent = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let error = r#"{"code":4,"msg":"go away"}"#;
        std::io::Write::write_all(&mut stream, &answer(403, error)).unwrap();
    });
    let config = format!(r#"{{"a":"{}"}}"#, "x".repeat(1 << 19));
    let said = Shim::new("ADD")
        .socket(&socket)
        .wait_ms(0)
        .run(config.as_bytes());
    assert!(said.error(4).contains("go away"));
    agent.join().unwrap();
}

#[test]
fn nobody_reads_the_answer() {
    let dir = Dir::new();
    let socket = dir.join("agent.sock");
    let agent = Agent::start(&socket, vec![answer(200, "{}")]);
    let mut child = Shim::new("ADD").socket(&socket).command().spawn().unwrap();
    drop(child.stdout.take());
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), CONFIG).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    agent.requests();
}

#[test]
fn the_socket_is_found_in_this_order() {
    let dir = Dir::new();
    let binary = dir.join("plexus-cni");
    std::fs::copy(env!("CARGO_BIN_EXE_plexus-cni"), &binary).unwrap();
    let path = |name: &str| dir.join(name).to_str().unwrap().to_owned();
    let named = |shim: Shim, config: &str| shim.binary(&binary).wait_ms(0).run(config.as_bytes());

    let text = named(Shim::new("STATUS"), "{}").error(50);
    assert!(text.contains("/run/plexus/agent.sock"), "{text}");

    std::fs::write(
        dir.join("plexus-cni.socket"),
        format!("  {}\n", path("file.sock")),
    )
    .unwrap();
    let text = named(Shim::new("STATUS"), "{}").error(50);
    assert!(text.contains("/file.sock"), "{text}");

    let env = || Shim::new("STATUS").socket(&dir.join("env.sock"));
    let text = named(env(), "{}").error(50);
    assert!(text.contains("/env.sock"), "{text}");

    let config = json!({"agentSocket": path("config.sock")}).to_string();
    let text = named(env(), &config).error(7);
    assert!(
        text.contains("/config.sock") && text.contains("/file.sock"),
        "{text}"
    );
    let same = json!({"agentSocket": path("file.sock")}).to_string();
    let text = named(env(), &same).error(50);
    assert!(text.contains("/file.sock"), "{text}");

    std::fs::remove_file(dir.join("plexus-cni.socket")).unwrap();
    let text = named(env(), &config).error(50);
    assert!(text.contains("/config.sock"), "{text}");
}

#[test]
fn a_socket_path_that_cannot_be_one_is_refused() {
    let long = format!("/{}", "x".repeat(107));
    for bad in [
        json!("agent.sock"),
        json!(""),
        json!(7),
        json!(["/a"]),
        json!(long),
        json!("/a\u{0}b"),
    ] {
        let config = json!({"agentSocket": bad}).to_string();
        let text = Shim::new("ADD").wait_ms(0).run(config.as_bytes()).error(7);
        assert!(text.contains("agentSocket"), "{text}");
    }
    let text = Shim::new("ADD")
        .env("PLEXUS_AGENT_SOCKET", "x")
        .run(b"{}")
        .error(4);
    assert!(text.contains("PLEXUS_AGENT_SOCKET"), "{text}");
    let text = Shim::new("ADD")
        .env("PLEXUS_CNI_WAIT_MS", "-1")
        .run(b"{}")
        .error(4);
    assert!(text.contains("PLEXUS_CNI_WAIT_MS"), "{text}");
}

//! The server's disk is full: what needs no write goes on, what needs one is refused with the reason, and once there is
//! room again everything does. Nothing that was acknowledged is lost, and nothing that was refused is there.

use crate::machine::Lab;
use crate::objects::{pod, within};
use plexus_testkit::run;
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::time::Duration;

const PODS: &str = "/api/v1/namespaces/default/pods";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Gives the server's directory a file system of its own, of 16 MiB. It goes with the lab.
fn small_disk(lab: &Lab) -> String {
    let dir = lab.file("server");
    lab.ok(&["kill", "server", "--hold"]);
    let aside = lab.file("server.aside");
    run("cp", &["-a", &dir, &aside]);
    run(
        "mount",
        &["-t", "tmpfs", "-o", "size=16m,mode=0700", "tmpfs", &dir],
    );
    run("cp", &["-a", &format!("{aside}/."), &dir]);
    run("rm", &["-r", &aside]);
    lab.ok(&["start", "server"]);
    dir
}

/// Writes until nothing more fits.
fn fill(dir: &str) -> String {
    let path = format!("{dir}/filler");
    let mut file = fs::File::create(&path).unwrap();
    for size in [65536, 512, 1] {
        let chunk = vec![7; size];
        while file.write_all(&chunk).is_ok() {}
    }
    path
}

fn map(name: &str) -> Value {
    // More than a page, so that it cannot fit into what is left of one.
    json!({"metadata": {"name": name}, "data": {"text": "x".repeat(20_000)}})
}

#[test]
fn a_full_disk_refuses_writes_and_nothing_else() {
    let lab = Lab::up('s', 3);
    let dir = small_disk(&lab);
    for (number, node) in ["n1", "n2", "n3"].iter().enumerate() {
        lab.pod_on(&format!("p{number}"), node, "");
    }
    lab.all_is_true();

    let filler = fill(&dir);
    // Writes that still find room in the log are acknowledged, and count; then one is refused, and says why.
    let mut kept = Vec::new();
    let mut refused = None;
    for number in 0..1000 {
        let name = format!("m{number}");
        let answer = lab.ask("POST", MAPS, &map(&name)).expect("it answers");
        match answer.status {
            201 => kept.push(name),
            _ => {
                refused = Some((name, answer));
                break;
            }
        }
    }
    let (name, answer) = refused.expect("the disk is full");
    println!(
        "{} were kept; then {}: {}",
        kept.len(),
        answer.status,
        answer.body
    );
    assert_eq!(answer.status, 507, "{}", answer.body);
    let status = answer.json();
    let message = status["message"].as_str().unwrap_or_default().to_owned();
    for word in ["disk", "full", &dir] {
        assert!(message.contains(word), "{word:?} is not in {message:?}");
    }
    let absent = |name: &str| lab.object(&format!("{MAPS}/{name}")).is_null();
    assert!(absent(&name), "what was refused is not there");
    let made = lab.ask("POST", PODS, &pod("late", "n1", "")).unwrap();
    assert_eq!(made.status, 507, "{}", made.body);

    // Reading, traffic, and sandboxes that die go on.
    lab.all_reach();
    assert_eq!(lab.objects(PODS).len(), 3);
    let (old, sandbox) = lab.view().sandboxes("n2").unwrap().pop_first().unwrap();
    run("ip", &["netns", "del", &sandbox.space]);
    let again = within(Duration::from_secs(30), || {
        let now = lab.view().sandboxes("n2").unwrap();
        now.len() == 1 && !now.contains_key(&old)
    });
    assert!(again, "the pod of n2 stays without a sandbox");

    // Killed now, it comes back as soon as it can, and has everything.
    assert!(lab.shoot("/server/pid"));
    std::thread::sleep(Duration::from_secs(3));
    fs::remove_file(&filler).unwrap();
    lab.eventually("the server is back", || {
        let answer = lab.ask("POST", MAPS, &map("after"));
        answer.is_some_and(|answer| [201, 409].contains(&answer.status))
    });
    for name in &kept {
        assert!(!absent(name), "{name} was acknowledged");
    }
    assert!(absent(&name), "{name} was refused");
    assert!(lab.pod("late").is_null());
    lab.pod_on("late", "n1", "");
    lab.all_is_true();

    // Full again, and freed without a restart.
    let filler = fill(&dir);
    let full = (0..1000).any(|number| {
        let answer = lab.ask("POST", MAPS, &map(&format!("again{number}")));
        answer.is_some_and(|answer| answer.status == 507)
    });
    assert!(full);
    let server = lab.process("/server/pid");
    fs::remove_file(&filler).unwrap();
    lab.pod_on("later", "n3", "");
    assert_eq!(lab.process("/server/pid"), server, "it needs no restart");
    lab.all_is_true();
}

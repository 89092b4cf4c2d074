//! The delegate runner: which plugins are refused, and what those that are run may not do.

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::Dir;
use common::bench::{Bench, FAIL, RESULT, chain, one, script_file};
use plexus_api::cni::{Code, Version};
use plexus_cni::delegate::Cause;
use plexus_types::PluginType;
use serde_json::json;
use std::fs;
use std::time::{Duration, Instant};

#[test]
fn a_plugin_that_hangs_is_killed_with_its_children() {
    let bench = Bench::with(|options| options.timeout = Duration::from_millis(700));
    bench.plugin(
        "hangs",
        "echo waiting >&2; sleep 1234.5 & echo $! > $(dirname $0)/../child; wait",
    );
    let begun = Instant::now();
    let error = bench.fail(&one("hangs"));
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert!(
        error.msg.contains("killed") && error.msg.contains("waiting"),
        "{error}"
    );
    let child = bench.read("child");
    let gone = || {
        let stat = fs::read_to_string(format!("/proc/{}/stat", child.trim())).unwrap_or_default();
        stat.is_empty() || stat.contains(") Z ")
    };
    let until = Instant::now() + Duration::from_secs(5);
    while !gone() {
        assert!(Instant::now() < until, "process {child} is still there");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(fs::read_dir(bench.dir.join("spool")).unwrap().count(), 0);
}

#[test]
fn a_child_left_behind_does_not_hold_us_up() {
    let bench = Bench::new();
    bench.plugin("daemon", &format!("sleep 30 & {RESULT}"));
    let begun = Instant::now();
    bench.add(&one("daemon"), 0, None).unwrap();
    assert!(begun.elapsed() < Duration::from_secs(10));
}

#[test]
fn floods_are_bounded() {
    let bench = Bench::new();
    bench.plugin("floods", "yes");
    let error = bench.fail(&one("floods"));
    assert!(error.msg.contains("more than 1048576 bytes"), "{error}");
    bench.plugin(
        "large",
        r#"printf '{"cniVersion":"1.0.0","x":"'; head -c 1000000 /dev/zero | tr '\0' x; echo '"}'"#,
    );
    bench.add(&one("large"), 0, None).unwrap();
    bench.plugin(
        "noisy",
        &format!("head -c 5000000 /dev/zero | tr '\\0' x >&2; {FAIL}"),
    );
    let error = bench.fail(&one("noisy"));
    assert!(
        error.msg.contains("no such link") && error.msg.len() < 2000,
        "{error}"
    );
}

#[test]
fn a_large_configuration_arrives_whole() {
    let bench = Bench::new();
    bench.plugin("good", RESULT);
    let text = "x".repeat(900_000);
    bench
        .add(
            &chain(Version::V1_0_0, json!([{"type":"good","big":text}])),
            0,
            None,
        )
        .unwrap();
    assert_eq!(
        bench.stdin("ADD.good")["big"].as_str().unwrap().len(),
        900_000
    );
}

#[test]
fn types_that_are_not_plugins() {
    let bench = Bench::new();
    bench.plugin("good", RESULT);
    for bad in [
        json!("../bin/good"),
        json!("/bin/true"),
        json!(""),
        json!(".."),
        json!(7),
        json!(null),
    ] {
        let error = bench.fail(&chain(Version::V1_0_0, json!([{"type": bad}])));
        assert_eq!(error.code, Code::InvalidConfig, "{error}");
        let ipam = json!([{"type":"good","ipam":{"type": bad}}]);
        if bad.as_str().is_some_and(|bad| !bad.is_empty()) {
            assert_eq!(
                bench.fail(&chain(Version::V1_0_0, ipam)).code,
                Code::InvalidConfig
            );
        }
    }
    let error = bench.fail(&one("absent"));
    let dir = bench.dir.join("empty");
    assert!(
        error.msg.contains("absent") && error.msg.contains(dir.to_str().unwrap()),
        "{error}"
    );
    fs::write(bench.dir.join("bin/plain"), "not executable").unwrap();
    fs::create_dir(bench.dir.join("bin/folder")).unwrap();
    for name in ["plain", "folder"] {
        assert!(bench.fail(&one(name)).msg.contains("no executable file"));
    }
    script_file(&bench.dir.join("bin/junk"), "\x7fELF nonsense");
    assert!(bench.fail(&one("junk")).msg.contains("cannot execute"));
    assert!(bench.add(&one("good"), 1, None).is_err());
}

#[test]
fn ourselves_by_any_name_is_refused() {
    let dir = Dir::new();
    let own = dir.join("plexus-cni");
    script_file(&own, "#!/bin/sh\nexit 0\n");
    let bench = Bench::with(|options| options.own = vec![own.clone(), dir.join("not-installed")]);
    let bin = bench.dir.join("bin");
    std::os::unix::fs::symlink(&own, bin.join("multi-nic")).unwrap();
    fs::hard_link(&own, bin.join("bridge")).unwrap();
    fs::copy(&own, bin.join("macvlan")).unwrap();
    script_file(
        &bin.join("plexus-cni"),
        "#!/bin/sh\n# another version\nexit 0\n",
    );
    bench.plugin("good", RESULT);
    for name in ["multi-nic", "bridge", "macvlan", "plexus-cni"] {
        let error = bench.fail(&one(name));
        assert!(error.msg.contains("Plexus itself"), "{name}: {error}");
        assert!(error.details.contains("--delegate-bin-dir"), "{error}");
    }
    let ipam = chain(
        Version::V1_0_0,
        json!([{"type":"good","ipam":{"type":"bridge"}}]),
    );
    assert!(bench.fail(&ipam).msg.contains("Plexus itself"));
    bench.add(&one("good"), 0, None).unwrap();
}

#[test]
fn only_what_is_allowed() {
    let allowed = [PluginType::new("good").unwrap()].into();
    let bench = Bench::with(|options| options.allowed = Some(std::clone::Clone::clone(&allowed)));
    bench.plugin("good", RESULT);
    bench.plugin("other", RESULT);
    bench.add(&one("good"), 0, None).unwrap();
    assert!(bench.fail(&one("other")).msg.contains("allowed: good"));
    let ipam = chain(
        Version::V1_0_0,
        json!([{"type":"good","ipam":{"type":"other"}}]),
    );
    assert!(bench.fail(&ipam).msg.contains("\"other\""));
    assert_eq!(bench.order(), ["ADD.good"]);
}

#[test]
fn few_at_a_time_and_dels_apart() {
    let bench = Bench::with(|options| {
        options.at_once = 1;
        options.timeout = Duration::from_millis(1200);
    });
    bench.plugin("slow", "[ $CNI_COMMAND = ADD ] && sleep 10; exit 0");
    bench.del(&one("slow"), 1, None);
    std::thread::scope(|scope| {
        let adding = scope.spawn(|| bench.add(&one("slow"), 0, None));
        std::thread::sleep(Duration::from_millis(200));
        assert!(bench.del(&one("slow"), 1, None).is_empty());
        assert!(!adding.is_finished());
        // One gets the slot when the first is killed, the next has waited too long by then.
        let second = scope.spawn(|| bench.add(&one("slow"), 0, None));
        std::thread::sleep(Duration::from_millis(100));
        let third = scope.spawn(|| bench.add(&one("slow"), 0, None));
        let results = [adding, second, third].map(|thread| thread.join().unwrap().unwrap_err());
        let busy = results
            .iter()
            .filter(|error| matches!(error.cause, Cause::Busy { .. }));
        assert_eq!(busy.count(), 1, "{results:?}");
        let busy = results.iter().find(|error| error.is_temporary()).unwrap();
        assert_eq!(busy.to_cni().code, Code::TryAgainLater);
    });
}

#[test]
fn status_does_not_wait_for_adds_and_slowness_is_no_reason() {
    let bench = Bench::with(|options| options.at_once = 1);
    bench.plugin("slow", "[ $CNI_COMMAND = ADD ] && sleep 3; exit 0");
    bench.plugin("hangs", "sleep 100");
    bench.plugin("ill", FAIL);
    let status = |plugins| bench.status(&chain(Version::V1_1_0, plugins));
    std::thread::scope(|scope| {
        let adding = scope.spawn(|| bench.add(&one("slow"), 0, None));
        while !bench.dir.join("ADD.slow.env").exists() {
            std::thread::sleep(Duration::from_millis(10));
        }
        let silent = status(json!([{"type": "slow"}])).unwrap();
        assert!(silent.is_empty(), "{silent:?}");
        assert!(!adding.is_finished(), "STATUS waited for the ADD");
    });
    let begun = Instant::now();
    let silent = status(json!([{"type": "hangs"}, {"type": "slow"}])).unwrap();
    assert!(begun.elapsed() < Duration::from_secs(4));
    assert!(silent[0].contains("killed"), "{silent:?}");
    assert!(silent[1].contains("no time was left"), "{silent:?}");
    // Also when the time is up, what is missing is missing; and an answer is an answer.
    let error = status(json!([{"type": "hangs"}, {"type": "absent"}])).unwrap_err();
    assert!(matches!(error.cause, Cause::NotFound { .. }), "{error}");
    let error = status(json!([{"type": "slow"}, {"type": "ill"}])).unwrap_err();
    assert!(matches!(error.cause, Cause::Told(_)), "{error}");
}

#[test]
fn a_plugin_that_outlived_its_agent_is_waited_for_or_ended() {
    use std::process::{Command, Stdio};
    // What an agent leaves behind when it is killed: a locked file that the plugin reads from.
    let stray = |bench: &Bench, seconds: &str| {
        let spool = bench.dir.join("spool");
        fs::create_dir_all(&spool).unwrap();
        let file = fs::File::create(spool.join("77-0.stdin")).unwrap();
        file.lock().unwrap();
        let mut command = Command::new("sleep");
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        command
            .arg(seconds)
            .stdin(Stdio::from(file))
            .spawn()
            .unwrap()
    };
    let end = |bench: &Bench, grace| {
        plexus_cni::delegate::end_strays(&bench.dir.join("spool"), Duration::from_millis(grace))
    };
    let bench = Bench::new();
    assert_eq!(end(&bench, 0).unwrap(), 0);
    let mut short = stray(&bench, "0.3");
    assert_eq!(end(&bench, 20_000).unwrap(), 1);
    assert!(short.wait().unwrap().success());
    let mut long = stray(&bench, "1000");
    assert_eq!(end(&bench, 100).unwrap(), 1);
    assert!(!long.wait().unwrap().success());
    fs::write(bench.dir.join("spool/78-0.stdin"), "{}").unwrap();
    assert_eq!(end(&bench, 0).unwrap(), 0);
    assert_eq!(fs::read_dir(bench.dir.join("spool")).unwrap().count(), 0);
}

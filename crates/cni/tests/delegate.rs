//! The delegate runner: what plugins are given, and what becomes of their answers.

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::bench::{ALL, Bench, FAIL, RESULT, chain, one, plugin, script_file};
use plexus_api::cni::{Chain, Code, Executable, ValidAttachment, Version};
use serde_json::json;
use std::fs;

#[test]
fn a_plugin_gets_what_the_specification_names_and_no_more() {
    let mut bench = Bench::new();
    bench.plugin("good", RESULT);
    bench.runtime = json!({"mac":"02:00:00:00:00:01","ips":[]})
        .as_object()
        .unwrap()
        .clone();
    let chain = chain(
        Version::V1_0_0,
        json!([{"type":"good","custom":{"a":[1]},"capabilities":{"mac":true}}]),
    );
    let outcome = bench.add(&chain, 0, None).unwrap();
    assert_eq!(outcome.ips[0].address.to_string(), "10.1.2.3/24");

    let expected = json!({"type":"good","custom":{"a":[1]},"cniVersion":"1.0.0","name":"blue",
        "runtimeConfig":{"mac":"02:00:00:00:00:01"}});
    assert_eq!(bench.stdin("ADD.good"), expected);
    let env = bench.read("ADD.good.env");
    let mut names: Vec<&str> = env
        .lines()
        .filter_map(|line| line.split('=').next())
        .collect();
    // The shell's own.
    names.retain(|name| !["PWD", "SHLVL", "_", "OLDPWD"].contains(name));
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "CNI_ARGS",
            "CNI_COMMAND",
            "CNI_CONTAINERID",
            "CNI_IFNAME",
            "CNI_NETNS",
            "CNI_PATH",
            "PATH"
        ]
    );
    let path = format!(
        "CNI_PATH={}:{}",
        bench.dir.join("empty").display(),
        bench.dir.join("bin").display()
    );
    for line in [
        "CNI_ARGS=A=b",
        "CNI_COMMAND=ADD",
        "CNI_CONTAINERID=c1",
        "CNI_IFNAME=eth0",
        "CNI_NETNS=/run/netns/x",
        &path,
    ] {
        assert!(env.lines().any(|l| l == line), "{line} in {env}");
    }
    assert_eq!(fs::read_dir(bench.dir.join("spool")).unwrap().count(), 0);
}

#[test]
fn a_chain_forwards_and_comes_back() {
    let bench = Bench::new();
    for name in ["a", "b", "c"] {
        bench.plugin(name, RESULT);
    }
    let chain = chain(
        Version::V1_1_0,
        json!([{"type":"a"},{"type":"b"},{"type":"c"}]),
    );
    let mut last = None;
    for step in 0..3 {
        last = Some(bench.add(&chain, step, last.as_ref()).unwrap());
    }
    assert_eq!(bench.stdin("ADD.a").get("prevResult"), None);
    assert_eq!(
        bench.stdin("ADD.b")["prevResult"]["ips"][0]["address"],
        "10.1.2.3/24"
    );
    let steps = bench
        .runner
        .steps(&bench.network, &chain, bench.call(), &bench.runtime);
    steps.check(last.as_ref().unwrap()).unwrap();
    assert!(bench.del(&chain, 3, last.as_ref()).is_empty());
    assert_eq!(
        bench.order(),
        [
            "ADD.a", "ADD.b", "ADD.c", "CHECK.a", "CHECK.b", "CHECK.c", "DEL.c", "DEL.b", "DEL.a"
        ]
    );
    for name in ["CHECK.a", "CHECK.c", "DEL.a", "DEL.c"] {
        assert_eq!(
            bench.stdin(name)["prevResult"]["interfaces"][0]["name"],
            "eth0",
            "{name}"
        );
    }
}

#[test]
fn a_failed_add_is_undone_from_the_failed_plugin_backwards() {
    let bench = Bench::new();
    bench.plugin("a", RESULT);
    bench.plugin("b", FAIL);
    bench.plugin("c", RESULT);
    let chain = chain(
        Version::V1_0_0,
        json!([{"type":"a"},{"type":"b"},{"type":"c"}]),
    );
    let first = bench.add(&chain, 0, None).unwrap();
    let error = bench.add(&chain, 1, Some(&first)).unwrap_err().to_cni();
    assert_eq!(error.code, Code::Delegate(107));
    assert_eq!(
        error.msg,
        r#"network "blue": ADD by plugin "b": no such link"#
    );
    assert_eq!(error.details, "make one");
    // b's DEL fails too; a's is tried all the same.
    let errors = bench.del(&chain, 2, Some(&first));
    assert_eq!(errors.len(), 1);
    assert_eq!((errors[0].plugin.as_str(), errors[0].verb), ("b", "DEL"));
    assert_eq!(bench.order(), ["ADD.a", "ADD.b", "DEL.b", "DEL.a"]);
}

#[test]
fn versions_are_asked_once_per_binary() {
    let bench = Bench::new();
    plugin(&bench.dir, "old", r#""0.2.0","0.3.0","0.3.1""#, RESULT);
    let wanted = chain(Version::V1_1_0, json!([{"type":"old"}]));
    let outcome = bench.add(&wanted, 0, None).unwrap();
    bench.add(&wanted, 0, Some(&outcome)).unwrap();
    assert_eq!(bench.stdin("ADD.old")["cniVersion"], "0.3.1");
    assert_eq!(
        bench.stdin("ADD.old")["prevResult"]["ips"][0]["version"],
        "4"
    );
    assert_eq!(bench.read("order").matches("VERSION").count(), 1);
    // No CHECK, GC or STATUS, and no prevResult in DEL, for a plugin that is so old.
    let steps = bench
        .runner
        .steps(&bench.network, &wanted, bench.call(), &bench.runtime);
    steps.check(&outcome).unwrap();
    bench.status(&wanted).unwrap();
    assert!(bench.runner.gc(&bench.network, &wanted, &[]).is_empty());
    assert!(bench.del(&wanted, 1, Some(&outcome)).is_empty());
    assert_eq!(bench.stdin("DEL.old").get("prevResult"), None);
    assert_eq!(bench.order(), ["ADD.old", "ADD.old", "DEL.old"]);
    // A new binary is asked again.
    fs::remove_file(bench.dir.join("bin/old")).unwrap();
    plugin(&bench.dir, "old", ALL, RESULT);
    bench.add(&wanted, 0, None).unwrap();
    assert_eq!(bench.stdin("ADD.old")["cniVersion"], "1.1.0");
}

#[test]
fn no_common_version_names_both_lists() {
    let bench = Bench::new();
    plugin(&bench.dir, "ancient", r#""0.1.0","0.2.0""#, RESULT);
    let error = bench.fail(&one("ancient"));
    assert_eq!(error.code, Code::IncompatibleVersion);
    assert!(
        error.msg.contains("0.1.0, 0.2.0") && error.msg.contains("0.3.0, 0.3.1"),
        "{error}"
    );

    script_file(
        &bench.dir.join("bin/mute"),
        "#!/bin/sh\necho what? >&2; exit 3\n",
    );
    let error = bench.fail(&one("mute"));
    assert!(
        error.msg.contains("which versions") && error.msg.contains("what?"),
        "{error}"
    );
    script_file(&bench.dir.join("bin/babble"), "#!/bin/sh\necho hello\n");
    assert!(bench.fail(&one("babble")).msg.contains("which versions"));
}

#[test]
fn gc_and_status_go_to_those_who_know_them() {
    let bench = Bench::new();
    bench.plugin("new", "exit 0");
    bench.plugin("ill", FAIL);
    let both = chain(
        Version::V1_1_0,
        json!([{"type":"new"},{"type":"ill"},{"type":"new"}]),
    );
    let error = bench.status(&both).unwrap_err();
    assert_eq!((error.plugin.as_str(), error.verb), ("ill", "STATUS"));
    let valid = [ValidAttachment {
        container: bench.container.clone(),
        ifname: bench.ifname.clone(),
    }];
    assert_eq!(bench.runner.gc(&bench.network, &both, &valid).len(), 1);
    assert_eq!(
        bench.order(),
        ["STATUS.new", "STATUS.ill", "GC.new", "GC.ill", "GC.new"]
    );
    let list = json!([{"containerID":"c1","ifname":"eth0"}]);
    assert_eq!(bench.stdin("GC.new")["cni.dev/valid-attachments"], list);
    assert!(!bench.read("GC.new.env").contains("CNI_NETNS"));
    let older = Chain {
        executable: Executable::Type,
        version: Version::V1_0_0,
        ..both
    };
    bench.status(&older).unwrap();
}

#[test]
fn answers_that_are_none() {
    let bench = Bench::new();
    for (name, part, text) in [
        ("nojson", "echo hello", "not a CNI result"),
        ("silent", "exit 0", "not a CNI result"),
        (
            "badip",
            r#"echo '{"cniVersion":"1.0.0","ips":[{"address":"10.0.0.300/24"}]}'"#,
            "10.0.0.300",
        ),
        ("list", "echo '[]'", "not a CNI result"),
        ("future", r#"echo '{"cniVersion":"9.0.0"}'"#, "9.0.0"),
        ("crash", "echo panic: nil map >&2; exit 2", "exit status: 2"),
        ("killed", "kill -9 $$", "signal: 9"),
        (
            "lies",
            r#"echo '{"code":99,"msg":"but exits with 0"}'"#,
            "but exits with 0",
        ),
    ] {
        bench.plugin(name, part);
        let error = bench.fail(&one(name));
        assert!(error.msg.contains(text), "{name}: {error}");
        assert!(
            error.msg.contains(name) && error.msg.contains("blue") && error.msg.contains("ADD")
        );
    }
    assert!(bench.fail(&one("crash")).msg.contains("panic: nil map"));
    bench.plugin(
        "versionless",
        r#"echo '{"ips":[{"address":"10.0.0.3/24"}]}'"#,
    );
    assert_eq!(
        bench.add(&one("versionless"), 0, None).unwrap().ips.len(),
        1
    );
}

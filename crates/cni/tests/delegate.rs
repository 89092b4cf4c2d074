//! The delegate runner against plugins that the test writes: small shell scripts that obey, fail,
//! hang, flood, and record what they were given.

mod common;

use common::Dir;
use plexus_api::cni::{Chain, Code, Outcome, ValidAttachment, Version};
use plexus_cni::delegate::{Call, Cause, Error, Options, Runner};
use plexus_types::{ContainerId, IfName, NetworkName, PluginType};
use serde_json::{Map, Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Answers VERSION, records each other call as `<verb>.<type>.{env,stdin}` and in `order`, then
/// does what its part says.
fn plugin(dir: &Dir, name: &str, versions: &str, part: &str) {
    let out = dir.0.display();
    let script = format!(
        r#"#!/bin/sh
if [ "$CNI_COMMAND" = VERSION ]; then
  echo VERSION.{name} >> {out}/order
  echo '{{"cniVersion":"1.0.0","supportedVersions":[{versions}]}}'; exit 0
fi
env > {out}/$CNI_COMMAND.{name}.env
cat > {out}/$CNI_COMMAND.{name}.stdin
echo $CNI_COMMAND.{name} >> {out}/order
{part}
"#
    );
    script_file(&dir.join("bin").join(name), &script);
}

fn script_file(path: &Path, script: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, script).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

const ALL: &str = r#""0.3.0","0.3.1","0.4.0","1.0.0","1.1.0""#;
const RESULT: &str = r#"[ $CNI_COMMAND = ADD ] && echo '{"cniVersion":"1.1.0","interfaces":[{"name":"eth0","sandbox":"/n"}],"ips":[{"address":"10.1.2.3/24","interface":0}]}'; exit 0"#;
const FAIL: &str = r#"echo '{"cniVersion":"1.0.0","code":107,"msg":"no such link","details":"make one"}'; echo noise >&2; exit 1"#;

struct Bench {
    dir: Dir,
    network: NetworkName,
    container: ContainerId,
    ifname: IfName,
    runtime: Map<String, Value>,
    runner: Runner,
}

impl Bench {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(change: impl Fn(&mut Options)) -> Self {
        let dir = Dir::new();
        fs::create_dir_all(dir.join("bin")).unwrap();
        let mut options = Options::new(vec![dir.join("empty"), dir.join("bin")], dir.join("spool"));
        options.timeout = Duration::from_secs(20);
        change(&mut options);
        Self {
            network: NetworkName::new("blue").unwrap(),
            container: ContainerId::new("c1").unwrap(),
            ifname: IfName::new("eth0").unwrap(),
            runtime: Map::new(),
            runner: Runner::new(options),
            dir,
        }
    }

    fn plugin(&self, name: &str, part: &str) {
        plugin(&self.dir, name, ALL, part);
    }

    fn call(&self) -> Call<'_> {
        Call {
            container: &self.container,
            netns: "/run/netns/x",
            ifname: &self.ifname,
            args: "A=b",
        }
    }

    fn add(&self, chain: &Chain, step: usize, prev: Option<&Outcome>) -> Result<Outcome, Error> {
        let steps = self
            .runner
            .steps(&self.network, chain, self.call(), &self.runtime);
        steps.add_step(step, prev)
    }

    fn fail(&self, chain: &Chain) -> plexus_api::cni::Error {
        self.add(chain, 0, None).unwrap_err().to_cni()
    }

    fn del(&self, chain: &Chain, count: usize, result: Option<&Outcome>) -> Vec<Error> {
        let steps = self
            .runner
            .steps(&self.network, chain, self.call(), &self.runtime);
        steps.del_chain(count, result)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.dir.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    fn stdin(&self, name: &str) -> Value {
        serde_json::from_str(&self.read(&format!("{name}.stdin"))).unwrap()
    }

    fn order(&self) -> Vec<String> {
        let text = fs::read_to_string(self.dir.join("order")).unwrap_or_default();
        text.lines()
            .filter(|line| !line.starts_with("VERSION"))
            .map(str::to_owned)
            .collect()
    }
}

fn chain(version: Version, plugins: Value) -> Chain {
    let plugins = plugins
        .as_array()
        .unwrap()
        .iter()
        .map(|p| p.as_object().unwrap().clone());
    Chain {
        version,
        plugins: plugins.collect(),
        because: None,
    }
}

fn one(name: &str) -> Chain {
    chain(Version::V1_0_0, json!([{"type": name}]))
}

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
    bench.runner.status(&bench.network, &wanted).unwrap();
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
    let error = bench.runner.status(&bench.network, &both).unwrap_err();
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
        version: Version::V1_0_0,
        ..both
    };
    bench.runner.status(&bench.network, &older).unwrap();
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

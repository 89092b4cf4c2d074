//! Plugins that a test writes: small shell scripts that obey, fail, hang, flood, and record what
//! they were given; and a runner for them.

use super::Dir;
use plexus_api::cni::{Chain, Executable, Outcome, Version};
use plexus_cni::delegate::{Call, Error, Options, Runner};
use plexus_types::{ContainerId, IfName, NetworkName};
use serde_json::{Map, Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Answers VERSION, records each other call as `<verb>.<type>.{env,stdin}` and in `order`, then
/// does what its part says.
pub fn plugin(dir: &Dir, name: &str, versions: &str, part: &str) {
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

pub fn script_file(path: &Path, script: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, script).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

pub const ALL: &str = r#""0.3.0","0.3.1","0.4.0","1.0.0","1.1.0""#;
pub const RESULT: &str = r#"[ $CNI_COMMAND = ADD ] && echo '{"cniVersion":"1.1.0","interfaces":[{"name":"eth0","sandbox":"/n"}],"ips":[{"address":"10.1.2.3/24","interface":0}]}'; exit 0"#;
pub const FAIL: &str = r#"echo '{"cniVersion":"1.0.0","code":107,"msg":"no such link","details":"make one"}'; echo noise >&2; exit 1"#;

pub struct Bench {
    pub dir: Dir,
    pub network: NetworkName,
    pub container: ContainerId,
    pub ifname: IfName,
    pub runtime: Map<String, Value>,
    pub runner: Runner,
}

impl Bench {
    pub fn new() -> Self {
        Self::with(|_| {})
    }

    pub fn with(change: impl Fn(&mut Options)) -> Self {
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

    pub fn plugin(&self, name: &str, part: &str) {
        plugin(&self.dir, name, ALL, part);
    }

    pub fn call(&self) -> Call<'_> {
        Call {
            container: &self.container,
            netns: "/run/netns/x",
            ifname: &self.ifname,
            args: "A=b",
        }
    }

    pub fn add(
        &self,
        chain: &Chain,
        step: usize,
        prev: Option<&Outcome>,
    ) -> Result<Outcome, Error> {
        let steps = self
            .runner
            .steps(&self.network, chain, self.call(), &self.runtime);
        steps.add_step(step, prev)
    }

    pub fn fail(&self, chain: &Chain) -> plexus_api::cni::Error {
        self.add(chain, 0, None).unwrap_err().to_cni()
    }

    pub fn del(&self, chain: &Chain, count: usize, result: Option<&Outcome>) -> Vec<Error> {
        let steps = self
            .runner
            .steps(&self.network, chain, self.call(), &self.runtime);
        steps.del_chain(count, result)
    }

    pub fn status(&self, chain: &Chain) -> Result<Vec<String>, Error> {
        let until = Instant::now() + Duration::from_secs(2);
        self.runner.status(&self.network, chain, until)
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.dir.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    pub fn stdin(&self, name: &str) -> Value {
        serde_json::from_str(&self.read(&format!("{name}.stdin"))).unwrap()
    }

    pub fn order(&self) -> Vec<String> {
        let text = fs::read_to_string(self.dir.join("order")).unwrap_or_default();
        text.lines()
            .filter(|line| !line.starts_with("VERSION"))
            .map(str::to_owned)
            .collect()
    }
}

pub fn chain(version: Version, plugins: Value) -> Chain {
    let plugins = plugins
        .as_array()
        .unwrap()
        .iter()
        .map(|p| p.as_object().unwrap().clone());
    Chain {
        executable: Executable::Type,
        version,
        plugins: plugins.collect(),
        unsupported_key: None,
    }
}

pub fn one(name: &str) -> Chain {
    chain(Version::V1_0_0, json!([{"type": name}]))
}

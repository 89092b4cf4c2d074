//! The processes of a lab by name, and how each one is started: `keeper`, `server`, `controller`, and per
//! node `n1-agent`. The same part started again gets the same command line.

use crate::address;
use crate::error::LabError;
use crate::layout::{Layout, PLUGIN_FILES};
use crate::name::NodeName;
use crate::process;
use crate::spec::Spec;
use plexus_kernel::{Netns, mount, named};
use std::ffi::OsString;
use std::fmt;
use std::fs::OpenOptions;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::str::FromStr;

/// A process of a lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Starts the others, and is kubelet and scheduler.
    Keeper,
    /// The API.
    Server,
    /// The controller.
    Controller,
    /// A node's agent.
    Agent(NodeName),
}

/// Whose queries the controller answers, in the fabric's namespace.
pub(crate) const CONTROLLER_HEALTH: &str = "127.0.0.1:9092";

/// Where an agent answers queries besides its socket, in its node's namespace.
const AGENT_QUERIES: &str = "127.0.0.1:9091";

/// Variables that are not ours to pass on: they would change what the parts do.
const OURS: &str = "PLEXUS_";
/// But this one, which product builds do not know: by it a test shows that it would notice.
const MISTAKE: &str = "PLEXUS_MISTAKE";

impl Part {
    /// The verb of `plexus` that it is.
    pub(crate) fn verb(self) -> &'static str {
        match self {
            Self::Keeper => "lab",
            Self::Server => "server",
            Self::Controller => "controller",
            Self::Agent(_) => "agent",
        }
    }

    /// How commands call it: an agent by its node.
    pub fn target(self) -> String {
        match self {
            Self::Agent(node) => node.to_string(),
            part => part.to_string(),
        }
    }

    /// The namespace that it runs in; none: that of whoever made the lab.
    fn namespace(self, layout: &Layout) -> Option<String> {
        match self {
            Self::Keeper | Self::Server => None,
            Self::Controller => Some(layout.name().fabric()),
            Self::Agent(node) => Some(layout.name().node(node)),
        }
    }

    /// Starts it, in its namespace, away from our terminal, with its log in a file; an agent with plugins'
    /// files of its node's own.
    pub(crate) fn start(self, layout: &Layout, spec: &Spec) -> Result<Child, LabError> {
        let log = layout.log(self);
        let open = || OpenOptions::new().create(true).append(true).open(&log);
        let failed = |source| LabError::Start {
            what: self.to_string(),
            source,
        };
        let mut command = Command::new(&spec.programs.plexus);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with(OURS) && name != MISTAKE {
                command.env_remove(name);
            }
        }
        command
            .args(self.arguments(layout, spec))
            .env(process::MARK, process::mark(layout, self))
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(open().map_err(LabError::file("open", &log))?)
            .stderr(open().map_err(LabError::file("open", &log))?)
            .process_group(0);
        let mut spawn = || -> Result<Child, LabError> {
            let child = match self.namespace(layout) {
                Some(name) => Netns::open(named::path(&name))?.enter(|| command.spawn())?,
                None => command.spawn(),
            };
            child.map_err(failed)
        };
        let Self::Agent(node) = self else {
            return spawn();
        };
        // So have the plugins that it executes.
        let own = layout.plugin_files(node);
        let plugin_dir = Path::new(PLUGIN_FILES);
        let started = mount::with_own(&own, plugin_dir, spawn);
        started.map_err(LabError::file("give a node its own", plugin_dir))?
    }

    fn arguments(self, layout: &Layout, spec: &Spec) -> Vec<OsString> {
        let mut words = CommandLine(vec![self.verb().into()]);
        match self {
            Self::Keeper => words.add("keeper").flag("lab", layout.name().as_str()),
            Self::Server => server(&mut words, layout, spec),
            Self::Controller => controller(&mut words, layout, spec),
            Self::Agent(node) => agent(&mut words, layout, spec, node),
        };
        words.0
    }
}

fn server<'w>(words: &'w mut CommandLine, layout: &Layout, spec: &Spec) -> &'w mut CommandLine {
    let fabric = named::path(&layout.name().fabric());
    let inside = address::api_server();
    words
        .path("dir", &layout.server())
        .flag("listen", &format!("127.0.0.1:{}", spec.port))
        .path("unix", &layout.server_socket())
        .flag("name", &inside.ip().to_string())
        .flag("listen-in", &format!("{}={inside}", fabric.display()))
        // The keeper ends them.
        .add("--pods-wait")
}

fn controller<'w>(words: &'w mut CommandLine, layout: &Layout, spec: &Spec) -> &'w mut CommandLine {
    words
        .path("kubeconfig", &layout.inner_kubeconfig())
        .flag("identity", "lab")
        .flag("cluster-network", "own")
        .flag("own-cidrs", "blocks")
        .flag("own-subnets", &list(&spec.subnets))
        .flag("node-grace", &spec.node_grace.to_string())
        .flag("health-address", CONTROLLER_HEALTH)
        .flag("config", "/dev/null");
    allowed_subnets(words, spec)
}

/// What networks may have, as controller and agents are told.
fn allowed_subnets<'w>(words: &'w mut CommandLine, spec: &Spec) -> &'w mut CommandLine {
    match &spec.allowed_subnets {
        Some(ranges) => words.flag("allowed-subnets", &list(ranges)),
        None => words,
    }
}

fn agent<'w>(
    words: &'w mut CommandLine,
    layout: &Layout,
    spec: &Spec,
    node: NodeName,
) -> &'w mut CommandLine {
    let addresses = address::of_node(node).map(|net| net.addr());
    words
        .flag("node", &node.to_string())
        .path("socket", &layout.agent_socket(node))
        .path("state-dir", &layout.agent_state(node))
        .path("cni-bin-dir", &layout.cni_bin(node))
        .path("cni-conf-dir", &layout.cni_conf(node))
        .path("shim-source", &spec.programs.shim)
        .path("kubeconfig", &layout.inner_kubeconfig())
        .flag("cluster-network", "own")
        .flag("own-cidrs", "blocks")
        .flag("cluster-cidrs", &list(&spec.subnets))
        .flag("node-ip", &list(&addresses))
        .flag("query-address", AGENT_QUERIES)
        // A node's NICs are ends of veths here.
        .flag("nics", &spec.nic_names(node))
        .flag("config", "/dev/null");
    allowed_subnets(words, spec);
    if let Some(delegates) = &spec.programs.delegates {
        words.path("delegate-bin-dir", delegates);
    }
    words
}

impl FromStr for Part {
    type Err = LabError;

    /// As commands call it, or as `plexus lab status` does.
    fn from_str(text: &str) -> Result<Self, LabError> {
        match text {
            "keeper" => Ok(Self::Keeper),
            "server" => Ok(Self::Server),
            "controller" => Ok(Self::Controller),
            node => node
                .strip_suffix("-agent")
                .unwrap_or(node)
                .parse()
                .map(Self::Agent)
                .map_err(|_| LabError::Part(text.chars().take(64).collect())),
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Keeper => f.write_str("keeper"),
            Self::Server => f.write_str("server"),
            Self::Controller => f.write_str("controller"),
            Self::Agent(node) => write!(f, "{node}-agent"),
        }
    }
}

/// A command line in the making.
struct CommandLine(Vec<OsString>);

impl CommandLine {
    fn add(&mut self, word: &str) -> &mut Self {
        self.0.push(word.into());
        self
    }

    fn flag(&mut self, name: &str, value: &str) -> &mut Self {
        self.add(&format!("--{name}={value}"))
    }

    fn path(&mut self, name: &str, value: &Path) -> &mut Self {
        let mut word = OsString::from(format!("--{name}="));
        word.push(value);
        self.0.push(word);
        self
    }
}

fn list<T: ToString>(items: &[T]) -> String {
    let texts: Vec<String> = items.iter().map(T::to_string).collect();
    texts.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Programs, UpOptions};

    fn line(part: Part) -> String {
        let layout = Layout::of("x".parse().unwrap());
        let programs = Programs {
            plexus: "/p".into(),
            shim: "/s".into(),
            delegates: Some("/d".into()),
        };
        let spec = Spec::new(&UpOptions::default(), 7001, programs).unwrap();
        let words = part.arguments(&layout, &spec);
        let words: Vec<_> = words.iter().map(|w| w.to_string_lossy()).collect();
        words.join(" ")
    }

    #[test]
    fn an_agent_lives_in_its_nodes_directory() {
        let node = "n2".parse().unwrap();
        let command_line = line(Part::Agent(node));
        assert!(
            command_line.starts_with("agent --node=n2 "),
            "{command_line}"
        );
        for flag in [
            "--socket=/run/plexus/lab/x/n2/agent.sock",
            "--state-dir=/run/plexus/lab/x/n2/state",
            "--node-ip=10.200.0.2,fd00:200::2",
            "--own-cidrs=blocks",
            "--query-address=127.0.0.1:9091",
            "--nics=eth*",
            "--config=/dev/null",
            "--delegate-bin-dir=/d",
        ] {
            assert!(command_line.contains(flag), "{command_line} lacks {flag}");
        }
        assert_eq!(Part::Agent(node).to_string(), "n2-agent");
    }

    #[test]
    fn the_server_is_on_the_loopback_and_in_the_fabric() {
        let command_line = line(Part::Server);
        assert!(
            command_line.contains("--listen=127.0.0.1:7001"),
            "{command_line}"
        );
        let inside = "--listen-in=/run/netns/px-x-fabric=10.200.0.254:6443";
        assert!(command_line.contains(inside), "{command_line}");
        assert!(command_line.ends_with(" --pods-wait"), "{command_line}");
        assert_eq!(line(Part::Keeper), "lab keeper --lab=x");
    }
}

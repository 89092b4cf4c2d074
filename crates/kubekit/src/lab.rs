//! A lab from beginning to end: up, nodes that come and go, parts that die and return. Holds no state
//! of its own: what it knows is in the state directory, so any process can open a running lab.

use crate::api::Api;
use crate::cluster::{Object, is_ready};
use crate::layout::{Layout, MAX_NODES, index_of};
use crate::part::Part;
use crate::spec::{Binaries, Cni, Spec};
use crate::tools::Tools;
use crate::{
    bridge, command, control_plane, down, image, install, node, pki, relay, sysctl, underlay, wait,
};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

const NODE_TIMEOUT: Duration = Duration::from_secs(120);

/// A running lab.
pub struct Lab {
    layout: Layout,
    tools: Tools,
    api: Api,
}

impl Lab {
    /// Starts a lab and waits until it is of use. What a failure leaves is for looking at; `down`
    /// removes it.
    pub fn up(spec: &Spec) -> Result<Self> {
        spec.check()?;
        let tools = Tools::find()?;
        let layout = Layout::of(&spec.prefix)?;
        claim(&layout)?;
        Self::start_from(layout.clone(), tools, spec).with_context(|| {
            format!(
                "lab {0} is not up; look at {1}/log, then `kubelab down --prefix {0}`",
                layout.prefix(),
                layout.state().display()
            )
        })
    }

    /// Opens a lab that runs, by its state directory.
    pub fn open(state: &Path) -> Result<Self> {
        let layout = Layout::at(state)?;
        Spec::read(&layout)?;
        let api = Api::connect(&layout.kubeconfig())?;
        Ok(Self {
            layout,
            tools: Tools::find()?,
            api,
        })
    }

    /// Removes a lab, whatever is left of it.
    pub fn down(prefix: &str) -> Result<()> {
        down::down(&Layout::of(prefix)?)
    }

    /// Where its files are.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Where the programs are.
    pub fn tools(&self) -> &Tools {
        &self.tools
    }

    /// What it was asked to be, with the nodes that it has now.
    pub fn spec(&self) -> Result<Spec> {
        Spec::read(&self.layout)
    }

    /// Its API server, as administrator.
    pub fn api(&self) -> &Api {
        &self.api
    }

    /// Starts a part unless it runs. Nobody else does: a kubelet, for one, ends by itself if it
    /// finds no containerd when it starts.
    pub fn ensure(&self, part: &Part) -> Result<()> {
        if part.runs(&self.layout) {
            return Ok(());
        }
        self.start(part)
    }

    /// Starts a part that does not run.
    pub fn start(&self, part: &Part) -> Result<()> {
        part.start(&self.layout, &self.spec()?, &self.tools)
    }

    /// Asks a part to end, and waits.
    pub fn stop(&self, part: &Part) -> Result<()> {
        part.stop(&self.layout)
    }

    /// SIGKILL.
    pub fn kill(&self, part: &Part) -> Result<()> {
        part.kill(&self.layout)
    }

    /// Waits until the API server says that it is ready.
    pub fn wait_api(&self) -> Result<()> {
        wait::until("the API server", Duration::from_secs(90), || {
            let answer = self.kubectl(&["get", "--raw=/readyz", "--request-timeout=5s"])?;
            Ok((answer == "ok").then_some(()))
        })
    }

    /// `kubectl` as administrator; fails when it does.
    pub fn kubectl(&self, arguments: &[&str]) -> Result<String> {
        let program = self.tools.kubernetes.join("kubectl").display().to_string();
        let config = format!("--kubeconfig={}", self.layout.kubeconfig().display());
        let mut argv = vec![program.as_str(), config.as_str()];
        argv.extend(arguments);
        command::run(&argv)
    }

    /// A new node, or one that was removed under the same name; waits until it is ready.
    pub fn add_node(&self, name: Option<&str>) -> Result<String> {
        let mut spec = self.spec()?;
        let name = match name {
            Some(name) => name.to_owned(),
            None => next_name(&spec)?,
        };
        index_of(&name)?;
        if !spec.nodes.insert(name.clone()) {
            bail!("node {name} exists");
        }
        spec.write(&self.layout)?;
        node::boot(&self.layout, &spec, &self.tools, &name)?;
        node::join(&self.layout, &spec, &self.tools, &name)?;
        if spec.cni == Cni::Bridge {
            bridge::configure(self, &spec)?;
        }
        if spec.cni != Cni::None {
            self.wait_nodes(&[&name])?;
        }
        Ok(name)
    }

    /// Takes a node away for good, its disk too. Its Node object stays until somebody deletes it.
    pub fn remove_node(&self, name: &str) -> Result<()> {
        let mut spec = self.spec()?;
        if !spec.nodes.remove(name) {
            bail!("no node {name}");
        }
        node::power_off(&self.layout, name)?;
        node::discard(&self.layout, name)?;
        spec.write(&self.layout)
    }

    /// Cuts a node's power: every process ends, `/run` and the wires are gone, the disk stays. (The
    /// kernel's boot id stays too: the machine has not booted.)
    pub fn power_off(&self, name: &str) -> Result<()> {
        node::power_off(&self.layout, name)
    }

    /// Boots a node whose power was cut. Does not wait until it is ready.
    pub fn power_on(&self, name: &str) -> Result<()> {
        let spec = self.spec()?;
        node::boot(&self.layout, &spec, &self.tools, name)?;
        node::join(&self.layout, &spec, &self.tools, name)?;
        if spec.cni == Cni::Bridge {
            bridge::configure(self, &spec)?;
        }
        Ok(())
    }

    /// Stops the API server and etcd, copies etcd's data aside, starts them again.
    pub fn snapshot_etcd(&self) -> Result<PathBuf> {
        let copy = self.layout.state().join("etcd-snapshot");
        if copy.exists() {
            fs::remove_dir_all(&copy)
                .with_context(|| format!("cannot remove {}", copy.display()))?;
        }
        self.with_etcd_stopped(|| control_plane::save(&self.layout, &copy))?;
        Ok(copy)
    }

    /// Puts back what `snapshot_etcd` copied: the cluster forgets what happened since. The controllers
    /// are started anew, because resource versions went back.
    pub fn restore_etcd(&self, copy: &Path) -> Result<()> {
        self.with_etcd_stopped(|| control_plane::restore_snapshot(&self.layout, copy))?;
        for part in [Part::ControllerManager, Part::Scheduler] {
            self.kill(&part)?;
            self.start(&part)?;
        }
        Ok(())
    }

    /// Makes an image of programs, each with its place in it, and gives it to all nodes; also to those
    /// that come later. Libraries that the programs need are added.
    pub fn load_image(&self, name: &str, programs: &[(PathBuf, &str)]) -> Result<()> {
        self.load(&image::of_programs(&self.layout, name, programs)?)
    }

    /// Gives all nodes Plexus's image, made anew from these binaries, under this name
    /// (`image::PLEXUS` is what the manifest says). Running pods do not notice.
    pub fn load_plexus(&self, name: &str, binaries: &Binaries) -> Result<()> {
        self.load(&image::plexus(&self.layout, binaries, name)?)
    }

    /// Installs Plexus in a lab whose pods another CNI connects (`Cni::Bridge`), by the manifest that
    /// the lab was asked to be made with.
    pub fn install_plexus(&self) -> Result<()> {
        install::install(self, &self.spec()?)
    }

    /// Restarts the pods of Plexus's manifest, and waits for the new ones.
    pub fn restart_plexus(&self) -> Result<()> {
        install::restart(self, &self.spec()?)
    }

    /// Waits until these nodes are ready.
    pub fn wait_nodes(&self, names: &[&str]) -> Result<()> {
        wait::until(&format!("nodes {names:?} ready"), NODE_TIMEOUT, || {
            for name in names {
                let node = self.api.get(&Object::new("v1", "Node", "", name))?;
                if !node.is_some_and(|node| is_ready(&node)) {
                    bail!("{name} is not ready");
                }
            }
            Ok(Some(()))
        })
    }

    /// A command line that runs on a node.
    pub fn inside(&self, name: &str, argv: &[&str]) -> Result<Vec<String>> {
        node::inside(&self.layout, name, argv)
    }

    fn load(&self, archive: &Path) -> Result<()> {
        for name in &self.spec()?.nodes {
            if node::is_up(&self.layout, name) {
                node::import(&self.layout, &self.tools, name, archive)?;
            }
        }
        Ok(())
    }

    fn start_from(layout: Layout, tools: Tools, spec: &Spec) -> Result<Self> {
        spec.write(&layout)?;
        pki::make(&layout)?;
        image::make(&layout, spec.binaries.as_ref())?;
        underlay::make(&layout)?;
        pki::make_outside(&layout, relay::start(&layout)?)?;
        let api = Api::connect(&layout.kubeconfig())?;
        let lab = Self { layout, tools, api };
        lab.start_all(spec)?;
        match spec.cni {
            Cni::Bridge => bridge::configure(&lab, spec)?,
            Cni::Plexus => install::install(&lab, spec)?,
            Cni::None => return Ok(lab),
        }
        lab.wait_nodes(&spec.nodes.iter().map(String::as_str).collect::<Vec<_>>())?;
        Ok(lab)
    }

    /// The nodes get their containers while the control plane starts; kubelets come when it is there.
    fn start_all(&self, spec: &Spec) -> Result<()> {
        // Not in parallel: openssl numbers certificates in a file.
        for name in &spec.nodes {
            pki::make_node(&self.layout, name)?;
        }
        std::thread::scope(|scope| {
            let boots: Vec<_> = spec
                .nodes
                .iter()
                .map(|name| scope.spawn(|| node::boot(&self.layout, spec, &self.tools, name)))
                .collect();
            let control = self.start_control_plane();
            for boot in boots {
                boot.join()
                    .unwrap_or_else(|_| bail!("a node's start panicked"))?;
            }
            control
        })?;
        for name in &spec.nodes {
            node::join(&self.layout, spec, &self.tools, name)?;
        }
        wait::until("nodes registered", NODE_TIMEOUT, || {
            let nodes = self.api.list("v1", "Node", "")?;
            Ok((nodes.len() == spec.nodes.len()).then_some(()))
        })?;
        wait::until(
            "the default service account",
            Duration::from_secs(30),
            || {
                self.api
                    .get(&Object::new("v1", "ServiceAccount", "default", "default"))
            },
        )?;
        Ok(())
    }

    fn start_control_plane(&self) -> Result<()> {
        self.start(&Part::Etcd)?;
        self.start(&Part::ApiServer)?;
        self.wait_api()?;
        self.start(&Part::ControllerManager)?;
        self.start(&Part::Scheduler)
    }

    fn with_etcd_stopped(&self, work: impl FnOnce() -> Result<()>) -> Result<()> {
        // Without etcd it would take its time to end.
        self.kill(&Part::ApiServer)?;
        self.stop(&Part::Etcd)?;
        let done = work();
        self.start(&Part::Etcd)?;
        self.start(&Part::ApiServer)?;
        self.wait_api()?;
        done
    }
}

/// Makes the state directory: whoever makes it owns the name.
fn claim(layout: &Layout) -> Result<()> {
    let _alone = sysctl::lock()?;
    let remove = format!("`kubelab down --prefix {}` removes it", layout.prefix());
    let left = underlay::namespaces(layout);
    if !left.is_empty() && !layout.state().exists() {
        bail!(
            "namespaces {left:?} are left of a lab called {}: {remove}",
            layout.prefix()
        );
    }
    match fs::create_dir(layout.state()) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => bail!(
            "a lab called {} exists in {}: {remove}, or choose another --prefix",
            layout.prefix(),
            layout.state().display()
        ),
        made => made.with_context(|| format!("cannot make {}", layout.state().display()))?,
    }
    for dir in ["run", "log", "nodes"] {
        let dir = layout.state().join(dir);
        fs::create_dir(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
    }
    sysctl::save()
}

fn next_name(spec: &Spec) -> Result<String> {
    let taken = spec.nodes.iter().filter_map(|name| index_of(name).ok());
    let next = taken.max().unwrap_or(0).saturating_add(1);
    if next > MAX_NODES {
        bail!("no number is left for another node: {MAX_NODES} is the last");
    }
    Ok(format!("n{next}"))
}

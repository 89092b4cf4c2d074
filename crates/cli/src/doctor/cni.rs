//! The runtime's directories: our plugin, the plugins that configurations name, and which
//! configuration the runtime uses.

use super::{Check, Machine, Subject};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// The plugin.
const SHIM: &str = "plexus-cni";
/// The configuration that makes a CRI runtime call us for every pod.
const CONFLIST: &str = "00-plexus.conflist";
/// What every version of the plugin has in it, and no other.
const MARK: &[u8] = b"PLEXUS_AGENT_SOCKET";
/// The endings that runtimes read.
const ENDINGS: [&str; 3] = ["conflist", "conf", "json"];
/// Where else runtimes look for plugins: Podman's and the distributions' directories.
const ELSEWHERE: [&str; 4] = [
    "/usr/lib/cni",
    "/usr/libexec/cni",
    "/usr/local/lib/cni",
    "/usr/local/libexec/cni",
];
/// More than any configuration has.
const MAX_CONFIG_BYTES: u64 = 1 << 20;

pub(super) fn check(machine: &Machine) -> Vec<Check> {
    let mut checks = vec![shim(&machine.cni_bin_dir)];
    checks.extend(socket_file(machine));
    checks.extend(configurations(machine));
    checks
}

fn shim(directory: &Path) -> Check {
    let name = Subject::Plugin;
    let path = directory.join(SHIM);
    let display = path.display();
    let install =
        "install it: plexus up does, so does the agent with --shim-source; or copy it there";
    let Ok(found) = fs::metadata(&path) else {
        return Check::fail(
            name,
            format!("{display} is not there: no runtime can call Plexus"),
            install,
        );
    };
    if !found.is_file() || found.permissions().mode() & 0o111 == 0 {
        return Check::fail(name, format!("{display} cannot be executed"), "chmod 755");
    }
    let ours = fs::read(&path).is_ok_and(|bytes| bytes.windows(MARK.len()).any(|w| w == MARK));
    match ours {
        true => Check::pass(name, format!("{display} is there")),
        false => Check::fail(name, format!("{display} is some other program"), install),
    }
}

/// The file beside the plugin that says where the socket is.
fn socket_file(machine: &Machine) -> Option<Check> {
    let name = Subject::PluginSocket;
    let path = machine.cni_bin_dir.join("plexus-cni.socket");
    let text = fs::read_to_string(&path).ok()?;
    let configured = Path::new(text.trim());
    Some(match configured == machine.socket {
        true => Check::pass(name, format!("{} names this agent", path.display())),
        false => Check::warn(
            name,
            format!(
                "{} names {}, and not {}",
                path.display(),
                configured.display(),
                machine.socket.display()
            ),
            "plugins call the agent that it names: correct it, or look at that one with --socket",
        ),
    })
}

fn configurations(machine: &Machine) -> Vec<Check> {
    let directory = &machine.cni_conf_dir;
    let display = directory.display();
    let mut files = BTreeMap::new();
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) => {
            return vec![Check::warn(
                Subject::Configuration,
                format!("cannot read {display}: {error}"),
                "a runtime without it calls nobody: name it with --cni-conf-dir",
            )];
        }
    };
    for path in entries.flatten().map(|entry| entry.path()) {
        let ending = path.extension().and_then(|ending| ending.to_str());
        let Some(file) = path.file_name().and_then(|file| file.to_str()) else {
            continue;
        };
        if ending.is_some_and(|ending| ENDINGS.contains(&ending)) && path.is_file() {
            files.insert(file.to_owned(), read(&path));
        }
    }
    let mut checks = vec![first(&files, &display.to_string())];
    for (file, config) in &files {
        checks.extend(judge(file, config, machine));
    }
    checks
}

fn read(path: &Path) -> Result<Value, String> {
    let size = fs::metadata(path)
        .map(|found| found.len())
        .unwrap_or_default();
    if size > MAX_CONFIG_BYTES {
        return Err(format!("has {size} bytes"));
    }
    let text = fs::read(path).map_err(|error| error.to_string())?;
    serde_json::from_slice(&text).map_err(|error| format!("is not JSON: {error}"))
}

/// Which file a CRI runtime uses: the first.
fn first(files: &BTreeMap<String, Result<Value, String>>, directory: &str) -> Check {
    let name = Subject::FirstConfiguration;
    let next = "rename or remove it, if Plexus should give pods their interfaces";
    match files.keys().next().map(String::as_str) {
        None => Check::warn(
            name,
            format!("{directory} has no configuration: no runtime calls anyone"),
            "the agent writes one when it is ready (--cluster-network), plexus up too; or write one",
        ),
        Some(CONFLIST) => Check::pass(name, format!("a CRI runtime uses {CONFLIST}")),
        Some(file) if files.contains_key(CONFLIST) => Check::fail(
            name,
            format!(
                "a CRI runtime uses {file}, which sorts before {CONFLIST}: pods get nothing from Plexus"
            ),
            next,
        ),
        Some(file) => Check::warn(
            name,
            format!("a CRI runtime uses {file}; there is no {CONFLIST}"),
            "right if another CNI calls Plexus (Multus), or with Podman; else the agent is not ready",
        ),
    }
}

/// Whether a configuration can be read, and the plugins that it names are there.
fn judge(file: &str, config: &Result<Value, String>, machine: &Machine) -> Option<Check> {
    let name = Subject::Configuration;
    let config = match config {
        Ok(config) => config,
        Err(why) => {
            let next = "correct or remove it: some runtimes then use no configuration at all";
            return Some(Check::fail(name, format!("{file} {why}"), next));
        }
    };
    let own_dirs = [
        Some(machine.cni_bin_dir.as_path()),
        machine.delegate_bin_dir.as_deref(),
    ];
    let dirs = own_dirs.into_iter().flatten();
    let dirs: Vec<&Path> = dirs.chain(ELSEWHERE.iter().map(Path::new)).collect();
    let is_installed = |name: &str| dirs.iter().any(|dir| dir.join(name).is_file());
    // Of our own configurations the agent does host-local and static itself.
    let names_our_shim = config.to_string().contains(SHIM);
    let is_done_by_us = |name: &str| {
        name == "plexus" || (names_our_shim && ["host-local", "static"].contains(&name))
    };
    let missing: BTreeSet<&str> = types(config)
        .filter(|name| !is_done_by_us(name) && !is_installed(name))
        .collect();
    if missing.is_empty() {
        return None;
    }
    Some(Check::warn(
        name,
        format!(
            "{file} names plugins that are not in {}: {}",
            machine.cni_bin_dir.display(),
            missing.into_iter().collect::<Vec<_>>().join(", ")
        ),
        "install them; pods of that configuration do not start",
    ))
}

/// The types of a configuration's plugins, of their IPAM, and of the IPAM of networks that are listed for us.
fn types(config: &Value) -> impl Iterator<Item = &str> {
    let list = config.get("plugins").and_then(Value::as_array);
    let plugins = list.map_or(std::slice::from_ref(config), Vec::as_slice);
    let sections = plugins.iter().flat_map(|plugin| {
        let networks = plugin.get("networks").and_then(Value::as_array);
        let networks = networks.into_iter().flatten();
        let of_networks = networks.map(|network| network.get("ipam"));
        [Some(plugin), plugin.get("ipam")]
            .into_iter()
            .chain(of_networks)
    });
    sections
        .flatten()
        .filter_map(|section| section.get("type")?.as_str())
}

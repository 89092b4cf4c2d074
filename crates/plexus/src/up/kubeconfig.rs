//! The kubeconfig that people and programs look for: where it is put, whose it is, and what of it was
//! changed by hand. kubectl writes the whole file anew for every `kubectl config set-…`, in its own form:
//! what it says counts, never how it is written.

use crate::server::make_parent;
use anyhow::{Context, bail};
use serde_json::{Value, json};
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// What an embedded API calls itself and its administrator in its kubeconfigs.
const CLUSTER: &str = "plexus";
const USER: &str = "admin";

/// Puts the server's kubeconfig where people and programs look for it. Never half there, and never in
/// place of somebody else's. Contexts that were changed by hand stay so.
pub(super) fn publish(from: &Path, to: &Path) -> anyhow::Result<()> {
    let failed = || format!("cannot write {}", to.display());
    let mut text = std::fs::read(from).with_context(failed)?;
    match read(to) {
        Some(there) if is_of_ours(&there) => {
            if let Some(edited) = with_contexts_of(&there, &text) {
                text = edited;
            }
        }
        _ if to.exists() => bail!(
            "{} is not ours: move it away, or name another place with --kubeconfig",
            to.display()
        ),
        _ => {}
    }
    make_parent(to)?;
    let mut beside = to.as_os_str().to_owned();
    beside.push(".new");
    let beside = PathBuf::from(beside);
    let _ = std::fs::remove_file(&beside);
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&beside)
        .with_context(failed)?;
    let written = file.write_all(&text).and_then(|()| file.sync_all());
    written
        .and_then(|()| std::fs::rename(&beside, to))
        .with_context(failed)
}

/// Whether a kubeconfig is one of an embedded API, and nothing else is in it.
pub(crate) fn is_ours(path: &Path) -> bool {
    read(path).is_some_and(|config| is_of_ours(&config))
}

/// JSON is YAML.
fn read(path: &Path) -> Option<Value> {
    let text = std::fs::read(path).ok()?;
    serde_yaml_ng::from_slice(&text).ok()
}

fn is_of_ours(config: &Value) -> bool {
    let contexts = list(config, "contexts");
    let is_ours = |context: &Value| {
        let context = &context["context"];
        context["cluster"] == CLUSTER && context["user"] == USER
    };
    only(config, "clusters").is_some_and(|cluster| cluster["name"] == CLUSTER)
        && only(config, "users").is_some_and(|user| user["name"] == USER)
        && !contexts.is_empty()
        && contexts.iter().all(is_ours)
}

/// A new kubeconfig with the contexts that are there: their namespaces, which of them is the current one.
/// None if they are those of the new one, or do not fit it.
fn with_contexts_of(there: &Value, new: &[u8]) -> Option<Vec<u8>> {
    let new: Value = serde_json::from_slice(new).ok()?;
    let mut edited = new.clone();
    edited["contexts"] = json!(list(there, "contexts"));
    let current = there["current-context"].as_str().unwrap_or_default();
    let is_current = |context: &Value| context["name"] == current;
    if list(there, "contexts").iter().any(is_current) {
        edited["current-context"] = current.into();
    }
    let fits = edited != new && is_of_ours(&edited);
    fits.then(|| format!("{edited:#}\n").into_bytes())
}

fn list<'c>(config: &'c Value, key: &str) -> &'c [Value] {
    let list = config.get(key).and_then(Value::as_array);
    list.map_or(&[], Vec::as_slice)
}

fn only<'c>(config: &'c Value, key: &str) -> Option<&'c Value> {
    match list(config, key) {
        [one] => Some(one),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn scratch(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("px-up-{name}-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        dir
    }

    /// As a server writes it, with further clusters.
    fn config(key: &str, more: &[&str]) -> String {
        let mut config = json!({
            "apiVersion": "v1", "kind": "Config",
            "clusters": [{"name": "plexus", "cluster": {"server": "https://127.0.0.1:7443"}}],
            "users": [{"name": "admin", "user": {"client-key-data": key}}],
            "contexts": [{"name": "plexus", "context":
                {"cluster": "plexus", "user": "admin", "namespace": "default"}}],
            "current-context": "plexus"});
        let clusters = config["clusters"].as_array_mut().unwrap();
        clusters.extend(more.iter().map(|name| json!({"name": name})));
        format!("{config:#}\n")
    }

    #[test]
    fn a_kubeconfig_of_somebody_else_is_left() {
        let dir = scratch("publish");
        let (from, to) = (dir.join("from"), dir.join("etc/kubeconfig"));
        fs::write(&from, config("a", &[])).unwrap();
        publish(&from, &to).unwrap();
        publish(&from, &to).unwrap();
        assert!(is_ours(&to));
        assert_eq!(fs::read(&to).unwrap(), fs::read(&from).unwrap());
        let of_another_user = config("a", &[]).replace(r#""user": "admin""#, r#""user": "me""#);
        assert_ne!(of_another_user, config("a", &[]));
        // A cluster that is called so, somewhere else.
        let of_another_cluster = config("a", &[]).replace(r#""admin""#, r#""me@plexus""#);
        for theirs in [
            "current-context: production\n".to_owned(),
            "current-context: plexus-prod\n".to_owned(),
            "- no\n- kubeconfig\n".to_owned(),
            "{".to_owned(),
            config("a", &["production"]),
            of_another_user,
            of_another_cluster,
            String::new(),
        ] {
            fs::write(&to, &theirs).unwrap();
            assert!(!is_ours(&to), "{theirs}");
            let error = publish(&from, &to).unwrap_err().to_string();
            assert!(error.contains("is not ours"), "{error}");
            assert_eq!(fs::read_to_string(&to).unwrap(), theirs);
        }
        fs::remove_dir_all(dir).unwrap();
    }

    /// `kubectl config set-context --current --namespace=team-a` leaves this.
    #[test]
    fn what_kubectl_wrote_into_ours_stays_ours_and_stays() {
        let dir = scratch("edited");
        let (from, to) = (dir.join("from"), dir.join("kubeconfig"));
        let edited = "apiVersion: v1\nclusters:\n- cluster:\n    server: https://127.0.0.1:7443\n  name: plexus\n\
            contexts:\n- context:\n    cluster: plexus\n    namespace: team-a\n    user: admin\n  name: plexus\n\
            - context:\n    cluster: plexus\n    namespace: team-b\n    user: admin\n  name: other\n\
            current-context: other\nkind: Config\npreferences: {}\nusers:\n- name: admin\n  user:\n    \
            client-key-data: old\n";
        fs::write(&from, config("new", &[])).unwrap();
        fs::write(&to, edited).unwrap();
        assert!(is_ours(&to));
        publish(&from, &to).unwrap();
        let now = read(&to).unwrap();
        assert_eq!(now["users"][0]["user"]["client-key-data"], "new");
        assert_eq!(now["current-context"], "other");
        let namespaces = list(&now, "contexts").iter();
        let namespaces: Vec<&Value> = namespaces.map(|one| &one["context"]["namespace"]).collect();
        assert_eq!(namespaces, ["team-a", "team-b"]);
        assert!(is_ours(&to));
        // A current context that is not there is nobody's wish.
        fs::write(
            &to,
            edited.replace("current-context: other", "current-context: gone"),
        )
        .unwrap();
        publish(&from, &to).unwrap();
        assert_eq!(read(&to).unwrap()["current-context"], "plexus");
        fs::remove_dir_all(dir).unwrap();
    }
}

//! The configuration list that a runtime takes: the first of the directory, and what each of its plugins gets
//! on standard input.

use serde_json::{Map, Value};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Why there is none.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ListError {
    /// The agent has not written it.
    #[error(
        "the node has no CNI configuration in {} yet: its agent is not ready",
        .0.display()
    )]
    None(PathBuf),
    /// It cannot be read.
    #[error("cannot read the CNI configuration {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
}

/// What runtimes of today speak, newest last.
const VERSIONS: [&str; 5] = ["0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"];
/// The capability under which containerd passes a pod's annotations.
pub(crate) const ANNOTATIONS: &str = "io.kubernetes.cri.pod-annotations";
/// The capability under which it passes host ports.
pub(crate) const PORT_MAPPINGS: &str = "portMappings";

/// A configuration list.
#[derive(Debug, Clone)]
pub(crate) struct List {
    name: String,
    version: String,
    plugins: Vec<Map<String, Value>>,
}

impl List {
    /// The first of a directory, in the order of the files' names.
    pub(crate) fn first_of(directory: &Path) -> Result<Self, ListError> {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let is_list = |path: &PathBuf| path.extension().is_some_and(|end| end == "conflist");
        let first = entries.map(|entry| entry.path()).filter(is_list).min();
        let path = first.ok_or_else(|| ListError::None(directory.to_owned()))?;
        let read = fs::read(&path).and_then(|text| Ok(serde_json::from_slice(&text)?));
        let parsed = read.and_then(|list: Value| Self::of(&list).map_err(io::Error::other));
        parsed.map_err(|source| ListError::Read { path, source })
    }

    /// How many plugins it has.
    pub(crate) fn plugins(&self) -> usize {
        self.plugins.len()
    }

    /// The type of one.
    pub(crate) fn kind(&self, plugin: usize) -> String {
        let kind = self.plugins.get(plugin).and_then(|p| p.get("type"));
        kind.and_then(Value::as_str).unwrap_or_default().to_owned()
    }

    /// What one gets: its own configuration, with the name and the version of the list, what it asks to be
    /// told, and the result so far.
    pub(crate) fn configuration(
        &self,
        plugin: usize,
        runtime_config: &Map<String, Value>,
        previous: Option<&Value>,
    ) -> Value {
        let mut configuration = self.plugins.get(plugin).cloned().unwrap_or_default();
        let asked = configuration.get("capabilities").cloned();
        configuration.insert("name".to_owned(), self.name.clone().into());
        configuration.insert("cniVersion".to_owned(), self.version.clone().into());
        let asks = |name: &str| {
            let asked = asked.as_ref().and_then(|asked| asked.get(name));
            asked == Some(&Value::Bool(true))
        };
        let runtime_config = runtime_config.iter().filter(|(name, _)| asks(name));
        let runtime_config: Map<String, Value> = runtime_config
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect();
        if !runtime_config.is_empty() {
            configuration.insert("runtimeConfig".to_owned(), runtime_config.into());
        }
        if let Some(previous) = previous {
            configuration.insert("prevResult".to_owned(), previous.clone());
        }
        Value::Object(configuration)
    }

    fn of(list: &Value) -> Result<Self, &'static str> {
        let text = |key: &str| list.get(key).and_then(Value::as_str);
        let plugins = list.get("plugins").and_then(Value::as_array);
        let plugins = plugins.ok_or("it has no list of plugins")?;
        let plugins: Vec<_> = plugins
            .iter()
            .filter_map(Value::as_object)
            .cloned()
            .collect();
        let plain = |kind: &str| !kind.is_empty() && !kind.contains('/') && !kind.starts_with('.');
        let typed = |plugin: &Map<String, Value>| {
            plugin
                .get("type")
                .and_then(Value::as_str)
                .is_some_and(plain)
        };
        if plugins.is_empty() || !plugins.iter().all(typed) {
            return Err("a plugin has no type that names a file");
        }
        let more = list.get("cniVersions").and_then(Value::as_array);
        let written = more.into_iter().flatten().filter_map(Value::as_str);
        let written: Vec<&str> = written.chain(text("cniVersion")).collect();
        let spoken = VERSIONS.iter().rev().find(|v| written.contains(v));
        Ok(Self {
            name: text("name").ok_or("it has no name")?.to_owned(),
            version: (*spoken.ok_or("it has no version that a runtime speaks")?).to_owned(),
            plugins,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::tests::Scratch;
    use serde_json::json;

    #[test]
    fn the_first_file_with_the_highest_version() {
        let scratch = Scratch::new();
        let error = List::first_of(&scratch.0).unwrap_err().to_string();
        assert!(error.contains("not ready"), "{error}");
        let list = json!({
            "cniVersion": "1.0.0", "cniVersions": ["0.4.0", "1.1.0", "9.0.0"], "name": "plexus",
            "plugins": [{"type": "plexus-cni", "networks": "pod", "capabilities": {ANNOTATIONS: true}}]});
        fs::write(scratch.0.join("00-plexus.conflist"), list.to_string()).unwrap();
        fs::write(scratch.0.join("10-other.conflist"), "{}").unwrap();
        fs::write(scratch.0.join(".00-half.new"), "{").unwrap();
        let list = List::first_of(&scratch.0).unwrap();
        assert_eq!((list.plugins(), list.kind(0).as_str()), (1, "plexus-cni"));
        let runtime_config = json!({ANNOTATIONS: {"a": "b"}, PORT_MAPPINGS: []});
        let runtime_config = runtime_config.as_object().unwrap();
        let given = list.configuration(0, runtime_config, Some(&json!({"ips": []})));
        let expected = json!({
            "cniVersion": "1.1.0", "name": "plexus", "type": "plexus-cni", "networks": "pod",
            "capabilities": {ANNOTATIONS: true}, "runtimeConfig": {ANNOTATIONS: {"a": "b"}},
            "prevResult": {"ips": []}});
        assert_eq!(given, expected);
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for bad in [
            json!({}),
            json!({"name": "x", "cniVersion": "1.0.0", "plugins": []}),
            json!({"name": "x", "cniVersion": "1.0.0", "plugins": [{"type": "../sh"}]}),
            json!({"name": "x", "cniVersion": "7.0.0", "plugins": [{"type": "a"}]}),
            json!({"cniVersion": "1.0.0", "plugins": [{"type": "a"}]}),
        ] {
            assert!(List::of(&bad).is_err(), "{bad}");
        }
    }
}

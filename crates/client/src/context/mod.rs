//! The context of an embedded API in a user's kubeconfig: put there when the API starts, removed when it goes. Whatever
//! else is in the file stays as it is, whoever wrote it. A context that is ours carries a mark: the directory of its
//! server, which no other server has.
//!
//! ```text
//!   the server's own kubeconfig ──► put ──► ~/.kube/config ◄── remove ◄── plexus down, plexus lab down
//! ```

mod error;
mod file;
mod kubeconfig_path;
#[cfg(test)]
mod tests;

pub use error::ContextError;
pub use kubeconfig_path::{Home, kubeconfig_path};

use file::Locked;
use serde_json::{Map, Value, json};
use std::path::Path;

/// The extension by which a cluster, a user or a context says that it is ours, and whose.
pub const MARK: &str = "plexus.dev";
/// What the extension has: the directory of the server.
const DIRECTORY: &str = "directory";
/// The lists of a kubeconfig, and what an entry of each has besides its name.
const LISTS: [(&str, &str); 3] = [
    ("clusters", "cluster"),
    ("users", "user"),
    ("contexts", "context"),
];
const CURRENT: &str = "current-context";

/// What became of a context that was put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Put {
    /// It is the current one.
    Current,
    /// It is there; another one is current.
    Beside,
}

/// Puts the context of a server into a kubeconfig, under this name; `own` is the kubeconfig that the server has written.
/// One that is new becomes the current one; later the user's choice stays, and the context's namespace too.
///
/// # Errors
/// The file cannot be read or written, or has something of this name that is not this server's.
pub fn put(file: &Path, name: &str, own: &Path) -> Result<Put, ContextError> {
    let entries = renamed(&file::read(own)?, name).ok_or_else(|| ContextError::NotOurs {
        path: own.to_owned(),
    })?;
    let locked = Locked::take(file)?;
    let before = locked.read()?;
    let mut config = before.clone();
    let mut is_new = true;
    for (list, what) in LISTS {
        let mut entry = entries.get(list).cloned().unwrap_or_default();
        if let Some(there) = entry_of(&config, list, name) {
            check_owner(file, list, name, there, &entry)?;
            is_new &= list != "contexts";
            let namespace = &there[what]["namespace"];
            if list == "contexts" && namespace.is_string() {
                entry[what]["namespace"] = namespace.clone();
            }
        }
        let all = list_of(file, &mut config, list)?;
        match all.iter_mut().find(|one| one["name"] == name) {
            Some(there) => *there = entry,
            None => all.push(entry),
        }
    }
    let has_current = config[CURRENT].as_str().is_some_and(|one| !one.is_empty());
    if is_new || !has_current {
        config[CURRENT] = name.into();
    }
    if config != before || !locked.is_private() {
        locked.write(&config)?;
    }
    Ok(match config[CURRENT] == name {
        true => Put::Current,
        false => Put::Beside,
    })
}

/// Removes the context of a server from a kubeconfig, if it is there and that server's. The file goes too, if nothing
/// else is in it. Gives whether something was removed.
///
/// # Errors
/// The file cannot be read or written.
pub fn remove(file: &Path, name: &str, directory: &Path) -> Result<bool, ContextError> {
    if !has(file, name, directory) {
        return Ok(false);
    }
    let locked = Locked::take(file)?;
    let mut config = locked.read()?;
    for (list, what) in LISTS {
        let is_ours = |entry: &Value| {
            entry["name"] == name
                && owner(&entry[what]).is_some_and(|of| Path::new(of) == directory)
        };
        list_of(file, &mut config, list)?.retain(|entry| !is_ours(entry));
    }
    if config[CURRENT] == name {
        config[CURRENT] = "".into();
    }
    match is_empty(&config) {
        true => locked.remove()?,
        false => locked.write(&config)?,
    }
    Ok(true)
}

/// Whether a kubeconfig has the context of this server.
pub fn has(file: &Path, name: &str, directory: &Path) -> bool {
    let config = file::read(file).unwrap_or_default();
    LISTS.iter().any(|(list, what)| {
        let entry = entry_of(&config, list, name);
        entry.is_some_and(|entry| owner(&entry[*what]).is_some_and(|of| Path::new(of) == directory))
    })
}

/// The directory of the server whose cluster, user or context this is, if it is one of ours.
pub fn owner(entry: &Value) -> Option<&str> {
    let extensions = entry["extensions"].as_array()?;
    let mark = extensions.iter().find(|one| one["name"] == MARK)?;
    mark["extension"][DIRECTORY].as_str()
}

/// The three entries of a server's own kubeconfig, under another name, each marked; none if it is not one.
fn renamed(own: &Value, name: &str) -> Option<Map<String, Value>> {
    let directory = owner(&own["contexts"][0]["context"])?.to_owned();
    let mark = json!([{"name": MARK, "extension": {DIRECTORY: directory}}]);
    let mut entries = Map::new();
    for (list, what) in LISTS {
        let mut entry = own[list][0].as_object()?.clone();
        entry.insert("name".to_owned(), name.into());
        let inside = entry.get_mut(what)?.as_object_mut()?;
        inside.insert("extensions".to_owned(), mark.clone());
        if list == "contexts" {
            inside.insert("cluster".to_owned(), name.into());
            inside.insert("user".to_owned(), name.into());
        }
        entries.insert(list.to_owned(), entry.into());
    }
    Some(entries)
}

/// Refuses to replace what is another's: of somebody who called theirs so, or of a server that still has its directory.
fn check_owner(
    file: &Path,
    list: &'static str,
    name: &str,
    there: &Value,
    ours: &Value,
) -> Result<(), ContextError> {
    let what = LISTS.iter().find(|(known, _)| *known == list);
    let what = what.map_or("", |(_, what)| what);
    let (theirs, ours) = (owner(&there[what]), owner(&ours[what]));
    let is_left = theirs.is_some_and(|directory| !Path::new(directory).exists());
    if theirs == ours || is_left {
        return Ok(());
    }
    Err(ContextError::Taken {
        path: file.to_owned(),
        what,
        name: name.to_owned(),
        of: theirs.unwrap_or("somebody else").to_owned(),
    })
}

fn entry_of<'c>(config: &'c Value, list: &str, name: &str) -> Option<&'c Value> {
    let all = config.get(list)?.as_array()?;
    all.iter().find(|entry| entry["name"] == name)
}

/// A list of the kubeconfig; made if there is none.
fn list_of<'c>(
    file: &Path,
    config: &'c mut Value,
    list: &str,
) -> Result<&'c mut Vec<Value>, ContextError> {
    let not_one = || ContextError::NoKubeconfig {
        path: file.to_owned(),
    };
    let config = config.as_object_mut().ok_or_else(not_one)?;
    let all = config.entry(list).or_insert_with(|| json!([]));
    if all.is_null() {
        *all = json!([]);
    }
    all.as_array_mut().ok_or_else(not_one)
}

/// Whether a kubeconfig says nothing.
fn is_empty(config: &Value) -> bool {
    let says_nothing = |value: &Value| match value {
        Value::Null => true,
        Value::Array(all) => all.is_empty(),
        Value::Object(all) => all.is_empty(),
        Value::String(text) => text.is_empty(),
        _ => false,
    };
    config.as_object().is_none_or(|config| {
        let mut rest = config
            .iter()
            .filter(|(key, _)| !matches!(key.as_str(), "apiVersion" | "kind"));
        rest.all(|(_, value)| says_nothing(value))
    })
}

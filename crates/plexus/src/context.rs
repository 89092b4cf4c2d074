//! The context of a server of ours in the user's kubeconfig: which file that is, and that it is the same one when the
//! context is removed, whatever `KUBECONFIG` says then.

use anyhow::Context as _;
use plexus_client::context::{self, Home, Put};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A context and its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OurContext {
    /// Its name.
    pub(crate) name: String,
    /// The directory of the server.
    pub(crate) server: PathBuf,
    /// Where it is kept into which kubeconfig the context was put.
    pub(crate) note: PathBuf,
    /// The kubeconfig that the user means now; none if nobody knows where the user's files are.
    pub(crate) place: Option<PathBuf>,
}

/// The kubeconfig that is named, or the one that kubectl would change.
pub(crate) fn kubeconfig_path(named: Option<&Path>) -> anyhow::Result<Option<PathBuf>> {
    let (variable, home) = (std::env::var_os("KUBECONFIG"), std::env::var_os("HOME"));
    let place = context::kubeconfig_path(named, variable.as_deref(), Home(home.as_deref()));
    Ok(place.map(std::path::absolute).transpose()?)
}

/// Whether both lead to one file: `KUBECONFIG` may be the one that the server writes.
fn is_same(one: &Path, other: &Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

impl OurContext {
    /// Puts it there; says what can be said about that.
    pub(crate) fn put(&self, own: &Path) -> anyhow::Result<Option<String>> {
        let Some(place) = self.place.as_ref() else {
            return Ok(None);
        };
        if is_same(place, own) {
            return Ok(Some(format!("{} is the API's own", place.display())));
        }
        let earlier = self.noted().filter(|noted| noted != place);
        // Known before it is there, so that it is found again whatever happens.
        fs::write(&self.note, place.as_os_str().as_encoded_bytes())
            .with_context(|| format!("cannot write {}", self.note.display()))?;
        let put = context::put(place, &self.name, own)?;
        if let Some(earlier) = earlier {
            context::remove(&earlier, &self.name, &self.server)?;
        }
        let (name, file) = (&self.name, place.display());
        Ok(Some(match put {
            Put::Current => format!("context {name} is the current one of {file}"),
            Put::Beside => {
                format!("context {name} is in {file}, beside the current one: use --context {name}")
            }
        }))
    }

    /// Whether a kubeconfig has it.
    pub(crate) fn is_there(&self) -> bool {
        let mut places = self.places().into_iter();
        places.any(|place| context::has(&place, &self.name, &self.server))
    }

    /// Removes it from wherever it is.
    pub(crate) fn remove(&self) -> anyhow::Result<()> {
        for place in self.places() {
            context::remove(&place, &self.name, &self.server)?;
        }
        match fs::remove_file(&self.note) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(error).with_context(|| format!("cannot remove {}", self.note.display()))
            }
            _ => Ok(()),
        }
    }

    /// The kubeconfig that it was put into, and the one that is meant now.
    fn places(&self) -> Vec<PathBuf> {
        let mut places: Vec<PathBuf> = self.noted().into_iter().collect();
        places.extend(self.place.clone().filter(|place| !places.contains(place)));
        places
    }

    fn noted(&self) -> Option<PathBuf> {
        use std::os::unix::ffi::OsStringExt;
        let noted = fs::read(&self.note).ok()?;
        Some(std::ffi::OsString::from_vec(noted).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn it_is_removed_from_where_it_was_put() {
        let dir = std::env::temp_dir().join(format!("px-our-context-{}", std::process::id()));
        let server = dir.join("server");
        fs::create_dir_all(&server).unwrap();
        let extensions = json!([{"name": context::MARK, "extension": {"directory": server}}]);
        let own = json!({
            "clusters": [{"name": "c", "cluster": {}}], "users": [{"name": "u", "user": {}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "extensions": extensions}}]});
        let file = server.join("kubeconfig");
        fs::write(&file, own.to_string()).unwrap();
        let meant = |place: Option<&str>| OurContext {
            name: "plexus".to_owned(),
            server: server.clone(),
            note: dir.join("note"),
            place: place.map(|place| dir.join(place)),
        };
        assert_eq!(meant(None).put(&file).unwrap(), None);
        let before = fs::read(&file).unwrap();
        meant(Some("server/kubeconfig")).put(&file).unwrap();
        assert_eq!(
            fs::read(&file).unwrap(),
            before,
            "the server's own stays its own"
        );
        let said = meant(Some("a")).put(&file).unwrap().unwrap();
        assert!(said.contains("plexus is the current one"), "{said}");
        // KUBECONFIG is another one at the next start, and yet another one at the end.
        meant(Some("b")).put(&file).unwrap();
        assert!(!dir.join("a").exists() && dir.join("b").exists());
        assert!(meant(Some("c")).is_there());
        meant(Some("c")).remove().unwrap();
        assert!(!dir.join("b").exists() && !meant(Some("b")).is_there());
        assert!(!dir.join("note").exists());
        // Without the note it is found where it would be put now.
        meant(Some("b")).put(&file).unwrap();
        fs::remove_file(dir.join("note")).unwrap();
        meant(Some("b")).remove().unwrap();
        assert!(!dir.join("b").exists());
        fs::remove_dir_all(dir).unwrap();
    }
}

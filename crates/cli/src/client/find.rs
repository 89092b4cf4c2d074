//! Which API server is asked: `--api-socket`, or the current context (`--context`: another one) of `--kubeconfig`,
//! `KUBECONFIG` or `~/.kube/config`, as kubectl has it; in a pod without these, the server of its service account.
//!
//! Nothing else is looked for: a server that is here but that no context names is not asked, and one that a context
//! names is, whether or not it answers. So nobody deletes in one cluster what was meant for another.

use super::ClientError;
use kube::config::Kubeconfig;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

/// Where servers are named.
#[derive(Debug, Clone, Default)]
pub struct ServerSources {
    /// `--api-socket`.
    pub socket: Option<PathBuf>,
    /// `--kubeconfig`.
    pub flag: Option<PathBuf>,
    /// `KUBECONFIG`.
    pub variable: Option<OsString>,
    /// The user's own.
    pub home: Option<PathBuf>,
    /// Whether this is a pod.
    pub in_pod: bool,
}

/// The server that is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChosenServer {
    /// That of a kubeconfig.
    File(PathBuf),
    /// That of the files that `KUBECONFIG` lists, merged.
    Variable(OsString),
    /// An embedded API whose unix socket is named.
    Socket(PathBuf),
    /// By the service account of this pod.
    InCluster,
}

impl ChosenServer {
    /// The unix socket to speak over, if it is one.
    pub(super) fn socket(&self) -> Option<&Path> {
        match self {
            ChosenServer::Socket(path) => Some(path),
            _ => None,
        }
    }

    /// The contexts that there are; none where there are no contexts.
    pub(super) fn contexts(&self) -> Result<Option<Kubeconfig>, ClientError> {
        let read = match self {
            ChosenServer::File(path) => Kubeconfig::read_from(path).map(Some),
            ChosenServer::Variable(_) => Kubeconfig::from_env(),
            ChosenServer::Socket(_) | ChosenServer::InCluster => Ok(None),
        };
        read.map_err(|source| ClientError::Kubeconfig {
            from: self.to_string(),
            source: Box::new(source),
        })
    }
}

impl fmt::Display for ChosenServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChosenServer::File(path) | ChosenServer::Socket(path) => {
                write!(f, "{}", path.display())
            }
            ChosenServer::Variable(list) => write!(f, "{}", list.display()),
            ChosenServer::InCluster => f.write_str("this pod's account"),
        }
    }
}

/// Chooses. Asks nobody.
pub fn choose(sources: &ServerSources) -> Result<ChosenServer, ClientError> {
    let listed = sources.variable.as_ref().filter(|list| !list.is_empty());
    let home = sources.home.as_ref().filter(|file| file.is_file());
    match (&sources.socket, &sources.flag, listed, home) {
        (Some(socket), ..) => Ok(ChosenServer::Socket(socket.clone())),
        (_, Some(file), ..) => Ok(ChosenServer::File(file.clone())),
        (_, _, Some(list), _) => Ok(ChosenServer::Variable(list.clone())),
        (_, _, _, Some(file)) => Ok(ChosenServer::File(file.clone())),
        _ if sources.in_pod => Ok(ChosenServer::InCluster),
        _ => Err(ClientError::Nowhere),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::{Session, named};
    use std::fs;

    struct Dir(PathBuf);

    impl Dir {
        fn new(name: &str) -> Self {
            let name = format!("plexus-cli-{name}-{}", std::process::id());
            let path = std::env::temp_dir().join(name);
            let _ = fs::remove_dir_all(&path);
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn file(&self, name: &str, text: &str) -> PathBuf {
            let path = self.0.join(name);
            fs::write(&path, text).unwrap();
            path
        }
    }

    impl Drop for Dir {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn in_order() {
        let dir = Dir::new("choose");
        let mut sources = ServerSources {
            home: Some(dir.0.join("none")),
            ..ServerSources::default()
        };
        assert!(matches!(choose(&sources), Err(ClientError::Nowhere)));
        sources.in_pod = true;
        assert_eq!(choose(&sources).unwrap(), ChosenServer::InCluster);
        let home = dir.file("home", "");
        sources.home = Some(home.clone());
        assert_eq!(choose(&sources).unwrap(), ChosenServer::File(home.clone()));
        sources.variable = Some("".into());
        assert_eq!(choose(&sources).unwrap(), ChosenServer::File(home));
        sources.variable = Some("x".into());
        assert_eq!(
            choose(&sources).unwrap(),
            ChosenServer::Variable("x".into())
        );
        sources.flag = Some("y".into());
        assert_eq!(choose(&sources).unwrap(), ChosenServer::File("y".into()));
        sources.socket = Some("z".into());
        assert_eq!(choose(&sources).unwrap(), ChosenServer::Socket("z".into()));
    }

    /// A context `ours` of an embedded API and one of a cluster, both of servers that are away.
    fn config(port: u16, current: &str) -> String {
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: \"{current}\"\n\
             clusters: [{{name: a, cluster: {{server: \"http://127.0.0.1:{port}\"}}}}]\n\
             users: [{{name: a, user: {{}}}}]\n\
             contexts:\n\
             - {{name: ours, context: {{cluster: a, user: a, extensions: [{{name: plexus.dev, extension: {{directory: /x}}}}]}}}}\n\
             - {{name: theirs, context: {{cluster: a, user: a, namespace: team-a}}}}\n"
        )
    }

    #[test]
    fn a_server_that_is_not_ours_is_named() {
        let dir = Dir::new("contexts");
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let open = |current: &str, context: Option<&str>| {
            let chosen = ChosenServer::File(dir.file("config", &config(port, current)));
            Session::open(&chosen, context)
        };
        assert_eq!(open("ours", None).unwrap().foreign, None);
        let theirs = [open("theirs", None), open("ours", Some("theirs"))];
        for session in theirs {
            let session = session.unwrap();
            let said = session.foreign.clone().unwrap();
            for words in ["context theirs of ", "config", "127.0.0.1"] {
                assert!(said.contains(words), "no {words:?} in {said}");
            }
            assert_eq!(session.namespace, "team-a");
            let pod = named("v1", "Pod", None, "a");
            let error = session.delete(&pod, "default", None).unwrap_err();
            let error = error.to_string();
            assert!(
                error.starts_with("cannot delete pod/a: the API server at"),
                "{error}"
            );
            assert!(error.contains("(context theirs of "), "{error}");
        }
        for (current, context, words) in [
            ("", None, "no context is current"),
            ("gone", None, "no context gone"),
            ("ours", Some("other"), "no context other"),
        ] {
            let error = open(current, context).err().unwrap().to_string();
            for words in [words, "ours, theirs", "--context"] {
                assert!(error.contains(words), "no {words:?} in {error}");
            }
        }
        let odd = ChosenServer::File(dir.file("odd", "clusters: 7"));
        let error = Session::open(&odd, None).err().unwrap().to_string();
        assert!(error.contains("odd"), "{error}");
        let empty = ChosenServer::File(dir.file("empty", "apiVersion: v1\nkind: Config\n"));
        let error = Session::open(&empty, None).err().unwrap().to_string();
        assert!(error.contains("plexus up"), "{error}");
    }
}

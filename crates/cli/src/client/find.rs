//! Which API server is asked: `--api-socket`, `--kubeconfig`, `KUBECONFIG`, the lab that `PLEXUS_LAB` names,
//! that of `plexus up` or of the only lab on this machine, `~/.kube/config`, the cluster that this is a pod
//! of. In that order.
//!
//! What is on this machine is chosen because it is there, whether or not it answers: while a server
//! restarts, nobody must delete in another cluster what was meant for this one.

use super::ClientError;
use std::ffi::OsString;
use std::fmt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// Where kubeconfigs are looked for.
#[derive(Debug, Clone, Default)]
pub struct ServerSources {
    /// `--api-socket`.
    pub socket: Option<PathBuf>,
    /// `--kubeconfig`.
    pub flag: Option<PathBuf>,
    /// `KUBECONFIG`.
    pub variable: Option<OsString>,
    /// What `plexus up` writes.
    pub up: PathBuf,
    /// The unix socket of what `plexus up` runs.
    pub up_socket: PathBuf,
    /// The directory that has a directory with a kubeconfig for every lab.
    pub labs: PathBuf,
    /// `PLEXUS_LAB`: which of them.
    pub lab: Option<OsString>,
    /// The user's own.
    pub home: Option<PathBuf>,
    /// Whether this is a pod.
    pub in_pod: bool,
}

/// The server that is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChosenServer {
    /// That of a kubeconfig that is named.
    File(PathBuf),
    /// That of the files that `KUBECONFIG` lists, merged.
    Variable,
    /// An embedded API whose unix socket is named.
    Socket(PathBuf),
    /// That of `plexus up`, by its kubeconfig.
    Up(PathBuf),
    /// That of `plexus up`, by its unix socket.
    UpSocket(PathBuf),
    /// That of the lab that `PLEXUS_LAB` names, by its kubeconfig.
    NamedLab(PathBuf),
    /// That of the only lab, by its kubeconfig.
    Lab(PathBuf),
    /// That of the user's own kubeconfig.
    Home(PathBuf),
    /// By the service account of this pod.
    InCluster,
}

impl ChosenServer {
    /// The unix socket to speak over, if it is one.
    pub(super) fn socket(&self) -> Option<&Path> {
        match self {
            ChosenServer::Socket(path) | ChosenServer::UpSocket(path) => Some(path),
            _ => None,
        }
    }

    /// What chose it and what to do if it is of no use, unless its very place was named: the end of an error.
    pub(super) fn unnamed(&self) -> String {
        let (path, next) = match self {
            ChosenServer::Up(path) | ChosenServer::UpSocket(path) => (
                path,
                "start it (plexus up), name another (--kubeconfig, PLEXUS_LAB), or remove it (plexus down)"
                    .to_owned(),
            ),
            ChosenServer::NamedLab(path) => {
                let name = lab_of(path);
                return format!(
                    "; PLEXUS_LAB names that lab: look at it (plexus lab status --lab {name}), start what is \
                     not there (plexus lab up --lab {name}), or name another"
                );
            }
            ChosenServer::Lab(path) => {
                let name = lab_of(path);
                let next = format!(
                    "start it (plexus lab up --lab {name}), name another (--kubeconfig, KUBECONFIG), \
                     or remove it (plexus lab down --lab {name})"
                );
                (path, next)
            }
            ChosenServer::Home(path) => (path, "name another (--kubeconfig, KUBECONFIG)".to_owned()),
            ChosenServer::File(_) | ChosenServer::Variable | ChosenServer::Socket(_) | ChosenServer::InCluster => {
                return String::new();
            }
        };
        let path = path.display();
        format!("; nobody named a server, and it was chosen because {path} is there: {next}")
    }
}

impl fmt::Display for ChosenServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChosenServer::File(path)
            | ChosenServer::Up(path)
            | ChosenServer::NamedLab(path)
            | ChosenServer::Lab(path)
            | ChosenServer::Home(path) => write!(f, "the server of {}", path.display()),
            ChosenServer::Variable => f.write_str("the server of KUBECONFIG"),
            ChosenServer::Socket(path) | ChosenServer::UpSocket(path) => {
                write!(f, "{}", path.display())
            }
            ChosenServer::InCluster => f.write_str("the server of this pod"),
        }
    }
}

/// Chooses. Asks nobody: what is there is chosen.
pub fn choose(sources: &ServerSources) -> Result<ChosenServer, ClientError> {
    if let Some(socket) = &sources.socket {
        return Ok(ChosenServer::Socket(socket.clone()));
    }
    if let Some(file) = &sources.flag {
        return Ok(ChosenServer::File(file.clone()));
    }
    if sources
        .variable
        .as_ref()
        .is_some_and(|list| !list.is_empty())
    {
        return Ok(ChosenServer::Variable);
    }
    if let Some(lab) = sources.lab.as_ref().filter(|lab| !lab.is_empty()) {
        let file = sources.labs.join(lab).join("kubeconfig");
        return match file.is_file() {
            true => Ok(ChosenServer::NamedLab(file)),
            false => Err(ClientError::NoLab(lab.to_string_lossy().into_owned())),
        };
    }
    if sources.up.is_file() {
        return Ok(ChosenServer::Up(sources.up.clone()));
    }
    if is_socket(&sources.up_socket) {
        return Ok(ChosenServer::UpSocket(sources.up_socket.clone()));
    }
    let mut labs: Vec<PathBuf> = std::fs::read_dir(&sources.labs)
        .into_iter()
        .flatten()
        .flatten()
        .map(|lab| lab.path().join("kubeconfig"))
        .filter(|file| file.is_file())
        .collect();
    labs.sort();
    if labs.len() > 1 {
        return Err(ClientError::Several(labs));
    }
    if let Some(lab) = labs.pop() {
        return Ok(ChosenServer::Lab(lab));
    }
    if let Some(home) = sources.home.as_ref().filter(|file| file.is_file()) {
        return Ok(ChosenServer::Home(home.clone()));
    }
    match sources.in_pod {
        true => Ok(ChosenServer::InCluster),
        false => Err(ClientError::Nowhere),
    }
}

/// The name of the lab that has this kubeconfig.
fn lab_of(kubeconfig: &Path) -> std::ffi::os_str::Display<'_> {
    let name = kubeconfig.parent().and_then(Path::file_name);
    name.unwrap_or_default().display()
}

fn is_socket(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| found.file_type().is_socket())
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
            fs::create_dir_all(path.parent().unwrap()).unwrap();
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
            up: dir.0.join("up"),
            up_socket: dir.0.join("api.sock"),
            labs: dir.0.join("labs"),
            ..ServerSources::default()
        };
        assert!(matches!(choose(&sources), Err(ClientError::Nowhere)));
        sources.in_pod = true;
        assert_eq!(choose(&sources).unwrap(), ChosenServer::InCluster);
        let home = dir.file("home", "");
        sources.home = Some(home.clone());
        assert_eq!(choose(&sources).unwrap(), ChosenServer::Home(home));
        let lab = dir.file("labs/a/kubeconfig", "");
        assert_eq!(choose(&sources).unwrap(), ChosenServer::Lab(lab));
        dir.file("labs/b/kubeconfig", "");
        let error = choose(&sources).unwrap_err().to_string();
        assert!(
            error.contains("labs/a") && error.contains("labs/b"),
            "{error}"
        );
        // A socket counts where the kubeconfig is elsewhere, also one that nobody listens on any more.
        let listener = std::os::unix::net::UnixListener::bind(&sources.up_socket).unwrap();
        let socket = ChosenServer::UpSocket(sources.up_socket.clone());
        assert_eq!(choose(&sources).unwrap(), socket);
        drop(listener);
        assert_eq!(choose(&sources).unwrap(), socket);
        let up = dir.file("up", "");
        assert_eq!(choose(&sources).unwrap(), ChosenServer::Up(up));
        sources.lab = Some("b".into());
        let named = dir.0.join("labs/b/kubeconfig");
        assert_eq!(choose(&sources).unwrap(), ChosenServer::NamedLab(named));
        sources.lab = Some("c".into());
        let error = choose(&sources).unwrap_err().to_string();
        assert!(error.starts_with("there is no lab c"), "{error}");
        sources.variable = Some("x".into());
        assert_eq!(choose(&sources).unwrap(), ChosenServer::Variable);
        sources.flag = Some("y".into());
        assert_eq!(choose(&sources).unwrap(), ChosenServer::File("y".into()));
        sources.socket = Some("z".into());
        assert_eq!(choose(&sources).unwrap(), ChosenServer::Socket("z".into()));
    }

    /// A kubeconfig of a server that is away.
    fn away(port: u16) -> String {
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: a\n\
             clusters: [{{name: a, cluster: {{server: \"http://127.0.0.1:{port}\"}}}}]\n\
             users: [{{name: a, user: {{}}}}]\n\
             contexts: [{{name: a, context: {{cluster: a, user: a}}}}]\n"
        )
    }

    #[test]
    fn a_server_that_is_away_is_not_passed_over() {
        let dir = Dir::new("away");
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let away = away(listener.local_addr().unwrap().port());
        drop(listener);
        let mut sources = ServerSources {
            up: dir.0.join("up"),
            labs: dir.0.join("labs"),
            home: Some(dir.file("home", "")),
            ..ServerSources::default()
        };
        let pod = named("v1", "Pod", None, "a");
        let refused = |sources: &ServerSources| {
            let chosen = choose(sources).unwrap();
            let session = Session::open(&chosen, None).unwrap();
            let deleted = session.delete(&pod, "default", None);
            deleted.unwrap_err().to_string()
        };
        let lab = dir.file("labs/a/kubeconfig", &away);
        let message = refused(&sources);
        for words in [
            "cannot delete pod/a: ",
            "does not answer",
            &lab.display().to_string(),
            "plexus lab up --lab a",
            "--kubeconfig",
            "plexus lab down --lab a",
        ] {
            assert!(message.contains(words), "no {words:?} in {message}");
        }
        dir.file("up", &away);
        let message = refused(&sources);
        for words in ["(plexus up)", "PLEXUS_LAB", "(plexus down)"] {
            assert!(message.contains(words), "no {words:?} in {message}");
        }
        sources.lab = Some("a".into());
        let message = refused(&sources);
        for words in ["PLEXUS_LAB", "plexus lab status --lab a"] {
            assert!(message.contains(words), "no {words:?} in {message}");
        }
        // Whoever names a server knows where it is from.
        sources.flag = Some(lab);
        let message = refused(&sources);
        assert!(message.ends_with("does not answer"), "{message}");
    }

    #[test]
    fn one_that_cannot_be_read_says_what_chose_it() {
        let dir = Dir::new("odd");
        let odd = ChosenServer::Up(dir.file("up", "clusters: 7"));
        let message = Session::open(&odd, None).err().unwrap().to_string();
        assert!(message.contains("name another (--kubeconfig"), "{message}");
    }
}

//! Which API server is asked: `--api-socket`, `--kubeconfig`, `KUBECONFIG`, what `plexus up` or a lab runs on
//! this machine (`PLEXUS_LAB` says which), `~/.kube/config`, the cluster that this is a pod of. In that
//! order.

use super::ClientError;
use kube::config::Kubeconfig;
use std::ffi::OsString;
use std::fmt;
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a server on this machine may take to be there.
const PATIENCE: Duration = Duration::from_millis(500);

/// Where kubeconfigs are looked for.
#[derive(Debug, Clone, Default)]
pub struct Places {
    /// `--api-socket`.
    pub socket: Option<PathBuf>,
    /// `--kubeconfig`.
    pub given: Option<PathBuf>,
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

/// The kubeconfig that is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Chosen {
    /// A file.
    File(PathBuf),
    /// The files that `KUBECONFIG` lists, merged.
    Variable,
    /// The unix socket of an embedded API on this machine.
    Socket(PathBuf),
    /// The service account of this pod.
    InCluster,
}

impl fmt::Display for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Chosen::File(path) => write!(f, "the server of {}", path.display()),
            Chosen::Variable => f.write_str("the server of KUBECONFIG"),
            Chosen::Socket(path) => write!(f, "{}", path.display()),
            Chosen::InCluster => f.write_str("the server of this pod"),
        }
    }
}

/// Chooses. A server on this machine counts only if it answers.
pub fn choose(places: &Places, answers: &dyn Fn(&Path) -> bool) -> Result<Chosen, ClientError> {
    if let Some(socket) = &places.socket {
        return Ok(Chosen::Socket(socket.clone()));
    }
    if let Some(file) = &places.given {
        return Ok(Chosen::File(file.clone()));
    }
    if places
        .variable
        .as_ref()
        .is_some_and(|list| !list.is_empty())
    {
        return Ok(Chosen::Variable);
    }
    if let Some(lab) = places.lab.as_ref().filter(|lab| !lab.is_empty()) {
        return Ok(Chosen::File(places.labs.join(lab).join("kubeconfig")));
    }
    if places.up.is_file() && answers(&places.up) {
        return Ok(Chosen::File(places.up.clone()));
    }
    if UnixStream::connect(&places.up_socket).is_ok() {
        return Ok(Chosen::Socket(places.up_socket.clone()));
    }
    let mut labs: Vec<PathBuf> = std::fs::read_dir(&places.labs)
        .into_iter()
        .flatten()
        .flatten()
        .map(|lab| lab.path().join("kubeconfig"))
        .filter(|file| file.is_file() && answers(file))
        .collect();
    labs.sort();
    if labs.len() > 1 {
        return Err(ClientError::Several(labs));
    }
    if let Some(lab) = labs.pop() {
        return Ok(Chosen::File(lab));
    }
    if let Some(home) = places.home.as_ref().filter(|file| file.is_file()) {
        return Ok(Chosen::File(home.clone()));
    }
    match places.in_pod {
        true => Ok(Chosen::InCluster),
        false => Err(ClientError::Nowhere),
    }
}

/// Whether somebody listens where a kubeconfig points.
pub fn is_answering(file: &Path) -> bool {
    let Ok(config) = Kubeconfig::read_from(file) else {
        return false;
    };
    let mut servers = config.clusters.into_iter();
    let server = servers.find_map(|cluster| cluster.cluster?.server);
    let Some(uri) = server.and_then(|server| server.parse::<http::Uri>().ok()) else {
        return false;
    };
    let port = uri.port_u16().unwrap_or(match uri.scheme_str() {
        Some("http") => 80,
        _ => 443,
    });
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    let addresses = (host, port).to_socket_addrs();
    let mut addresses = addresses.into_iter().flatten();
    addresses.any(|address| TcpStream::connect_timeout(&address, PATIENCE).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
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
        let mut places = Places {
            up: dir.0.join("up"),
            labs: dir.0.join("labs"),
            ..Places::default()
        };
        let yes = |_: &Path| true;
        assert!(matches!(choose(&places, &yes), Err(ClientError::Nowhere)));
        places.in_pod = true;
        assert_eq!(choose(&places, &yes).unwrap(), Chosen::InCluster);
        let home = dir.file("home", "");
        places.home = Some(home.clone());
        assert_eq!(choose(&places, &yes).unwrap(), Chosen::File(home.clone()));
        let lab = dir.file("labs/a/kubeconfig", "");
        assert_eq!(choose(&places, &yes).unwrap(), Chosen::File(lab));
        dir.file("labs/b/kubeconfig", "");
        let error = choose(&places, &yes).unwrap_err().to_string();
        assert!(
            error.contains("labs/a") && error.contains("labs/b"),
            "{error}"
        );
        let up = dir.file("up", "");
        assert_eq!(choose(&places, &yes).unwrap(), Chosen::File(up));
        assert_eq!(choose(&places, &|_| false).unwrap(), Chosen::File(home));
        places.lab = Some("b".into());
        let named = dir.0.join("labs/b/kubeconfig");
        assert_eq!(choose(&places, &yes).unwrap(), Chosen::File(named));
        places.variable = Some("x".into());
        assert_eq!(choose(&places, &yes).unwrap(), Chosen::Variable);
        places.given = Some("y".into());
        assert_eq!(choose(&places, &yes).unwrap(), Chosen::File("y".into()));
        places.socket = Some("z".into());
        assert_eq!(choose(&places, &yes).unwrap(), Chosen::Socket("z".into()));
    }

    #[test]
    fn the_socket_counts_where_the_kubeconfig_is_not_there() {
        let dir = Dir::new("socket");
        let places = Places {
            up: dir.0.join("up"),
            up_socket: dir.0.join("api.sock"),
            ..Places::default()
        };
        let yes = |_: &Path| true;
        let listener = std::os::unix::net::UnixListener::bind(&places.up_socket).unwrap();
        let socket = Chosen::Socket(places.up_socket.clone());
        assert_eq!(choose(&places, &yes).unwrap(), socket);
        dir.file("up", "");
        assert!(matches!(choose(&places, &yes).unwrap(), Chosen::File(_)));
        drop(listener);
        assert!(matches!(
            choose(&places, &|_| false),
            Err(ClientError::Nowhere)
        ));
    }

    #[test]
    fn a_server_that_is_gone_does_not_answer() {
        let dir = Dir::new("answering");
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let text = |server: &str| {
            format!(
                "apiVersion: v1\nkind: Config\nclusters:\n- name: a\n  cluster: {{server: \"{server}\"}}\n"
            )
        };
        let file = dir.file("live", &text(&format!("https://127.0.0.1:{port}")));
        assert!(is_answering(&file));
        drop(listener);
        assert!(!is_answering(&file));
        assert!(!is_answering(&dir.file("odd", "clusters: 7")));
        assert!(!is_answering(&dir.0.join("none")));
    }
}

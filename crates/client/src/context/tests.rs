//! What is put is found again; what is another's stays.

use super::*;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::PathBuf;

struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("px-context-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// The own kubeconfig of a server, whose directory is there.
    fn server(&self, name: &str, key: &str) -> (PathBuf, PathBuf) {
        let directory = self.0.join(name);
        fs::create_dir_all(&directory).unwrap();
        let mark =
            json!([{"name": MARK, "extension": {DIRECTORY: directory.display().to_string()}}]);
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "plexus",
            "clusters": [{"name": "plexus", "cluster": {"server": "https://127.0.0.1:7443"}}],
            "users": [{"name": "admin", "user": {"client-key-data": key}}],
            "contexts": [{"name": "plexus", "context": {"cluster": "plexus", "user": "admin",
                "namespace": "default", "extensions": mark}}]});
        let own = directory.join("kubeconfig");
        fs::write(&own, format!("{config:#}\n")).unwrap();
        (own, directory)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// As people have it.
const THEIRS: &str = "\
apiVersion: v1
clusters:
- cluster:
    server: https://production.example.org
    insecure-skip-tls-verify: true
  name: production
contexts:
- context: {cluster: production, namespace: team-a, user: me@example.org}
  name: production
current-context: production
kind: Config
preferences: {colors: true}
users:
- name: me@example.org
  user:
    exec: {apiVersion: client.authentication.k8s.io/v1, args: [token], command: login, env: null}
";

fn parsed(text: &str) -> Value {
    serde_yaml_ng::from_str(text).unwrap()
}

fn content(file: &Path) -> Value {
    parsed(&fs::read_to_string(file).unwrap())
}

#[test]
fn others_stay_as_they_are_and_ours_comes_and_goes() {
    let dir = Dir::new("others");
    let (own, directory) = dir.server("a", "key");
    let file = dir.0.join("kube/config");
    fs::create_dir(dir.0.join("kube")).unwrap();
    fs::write(&file, THEIRS).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(!has(&file, "plexus", &directory));
    assert_eq!(put(&file, "plexus", &own).unwrap(), Put::Current);
    let config = content(&file);
    assert_eq!(config["current-context"], "plexus");
    let theirs = parsed(THEIRS);
    for (list, _) in LISTS {
        assert_eq!(config[list][0], theirs[list][0], "{list}");
        assert_eq!(config[list][1]["name"], "plexus", "{list}");
        assert_eq!(config[list].as_array().unwrap().len(), 2, "{list}");
    }
    assert_eq!(config["preferences"], theirs["preferences"]);
    assert_eq!(config["users"][1]["user"]["client-key-data"], "key");
    let context = &config["contexts"][1]["context"];
    assert_eq!(
        (&context["cluster"], &context["user"]),
        (&json!("plexus"), &json!("plexus"))
    );
    assert_eq!(owner(context), directory.to_str());
    assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
    assert!(has(&file, "plexus", &directory));

    // Another server's of that name is not this one's to remove.
    assert!(!remove(&file, "plexus", Path::new("/elsewhere")).unwrap());
    assert!(remove(&file, "plexus", &directory).unwrap());
    let mut left = parsed(THEIRS);
    left["current-context"] = "".into();
    assert_eq!(content(&file), left);
    assert!(!remove(&file, "plexus", &directory).unwrap());
    let names: Vec<_> = fs::read_dir(dir.0.join("kube"))
        .unwrap()
        .flatten()
        .collect();
    assert_eq!(names.len(), 1, "{names:?}");
}

#[test]
fn what_the_user_chose_stays_at_the_next_start() {
    let dir = Dir::new("chosen");
    let (own, directory) = dir.server("a", "old");
    let file = dir.0.join("config");
    fs::write(&file, THEIRS).unwrap();
    put(&file, "plexus", &own).unwrap();
    // kubectl config use-context production; kubectl config set-context plexus --namespace=team-b
    let mut config = content(&file);
    config["current-context"] = "production".into();
    config["contexts"][1]["context"]["namespace"] = "team-b".into();
    fs::write(&file, serde_yaml_ng::to_string(&config).unwrap()).unwrap();
    let (own, _) = dir.server("a", "new");
    assert_eq!(put(&file, "plexus", &own).unwrap(), Put::Beside);
    let config = content(&file);
    assert_eq!(config["current-context"], "production");
    assert_eq!(config["contexts"][1]["context"]["namespace"], "team-b");
    assert_eq!(config["users"][1]["user"]["client-key-data"], "new");
    assert!(remove(&file, "plexus", &directory).unwrap());
    assert_eq!(content(&file), parsed(THEIRS));
}

#[test]
fn what_is_anothers_is_not_replaced() {
    let dir = Dir::new("taken");
    let (own, _) = dir.server("a", "a");
    let (other, elsewhere) = dir.server("b", "b");
    let file = dir.0.join("config");
    for theirs in [
        "users: [{name: plexus, user: {}}]",
        "contexts: [{name: plexus, context: {cluster: x, user: y}}]",
    ] {
        fs::write(&file, theirs).unwrap();
        let error = put(&file, "plexus", &own).unwrap_err().to_string();
        assert!(
            error.contains("somebody else") && error.contains("--kubeconfig"),
            "{error}"
        );
        assert_eq!(fs::read_to_string(&file).unwrap(), theirs);
    }
    fs::remove_file(&file).unwrap();
    put(&file, "plexus", &other).unwrap();
    let error = put(&file, "plexus", &own).unwrap_err().to_string();
    assert!(error.contains(elsewhere.to_str().unwrap()), "{error}");
    // What a server has left that was removed by hand is nobody's.
    fs::remove_dir_all(elsewhere).unwrap();
    put(&file, "plexus", &own).unwrap();
    assert_eq!(content(&file)["users"][0]["user"]["client-key-data"], "a");
    for odd in ["- a list", "clusters: 7", "{"] {
        fs::write(&file, odd).unwrap();
        let error = put(&file, "plexus", &own).unwrap_err().to_string();
        assert!(error.contains("--kubeconfig"), "{error}");
        assert_eq!(fs::read_to_string(&file).unwrap(), odd);
    }
    fs::write(&own, "{}").unwrap();
    assert!(put(&file, "plexus", &own).is_err());
}

#[test]
fn a_file_of_ours_alone_is_made_and_goes_again() {
    let dir = Dir::new("alone");
    let (own, directory) = dir.server("a", "a");
    let file = dir.0.join("new/kube/config");
    assert_eq!(put(&file, "plexus", &own).unwrap(), Put::Current);
    assert!(remove(&file, "plexus", &directory).unwrap());
    assert!(!file.exists());
    // Where a link leads to, the file is changed, and the link stays.
    let link = dir.0.join("link");
    fs::write(&file, THEIRS).unwrap();
    symlink(&file, &link).unwrap();
    put(&link, "plexus", &own).unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(content(&file)["current-context"], "plexus");
}

#[test]
fn a_lock_that_was_left_is_no_hindrance() {
    let dir = Dir::new("left");
    let (own, _) = dir.server("a", "a");
    let file = dir.0.join("config");
    let lock = fs::File::create(dir.0.join("config.lock")).unwrap();
    let hour = std::time::Duration::from_secs(3600);
    lock.set_modified(std::time::SystemTime::now() - hour)
        .unwrap();
    assert_eq!(put(&file, "plexus", &own).unwrap(), Put::Current);
    assert!(!dir.0.join("config.lock").exists());
    // One of ours that was killed: no process has that number.
    fs::write(dir.0.join("config.lock"), "4294967294").unwrap();
    let begin = std::time::Instant::now();
    assert_eq!(put(&file, "plexus", &own).unwrap(), Put::Current);
    assert!(begin.elapsed() < std::time::Duration::from_secs(5));
}

#[test]
fn many_at_once_all_come_in() {
    let dir = Dir::new("many");
    let file = dir.0.join("config");
    let servers: Vec<_> = (0..8)
        .map(|n| (n, dir.server(&format!("s{n}"), "k")))
        .collect();
    std::thread::scope(|scope| {
        for (n, (own, _)) in &servers {
            let file = &file;
            scope.spawn(move || put(file, &format!("plexus-lab-{n}"), own).unwrap());
        }
    });
    assert_eq!(content(&file)["contexts"].as_array().unwrap().len(), 8);
    std::thread::scope(|scope| {
        for (n, (_, directory)) in &servers {
            let file = &file;
            scope.spawn(move || {
                assert!(remove(file, &format!("plexus-lab-{n}"), directory).unwrap())
            });
        }
    });
    assert!(!file.exists());
}

//! The store: order, history, restarts, failures of the disk.

use super::{Change, Key, ListScope, Store, Table};
use crate::kinds::Kinds;
use crate::status::Refused;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

/// A directory that goes with the test.
pub(crate) struct TempDir(PathBuf);

impl TempDir {
    pub(crate) fn new(name: &str) -> Self {
        let directory = format!("plexus-store-{name}-{}", std::process::id());
        let dir = std::env::temp_dir().join(directory);
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).unwrap();
        Self(dir)
    }

    /// Of the store.
    pub(crate) fn file(&self) -> PathBuf {
        self.0.join("store.db")
    }

    fn open(&self, now: u64) -> (Arc<Store>, Table) {
        let kinds = Kinds::builtin().unwrap();
        let store = Store::open(&self.file(), &kinds, now).unwrap();
        let maps = kinds.get("", "v1", "configmaps").unwrap();
        let table = store.table(maps).unwrap();
        (Arc::new(store), table)
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.build().unwrap().block_on(future)
}

fn put(store: &Store, table: Table, name: &str, content: &str) -> u64 {
    let key = Key::new("default", name);
    let object = map(name, content);
    let write = store.write(move |changes| changes.put(table, &key, object));
    wait(write).unwrap().version
}

fn remove(store: &Store, table: Table, name: &str) -> u64 {
    let key = Key::new("default", name);
    let removed = store.write(move |changes| changes.remove(table, &key));
    wait(removed).unwrap().version
}

fn map(name: &str, content: &str) -> Value {
    json!({"metadata": {"name": name, "namespace": "default"}, "data": {"a": content}})
}

/// An object as the store has it.
pub(crate) fn sample(name: &str, content: &str) -> Arc<super::Stored> {
    static KINDS: LazyLock<Kinds> = LazyLock::new(|| Kinds::builtin().unwrap());
    let kind = KINDS.get("", "v1", "configmaps").unwrap();
    let object = map(name, content);
    let body = serde_json::to_vec(&object).unwrap().into();
    let key = Key::new("default", name);
    Arc::new(super::Stored::new(kind, key, 1, 0, &object, body))
}

fn names(objects: &[Arc<super::Stored>]) -> Vec<String> {
    let text = |object: &Arc<super::Stored>| {
        let content = object.value().unwrap()["data"]["a"]
            .as_str()
            .unwrap()
            .to_owned();
        format!("{}={content}", object.key.name())
    };
    objects.iter().map(text).collect()
}

#[test]
fn versions_grow_by_one_and_are_in_the_objects() {
    let dir = TempDir::new("grow");
    let (store, maps) = dir.open(1000);
    assert_eq!(store.version(), 1000);
    assert_eq!(put(&store, maps, "a", "1"), 1001);
    assert_eq!(put(&store, maps, "b", "1"), 1002);
    let object = store.get(maps, &Key::new("default", "a")).unwrap();
    assert_eq!(
        object.value().unwrap()["metadata"]["resourceVersion"],
        "1001"
    );
    assert_eq!(store.version(), 1002);
}

#[test]
fn everything_and_the_counter_survive_a_restart() {
    let dir = TempDir::new("restart");
    let (store, maps) = dir.open(1000);
    put(&store, maps, "a", "1");
    put(&store, maps, "a", "2");
    put(&store, maps, "b", "1");
    let last = remove(&store, maps, "b");
    drop(store);
    // The clock has gone back.
    let (store, maps) = dir.open(500);
    assert_eq!(store.version(), last);
    let (objects, _) = store.list(maps, ListScope::default());
    assert_eq!(names(&objects), ["a=2"]);
    let (changes, upto) = store.changes(maps, 1000, 10).unwrap();
    let what: Vec<_> = changes.iter().map(|entry| entry.change).collect();
    use Change::{Added, Deleted, Modified};
    assert_eq!(what, [Added, Modified, Added, Deleted]);
    assert_eq!(upto, last);
    let end = changes[3].object.value().unwrap();
    assert_eq!(end["metadata"]["resourceVersion"], last.to_string());
    assert_eq!(put(&store, maps, "c", "1"), last + 1);
}

#[test]
fn versions_that_were_skipped_at_a_start_are_not_known() {
    let dir = TempDir::new("gap");
    let (store, maps) = dir.open(1000);
    let last = put(&store, maps, "a", "1");
    drop(store);
    let (store, maps) = dir.open(5000);
    assert_eq!(store.version(), 5000);
    assert!(store.changes(maps, last, 10).unwrap().0.is_empty());
    assert!(
        store.changes(maps, 3000, 10).is_err(),
        "of a state that was lost"
    );
    assert!(store.changes(maps, 5000, 10).is_ok());
    assert!(store.changes(maps, 5001, 10).is_err(), "not yet");
    assert!(store.changes(maps, 1, 10).is_err(), "before everything");
}

#[test]
fn a_table_can_be_seen_as_it_was() {
    let dir = TempDir::new("was");
    let (store, maps) = dir.open(1000);
    put(&store, maps, "b", "1");
    put(&store, maps, "d", "1");
    let then = put(&store, maps, "e", "1");
    put(&store, maps, "a", "1");
    put(&store, maps, "b", "2");
    put(&store, maps, "b", "3");
    remove(&store, maps, "d");
    put(&store, maps, "d", "4");
    remove(&store, maps, "e");
    let was = store.list_at(maps, ListScope::default(), then).unwrap();
    assert_eq!(names(&was), ["b=1", "d=1", "e=1"]);
    let part = ListScope {
        namespace: Some("default"),
        after: Some("default/b"),
    };
    assert_eq!(
        names(&store.list_at(maps, part, then).unwrap()),
        ["d=1", "e=1"]
    );
    let (is, _) = store.list(maps, part);
    assert_eq!(names(&is), ["d=4"]);
}

#[test]
fn namespaces_are_apart_though_one_begins_like_another() {
    let dir = TempDir::new("apart");
    let (store, maps) = dir.open(1000);
    for (namespace, name) in [
        ("a", "x"),
        ("a-b", "x"),
        ("a.b", "x"),
        ("aa", "x"),
        ("a", "y"),
    ] {
        let key = Key::new(namespace, name);
        let object = json!({"metadata": {}, "data": {"a": namespace}});
        wait(store.write(move |changes| changes.put(maps, &key, object))).unwrap();
    }
    let part = ListScope {
        namespace: Some("a"),
        after: None,
    };
    assert_eq!(names(&store.list(maps, part).0), ["x=a", "y=a"]);
    let inside = wait(store.write(move |changes| Ok(changes.in_namespace(maps, "a").len())));
    assert_eq!(inside.unwrap(), 2);
}

#[test]
fn whoever_refuses_has_done_nothing() {
    let dir = TempDir::new("nothing");
    let (store, maps) = dir.open(1000);
    let work = move |changes: &mut super::Changes| {
        changes.put(maps, &Key::new("default", "a"), map("a", "1"))?;
        Err::<(), _>(Refused::bad_request("no"))
    };
    assert_eq!(wait(store.write(work)).unwrap_err().code(), 400);
    let panics = move |changes: &mut super::Changes| {
        changes.put(maps, &Key::new("default", "a"), map("a", "1"))?;
        panic!("as a test of panics")
    };
    let answer: Result<(), Refused> = wait(store.write(panics));
    assert_eq!(answer.unwrap_err().code(), 500);
    assert_eq!(store.version(), 1000);
    assert_eq!(put(&store, maps, "b", "1"), 1001);
    let dry = store.write(move |changes| {
        changes.without_trace(|changes| changes.put(maps, &Key::new("default", "c"), map("c", "1")))
    });
    assert_eq!(wait(dry).unwrap().version, 1002);
    assert_eq!(store.version(), 1001);
}

/// What waits while one is written is written together: nobody sees any of it before the last one ran.
#[test]
fn jobs_that_wait_share_a_commit() {
    let dir = TempDir::new("together");
    let (store, maps) = dir.open(1000);
    let (go, wait_for_it) = std::sync::mpsc::channel::<()>();
    let first = store.write(move |changes| {
        wait_for_it.recv().unwrap();
        changes.put(maps, &Key::new("default", "first"), map("first", "1"))
    });
    let second =
        store.write(move |changes| changes.put(maps, &Key::new("default", "b"), map("b", "1")));
    let seen = Arc::clone(&store);
    let last = store.write(move |_| Ok(seen.get(maps, &Key::new("default", "first")).is_some()));
    let release = async {
        // Polled after the others: all three are handed in by then.
        go.send(()).unwrap();
    };
    let (first, second, seen, ()) = wait(async { tokio::join!(first, second, last, release) });
    assert_eq!(
        (first.unwrap().version, second.unwrap().version),
        (1001, 1002)
    );
    assert!(!seen.unwrap(), "the first was committed alone");
    assert!(store.get(maps, &Key::new("default", "first")).is_some());
}

#[test]
fn old_changes_are_forgotten_in_memory_and_on_disk() {
    let dir = TempDir::new("forget");
    let (store, maps) = dir.open(1000);
    let big = "x".repeat(200_000);
    for _ in 0..60 {
        put(&store, maps, "a", &big);
    }
    let last = put(&store, maps, "a", "small");
    assert!(store.changes(maps, 1001, 10).is_err());
    assert!(store.changes(maps, last - 5, 10).is_ok());
    drop(store);
    let file = dir.0.join("store.db");
    let rows: i64 = rusqlite::Connection::open(&file)
        .unwrap()
        .query_row("SELECT count(*) FROM revisions", [], |row| row.get(0))
        .unwrap();
    assert!(rows < 30, "{rows} rows are left");
    let (store, maps) = dir.open(1000);
    assert_eq!(
        names(&store.list(maps, ListScope::default()).0),
        ["a=small"]
    );
    assert!(
        store.changes(maps, 1001, 10).is_err(),
        "also after a restart"
    );
    assert_eq!(store.version(), last);
}

#[test]
fn one_server_per_file() {
    let dir = TempDir::new("two");
    let (_store, _) = dir.open(1000);
    let kinds = Kinds::builtin().unwrap();
    let second = Store::open(&dir.0.join("store.db"), &kinds, 1000);
    assert!(second.err().unwrap().to_string().contains("is in use"));
}

#[test]
fn what_is_no_store_is_refused() {
    let dir = TempDir::new("none");
    let kinds = Kinds::builtin().unwrap();
    let file = dir.0.join("store.db");
    std::fs::write(&file, "x".repeat(5000)).unwrap();
    let opened = Store::open(&file, &kinds, 1000).err().unwrap();
    assert!(opened.to_string().contains("damaged"), "{opened}");
    std::fs::remove_file(&file).unwrap();
    drop(dir.open(1000));
    let connection = rusqlite::Connection::open(&file).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    drop(connection);
    let opened = Store::open(&file, &kinds, 1000).err().unwrap();
    assert!(opened.to_string().contains("format 99"), "{opened}");
}

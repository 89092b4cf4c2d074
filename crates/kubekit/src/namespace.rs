//! A namespace for one test, gone with everything in it when the test is over, also when it fails.

use crate::cluster::{Cluster, Object};
use anyhow::Result;
use std::sync::atomic::{AtomicU32, Ordering};

/// Deleted when dropped, without waiting. `PLEXUS_TEST_KEEP=1` keeps that of a failing test.
pub struct Namespace<'a> {
    cluster: &'a dyn Cluster,
    name: String,
}

impl<'a> Namespace<'a> {
    /// Makes one whose name begins with `base`. The rest is new, because the pods of an earlier run may
    /// still be on their way out.
    pub fn create(cluster: &'a dyn Cluster, base: &str) -> Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(1);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{base}-{}-{count}", std::process::id());
        let made = Self { cluster, name };
        cluster.apply(&format!(
            "{{apiVersion: v1, kind: Namespace, metadata: {{name: {}}}}}",
            made.name
        ))?;
        Ok(made)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A pod in it.
    pub fn pod(&self, name: &str) -> Object {
        Object::pod(&self.name, name)
    }
}

impl Drop for Namespace<'_> {
    fn drop(&mut self) {
        let keep = std::thread::panicking() && std::env::var_os("PLEXUS_TEST_KEEP").is_some();
        let object = Object::new("v1", "Namespace", "", &self.name);
        if !keep && let Err(error) = self.cluster.delete(&object) {
            eprintln!("{object} stays: {error:#}");
        }
    }
}

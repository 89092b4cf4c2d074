//! Places to die. Owns the count of *effects*: every journal write, netlink batch, exec and file
//! change calls [`effect`] before and after it acts.
//!
//! In a product build the call is empty. With the feature `on` (test builds) the process aborts
//! at the k-th call, where k is `PLEXUS_DIE_AT`, or at the first call of the name that it says; with
//! `PLEXUS_EFFECTS_LOG` it appends the name of each effect that it passes to that file. The crash test
//! raises k until a run survives.

use std::time::Duration;

/// Marks one side of an effect; `name` says which, for the log: `"journal.begin<"` before it,
/// `"journal.begin>"` after it.
#[inline(always)]
pub fn effect(name: &'static str) {
    #[cfg(feature = "on")]
    on::passed(name);
    #[cfg(not(feature = "on"))]
    let _ = name;
}

/// Whether a deliberate mistake is switched on (`PLEXUS_MISTAKE=name`). Always false in a product
/// build: the crash test uses it to prove that it would notice.
#[inline(always)]
pub fn mistake(name: &str) -> bool {
    #[cfg(feature = "on")]
    return std::env::var("PLEXUS_MISTAKE").is_ok_and(|m| m == name);
    #[cfg(not(feature = "on"))]
    {
        let _ = name;
        false
    }
}

/// How long to wait for something that takes minutes in a product build: a two-hundredth of it if
/// `PLEXUS_HASTE` is set.
#[inline(always)]
pub fn hastened(time: Duration) -> Duration {
    #[cfg(feature = "on")]
    if std::env::var_os("PLEXUS_HASTE").is_some() {
        return time / 200;
    }
    time
}

#[cfg(feature = "on")]
mod on {
    use std::io::Write;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    static PASSED: AtomicU64 = AtomicU64::new(0);
    static DIE_AT: OnceLock<Option<String>> = OnceLock::new();

    pub(super) fn passed(name: &'static str) {
        let count = PASSED.fetch_add(1, Ordering::SeqCst) + 1;
        if let Some(path) = std::env::var_os("PLEXUS_EFFECTS_LOG")
            && let Ok(mut log) = std::fs::OpenOptions::new()
                .append(true)
                .create(true)
                .open(path)
        {
            let _ = writeln!(log, "{count} {name}");
        }
        let die_at = DIE_AT.get_or_init(|| std::env::var("PLEXUS_DIE_AT").ok());
        let here = |at: &String| at == name || at.parse() == Ok(count);
        if die_at.as_ref().is_some_and(here) {
            std::process::abort();
        }
    }
}

//! Bounded waiting: asks again and again until something holds or the time is up.

use anyhow::{Result, bail};
use std::time::{Duration, Instant};

const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Waits until `look` gives a value. Errors count as "not yet"; the last one is told if time runs out.
pub fn until<T>(
    what: &str,
    timeout: Duration,
    mut look: impl FnMut() -> Result<Option<T>>,
) -> Result<T> {
    let end = Instant::now() + timeout;
    loop {
        let seen = look();
        if let Ok(Some(value)) = seen {
            return Ok(value);
        }
        if Instant::now() >= end {
            match seen {
                Err(error) => bail!("{what}: not within {timeout:?}: {error:#}"),
                _ => bail!("{what}: not within {timeout:?}"),
            }
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

//! How many files and sockets this process may have open. The usual limit is so low that connections
//! alone would reach it, and then nothing can be opened by anybody in the process.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// More than this is not asked for.
const WANTED: u64 = 65_536;

/// Raises the limit as far as this process may; gives what it is then.
pub(crate) fn raise() -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let allowed = maximum.map_or(WANTED, |maximum| maximum.min(WANTED));
    let now = match current {
        Some(current) if current < allowed => {
            let wanted = Rlimit {
                current: Some(allowed),
                maximum,
            };
            match setrlimit(Resource::Nofile, wanted) {
                Ok(()) => allowed,
                Err(_) => current,
            }
        }
        Some(current) => current,
        None => WANTED,
    };
    usize::try_from(now).unwrap_or(usize::MAX)
}

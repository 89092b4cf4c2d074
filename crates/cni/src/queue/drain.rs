//! The agent's side: list, read, remove.

use super::{Error, open, put::TEMPORARY};
use crate::shim::MAX_BODY;
use rustix::fs::{
    AtFlags, FileType, FlockOperation, Mode, OFlags, flock, fstat, openat, renameat, unlinkat,
};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::Path;

/// As many names as one list gives; the rest are there the next time.
const MOST: usize = 10_000;
/// What is added to the name of one that cannot be read.
const BAD: &str = ".bad";
/// As many of those are kept, for whoever wants to know.
const MOST_BAD: usize = 32;
/// `<20 digits>-`
const STAMP: usize = 21;

/// The names of the queued DELs, oldest first. No directory is an empty queue. Files with other
/// names, temporary ones among them, are left alone.
pub fn list(dir: &Path) -> Result<Vec<String>, Error> {
    let failed = |error: Errno| Error::List(dir.to_owned(), error.into());
    let Some(fd) = open_if_there(dir)? else {
        return Ok(Vec::new());
    };
    let mut names = names(&fd, is_ours).map_err(failed)?;
    names.truncate(MOST);
    Ok(names)
}

/// Removes the temporary files of shims that died while they wrote: nobody will finish them.
pub fn sweep(dir: &Path) -> Result<(), Error> {
    let failed = |error: Errno| Error::List(dir.to_owned(), error.into());
    let Some(fd) = open_if_there(dir)? else {
        return Ok(());
    };
    for name in names(&fd, is_temporary).map_err(failed)? {
        if is_abandoned(&fd, &name) {
            unlinkat(&fd, &*name, AtFlags::empty()).map_err(failed)?;
        }
    }
    Ok(())
}

fn open_if_there(dir: &Path) -> Result<Option<OwnedFd>, Error> {
    match open(dir) {
        Err(Error::Open(_, error)) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        fd => fd.map(Some),
    }
}

/// The names of such files, in order.
fn names(dir: &OwnedFd, is_one: impl Fn(&str) -> bool) -> Result<Vec<String>, Errno> {
    let mut names = Vec::new();
    for entry in rustix::fs::Dir::read_from(dir)? {
        let entry = entry?;
        if let Ok(name) = entry.file_name().to_str()
            && is_one(name)
        {
            names.push(name.to_owned());
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// `.<stamp>-<process>`
pub(super) fn is_temporary(name: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let parts = name
        .strip_prefix(TEMPORARY)
        .and_then(|rest| rest.split_once('-'));
    parts.is_some_and(|(stamp, process)| digits(stamp) && digits(process))
}

/// Whoever writes it holds its lock; a process id would say nothing across pid namespaces.
fn is_abandoned(dir: &OwnedFd, name: &str) -> bool {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = openat(dir, name, flags, Mode::empty());
    file.is_ok_and(|file| flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok())
}

/// Whether a queued DEL may be for that container, judged by its name: an ADD of that container
/// waits for it. May say yes too often (ids can contain hyphens), never no too often.
pub fn may_concern(name: &str, container: &str) -> bool {
    name.get(STAMP..)
        .and_then(|rest| rest.strip_prefix(container))
        .is_some_and(|rest| rest.starts_with('-'))
}

/// The body of a queued DEL. Refuses a file that is not root's own plain file, or too large.
pub fn read(dir: &Path, name: &str) -> Result<String, Error> {
    let fd = open_for(dir, name)?;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let failed = |error: io::Error| Error::Read(name.to_owned(), error);
    let file = openat(&fd, name, flags, Mode::empty()).map_err(|error| failed(error.into()))?;
    let stat = fstat(&file).map_err(|error| failed(error.into()))?;
    let foreign = |why: String| Err(Error::Foreign(name.to_owned(), why));
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return foreign("it is not a plain file".to_owned());
    }
    if stat.st_uid != 0 {
        return foreign(format!("it belongs to user {}, not to root", stat.st_uid));
    }
    let mut text = String::new();
    let limit = MAX_BODY as u64 + 1;
    File::from(file)
        .take(limit)
        .read_to_string(&mut text)
        .map_err(failed)?;
    if text.len() > MAX_BODY {
        return foreign(format!("it is larger than {MAX_BODY} bytes"));
    }
    Ok(text)
}

/// The directory, for a file of that name.
fn open_for(dir: &Path, name: &str) -> Result<OwnedFd, Error> {
    let fd = open(dir)?;
    if is_ours(name) {
        return Ok(fd);
    }
    let why = "its name is not one that the shim gives".to_owned();
    Err(Error::Foreign(name.to_owned(), why))
}

/// Takes a DEL out of the queue, once it is done. One that is gone already is fine.
pub fn remove(dir: &Path, name: &str) -> Result<(), Error> {
    let fd = open_for(dir, name)?;
    match unlinkat(&fd, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(Error::Remove(name.to_owned(), error.into())),
    }
}

/// Takes a file out of the queue that cannot be read, and keeps it as `<name>.bad`; of these only the
/// newest are kept.
pub fn set_aside(dir: &Path, name: &str) -> Result<(), Error> {
    let fd = open(dir)?;
    let failed = |error: Errno| Error::Remove(name.to_owned(), error.into());
    match renameat(&fd, name, &fd, format!("{name}{BAD}")) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(error) => return Err(failed(error)),
    }
    let is_bad = |name: &str| name.strip_suffix(BAD).is_some_and(is_ours);
    let bad = names(&fd, is_bad).map_err(failed)?;
    for name in &bad[..bad.len().saturating_sub(MOST_BAD)] {
        unlinkat(&fd, name.as_str(), AtFlags::empty()).map_err(failed)?;
    }
    Ok(())
}

pub(super) fn is_ours(name: &str) -> bool {
    let stamped = name.len() > STAMP
        && name.bytes().take(STAMP - 1).all(|b| b.is_ascii_digit())
        && name.as_bytes().get(STAMP - 1) == Some(&b'-');
    stamped && name.ends_with(".json") && !name.contains('/') && !name.starts_with(TEMPORARY)
}

//! The files of one directory, opened without following links: whoever can write there could otherwise send us
//! anywhere on the node. Where the directory is, says the configuration: links above it lead where they lead.

use super::{DirectoryError, failed};
use plexus_faults::effect;
use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, openat, statat, unlinkat};
use rustix::io::Errno;
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// What every file of a directory has fits one read.
pub(super) fn read_small(file: &File) -> Option<String> {
    let mut text = [0; 1024];
    let length = file.read_at(&mut text, 0).ok()?;
    String::from_utf8(text.get(..length)?.to_vec()).ok()
}

/// An open directory: what is done in it is done there, whatever its path leads to by now.
#[derive(Debug)]
pub(super) struct Folder {
    fd: OwnedFd,
    path: PathBuf,
}

impl Folder {
    pub(super) fn open(path: &Path) -> Result<Self, DirectoryError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = openat(CWD, path, flags, Mode::empty());
        Ok(Self {
            fd: fd
                .map_err(|errno| failed("open, as a directory and no link,", path)(errno.into()))?,
            path: path.to_owned(),
        })
    }

    pub(super) fn path_of(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Opens a regular file, and says what it is; anything else neither blocks us nor gets a byte.
    pub(super) fn file(&self, name: &str, how: OFlags, mode: u32) -> io::Result<(File, Metadata)> {
        let file = self.any(name, how, mode)?;
        let metadata = file.metadata()?;
        match metadata.is_file() {
            true => Ok((file, metadata)),
            false => Err(io::Error::other("it is not a regular file")),
        }
    }

    /// Makes a file that is not there yet: nothing else than a regular one.
    pub(super) fn new_file(&self, name: &str, mode: u32) -> io::Result<File> {
        self.any(name, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL, mode)
    }

    fn any(&self, name: &str, how: OFlags, mode: u32) -> io::Result<File> {
        let safe = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(mode);
        Ok(openat(&self.fd, name, how | safe, mode)?.into())
    }

    /// Whether there is something of that name, be it a link that leads nowhere.
    pub(super) fn has(&self, name: &str) -> io::Result<bool> {
        match statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }

    /// The text of a file.
    pub(super) fn read_small(&self, name: &str) -> Option<String> {
        let (file, _) = self.file(name, OFlags::RDONLY, 0).ok()?;
        read_small(&file)
    }

    pub(super) fn remove(&self, name: &str) -> Result<(), DirectoryError> {
        effect("file.release<");
        let removed = unlinkat(&self.fd, name, AtFlags::empty());
        effect("file.release>");
        match removed {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(failed("remove", &self.path_of(name))(errno.into())),
        }
    }

    pub(super) fn names(&self) -> Result<Vec<String>, DirectoryError> {
        let failed = |errno: Errno| failed("list", &self.path)(errno.into());
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.fd).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
        names.retain(|name| name != "." && name != "..");
        Ok(names)
    }
}

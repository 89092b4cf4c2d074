//! The unix socket of a server. Owns the name that it has in the file system: takes it only if nobody
//! answers there, and gives it back only if it is still ours. The store's lock says nothing about it: two
//! servers with two stores can be told the same name.

use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tokio::net::{UnixListener, UnixStream};

/// The name of a socket that is ours.
pub(crate) struct Name {
    path: PathBuf,
    /// Device and inode: what we made there.
    file: (u64, u64),
}

/// Listens on a socket that only its owner may connect to.
///
/// # Errors
/// Somebody else has the name, or it cannot be had.
pub(crate) async fn bind(path: &Path) -> io::Result<(UnixListener, Name)> {
    make_free(path).await?;
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    let name = Name {
        file: file(path)?,
        path: path.to_owned(),
    };
    Ok((listener, name))
}

/// Removes a socket that a server has left behind.
async fn make_free(path: &Path) -> io::Result<()> {
    let there = match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        there => there?,
    };
    let taken = |why: &str| Err(io::Error::new(io::ErrorKind::AddrInUse, why));
    if !there.file_type().is_socket() {
        return taken(
            "there is a file of that name that is no socket: move it away, or name another",
        );
    }
    match UnixStream::connect(path).await {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        _ => taken("another server answers there: stop it, or name another socket"),
    }
}

fn file(path: &Path) -> io::Result<(u64, u64)> {
    let there = std::fs::symlink_metadata(path)?;
    Ok((there.dev(), there.ino()))
}

impl Drop for Name {
    fn drop(&mut self) {
        if file(&self.path).is_ok_and(|file| file == self.file) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

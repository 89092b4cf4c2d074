//! The unix socket of a server. Owns the name that it has in the file system: takes it only if nobody
//! answers there, takes it again if somebody removes it, and gives it back only if it is still ours. The store's
//! lock says nothing about it: two servers with two stores can be told the same name.

use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::net::{UnixListener, UnixStream};
use tokio::time::sleep;

/// How often the server checks that the socket has its name.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// A socket that only its owner may connect to.
pub(crate) struct Socket {
    listener: UnixListener,
    path: PathBuf,
    /// Device and inode: what we made there.
    file: (u64, u64),
}

impl Socket {
    /// Listens.
    ///
    /// # Errors
    /// Somebody else has the name, or it cannot be had.
    pub(crate) async fn bind(path: &Path) -> io::Result<Self> {
        make_free(path).await?;
        let listener = UnixListener::bind(path)?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
        Ok(Self {
            listener,
            file: file(path)?,
            path: path.to_owned(),
        })
    }

    /// The next one who connects.
    pub(crate) async fn accept(&self) -> io::Result<UnixStream> {
        let (stream, _) = self.listener.accept().await?;
        Ok(stream)
    }

    /// Returns when nobody finds us by our name any more.
    pub(crate) async fn lost(&self) {
        while self.is_ours() {
            sleep(CHECK_INTERVAL).await;
        }
    }

    /// Takes the name again. Whoever is connected stays so.
    ///
    /// # Errors
    /// As [`Socket::bind`]; then all is as before.
    pub(crate) async fn bind_again(&mut self) -> io::Result<()> {
        *self = Self::bind(&self.path).await?;
        Ok(())
    }

    fn is_ours(&self) -> bool {
        file(&self.path).is_ok_and(|file| file == self.file)
    }
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

impl Drop for Socket {
    fn drop(&mut self) {
        if self.is_ours() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

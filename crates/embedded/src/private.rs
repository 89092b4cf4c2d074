//! Files that are nobody else's business: keys, the store, the kubeconfig. Made so that only their owner can
//! read them, and made so again if they came here otherwise, from a backup or by hand.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Makes a directory for them, or takes one that is there.
///
/// # Errors
/// As the disk says; or everybody can put files into it.
pub(crate) fn make_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    let mode = std::fs::metadata(path)?.permissions().mode();
    if mode & 0o002 != 0 {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "everybody can put files into this directory, a key of theirs too: take that right away \
             (chmod o-w), or name another directory",
        ));
    }
    Ok(())
}

/// Takes from all but the owner the right to read or write a file, if they have it. A file that is not
/// there is left to whoever makes it.
///
/// # Errors
/// The file system refuses it.
pub(crate) fn close_to_others(path: &Path) -> io::Result<()> {
    let mode = match std::fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found?.permissions().mode(),
    };
    if mode & 0o077 == 0 {
        return Ok(());
    }
    tracing::warn!(
        path = %path.display(),
        mode = format_args!("{:o}", mode & 0o777),
        "others could read this file: from now on they cannot; if they may have, stop the server, \
         remove ca.key and give all clients the new kubeconfig"
    );
    std::fs::set_permissions(path, Permissions::from_mode(mode & 0o700))
}

/// Writes a file that only its owner can read; it is there whole, or not at all, also after a power cut.
///
/// # Errors
/// The file system refuses it.
pub(crate) fn write(path: &Path, text: &str) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let new = path.with_file_name(format!(".{name}.new"));
    let _ = std::fs::remove_file(&new);
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&new)?;
    let written = file
        .write_all(text.as_bytes())
        .and_then(|()| file.sync_all())
        .and_then(|()| std::fs::rename(&new, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&new);
        return written;
    }
    match path.parent() {
        Some(directory) => File::open(directory)?.sync_all(),
        None => Ok(()),
    }
}

//! The shim in the runtime's plugin directory, under its name and its aliases, and the file that
//! tells it where the socket is. Replaces only what is ours and only if it differs: a plugin that
//! somebody else put there stays.

use crate::host::atomic_file;
use crate::host::conflist::seen_or_made;
use crate::options::Options;
use plexus_api::cni::OWN_TYPES;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The shim's own name; the other names of [`OWN_TYPES`] are aliases.
const SHIM: &str = "plexus-cni";
/// Lies beside the shim and holds the socket's path.
const SOCKET_FILE: &str = "plexus-cni.socket";
/// What every version of the shim has in it, and no other plugin.
const MARK: &[u8] = b"PLEXUS_AGENT_SOCKET";

/// Why the shim is not installed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// There is no shim to install.
    #[error(
        "cannot read the shim {0:?} that is to be installed: is it beside `plexus`? else name it with --shim-source"
    )]
    Source(PathBuf, #[source] io::Error),
    /// What was named is something else.
    #[error("{0:?} is not plexus-cni: name the shim of this release with --shim-source")]
    NotTheShim(PathBuf),
    /// The plugin directory cannot be used.
    #[error("cannot use the plugin directory {0:?}: is the host's mounted there, and writable?")]
    Directory(PathBuf, #[source] io::Error),
    /// A file cannot be written.
    #[error("cannot write {0:?}: is the plugin directory writable, and its disk not full?")]
    Write(PathBuf, #[source] io::Error),
}

/// What was done, for the log and for tests.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Installed {
    /// Written anew.
    pub(crate) written: Vec<String>,
    /// Somebody else's plugins of our names, left alone.
    pub(crate) foreign: Vec<String>,
}

/// The shim beside the running binary, if there is one: what the command line installs by default
/// where it installs at all.
pub fn shim_beside_us() -> Option<PathBuf> {
    let exe = std::env::current_exe().ok()?;
    let shim = exe.with_file_name(SHIM);
    shim.is_file().then_some(shim)
}

/// Installs the shim if the options name one; nothing to do is nothing done.
pub(crate) fn install(options: &Options) -> Result<Installed, InstallError> {
    let Some(source) = &options.shim_source else {
        return Ok(Installed::default());
    };
    let directory = seen_or_made(&options.cni_bin_dir, options.host_root.as_deref())
        .map_err(|error| InstallError::Directory(options.cni_bin_dir.clone(), error))?;
    let installed = install_in(&directory, source, &options.socket)?;
    for name in &installed.foreign {
        tracing::warn!(
            plugin = name,
            directory = %directory.display(),
            "a plugin of another project has this name and is left as it is: its configurations do not reach Plexus"
        );
    }
    if !installed.written.is_empty() {
        let files = installed.written.join(", ");
        tracing::info!(files, directory = %directory.display(), "installed");
    }
    Ok(installed)
}

/// The files in a plugin directory that an agent has put there: the shim under all its names, and the
/// one that tells it the socket. What only has one of the names is not among them.
pub(crate) fn ours(directory: &Path) -> Vec<PathBuf> {
    let shims = OWN_TYPES.iter().map(|name| directory.join(name));
    let mut found: Vec<PathBuf> = shims
        .filter(|path| fs::read(path).is_ok_and(|content| is_ours(&content)))
        .collect();
    found.extend(Some(directory.join(SOCKET_FILE)).filter(|path| path.exists()));
    found
}

fn install_in(directory: &Path, source: &Path, socket: &Path) -> Result<Installed, InstallError> {
    let shim = fs::read(source).map_err(|e| InstallError::Source(source.to_owned(), e))?;
    if !is_ours(&shim) {
        return Err(InstallError::NotTheShim(source.to_owned()));
    }
    let mut installed = Installed::default();
    let main = directory.join(SHIM);
    let write = |path: &Path, done: io::Result<()>| {
        done.map_err(|e| InstallError::Write(path.to_owned(), e))
    };
    // Where the socket is, also if it is the usual one: no configuration may then name another. Before the shim, so that
    // a new one never looks for its agent in the wrong place.
    let path = directory.join(SOCKET_FILE);
    let text = format!("{}\n", socket.display());
    if fs::read_to_string(&path).ok().as_deref() != Some(&text) {
        write(&path, atomic_file::put(&path, text.as_bytes(), 0o644))?;
        installed.written.push(SOCKET_FILE.to_owned());
    }
    let runs = fs::metadata(&main).is_ok_and(|file| file.mode() & 0o111 == 0o111);
    if !runs || fs::read(&main).ok().as_deref() != Some(&shim) {
        write(&main, atomic_file::put(&main, &shim, 0o755))?;
        installed.written.push(SHIM.to_owned());
    }
    for alias in OWN_TYPES.iter().filter(|name| **name != SHIM) {
        let path = directory.join(alias);
        if same_file(&main, &path) {
            continue;
        }
        match fs::read(&path) {
            Ok(there) if there == shim && same_mode(&main, &path) => continue,
            Ok(there) if is_ours(&there) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            // Unreadable is nothing that we put there, either.
            _ => {
                installed.foreign.push((*alias).to_owned());
                continue;
            }
        }
        // Some file systems have no second names.
        let made =
            atomic_file::link(&main, &path).or_else(|_| atomic_file::put(&path, &shim, 0o755));
        write(&path, made)?;
        installed.written.push((*alias).to_owned());
    }
    Ok(installed)
}

fn is_ours(content: &[u8]) -> bool {
    content.windows(MARK.len()).any(|part| part == MARK)
}

fn same_file(one: &Path, two: &Path) -> bool {
    let identity = |path| fs::symlink_metadata(path).map(|file| (file.dev(), file.ino()));
    matches!((identity(one), identity(two)), (Ok(one), Ok(two)) if one == two)
}

fn same_mode(one: &Path, two: &Path) -> bool {
    let mode = |path| fs::metadata(path).map(|file| file.mode());
    matches!((mode(one), mode(two)), (Ok(one), Ok(two)) if one == two)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::atomic_file::tests::Scratch;
    use plexus_cni::shim::DEFAULT_SOCKET;
    use std::os::unix::fs::{PermissionsExt, symlink};

    const V1: &str = "\x7fELF one PLEXUS_AGENT_SOCKET";
    const V2: &str = "\x7fELF two PLEXUS_AGENT_SOCKET";

    struct Lab {
        bin: Scratch,
        image: Scratch,
    }

    impl Lab {
        fn new() -> Self {
            let (bin, image) = (Scratch::new("bin"), Scratch::new("image"));
            let lab = Self { bin, image };
            lab.release(V1);
            lab
        }

        fn release(&self, text: &str) {
            fs::write(self.image.join(SHIM), text).unwrap();
        }

        fn install(&self, socket: &str) -> Result<Installed, InstallError> {
            install_in(&self.bin.0, &self.image.join(SHIM), Path::new(socket))
        }

        fn read(&self, name: &str) -> String {
            fs::read_to_string(self.bin.join(name)).unwrap()
        }
    }

    #[test]
    fn all_names_then_nothing_to_do_then_an_upgrade() {
        let lab = Lab::new();
        let first = lab.install(DEFAULT_SOCKET).unwrap();
        assert_eq!(first.written[0], SOCKET_FILE);
        assert_eq!(first.written[1..], OWN_TYPES);
        let mode = fs::metadata(lab.bin.join("multi-nic")).unwrap();
        assert_eq!(mode.permissions().mode() & 0o777, 0o755);
        assert_eq!(mode.nlink(), 5, "aliases are second names");
        let running = fs::File::open(lab.bin.join(SHIM)).unwrap();
        assert_eq!(lab.install(DEFAULT_SOCKET).unwrap(), Installed::default());
        lab.release(V2);
        assert_eq!(lab.install(DEFAULT_SOCKET).unwrap().written, OWN_TYPES);
        for name in OWN_TYPES {
            assert_eq!(lab.read(name), V2, "{name}");
        }
        assert_eq!(io::read_to_string(running).unwrap(), V1);
        assert_eq!(lab.bin.names().len(), OWN_TYPES.len() + 1);
    }

    #[test]
    fn an_upgrade_that_was_cut_short_is_completed() {
        let lab = Lab::new();
        lab.install(DEFAULT_SOCKET).unwrap();
        lab.release(V2);
        atomic_file::put(&lab.bin.join(SHIM), V2.as_bytes(), 0o755).unwrap();
        let rest = lab.install(DEFAULT_SOCKET).unwrap();
        assert_eq!(rest.written, OWN_TYPES[1..]);
        assert_eq!(rest.foreign, [""; 0]);
        fs::set_permissions(lab.bin.join(SHIM), fs::Permissions::from_mode(0o600)).unwrap();
        assert!(!lab.install(DEFAULT_SOCKET).unwrap().written.is_empty());
        let mode = fs::metadata(lab.bin.join(SHIM)).unwrap().mode();
        assert_eq!(mode & 0o777, 0o755);
    }

    #[test]
    fn what_is_not_ours_stays() {
        let lab = Lab::new();
        let real = Scratch::new("real");
        fs::write(real.join("their-binary"), "theirs").unwrap();
        fs::write(lab.bin.join("bridge"), "the real bridge").unwrap();
        fs::write(lab.bin.join("multi-nic"), "another project's").unwrap();
        symlink(real.join("their-binary"), lab.bin.join("contrail-k8s-cni")).unwrap();
        fs::create_dir(lab.bin.join("multi-nic-ipam")).unwrap();
        let installed = lab.install(DEFAULT_SOCKET).unwrap();
        assert_eq!(
            installed.foreign,
            ["contrail-k8s-cni", "multi-nic", "multi-nic-ipam"]
        );
        assert_eq!(lab.read("bridge"), "the real bridge");
        assert_eq!(lab.read("multi-nic"), "another project's");
        assert_eq!(
            fs::read_to_string(real.join("their-binary")).unwrap(),
            "theirs"
        );
        assert_eq!(lab.read("multus-multivpc-cni"), V1);
        let ours = ours(&lab.bin.0);
        let ours = ours.iter().filter_map(|path| path.file_name()?.to_str());
        assert_eq!(
            ours.collect::<Vec<_>>(),
            [SHIM, "multus-multivpc-cni", SOCKET_FILE]
        );
    }

    #[test]
    fn the_socket_is_told_whichever_it_is() {
        let lab = Lab::new();
        lab.install("/run/other.sock").unwrap();
        assert_eq!(lab.read(SOCKET_FILE), "/run/other.sock\n");
        assert_eq!(
            lab.install("/run/other.sock").unwrap(),
            Installed::default()
        );
        lab.install(DEFAULT_SOCKET).unwrap();
        assert_eq!(lab.read(SOCKET_FILE), format!("{DEFAULT_SOCKET}\n"));
    }

    #[test]
    fn failures_name_the_file_and_the_way_out() {
        let lab = Lab::new();
        let absent = install_in(&lab.bin.0, Path::new("/absent/plexus-cni"), Path::new("/s"));
        assert!(absent.unwrap_err().to_string().contains("--shim-source"));
        lab.release("#!/bin/sh\nsomething else");
        let error = lab.install("/s").unwrap_err();
        assert!(matches!(error, InstallError::NotTheShim(_)), "{error}");
        assert_eq!(lab.bin.names(), [""; 0]);
        lab.release(V1);
        fs::create_dir(lab.bin.join(SHIM)).unwrap();
        let error = lab.install(DEFAULT_SOCKET).unwrap_err().to_string();
        assert!(
            error.contains("plexus-cni") && error.contains("writable"),
            "{error}"
        );
    }
}

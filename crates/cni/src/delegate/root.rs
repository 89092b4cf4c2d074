//! The host's root, for an agent in a container: plugins are files of the host and expect the host's
//! files around them, so they are looked for and executed in there.
//!
//! Between fork and exec nothing but the kernel's word is safe, so that the step into the root is a
//! short-lived process of its own: our binary, told by [`IN_ROOT`] to enter and become the plugin.
//! Standard input is inherited through both, and with it the lock that says that the plugin lives.

use super::exec::unless_busy;
use rustix::fs::{Mode, OFlags, ResolveFlags, open, openat2};
use rustix::process::{chdir, chroot};
use std::convert::Infallible;
use std::fs;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The word by which our binary is told to enter a root: `plexus __in-root ROOT PLUGIN`.
pub const IN_ROOT: &str = "__in-root";

/// The exit code of a process that could not become the plugin; its standard error says why.
pub const NOT_EXECUTED: u8 = 126;

/// How a message of such a process begins.
const COMPLAINT: &str = "plexus: not executed: ";

/// Where plugins live, if not in our own root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// The host's `/`, as we see it.
    pub dir: PathBuf,
    /// Who enters it: called with [`IN_ROOT`], the directory and the plugin.
    pub helper: PathBuf,
}

impl Root {
    /// Entered by the program that is running now, even if its file has been replaced.
    pub fn new(dir: PathBuf) -> Self {
        let helper = PathBuf::from("/proc/self/exe");
        Self { dir, helper }
    }

    /// The command that becomes the plugin.
    pub(super) fn command(&self, plugin: &Path) -> Command {
        let mut command = Command::new(&self.helper);
        command.arg(IN_ROOT).arg(&self.dir).arg(plugin);
        command
    }
}

/// Makes `root` the root and becomes `plugin`, a path in there. Comes back only with a reason why
/// not; print it with [`complaint`] and exit with [`NOT_EXECUTED`].
pub fn enter_root_and_exec(root: &Path, plugin: &Path) -> io::Error {
    let entered = chroot(root).and_then(|()| chdir("/"));
    if let Err(error) = entered {
        return io::Error::other(format!("cannot make {root:?} the root directory: {error}"));
    }
    let mut command = Command::new(plugin);
    let executed: io::Result<Infallible> =
        check_format(plugin).and_then(|()| unless_busy(|| Err(command.exec())));
    match executed {
        Err(error) => error,
    }
}

/// What [`enter_root_and_exec`] has to say, in the form that the runner understands.
pub fn complaint(error: &io::Error) -> String {
    format!("{COMPLAINT}{error}")
}

/// The reason in a complaint.
pub(super) fn reason(stderr: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(stderr);
    text.trim().strip_prefix(COMPLAINT).map(str::to_owned)
}

/// A path of the host as we see it: links in it lead where they lead on the host.
pub fn seen_from_here(root: Option<&Path>, path: &Path) -> io::Result<PathBuf> {
    let Some(root) = root else {
        return Ok(path.to_owned());
    };
    let file = open_in(root, path)?;
    fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

fn open_in(root: &Path, path: &Path) -> io::Result<OwnedFd> {
    let root = open(
        root,
        OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let how = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    Ok(openat2(&root, path, flags, Mode::empty(), how)?)
}

/// What the kernel does not know is handed to a shell by the C library, whatever it is.
fn check_format(plugin: &Path) -> io::Result<()> {
    let mut start = [0; 7];
    let read = fs::File::open(plugin).and_then(|mut file| file.read_exact(&mut start));
    match (read, start) {
        (Ok(()), [b'#', b'!', ..] | [0x7f, b'E', b'L', b'F', 1..=2, 1..=2, 1]) => Ok(()),
        (Ok(()), _) => Err(rustix::io::Errno::NOEXEC.into()),
        (Err(error), _) if error.kind() == io::ErrorKind::UnexpectedEof => {
            Err(rustix::io::Errno::NOEXEC.into())
        }
        (Err(error), _) => Err(error),
    }
}

//! A virtual machine with Debian's kernel, for tests of what the kernel of this machine lacks, or has and must
//! lack: `tools/vm/run`. This file installs what that needs, the first time; a kernel that is in the cache is
//! complete, because it gets its name last, and stays until somebody removes it.

use crate::{run, workspace::Workspace};
use anyhow::{Context, Result, bail};
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const PACKAGES: &str = "tools/vm/packages.txt";
/// Depends on the newest kernel, whose version is in its name.
const NEWEST: &str = "linux-image-amd64";
const KERNEL: &str = "PLEXUS_VM_KERNEL";

/// The verb: takes our place, so that the exit code of the command is that of `cargo xtask`.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    install_missing(workspace)?;
    let mut script = Command::new(script(workspace));
    let failed = script.args(arguments).envs(variables(workspace)?).exec();
    Err(failed).with_context(|| format!("cannot start {}", script.get_program().display()))
}

/// What tests find it by; the kernel only once it is installed.
pub(crate) fn variables(workspace: &Workspace) -> Result<Vec<(&'static str, PathBuf)>> {
    let mut variables = vec![("PLEXUS_VM", script(workspace))];
    variables.extend(installed(workspace)?.map(|kernel| (KERNEL, kernel)));
    Ok(variables)
}

/// Debian packages, and the kernel in `<cache>/tools/linux-<version>`: `vmlinux` and `lib/modules`.
pub(crate) fn install_missing(workspace: &Workspace) -> Result<()> {
    let mut bootstrap = Command::new(workspace.root.join("tools/bootstrap"));
    run::quiet(workspace, bootstrap.arg(PACKAGES))?;
    if installed(workspace)?.is_some() {
        return Ok(());
    }
    run::logged(workspace, Command::new("apt-get").args(["update", "-qq"]))?;
    let package = newest_package()?;
    let version = package.trim_start_matches("linux-image-");
    let wanted = workspace.tools().join(format!("linux-{version}"));
    println!("unpacking {package} into {}", wanted.display());
    let partial = workspace
        .tools()
        .join(format!("linux.partial-{}", std::process::id()));
    fs::create_dir_all(&partial).with_context(|| format!("cannot make {}", partial.display()))?;
    let named = unpack(workspace, &package, version, &partial)
        .and_then(|()| fs::rename(&partial, &wanted).context("cannot give it its name"));
    if named.is_err() {
        let _ = fs::remove_dir_all(&partial);
    }
    // Somebody else may have been faster.
    match named {
        Err(_) if wanted.is_dir() => Ok(()),
        named => named.with_context(|| format!("cannot install {}", wanted.display())),
    }
}

/// What runs a command there.
pub(crate) fn script(workspace: &Workspace) -> PathBuf {
    workspace.root.join("tools/vm/run")
}

fn installed(workspace: &Workspace) -> Result<Option<PathBuf>> {
    let dir = workspace.tools();
    if !dir.is_dir() {
        return Ok(None);
    }
    let mut found = None;
    for entry in fs::read_dir(&dir).with_context(|| format!("cannot list {}", dir.display()))? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with("linux-") {
            found = found.max(Some(entry.path()));
        }
    }
    Ok(found)
}

fn newest_package() -> Result<String> {
    let mut show = Command::new("apt-cache");
    let show = show
        .args(["show", "--no-all-versions", NEWEST])
        .output()
        .context("cannot start apt-cache: is this Debian?")?;
    let text = String::from_utf8_lossy(&show.stdout);
    let package = dependency(&text)
        .with_context(|| format!("apt knows no {NEWEST} that depends on a kernel: {text:?}"))?;
    Ok(package.to_owned())
}

/// The kernel that is the first dependency in a package's description.
fn dependency(description: &str) -> Option<&str> {
    let depends = description
        .lines()
        .find_map(|line| line.strip_prefix("Depends: "))?;
    let package = depends.split([' ', ',']).next()?;
    package.starts_with("linux-image-").then_some(package)
}

fn unpack(workspace: &Workspace, package: &str, version: &str, dir: &Path) -> Result<()> {
    let mut download = Command::new("env");
    download.arg("--chdir").arg(dir);
    download.args(["apt-get", "-qq", "-o", "APT::Sandbox::User=root"]);
    run::logged(workspace, download.args(["download", package]))?;
    let archive = fs::read_dir(dir)?
        .next()
        .context("apt-get left no file")??;
    let mut extract = Command::new("dpkg-deb");
    extract.arg("--extract").arg(archive.path()).arg(dir);
    run::logged(workspace, &mut extract)?;
    decompress(
        &dir.join(format!("boot/vmlinuz-{version}")),
        &dir.join("vmlinux"),
    )?;
    fs::remove_file(archive.path())?;
    for unused in ["boot", "usr"] {
        fs::remove_dir_all(dir.join(unused))?;
    }
    let mut depmod = Command::new("/sbin/depmod");
    run::logged(workspace, depmod.arg("--basedir").arg(dir).arg(version))
}

/// The kernel as it is in memory: without hardware that helps, a guest would need seconds to decompress it.
fn decompress(image: &Path, to: &Path) -> Result<()> {
    let failed = || format!("cannot decompress {}", image.display());
    let mut file = File::open(image).with_context(failed)?;
    let mut header = [0; 0x250];
    file.read_exact(&mut header).with_context(failed)?;
    let payload = payload(&header).with_context(|| format!("{} is no kernel", image.display()))?;
    file.seek(SeekFrom::Start(payload)).with_context(failed)?;
    // Its size follows the compressed kernel.
    let mut xz = Command::new("xz");
    let xz = xz.args(["--decompress", "--stdout", "--single-stream"]);
    let status = xz
        .stdin(file)
        .stdout(File::create(to).with_context(failed)?)
        .status()
        .with_context(failed)?;
    if !status.success() {
        bail!("{}: xz ended with {status}", failed());
    }
    Ok(())
}

/// Where the compressed kernel is, by the header of the x86 boot protocol.
fn payload(header: &[u8]) -> Option<u64> {
    if header.get(0x202..0x206)? != b"HdrS" {
        return None;
    }
    let sectors = u64::from(*header.get(0x1f1)?);
    let offset = u32::from_le_bytes(header.get(0x248..0x24c)?.try_into().ok()?);
    Some((sectors + 1) * 512 + u64::from(offset))
}

#[cfg(test)]
mod tests {
    use super::{dependency, payload};

    #[test]
    fn the_kernel_is_found_by_its_header() {
        let mut header = [0; 0x250];
        assert_eq!(payload(&header), None);
        header[0x202..0x206].copy_from_slice(b"HdrS");
        header[0x1f1] = 39;
        header[0x248..0x24c].copy_from_slice(&716_u32.to_le_bytes());
        assert_eq!(payload(&header), Some(40 * 512 + 716));
        assert_eq!(payload(&header[..0x249]), None);
    }

    #[test]
    fn the_kernel_is_the_first_dependency() {
        let description =
            "Package: x\nPre-Depends: y\nDepends: linux-image-6.1.0-9-amd64 (= 6.1.27-1), z\n";
        assert_eq!(dependency(description), Some("linux-image-6.1.0-9-amd64"));
        assert_eq!(dependency("Depends: z\n"), None);
        assert_eq!(dependency(""), None);
    }
}

//! The images of a lab, made here because there is no registry: the sandbox's, a busybox for tests,
//! and Plexus's own from our binaries. Each is an archive that every node imports.

mod archive;

use crate::command::{output, run};
use crate::layout::Layout;
use crate::spec::Binaries;
use crate::tools::in_path;
use anyhow::{Context, Result};
use archive::{Image, Rootfs};
use std::fs;
use std::path::{Path, PathBuf};

/// The image that the manifest names.
pub const PLEXUS: &str = "localhost/plexus:dev";
/// A busybox; also under the name that `image: busybox` stands for.
pub const BUSYBOX: &str = "localhost/busybox:1";

const APPLETS: &str = "arping awk cat chmod cp cut date dd echo env expr false find grep head hostname \
    httpd id ifconfig ip kill ln ls mkdir mktemp mount mv nc netstat nslookup od ping ping6 printf ps pwd \
    readlink rm route sed seq sh sleep sort stat sync tail tcpsvd tee test time timeout touch tr \
    traceroute traceroute6 true udpsvd umount uname uniq vi wc which xargs";

/// Makes the archives of a new lab.
pub(crate) fn make(layout: &Layout, binaries: Option<&Binaries>) -> Result<()> {
    let images = layout.images();
    fs::create_dir_all(&images).with_context(|| format!("cannot make {}", images.display()))?;
    pause(layout)?;
    busybox(layout)?;
    if let Some(binaries) = binaries {
        plexus(layout, binaries, PLEXUS)?;
    }
    Ok(())
}

/// The archives that a node imports.
pub(crate) fn archives(layout: &Layout) -> Result<Vec<PathBuf>> {
    let images = layout.images();
    let entries =
        fs::read_dir(&images).with_context(|| format!("cannot list {}", images.display()))?;
    let mut found: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "tar"))
        .collect();
    found.sort();
    Ok(found)
}

/// An image of programs, each with the place that it gets, and the libraries that they need.
pub(crate) fn of_programs(
    layout: &Layout,
    name: &str,
    programs: &[(PathBuf, &str)],
) -> Result<PathBuf> {
    let root = with_programs(layout, name, programs)?;
    root.into_archive(&Image {
        names: &[name],
        entrypoint: &[],
    })
}

/// Plexus's image: `plexus` and `plexus-cni` in `/bin`, and `nft` and `iptables` for the plugins that it
/// may have to run.
pub(crate) fn plexus(layout: &Layout, binaries: &Binaries, name: &str) -> Result<PathBuf> {
    let programs = [
        (binaries.plexus.clone(), "bin/plexus"),
        (binaries.shim.clone(), "bin/plexus-cni"),
        (in_path("nft")?, "usr/sbin/nft"),
        (in_path("iptables")?, "usr/sbin/iptables"),
    ];
    let root = with_programs(layout, name, &programs)?;
    root.link("iptables", "usr/sbin/ip6tables")?;
    extensions(&root)?;
    root.into_archive(&Image {
        names: &[name],
        entrypoint: &["/bin/plexus"],
    })
}

fn with_programs(layout: &Layout, name: &str, programs: &[(PathBuf, &str)]) -> Result<Rootfs> {
    let root = Rootfs::new(layout, name)?;
    for (program, path) in programs {
        root.copy(program, path.trim_start_matches('/'))?;
        for library in libraries(program)? {
            root.copy_in_place(&library)?;
        }
    }
    Ok(root)
}

fn pause(layout: &Layout) -> Result<()> {
    let source = layout.images().join("pause.c");
    fs::write(&source, include_str!("pause.c"))
        .with_context(|| format!("cannot write {}", source.display()))?;
    let text = |path: &Path| path.display().to_string();
    run(&[
        "gcc",
        "-Os",
        "-static",
        "-o",
        &text(&layout.pause()),
        &text(&source),
    ])?;
    let root = Rootfs::new(layout, "localhost/pause:1")?;
    root.copy(&layout.pause(), "pause")?;
    root.into_archive(&Image {
        names: &["localhost/pause:1"],
        entrypoint: &["/pause"],
    })?;
    Ok(())
}

fn busybox(layout: &Layout) -> Result<()> {
    let root = Rootfs::new(layout, BUSYBOX)?;
    root.copy(&in_path("busybox")?, "bin/busybox")?;
    for applet in APPLETS.split_whitespace() {
        root.link("busybox", &format!("bin/{applet}"))?;
    }
    root.into_archive(&Image {
        names: &[BUSYBOX, "docker.io/library/busybox:latest"],
        entrypoint: &[],
    })?;
    Ok(())
}

/// What the loader will look for; nothing if the program is static.
fn libraries(program: &Path) -> Result<Vec<PathBuf>> {
    let output = output(&["ldd", &program.display().to_string()], "")?;
    Ok(libraries_in(&String::from_utf8_lossy(&output.stdout)))
}

fn libraries_in(text: &str) -> Vec<PathBuf> {
    text.lines()
        .filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')))
        .filter(|word| !word.ends_with(':'))
        .map(PathBuf::from)
        .collect()
}

/// iptables loads its matches and targets from a directory.
fn extensions(root: &Rootfs) -> Result<()> {
    for dir in [
        "/usr/lib/x86_64-linux-gnu/xtables",
        "/usr/lib/aarch64-linux-gnu/xtables",
    ] {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            root.copy_in_place(&entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::libraries_in;
    use std::path::PathBuf;

    #[test]
    fn libraries_are_the_absolute_paths() {
        let text = "\tlinux-vdso.so.1 (0x00007ffd)\n\
                    \tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f)\n\
                    \t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n";
        let expected = [
            "/lib/x86_64-linux-gnu/libc.so.6",
            "/lib64/ld-linux-x86-64.so.2",
        ];
        assert_eq!(libraries_in(text), expected.map(PathBuf::from));
        assert!(libraries_in("\tnot a dynamic executable\n").is_empty());
    }
}

//! Sysctls below `/proc/sys/net`, which shows the namespace of the thread that opens a file. Owns
//! reading and writing them; never goes into a namespace itself.

use crate::effect::effect;
use plexus_core::plan::Setting;
use rustix::fs::{CWD, Mode, OFlags};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

/// A sysctl that cannot be read or set.
#[derive(Debug, thiserror::Error)]
pub enum SysctlError {
    /// A key that could lead elsewhere.
    #[error("sysctl key {0:?} is not legal: use a path below net, without empty or dotted parts")]
    Key(String),
    /// Not readable.
    #[error(
        "cannot read sysctl {key}: does the interface exist, and does the kernel know the key?"
    )]
    Read {
        /// The key.
        key: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Not writable, or the value is refused.
    #[error(
        "cannot set sysctl {key} to {value:?}: does the interface exist, and is /proc/sys writable?"
    )]
    Write {
        /// The key.
        key: String,
        /// The value.
        value: String,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// No value below `net` that we read has more bytes; the kernel gives each whole with the first read.
const LONGEST: usize = 256;

/// The value of `key` in the calling thread's namespace, without the line end.
pub fn read(key: &str) -> Result<String, SysctlError> {
    check(key)?;
    let mut text = [0; LONGEST];
    let read = File::open(format!("/proc/sys/{key}")).and_then(|mut file| file.read(&mut text));
    read.map(|length| {
        let text = String::from_utf8_lossy(text.get(..length).unwrap_or_default());
        text.trim_end().to_owned()
    })
    .map_err(|source| SysctlError::Read {
        key: key.into(),
        source,
    })
}

/// Sets it in the calling thread's namespace. A key below `net/ipv6` is passed over if the kernel
/// runs without IPv6: there is nothing that it could govern.
pub fn write(setting: &Setting) -> Result<(), SysctlError> {
    write_through(None, setting)
}

/// As [`write`], through an instance of procfs if one is given.
pub(crate) fn write_through(
    procfs: Option<&OwnedFd>,
    setting: &Setting,
) -> Result<(), SysctlError> {
    check(&setting.key)?;
    let written = effect!("sysctl").around(|| {
        match procfs {
            Some(procfs) => open_at(procfs, &format!("sys/{}", setting.key)),
            None => open_at(CWD, &format!("/proc/sys/{}", setting.key)),
        }?
        .write_all(setting.value.as_bytes())
    });
    match written {
        Err(e) if e.kind() == io::ErrorKind::NotFound && without_ipv6(&setting.key) => Ok(()),
        Err(source) => Err(SysctlError::Write {
            key: setting.key.clone(),
            value: setting.value.clone(),
            source,
        }),
        Ok(()) => Ok(()),
    }
}

/// Sets it unless it has that value already; says whether it was set.
pub fn ensure(setting: &Setting) -> Result<bool, SysctlError> {
    match read(&setting.key) {
        Ok(value) if value == setting.value => Ok(false),
        Ok(_) | Err(SysctlError::Read { .. }) => write(setting).map(|()| true),
        Err(error) => Err(error),
    }
}

fn check(key: &str) -> Result<(), SysctlError> {
    let legal = key.starts_with("net/")
        && key.len() < 256
        && key.split('/').all(|part| !matches!(part, "" | "." | ".."))
        && !key.contains('\0');
    let refused = || SysctlError::Key(key.chars().take(80).collect());
    legal.then_some(()).ok_or_else(refused)
}

fn open_at(directory: impl AsFd, path: &str) -> io::Result<File> {
    // Neither created nor truncated: a missing key must stay an error.
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(directory, path, flags, Mode::empty())?.into())
}

fn without_ipv6(key: &str) -> bool {
    key.starts_with("net/ipv6/") && !Path::new("/proc/sys/net/ipv6").exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_lead_elsewhere_are_refused() {
        for key in [
            "",
            "kernel/panic",
            "net/../kernel/panic",
            "/net/ipv4/x",
            "net//x",
            "net/./x",
            "net/a\0",
        ] {
            assert!(matches!(read(key), Err(SysctlError::Key { .. })), "{key:?}");
        }
    }

    #[test]
    fn a_missing_key_is_named() {
        let setting = Setting {
            key: "net/ipv4/conf/nosuch/arp_notify".into(),
            value: "1".into(),
        };
        let error = write(&setting).unwrap_err().to_string();
        assert!(error.contains("net/ipv4/conf/nosuch/arp_notify"), "{error}");
    }
}

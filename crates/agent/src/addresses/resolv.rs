//! host-local's `resolvConf`: a file whose content becomes the result's DNS.

use plexus_api::cni::{Code, Dns, Error};
use rustix::fs::{FileType, Mode, OFlags, fstat, open};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::path::Path;

/// Reads at most 64 KiB of a resolver configuration.
pub(crate) fn read(path: &Path) -> Result<Dns, Error> {
    let mut text = String::new();
    open_regular(path)
        .and_then(|file| file.take(64 * 1024).read_to_string(&mut text))
        .map_err(|error| {
            Error::new(
                Code::InvalidConfig,
                format!("ipam.resolvConf: cannot read {}: {error}", path.display()),
                "name a regular file that exists on this node",
            )
        })?;
    Ok(parse(&text))
}

/// What is no regular file is not even opened: a pipe blocks, and a device may do something.
fn open_regular(path: &Path) -> io::Result<File> {
    let found = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    match FileType::from_raw_mode(fstat(&found)?.st_mode) {
        FileType::RegularFile => File::open(format!("/proc/self/fd/{}", found.as_raw_fd())),
        _ => Err(io::Error::other("it is not a regular file")),
    }
}

fn parse(text: &str) -> Dns {
    let mut dns = Dns::default();
    for line in text.lines().map(str::trim) {
        if line.starts_with(['#', ';']) {
            continue;
        }
        let mut words = line.split_whitespace();
        let (Some(keyword), Some(first)) = (words.next(), words.next()) else {
            continue;
        };
        let all = || {
            std::iter::once(first)
                .chain(words.clone())
                .map(str::to_owned)
        };
        match keyword {
            "nameserver" => dns.nameservers.push(first.to_owned()),
            "domain" => dns.domain = Some(first.to_owned()),
            "search" => dns.search.extend(all()),
            "options" => dns.options.extend(all()),
            _ => {}
        }
    }
    dns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_a_resolver_reads() {
        let dns = parse(
            "# x\nnameserver 10.0.0.1\nnameserver ::1 junk\n;y\nsearch a b\nsearch c\noptions ndots:5\ndomain d\nlonely\n",
        );
        assert_eq!(dns.nameservers, ["10.0.0.1", "::1"]);
        assert_eq!(
            (
                dns.search.len(),
                dns.domain.as_deref(),
                dns.options[0].as_str()
            ),
            (3, Some("d"), "ndots:5")
        );
    }

    #[test]
    fn only_a_regular_file_is_read_wherever_links_lead() {
        let dir = std::env::temp_dir().join(format!("plexus-resolv-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let named = |name: &str| dir.join(name);
        std::fs::write(named("file"), "nameserver 10.0.0.1\n").unwrap();
        std::os::unix::fs::symlink("file", named("link")).unwrap();
        assert_eq!(read(&named("link")).unwrap().nameservers, ["10.0.0.1"]);
        let pipe = named("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, FileType::Fifo, 0o600.into(), 0).unwrap();
        std::os::unix::fs::symlink("/dev/zero", named("device")).unwrap();
        for other in ["device", "", "pipe"] {
            let error = read(&named(other)).unwrap_err();
            assert!(error.msg.contains("not a regular file"), "{error}");
        }
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = read(Path::new("/no/such/resolv.conf")).unwrap_err();
        assert!(error.msg.contains("/no/such/resolv.conf"), "{error}");
    }
}

//! host-local's `resolvConf`: a file whose content becomes the result's DNS.

use plexus_api::cni::{Code, Dns, Error};
use std::io::Read;
use std::path::Path;

/// Reads at most 64 KiB of a resolver configuration.
pub(crate) fn read(path: &Path) -> Result<Dns, Error> {
    let mut text = String::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(64 * 1024).read_to_string(&mut text))
        .map_err(|error| {
            Error::new(
                Code::InvalidConfig,
                format!("ipam.resolvConf: cannot read {}: {error}", path.display()),
                "name a file that exists on this node",
            )
        })?;
    Ok(parse(&text))
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
    fn a_missing_file_is_named() {
        let error = read(Path::new("/no/such/resolv.conf")).unwrap_err();
        assert!(error.msg.contains("/no/such/resolv.conf"), "{error}");
    }
}

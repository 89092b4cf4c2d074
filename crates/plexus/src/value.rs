//! Values of flags, wherever they are written: what is legal, said when it is not.

use anyhow::bail;
use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use ipnet::IpNet;
use plexus_cli::kinds;
use plexus_types::PluginType;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::net::SocketAddr;
use std::time::Duration;

/// A whole number within bounds.
pub(crate) fn number<const LOW: u16, const HIGH: u16>(text: &str) -> Result<u16, String> {
    text.parse()
        .ok()
        .filter(|number| (LOW..=HIGH).contains(number))
        .ok_or_else(|| format!("write a whole number from {LOW} to {HIGH}"))
}

/// A span of time of at most an hour, as Go and kubectl write it: 30s, 1m30s, 500ms; 0 is 0.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    const HOUR: Duration = Duration::from_secs(3600);
    let wrong = || "write a time of at most 1h, such as 30s, 1m30s or 500ms".to_owned();
    let mut rest = text;
    let mut all = Duration::ZERO;
    if text == "0" {
        return Ok(all);
    }
    while !rest.is_empty() || text.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
        let (number, unit) = rest.split_at(digits);
        let number: u32 = number.parse().map_err(|_| wrong())?;
        let letters = unit.find(|c: char| c.is_ascii_digit());
        let (unit, next) = unit.split_at(letters.unwrap_or(unit.len()));
        let one = match unit {
            "ms" => Duration::from_millis(1),
            "s" => Duration::from_secs(1),
            "m" => Duration::from_secs(60),
            "h" => HOUR,
            _ => return Err(wrong()),
        };
        all = all.saturating_add(one.saturating_mul(number));
        rest = next;
    }
    match all <= HOUR {
        true => Ok(all),
        false => Err(wrong()),
    }
}

/// A filter of the log. A word that is no level would be taken for a room of that name, and
/// nothing else would be logged.
pub(crate) fn log(text: &str) -> Result<String, String> {
    const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
    for part in text.split(',').map(str::trim) {
        let level = LEVELS.iter().any(|level| level.eq_ignore_ascii_case(part));
        if !level && !part.contains('=') {
            let levels = LEVELS.join(", ");
            let shortened: String = part.chars().take(64).collect();
            return Err(format!(
                "{shortened:?} is not a level: write one of {levels}, or a room's, such as \
                 plexus_agent=debug"
            ));
        }
    }
    match tracing_subscriber::EnvFilter::try_new(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// A prefix with nothing set behind its length.
pub(crate) fn cidr(text: &str) -> Result<IpNet, String> {
    let net: IpNet = text
        .parse()
        .map_err(|_| "write prefixes such as 10.244.0.0/16 or fd00:244::/56".to_owned())?;
    if net.network() != net.addr() {
        return Err(format!("the network is {}: write that", net.trunc()));
    }
    Ok(net)
}

/// Several of them, or none.
#[derive(Debug, Clone)]
pub(crate) struct Cidrs(pub(crate) Vec<IpNet>);

/// Prefixes with commas between them; nothing is none.
pub(crate) fn cidrs(text: &str) -> Result<Cidrs, String> {
    let each = text.split(',').filter(|_| !text.is_empty());
    each.map(cidr).collect::<Result<_, _>>().map(Cidrs)
}

/// Several plugin types, or none.
#[derive(Debug, Clone)]
pub(crate) struct PluginTypes(pub(crate) BTreeSet<PluginType>);

/// Plugin types with commas between them; nothing is none.
pub(crate) fn plugin_types(text: &str) -> Result<PluginTypes, String> {
    let each = text.split(',').filter(|_| !text.is_empty());
    let each = each.map(|one| PluginType::new(one).map_err(|error| error.to_string()));
    each.collect::<Result<_, _>>().map(PluginTypes)
}

/// An address of this host alone, with a port.
pub(crate) fn loopback(text: &str) -> Result<SocketAddr, String> {
    let address: Result<SocketAddr, _> = text.parse();
    address
        .ok()
        .filter(|address| address.ip().is_loopback())
        .ok_or_else(|| "write a loopback address and a port, such as 127.0.0.1:9091".to_owned())
}

/// The name of a namespace or a cluster.
pub(crate) fn label(text: &str) -> Result<String, String> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let inner = |byte: u8| plain(byte) || byte == b'-';
    let ends = text.bytes().next().is_some_and(plain) && text.bytes().last().is_some_and(plain);
    if !ends || text.len() > 63 || !text.bytes().all(inner) {
        return Err("write 1 to 63 lower-case letters, digits and inner \"-\"".to_owned());
    }
    Ok(text.to_owned())
}

/// A word for a kind, or several with commas: any is taken; shells offer these.
#[derive(Debug, Clone)]
pub(crate) struct KindWords(pub(crate) fn() -> Vec<&'static str>);

impl TypedValueParser for KindWords {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.0)().into_iter().map(PossibleValue::new)))
    }
}

/// The kinds that can be listed.
pub(crate) fn every_kind() -> Vec<&'static str> {
    kinds::all().map(|kind| kind.plural).collect()
}

/// The namespace and the name of what was named `[NAMESPACE/]NAME`, with the namespace given beside it.
pub(crate) fn namespace_and_name<'n>(
    written: &'n str,
    beside: Option<&'n str>,
) -> anyhow::Result<(Option<&'n str>, &'n str)> {
    match (written.split_once('/'), beside) {
        (None, beside) => Ok((beside, written)),
        (Some((_, name)), _) if name.contains('/') => {
            bail!("{written:?} is no name: write [NAMESPACE/]NAME")
        }
        (Some((within, name)), None) => Ok((Some(within), name)),
        (Some((within, name)), Some(beside)) if within == beside => Ok((Some(within), name)),
        (Some((within, _)), Some(beside)) => {
            bail!("the namespace is {within} in the name and {beside} beside it: keep one")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_say_their_range() {
        assert_eq!(number::<1, 256>("256"), Ok(256));
        for text in [
            "0",
            "257",
            "-1",
            "",
            "1.5",
            "many",
            "99999999999999999999",
            " 1",
        ] {
            let error = number::<1, 256>(text).unwrap_err();
            assert_eq!(error, "write a whole number from 1 to 256", "{text:?}");
        }
    }

    #[test]
    fn spans_of_time_are_written_as_kubectl_takes_them() {
        for (text, milliseconds) in [
            ("0", 0),
            ("0s", 0),
            ("30s", 30_000),
            ("1m30s", 90_000),
            ("500ms", 500),
            ("1h", 3_600_000),
        ] {
            let expected = Duration::from_millis(milliseconds);
            assert_eq!(duration(text), Ok(expected), "{text}");
        }
        for text in [
            "",
            "30",
            "s",
            "1d",
            "-1s",
            "1.5s",
            "1h1s",
            "99999999999s",
            "1s ",
            "1s2",
        ] {
            let error = duration(text).unwrap_err();
            assert!(error.contains("such as 30s"), "{text}: {error}");
        }
    }

    #[test]
    fn nothing_is_no_plugin() {
        assert!(plugin_types("").unwrap().0.is_empty());
        let two = plugin_types("macvlan,ipvlan").unwrap().0;
        assert_eq!(
            two.iter().map(PluginType::as_str).collect::<Vec<_>>(),
            ["ipvlan", "macvlan"]
        );
        for text in [",", "a,", "a/b"] {
            assert!(plugin_types(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_filter_is_made_of_levels() {
        for text in [
            "info",
            "INFO",
            "off",
            "info,plexus_agent=debug",
            "plexus_agent=trace, warn",
        ] {
            assert_eq!(log(text).as_deref(), Ok(text));
        }
        for text in ["verbose", "", "info,", "plexus_agent", "debug,verbose", "3"] {
            let error = log(text).unwrap_err();
            assert!(
                error.contains("off, error, warn, info, debug, trace"),
                "{error}"
            );
        }
        assert!(log("plexus_agent=verbose").is_err());
    }

    #[test]
    fn addresses_and_names() {
        assert!(cidr("10.244.0.0/16").is_ok() && cidr("fd00:96::/112").is_ok());
        for text in [
            "",
            "10.244.0.0",
            "10.244.0.0/33",
            "10.244.0.1/16",
            "fd00::1/64",
            " 10.0.0.0/8",
        ] {
            assert!(cidr(text).is_err(), "{text:?}");
        }
        assert!(loopback("127.0.0.1:9091").is_ok() && loopback("[::1]:9091").is_ok());
        for text in [
            "",
            "0.0.0.0:9091",
            "[::]:9091",
            "10.0.0.1:80",
            "127.0.0.1",
            "localhost:1",
        ] {
            assert!(loopback(text).is_err(), "{text:?}");
        }
        assert_eq!(label("plexus-system").as_deref(), Ok("plexus-system"));
        for text in ["", "-a", "a-", "A", "a.b", "a/b", "a b", &"a".repeat(64)] {
            assert!(label(text).is_err(), "{text:?}");
        }
    }
}

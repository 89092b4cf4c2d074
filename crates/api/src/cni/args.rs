//! CNI_ARGS: `KEY=value;KEY=value`. Owns which keys we know and how they are read; keys are
//! matched as the reference plugins do, with regard to case.

use super::{Code, Error};
use crate::text::{FromText, quoted};
use plexus_types::Mac;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// What we understand of CNI_ARGS.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Args {
    /// `K8S_POD_UID`: a new sandbox of the same pod replaces the old one.
    pub pod_uid: Option<String>,
    /// `K8S_POD_NAMESPACE`
    pub pod_namespace: Option<String>,
    /// `K8S_POD_NAME`
    pub pod_name: Option<String>,
    /// `IP`: addresses asked for, with a prefix length if one is written.
    pub ips: Vec<(IpAddr, Option<u8>)>,
    /// `GATEWAY`: gateways of those addresses (IPAM `static`).
    pub gateways: Vec<IpAddr>,
    /// `MAC`
    pub mac: Option<Mac>,
    /// `IgnoreUnknown`: keys that nobody takes are no error.
    pub ignore_unknown: bool,
    /// The rest, kept for delegates. Refused without `IgnoreUnknown=1`, unless it begins with
    /// `K8S_`.
    pub others: BTreeMap<String, String>,
}

impl Args {
    /// Reads the variable's text; empty text is no arguments. All problems are reported at once.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let mut args = Self::default();
        let mut problems = Vec::new();
        let mut seen = BTreeMap::new();
        for pair in text.split(';').filter(|_| !text.is_empty()) {
            let Some((key, value)) = pair
                .split_once('=')
                .filter(|(_, value)| !value.contains('='))
            else {
                problems.push(format!("{} is not of the form KEY=value", quoted(pair)));
                continue;
            };
            match seen.insert(key, value) {
                // Multus says `IgnoreUnknown=true` before what a runtime said.
                Some(earlier) if key == "IgnoreUnknown" && boolean(earlier) == boolean(value) => {}
                Some(earlier) if earlier != value => {
                    problems.push(format!(
                        "{} occurs twice with different values",
                        quoted(key)
                    ));
                }
                Some(_) => {}
                None => {
                    if let Err(problem) = args.take(key, value) {
                        problems.push(format!("{}: {problem}", quoted(key)));
                    }
                }
            }
        }
        problems.extend(args.unknown());
        if problems.is_empty() {
            return Ok(args);
        }
        problems.truncate(20);
        Err(Error::new(
            Code::InvalidEnvironment,
            format!("CNI_ARGS is not valid: {}", problems.join("; ")),
            "correct the arguments; IgnoreUnknown=1 lets keys pass that are meant for others",
        ))
    }

    fn take(&mut self, key: &str, value: &str) -> Result<(), String> {
        let text = || Some(value.to_owned()).filter(|value| !value.is_empty());
        match key {
            "IgnoreUnknown" => self.ignore_unknown = boolean(value)?,
            "K8S_POD_UID" => self.pod_uid = text(),
            "K8S_POD_NAMESPACE" => self.pod_namespace = text(),
            "K8S_POD_NAME" => self.pod_name = text(),
            "IP" => self.ips = listed(value)?,
            "GATEWAY" => self.gateways = listed(value)?,
            "MAC" if value.is_empty() => {}
            "MAC" => self.mac = Some(Mac::from_text(value)?),
            _ => {
                self.others.insert(key.to_owned(), value.to_owned());
            }
        }
        Ok(())
    }

    fn unknown(&self) -> Option<String> {
        let unknown = self.others.keys().filter(|key| !key.starts_with("K8S_"));
        let unknown: Vec<String> = unknown.map(|key| quoted(key)).take(20).collect();
        (!unknown.is_empty() && !self.ignore_unknown)
            .then(|| format!("unknown keys: {}", unknown.join(", ")))
    }
}

/// The reference plugins' booleans.
fn boolean(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "true" => Ok(true),
        "0" | "false" => Ok(false),
        _ => Err(format!(
            "{} is neither true nor false: write 1 or 0",
            quoted(text)
        )),
    }
}

fn listed<T: FromText>(text: &str) -> Result<Vec<T>, String> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    text.split(',')
        .map(|item| T::from_text(item.trim()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_runtime_sends() {
        let args = Args::parse(
            "IgnoreUnknown=1;K8S_POD_NAMESPACE=ns;K8S_POD_NAME=p;K8S_POD_INFRA_CONTAINER_ID=c;\
             K8S_POD_UID=u;MAC=02:00:00:00:00:01;IP=10.0.0.5/24, fd00::5;GATEWAY=10.0.0.1;X=y",
        )
        .unwrap();
        assert_eq!(args.pod_uid.as_deref(), Some("u"));
        assert_eq!(args.pod_namespace.as_deref(), Some("ns"));
        assert_eq!(args.pod_name.as_deref(), Some("p"));
        let ips = [
            ("10.0.0.5".parse().unwrap(), Some(24)),
            ("fd00::5".parse().unwrap(), None),
        ];
        assert_eq!(args.ips, ips);
        assert_eq!(args.gateways, ["10.0.0.1".parse::<IpAddr>().unwrap()]);
        assert_eq!(args.mac.unwrap().to_string(), "02:00:00:00:00:01");
        assert_eq!(args.others.get("X").map(String::as_str), Some("y"));
    }

    #[test]
    fn nothing_is_nothing() {
        assert_eq!(Args::parse("").unwrap(), Args::default());
        assert_eq!(
            Args::parse("IP=;MAC=;K8S_POD_UID=").unwrap(),
            Args::default()
        );
        assert!(Args::parse("K8S_POD_INFRA_CONTAINER_ID=c").is_ok());
    }

    #[test]
    fn booleans_of_the_reference_plugins() {
        for (text, value) in [("1", true), ("true", true), ("True", true), ("0", false)] {
            let args = Args::parse(&format!("IgnoreUnknown={text}")).unwrap();
            assert_eq!(args.ignore_unknown, value, "{text}");
        }
        assert!(Args::parse("IgnoreUnknown=yes").is_err());
        let twice = Args::parse("IgnoreUnknown=true;X=y;IgnoreUnknown=1").unwrap();
        assert!(twice.ignore_unknown, "as below Multus");
    }

    #[test]
    fn hostile_arguments_are_named() {
        for (text, cause) in [
            ("X=y", "\"X\""),
            ("X=y;IgnoreUnknown=0", "\"X\""),
            ("IP", "\"IP\" is not of the form"),
            ("IP=10.0.0.1;", "\"\" is not of the form"),
            ("A=b=c", "not of the form"),
            ("IP=zz", "\"zz\" is not an IP address"),
            ("IP=10.0.0.1/33", "10.0.0.1/33"),
            ("IP=10.0.0.1,,10.0.0.2", "\"\" is not an IP address"),
            ("MAC=zz", "MAC address \"zz\""),
            ("MAC=ff:ff:ff:ff:ff:ff", "unicast"),
            ("GATEWAY=x", "\"GATEWAY\""),
            ("IP=10.0.0.1;IP=10.0.0.2", "occurs twice"),
            ("IgnoreUnknown=1;IgnoreUnknown=0", "occurs twice"),
        ] {
            let error = Args::parse(text).unwrap_err();
            assert_eq!(error.code, Code::InvalidEnvironment);
            assert!(error.msg.contains(cause), "{text}: {error}");
        }
        let flood = "K=v=w;".repeat(100_000);
        assert!(Args::parse(&flood).unwrap_err().msg.len() < 5_000);
    }
}

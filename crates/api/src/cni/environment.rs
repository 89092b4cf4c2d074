//! The environment of a request, typed: which variables each verb needs, and whether they can be
//! used. Never opens the namespace.

use super::{Code, Command, Error, Request};
use crate::text::FromText;
use plexus_types::{ContainerId, IfName};
use std::path::PathBuf;

/// What ADD, CHECK and DEL are about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// CNI_CONTAINERID
    pub container: ContainerId,
    /// CNI_IFNAME
    pub ifname: IfName,
    /// CNI_NETNS: absolute. Always there for ADD and CHECK; for DEL the namespace may be gone.
    pub netns: Option<PathBuf>,
}

impl Request<'_> {
    /// Checks the variables that `command` needs, and reports all that is wrong with them. GC and
    /// STATUS are about no container: `None`.
    pub fn target(&self, command: Command) -> Result<Option<Target>, Error> {
        if matches!(command, Command::Gc | Command::Status) {
            return Ok(None);
        }
        let mut problems = Vec::new();
        let container = read::<ContainerId>("CNI_CONTAINERID", &self.container_id, &mut problems);
        let ifname = read::<IfName>("CNI_IFNAME", &self.ifname, &mut problems);
        let netns = match (self.netns.is_empty(), command) {
            (true, Command::Del) => None,
            _ => read::<PathBuf>("CNI_NETNS", &self.netns, &mut problems),
        };
        match (container, ifname, problems.is_empty()) {
            (Some(container), Some(ifname), true) => Ok(Some(Target {
                container,
                ifname,
                netns,
            })),
            _ => Err(Error::new(
                Code::InvalidEnvironment,
                format!("the environment is not valid: {}", problems.join("; ")),
                "the runtime sets these variables: correct what it was asked for",
            )),
        }
    }
}

fn read<T: FromText>(name: &str, text: &str, problems: &mut Vec<String>) -> Option<T> {
    if text.is_empty() {
        problems.push(format!("{name} is missing"));
        return None;
    }
    T::from_text(text)
        .map_err(|problem| problems.push(format!("{name}: {problem}")))
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::value::RawValue;

    fn check(command: Command, id: &str, ifname: &str, netns: &str) -> Result<String, String> {
        let config = RawValue::from_string("{}".to_owned()).unwrap();
        let request = Request {
            container_id: id.to_owned(),
            netns: netns.to_owned(),
            ifname: ifname.to_owned(),
            args: String::new(),
            path: String::new(),
            config: &config,
        };
        let quoted = |t: Option<Target>| {
            t.map_or("none".into(), |t| {
                let netns = t
                    .netns
                    .map_or_else(|| "-".into(), |n| n.display().to_string());
                format!("{} {} {netns}", t.container, t.ifname)
            })
        };
        request.target(command).map(quoted).map_err(|error| {
            assert_eq!(error.code, Code::InvalidEnvironment);
            error.msg
        })
    }

    #[test]
    fn each_verb_has_its_variables() {
        for command in [Command::Add, Command::Check, Command::Del] {
            let got = check(command, "c1", "eth0", "/run/netns/a").unwrap();
            assert_eq!(got, "c1 eth0 /run/netns/a");
        }
        assert_eq!(check(Command::Del, "c1", "eth0", "").unwrap(), "c1 eth0 -");
        assert_eq!(check(Command::Gc, "", "", "").unwrap(), "none");
        assert_eq!(check(Command::Status, "", "", "").unwrap(), "none");
        let error = check(Command::Add, "", "", "").unwrap_err();
        for name in ["CNI_CONTAINERID", "CNI_IFNAME", "CNI_NETNS"] {
            assert!(error.contains(name), "{error}");
        }
    }

    #[test]
    fn hostile_variables_are_named() {
        for (id, ifname, netns, cause) in [
            ("../x", "eth0", "/n", "CNI_CONTAINERID"),
            ("c", "a/b", "/n", "CNI_IFNAME"),
            ("c", "1234567890123456", "/n", "CNI_IFNAME"),
            ("c", "eth0", "run/netns/a", "CNI_NETNS"),
            ("c", "eth0", "/run/../etc", "CNI_NETNS"),
            ("c", "eth0", "/run\0", "CNI_NETNS"),
        ] {
            for command in [Command::Add, Command::Check, Command::Del] {
                let error = check(command, id, ifname, netns).unwrap_err();
                assert!(error.contains(cause), "{error}");
            }
        }
    }
}

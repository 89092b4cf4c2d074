//! What the server says of itself (`GET /version`).

use serde_json::{Value, json};

/// The version of Kubernetes whose behaviour this server has, as far as it goes.
const MAJOR: &str = "1";
const MINOR: &str = "37";

/// The answer to `GET /version`.
#[must_use]
pub fn version() -> Value {
    let platform = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    json!({
        "major": MAJOR,
        "minor": MINOR,
        "gitVersion": format!("v{MAJOR}.{MINOR}.0+plexus.{}", env!("CARGO_PKG_VERSION")),
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "rustc",
        "platform": format!("{}/{platform}", std::env::consts::OS),
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_is_a_version_that_clients_can_read() {
        let version = super::version();
        let text = version["gitVersion"].as_str().unwrap();
        let (number, build) = text.strip_prefix('v').unwrap().split_once('+').unwrap();
        assert_eq!(
            number
                .split('.')
                .filter(|part| part.parse::<u32>().is_ok())
                .count(),
            3
        );
        assert!(build.starts_with("plexus."));
    }
}

//! The client of a kubeconfig that was written before: kept while it is good for months, so that there is one
//! and not one more with every start. Never decides what is written.

use super::lifetime::last_day;
use super::{Authority, subject};
use crate::clock;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{KeyPair, PublicKeyData};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::Value;
use std::path::Path;

/// A certificate with less time left is renewed: whoever starts a server twice a year never has one that ended.
const LEAST_DAYS_LEFT: i64 = 183;
/// One with more was made on a clock that was not set.
const MOST_DAYS_LEFT: i64 = 367;

/// Certificate and key, as PEM, of the client in a kubeconfig of ours; none if another one must be signed.
pub(crate) fn reusable_client(
    kubeconfig: &Path,
    authority: &Authority,
    name: &str,
    group: &str,
) -> Option<(String, String)> {
    let config = std::fs::read(kubeconfig).ok()?;
    let config: Value = serde_json::from_slice(&config).ok()?;
    let user = &config["users"][0]["user"];
    let pem = |key: &str| {
        let decoded = STANDARD.decode(user[key].as_str()?).ok()?;
        String::from_utf8(decoded).ok()
    };
    let (certificate, key) = (pem("client-certificate-data")?, pem("client-key-data")?);
    let der = CertificateDer::from_pem_slice(certificate.as_bytes()).ok()?;
    let who = subject::user(&der)?;
    let is_its_user = who.name == name && who.groups.iter().any(|one| one == group);
    let public = KeyPair::from_pem(&key).ok()?;
    let is_its_key = der
        .windows(public.der_bytes().len().max(1))
        .any(|part| part == public.der_bytes());
    let is_good = is_its_user
        && is_its_key
        && is_fresh(last_day(&der)?, clock::seconds())
        && authority.has_signed(&der);
    is_good.then_some((certificate, key))
}

/// Whether a certificate that ends on this day stays in use.
fn is_fresh(last: (i64, u8, u8), now: i64) -> bool {
    let day = |days: i64| clock::date(now.saturating_add(days * 86_400));
    day(LEAST_DAYS_LEFT) < last && last < day(MOST_DAYS_LEFT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::Kubeconfig;
    use std::path::PathBuf;

    const NAME: &str = "admin";
    const GROUP: &str = "system:masters";

    fn directory(name: &str) -> PathBuf {
        let own = format!("plexus-client-{name}-{}", std::process::id());
        let directory = std::env::temp_dir().join(own);
        std::fs::create_dir_all(&directory).unwrap();
        directory
    }

    fn text(authority: &Authority, user: &str, (certificate, key): &(String, String)) -> String {
        let config = Kubeconfig {
            server: "https://127.0.0.1:7443",
            authority: &authority.pem(),
            user,
            certificate,
            key,
            directory: Path::new("/server"),
        };
        config.text()
    }

    #[test]
    fn a_client_is_kept_if_it_is_ours_and_whole() {
        let (ours, theirs) = (directory("ours"), directory("theirs"));
        let authority = Authority::open(&ours).unwrap();
        let file = ours.join("kubeconfig");
        let found = |config: &str| {
            std::fs::write(&file, config).unwrap();
            reusable_client(&file, &authority, NAME, GROUP)
        };
        let client = authority.client(NAME, GROUP).unwrap();
        let config = text(&authority, NAME, &client);
        assert_eq!(found(&config), Some(client.clone()));
        // The same key signs after a restart, with another certificate of its own.
        let restarted = Authority::open(&ours).unwrap();
        assert_eq!(
            reusable_client(&file, &restarted, NAME, GROUP),
            Some(client.clone())
        );
        let other = authority.client(NAME, GROUP).unwrap();
        let of_another = Authority::open(&theirs).unwrap();
        for (why, config) in [
            ("no file of ours", "{}".to_owned()),
            ("cut", config[..config.len() / 2].to_owned()),
            (
                "another's key",
                text(&authority, NAME, &(client.0.clone(), other.1)),
            ),
            (
                "another group",
                text(&authority, NAME, &authority.client(NAME, "x").unwrap()),
            ),
            (
                "another authority",
                text(&of_another, NAME, &of_another.client(NAME, GROUP).unwrap()),
            ),
        ] {
            assert_eq!(found(&config), None, "{why}");
        }
        for directory in [ours, theirs] {
            std::fs::remove_dir_all(directory).unwrap();
        }
    }

    #[test]
    fn a_client_that_ends_soon_or_never_is_renewed() {
        let now = 1_795_060_000; // the 19th of November 2026
        for (last, fresh) in [
            ((2027, 11, 18), true),
            ((2027, 6, 1), true),
            ((2027, 5, 1), false),
            ((2026, 11, 1), false),
            ((2046, 11, 18), false),
        ] {
            assert_eq!(is_fresh(last, now), fresh, "{last:?}");
        }
    }
}

//! Where a list goes on: the version that its first piece was of, and the last key. Opaque to
//! clients.

use crate::status::Refused;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

/// `continue`: the version that a list began with, and the last key that was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) version: u64,
    pub(super) after: String,
}

impl Token {
    pub(super) fn text(&self) -> String {
        let token = json!({"v": "meta.k8s.io/v1", "rv": self.version, "start": self.after});
        URL_SAFE_NO_PAD.encode(token.to_string())
    }

    /// # Errors
    /// It is no token of this server.
    pub(super) fn parse(text: &str) -> Result<Self, Refused> {
        let read = || {
            let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
            let token: Value = serde_json::from_slice(&bytes).ok()?;
            Some(Self {
                version: token["rv"].as_u64()?,
                after: token["start"].as_str()?.to_owned(),
            })
        };
        read().ok_or_else(|| Refused::bad_request("continue key is not valid"))
    }
}

#[cfg(test)]
mod tests {
    use super::Token;

    #[test]
    fn a_token_comes_back_and_nonsense_does_not() {
        let token = Token {
            version: 1_763_000_000_001,
            after: "default/a".to_owned(),
        };
        assert_eq!(Token::parse(&token.text()).unwrap(), token);
        for bad in ["nonsense", "", "e30", "bnVsbA"] {
            assert_eq!(Token::parse(bad).unwrap_err().code(), 400, "{bad}");
        }
    }
}

//! Mutated standard input of the shim, and mutated answers of whoever listens on the agent's socket.

use super::http::{Head, RequestError};
use super::input::Input;
use crate::fuzz;
use plexus_fuzz::{Kind, bounded};

#[test]
fn standard_input() {
    const WORDS: &[&str] = &[
        "cniVersion",
        "agentSocket",
        "/run/plexus/cni.sock",
        "1.0.0",
        "name",
        "type",
        "prevResult",
    ];
    fuzz::target("standard_input", Kind::Json)
        .words(WORDS)
        .run(|input| {
            let text = String::from_utf8_lossy(input);
            match Input::parse(&text) {
                Ok(read) => {
                    let config = read.config.get();
                    assert_eq!(config, text.trim_ascii(), "what is passed on is changed");
                    assert!(config.starts_with('{') && config.ends_with('}'));
                    format!("{:?} {}", read.version, read.socket.is_some())
                }
                Err(error) => {
                    bounded("a message", &error.msg, 1_000);
                    format!("{} {}", error.code.number(), error.msg)
                }
            }
        });
}

#[test]
fn agents_answer() {
    const WORDS: &[&str] = &[
        "HTTP/1.1 ",
        "200",
        "500",
        " OK",
        "Content-Length: ",
        "content-length",
        "Transfer-Encoding: chunked",
        "\r\n",
        "\r\n\r\n",
        ":",
    ];
    fuzz::target("agents_answer", Kind::Bytes)
        .words(WORDS)
        .run(|input| match Head::find(input) {
            Ok(None) => String::new(),
            Ok(Some(head)) => {
                assert!(head.end <= input.len() && input[..head.end].ends_with(b"\r\n\r\n"));
                // It may come in parts: what was found does not change with what follows.
                let again = Head::find(&input[..head.end])
                    .ok()
                    .flatten()
                    .expect("the same head");
                assert_eq!(
                    (again.status, again.length, again.end),
                    (head.status, head.length, head.end)
                );
                format!("{} {}", head.status, head.length.is_some())
            }
            Err(RequestError::Away(why) | RequestError::Barred(why)) => {
                bounded("a cause", &why, 500);
                why
            }
            Err(RequestError::Slow) => panic!("nobody waited"),
        });
}

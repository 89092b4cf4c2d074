//! A systemd unit that runs `plexus up` with the flags that were given.

use std::ffi::OsString;
use std::path::Path;

/// The unit's text.
pub(crate) fn text(program: &Path, arguments: &[OsString]) -> String {
    let words = [program.as_os_str().to_owned(), OsString::from("up")];
    let words = words.into_iter().chain(arguments.iter().cloned());
    let line: Vec<String> = words.map(|word| quoted(&word.to_string_lossy())).collect();
    format!(
        "[Unit]\n\
         Description=Plexus: networks for containers\n\
         Wants=network-online.target\n\
         After=network-online.target\n\
         \n\
         [Service]\n\
         ExecStart={}\n\
         # Not after it was asked to stop: plexus down does that.\n\
         Restart=on-failure\n\
         # Plugins that are being executed must not be killed: the next one waits for them.\n\
         KillMode=process\n\
         \n\
         [Install]\n\
         WantedBy=multi-user.target\n",
        line.join(" ")
    )
}

/// As systemd reads a word: `%` and `$` have a meaning there.
fn quoted(word: &str) -> String {
    let escaped = word.replace('%', "%%").replace('$', "$$");
    let plain = |c: char| c.is_ascii_alphanumeric() || "%$/._-=,:@+[]".contains(c);
    match escaped.chars().all(plain) && !escaped.is_empty() {
        true => escaped,
        false => format!("\"{}\"", escaped.replace('\\', "\\\\").replace('"', "\\\"")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_kept_as_they_were_given() {
        let given = [
            "--node",
            "n 1",
            "--own-subnets=10.0.0.0/8,fd00::/8",
            "a%b\"c",
        ];
        let given: Vec<OsString> = given.iter().map(OsString::from).collect();
        let unit = text(Path::new("/usr/local/bin/plexus"), &given);
        let line = r#"ExecStart=/usr/local/bin/plexus up --node "n 1" --own-subnets=10.0.0.0/8,fd00::/8 "a%%b\"c""#;
        assert!(unit.lines().any(|one| one == line), "{unit}");
    }
}

//! A systemd unit that runs `plexus up` with the flags that were given.

use std::ffi::OsString;
use std::io;
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

/// The words with every path as seen from /, which is where systemd runs it.
pub(crate) fn absolute(
    words: impl Iterator<Item = OsString>,
    path_flags: &[String],
) -> io::Result<Vec<OsString>> {
    let is_flag = |word: &str| path_flags.iter().any(|flag| flag == word);
    let mut path_follows = false;
    let each = words.map(|word| {
        if std::mem::replace(&mut path_follows, word.to_str().is_some_and(is_flag)) {
            path_follows = false;
            return Ok(std::path::absolute(word)?.into_os_string());
        }
        match word.to_str().and_then(|word| word.split_once('=')) {
            Some((flag, path)) if is_flag(flag) => {
                let path = std::path::absolute(path)?;
                Ok(format!("{flag}={}", path.display()).into())
            }
            _ => Ok(word),
        }
    });
    each.collect()
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
    fn paths_are_those_of_whoever_printed_it() {
        let here = std::env::current_dir().unwrap();
        let flags = ["--root".to_owned(), "--state-dir".to_owned()];
        let line = "--root r --node r --state-dir=./s --listen=r --root /x";
        let words = absolute(line.split(' ').map(OsString::from), &flags).unwrap();
        let words: Vec<&str> = words.iter().map(|word| word.to_str().unwrap()).collect();
        let (root, state) = (here.join("r"), here.join("s"));
        let state = format!("--state-dir={}", state.display());
        let root = root.to_str().unwrap();
        let expected = [
            "--root",
            root,
            "--node",
            "r",
            &state,
            "--listen=r",
            "--root",
            "/x",
        ];
        assert_eq!(words, expected);
    }

    #[test]
    fn flags_are_kept_as_they_were_given() {
        let arguments = [
            "--node",
            "n 1",
            "--own-subnets=10.0.0.0/8,fd00::/8",
            "a%b\"c",
        ];
        let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
        let unit = text(Path::new("/usr/local/bin/plexus"), &arguments);
        let line = r#"ExecStart=/usr/local/bin/plexus up --node "n 1" --own-subnets=10.0.0.0/8,fd00::/8 "a%%b\"c""#;
        assert!(unit.lines().any(|one| one == line), "{unit}");
    }
}

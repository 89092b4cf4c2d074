//! Which kubeconfig a context is put into, as kind and kubectl choose it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The directory of the user, if it is known: a program that systemd starts need not have one.
#[derive(Debug, Clone, Copy)]
pub struct Home<'h>(pub Option<&'h OsStr>);

/// The file that is named; else of those that `KUBECONFIG` lists the first that is there, or the last; else
/// `~/.kube/config`. None if there is no home either.
pub fn kubeconfig_path(
    named: Option<&Path>,
    variable: Option<&OsStr>,
    home: Home<'_>,
) -> Option<PathBuf> {
    if let Some(named) = named {
        return Some(named.to_owned());
    }
    let listed = variable.map(std::env::split_paths).into_iter().flatten();
    let listed: Vec<PathBuf> = listed.filter(|path| !path.as_os_str().is_empty()).collect();
    let first = listed.iter().find(|path| path.exists());
    if let Some(path) = first.or(listed.last()) {
        return Some(path.clone());
    }
    let home = home.0.filter(|home| !home.is_empty())?;
    Some(Path::new(home).join(".kube/config"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_the_one_that_kubectl_would_change() {
        let home = Home(Some(OsStr::new("/home/me")));
        let of = |named: Option<&str>, variable: Option<&str>| {
            kubeconfig_path(named.map(Path::new), variable.map(OsStr::new), home)
                .map(|path| path.display().to_string())
        };
        assert_eq!(of(None, None).as_deref(), Some("/home/me/.kube/config"));
        assert_eq!(of(None, Some("")).as_deref(), Some("/home/me/.kube/config"));
        assert_eq!(of(Some("/a"), Some("/b")).as_deref(), Some("/a"));
        assert_eq!(
            of(None, Some("/none/a:/none/b")).as_deref(),
            Some("/none/b")
        );
        let there = std::env::current_exe().unwrap().display().to_string();
        let list = format!("/none/a:{there}:/none/b");
        assert_eq!(of(None, Some(&list)), Some(there));
        assert_eq!(kubeconfig_path(None, None, Home(None)), None);
        assert_eq!(
            kubeconfig_path(None, None, Home(Some(OsStr::new("")))),
            None
        );
    }
}

//! CNI configurations on disk, for NADs that have none: the one whose `name` is the NAD's.

use serde_json::Value;
use std::path::{Path, PathBuf};

/// Our own, which means "whatever the pod asks for": never what a NAD refers to.
const OWN: &str = "00-plexus.conflist";
const ENDINGS: [&str; 3] = ["conf", "conflist", "json"];
const LARGEST: u64 = 1 << 20;
const MOST_FILES: usize = 1000;

/// The text of the first configuration of that name, in the order of file names.
pub(super) fn find(directory: &Path, name: &str) -> Option<String> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(directory)
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| is_candidate(path))
        .take(MOST_FILES)
        .collect();
    files.sort_unstable();
    files.into_iter().find_map(|path| named(&path, name))
}

fn is_candidate(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    let own = path.file_name().is_some_and(|file| file == OWN);
    ending.is_some_and(|ending| ENDINGS.contains(&ending)) && !own
}

fn named(path: &Path, name: &str) -> Option<String> {
    let meta = std::fs::metadata(path).ok()?;
    if !meta.is_file() || meta.len() > LARGEST {
        return None;
    }
    let text = std::fs::read_to_string(path).ok()?;
    let value: Value = serde_json::from_str(&text).ok()?;
    (value.get("name")?.as_str()? == name).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_that_name_is_found_and_never_our_own() {
        let place = std::env::temp_dir().join(format!("plexus-conf-{}", std::process::id()));
        std::fs::create_dir_all(&place).unwrap();
        let put = |file: &str, text: &str| std::fs::write(place.join(file), text).unwrap();
        put(OWN, r#"{"name":"blue","plugins":[]}"#);
        put("10-bad.conf", "{");
        put("20-a.conf", r#"{"name":"blue","type":"a"}"#);
        put("30-b.conflist", r#"{"name":"blue","plugins":[]}"#);
        put("40-c.txt", r#"{"name":"green","type":"c"}"#);
        assert!(find(&place, "blue").unwrap().contains("\"a\""));
        assert_eq!(find(&place, "green"), None);
        assert_eq!(find(&place.join("absent"), "blue"), None);
        std::fs::remove_dir_all(&place).unwrap();
    }
}

//! What a test that failed leaves behind to be read: copies of logs and journals, made before what they belong to goes.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Names the directory for them; `cargo xtask env` and `make` set it.
const DIR: &str = "PLEXUS_TEST_FAILED";

/// If the test of this thread has failed: copies `parts` of `dir`, which may have `*` for names, and says where they are. Files
/// on other file systems below are left out. Nothing of it can fail a test once more.
pub fn save(name: &str, dir: &Path, parts: &[&str]) {
    if !std::thread::panicking() {
        return;
    }
    let to = home().join(format!("{name}-{}", std::process::id()));
    if std::fs::create_dir_all(&to).is_err() {
        return;
    }
    // What is not there is no part.
    let script = format!(
        "cp --archive --parents --one-file-system -- {} \"$0\"",
        parts.join(" ")
    );
    let _ = Command::new("sh")
        .args(["-c", &script])
        .arg(&to)
        .current_dir(dir)
        .stderr(Stdio::null())
        .status();
    println!("logs and journals of {name} are in {}", to.display());
}

fn home() -> PathBuf {
    let named = std::env::var_os(DIR).map(PathBuf::from);
    named.unwrap_or_else(|| std::env::temp_dir().join("plexus-test-failed"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// As a node, a lab or a cluster of a test.
    struct Made(PathBuf);

    impl Drop for Made {
        fn drop(&mut self) {
            save("made", &self.0, &["*.log", "state", "never-there"]);
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn what_a_failing_test_made_leaves_its_logs() {
        let dir = std::env::temp_dir().join(format!("px-failed-{}", std::process::id()));
        let kept = home().join(format!("made-{}", std::process::id()));
        let made = || {
            fs::create_dir_all(dir.join("state")).unwrap();
            for file in ["agent.log", "state/journal.db", "large"] {
                fs::write(dir.join(file), file).unwrap();
            }
            Made(dir.clone())
        };
        drop(made());
        assert!(!kept.exists(), "nothing failed");
        let made = made();
        let test = std::thread::spawn(move || {
            let _made = made;
            panic!("this test fails deliberately");
        });
        assert!(test.join().is_err());
        assert!(!dir.exists());
        for file in ["agent.log", "state/journal.db"] {
            assert_eq!(fs::read_to_string(kept.join(file)).unwrap(), file);
        }
        assert!(!kept.join("large").exists());
        fs::remove_dir_all(&kept).unwrap();
    }
}

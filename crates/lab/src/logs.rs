//! What a process of a lab has said, and goes on to say.

use crate::control;
use crate::error::LabError;
use crate::layout::Layout;
use crate::part::Part;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::time::Duration;

const POLL_INTERVAL: Duration = Duration::from_millis(200);
const CHUNK: usize = 64 * 1024;

/// Hands the log of a process out, piece by piece, as long as `take` wants more: all of it, or its last lines; then,
/// to `follow`, what is written to it until the lab is gone.
pub fn logs(
    layout: &Layout,
    part: Part,
    tail: Option<usize>,
    follow: bool,
    take: &mut dyn FnMut(&[u8]) -> bool,
) -> Result<(), LabError> {
    if let Part::Agent(node) = part {
        control::of(layout)?.has(layout, node)?;
    } else if !layout.dir().exists() {
        return Err(LabError::no_lab(layout));
    }
    let log = layout.log(part);
    read(&log, tail, follow, take).map_err(LabError::file("read", &log))
}

fn read(
    log: &Path,
    tail: Option<usize>,
    follow: bool,
    take: &mut dyn FnMut(&[u8]) -> bool,
) -> std::io::Result<()> {
    let mut file = File::open(log)?;
    if let Some(lines) = tail {
        let begin = begin_of_last(&mut file, lines)?;
        file.seek(SeekFrom::Start(begin))?;
    }
    let mut bytes = vec![0; CHUNK];
    loop {
        let length = file.read(&mut bytes)?;
        if length > 0 {
            if !take(bytes.get(..length).unwrap_or_default()) {
                return Ok(());
            }
        } else if follow && log.exists() {
            std::thread::sleep(POLL_INTERVAL);
        } else {
            return Ok(());
        }
    }
}

/// Where the last lines begin.
fn begin_of_last(file: &mut File, lines: usize) -> std::io::Result<u64> {
    let mut begins = std::collections::VecDeque::new();
    let mut bytes = vec![0; CHUNK];
    let (mut at, mut is_begin) = (0, true);
    loop {
        let length = file.read(&mut bytes)?;
        if length == 0 {
            return Ok(begins.front().copied().unwrap_or(at));
        }
        for byte in bytes.iter().take(length) {
            if is_begin {
                begins.push_back(at);
            }
            if begins.len() > lines {
                begins.pop_front();
            }
            is_begin = *byte == b'\n';
            at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn last_lines_and_those_that_come() {
        let log = std::env::temp_dir().join(format!("px-lab-logs-{}", std::process::id()));
        let mut file = File::create(&log).unwrap();
        file.write_all(b"one\ntwo\nthree\n").unwrap();
        let all = |tail| {
            let mut said = Vec::new();
            read(&log, tail, false, &mut |bytes| {
                said.extend_from_slice(bytes);
                true
            })
            .unwrap();
            String::from_utf8(said).unwrap()
        };
        assert_eq!(all(None), "one\ntwo\nthree\n");
        assert_eq!(all(Some(2)), "two\nthree\n");
        assert_eq!(all(Some(0)), "");
        assert_eq!(all(Some(9)), "one\ntwo\nthree\n");
        let mut said = String::new();
        read(&log, Some(1), true, &mut |bytes| {
            said.push_str(std::str::from_utf8(bytes).unwrap());
            if said == "three\n" {
                file.write_all(b"four\n").unwrap();
            }
            !said.contains("four")
        })
        .unwrap();
        assert_eq!(said, "three\nfour\n");
        // A log that is gone is waited for no longer.
        std::fs::remove_file(&log).unwrap();
        assert!(read(&log, None, true, &mut |_| true).is_err());
    }
}

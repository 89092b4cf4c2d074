//! Progress messages while a lab, or a node of one, comes or goes: lines on stderr, each with the time since the
//! beginning; and what is waited for, on a terminal alone. What comes out of it in the end is for others to print.

use plexus_lab::{Removal, Step};
use std::io::{IsTerminal, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Who has an answer before that is not told that it is waited for.
const QUIET_PERIOD: Duration = Duration::from_millis(300);
const SECOND: Duration = Duration::from_secs(1);

/// Lines for what has been reached; on a terminal the nodes are counted in one line.
pub(super) struct Progress {
    start: Instant,
    nodes: usize,
    ready: usize,
    terminal: bool,
}

impl Progress {
    pub(super) fn new(start: Instant) -> Self {
        Self {
            start,
            nodes: 0,
            ready: 0,
            terminal: std::io::stderr().is_terminal(),
        }
    }

    /// Something comes.
    pub(super) fn print_step(&mut self, step: &Step) {
        match step {
            Step::Underlay { nodes, wires } => {
                self.nodes = *nodes;
                self.line(&format!("{nodes} nodes joined by {wires} wires"));
            }
            Step::Ready(name) if name.ends_with("-agent") => {
                self.ready += 1;
                let text = format!("{} of {} agents ready", self.ready, self.nodes);
                if self.terminal && self.ready < self.nodes {
                    self.write(&format!("\r  {text}"));
                } else if self.ready == self.nodes {
                    self.line(&text);
                }
            }
            Step::Ready(name) => self.line(&format!("{name} ready")),
        }
    }

    /// Something goes: `what` is the lab, or the node.
    pub(super) fn print_removal(&self, what: &str, step: Removal) {
        match step {
            Removal::Begun => self.write(&format!("  removing {what}\n")),
            Removal::Pods { detached, of } => {
                self.line(&format!("pods whose plugins were told: {detached} of {of}"));
            }
            Removal::Processes(count) => self.line(&format!("processes ended: {count}")),
            Removal::Namespaces(count) => self.line(&format!("namespaces removed: {count}")),
            Removal::SwitchedOff => self.line(&format!("{what} is switched off")),
        }
    }

    /// Nothing more is reached.
    pub(super) fn end(&self) {
        if self.terminal && self.ready > 0 && self.ready < self.nodes {
            self.write("\n");
        }
    }

    fn line(&self, text: &str) {
        let took = self.start.elapsed().as_secs_f64();
        let begin = if self.terminal { "\r" } else { "" };
        self.write(&format!("{begin}  {text} ({took:.1} s)\n"));
    }

    /// Who does not want to see it does not stop us.
    fn write(&self, text: &str) {
        let mut out = std::io::stderr();
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }
}

/// A line on a terminal with what is waited for, and for how long; it is gone when this is.
pub(super) struct Waiting(Option<(Sender<()>, JoinHandle<()>)>);

impl Waiting {
    pub(super) fn for_what(what: String) -> Self {
        let mut out = std::io::stderr();
        if !out.is_terminal() {
            return Self(None);
        }
        let (end, ended) = channel();
        let thread = std::thread::spawn(move || count(&mut out, &what, QUIET_PERIOD, &ended));
        Self(Some((end, thread)))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some((end, thread)) = self.0.take() {
            drop(end);
            let _ = thread.join();
        }
    }
}

fn count(out: &mut dyn Write, what: &str, first: Duration, ended: &Receiver<()>) {
    let start = Instant::now();
    let mut pause = first;
    let mut is_shown = false;
    while ended.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
        let text = format!("\r  {what} ({} s)", start.elapsed().as_secs());
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        (pause, is_shown) = (SECOND, true);
    }
    if is_shown {
        let _ = out.write_all(b"\r\x1b[K").and_then(|()| out.flush());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is written; the first line ends what is waited for.
    struct Screen {
        text: String,
        end: Option<Sender<()>>,
    }

    impl Write for Screen {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.text.push_str(&String::from_utf8_lossy(bytes));
            self.end = None;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_is_waited_for_is_said_and_wiped_out() {
        let (end, ended) = channel();
        let mut screen = Screen {
            text: String::new(),
            end: Some(end),
        };
        count(&mut screen, "waiting for pod a", Duration::ZERO, &ended);
        assert!(screen.text.starts_with("\r  waiting for pod a ("));
        assert!(screen.text.ends_with(" s)\r\x1b[K"), "{:?}", screen.text);
        // Nothing of what is there at once.
        let mut screen = Screen {
            text: String::new(),
            end: None,
        };
        count(&mut screen, "waiting for pod a", QUIET_PERIOD, &ended);
        assert_eq!(screen.text, "");
    }
}

//! When tasks run, what is known of them, and that one that dies takes the process with it.

use super::*;
use std::process::Command;
use std::sync::mpsc;

/// What a task does the next time, as it is told by the test, and why it ran, as it tells the test.
struct Scripted {
    task: Arc<Task>,
    script: mpsc::Sender<Result<Next, String>>,
    ran: mpsc::Receiver<Reason>,
}

const LONG: Duration = Duration::from_secs(60);
const FOREVER: Duration = Duration::from_secs(1 << 40);

impl Scripted {
    fn start(task: Task, sources: Vec<Box<dyn Source>>) -> Self {
        let task = Arc::new(task);
        let (script, told) = mpsc::channel();
        let (tell, ran) = mpsc::channel();
        let work = move |run: &Run<'_>| {
            tell.send(run.reason).unwrap();
            told.recv_timeout(LONG).unwrap()
        };
        task.start(sources, work).unwrap();
        Self { task, script, ran }
    }

    /// Waits until it runs, and says what it does then.
    fn run(&self, next: Result<Next, String>) -> Reason {
        let reason = self.ran.recv_timeout(LONG).unwrap();
        self.script.send(next).unwrap();
        reason
    }
}

#[test]
fn runs_when_woken_when_something_happens_when_due_and_after_a_failure() {
    let event = Arc::new(Wake::new().unwrap());
    let task = Task::new("scripted").unwrap();
    let task = task.retried_within(Duration::from_millis(1));
    let scripted = Scripted::start(task, vec![Box::new(Arc::clone(&event))]);
    let later = || Ok(Next::After(FOREVER));
    assert_eq!(scripted.run(later()), Reason::Start);
    scripted.task.wake();
    assert_eq!(scripted.run(later()), Reason::Woken);
    event.wake();
    assert_eq!(scripted.run(Ok(Next::After(Duration::ZERO))), Reason::Event);
    assert_eq!(scripted.run(Err("no".to_owned())), Reason::Due);
    assert_eq!(scripted.run(Err("no".to_owned())), Reason::Retry);
    assert_eq!(scripted.run(Ok(Next::Done)), Reason::Retry);
    // The sender goes with the thread.
    assert!(scripted.ran.recv_timeout(LONG).is_err());
    let counts = scripted.task.counts();
    let count = |reason, success| {
        let mut runs = counts.runs.iter();
        runs.find(|run| (run.0, run.1) == (reason, success))
            .map(|run| run.2)
    };
    assert_eq!(count(Reason::Woken, true), Some(1));
    assert_eq!(count(Reason::Due, false), Some(1));
    assert_eq!(count(Reason::Retry, true), Some(1));
    assert_eq!(counts.runs.iter().map(|run| run.2).sum::<u64>(), 6);
}

#[test]
fn is_stuck_while_a_step_takes_too_long() {
    let task = Task::new("slow").unwrap().stuck_after(Duration::ZERO);
    assert_eq!(task.stuck(), None, "it does not run");
    let done = task.run(Reason::Start, |run| {
        assert_eq!(run.task.stuck().unwrap().step, None);
        run.step("the second step");
        let stuck = run.task.stuck().unwrap();
        assert_eq!(stuck.step.as_deref(), Some("the second step"));
        assert!(run.task.counts().stuck);
        Ok(())
    });
    assert!(done.is_ok());
    assert_eq!(task.stuck(), None);

    let task = Task::new("quick").unwrap();
    let done = task.run_here(|| Ok(task.stuck()));
    assert_eq!(done, Ok(None));
}

#[test]
fn one_that_dies_ends_the_process() {
    const CHILD: &str = "PLEXUS_TEST_TASK_DIES";
    if std::env::var_os(CHILD).is_some() {
        let task = Arc::new(Task::new("dying").unwrap());
        let work = |_: &Run<'_>| -> Result<Next, String> { panic!("by mistake") };
        task.start(Vec::new(), work).unwrap();
        std::thread::sleep(LONG);
        return;
    }
    let name = "background::task::tests::one_that_dies_ends_the_process";
    let test = std::env::current_exe().unwrap();
    let child = Command::new(test)
        .args([name, "--exact", "--nocapture"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stderr);
    assert!(said.contains("by mistake"), "{said}");
    use std::os::unix::process::ExitStatusExt;
    assert_eq!(child.status.signal(), Some(6), "{said}");
}

//! When async tasks run, what is known of them, and that one that dies takes the process with it.

use super::*;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Mutex;
use tokio::time::advance;

/// Reasons of passes, and after how many seconds they began.
type Ran = Vec<(Reason, u64)>;

/// Does in each pass what the script says, which may take time.
struct Scripted {
    task: Arc<AsyncTask>,
    wake: Arc<Notify>,
    delay: Duration,
    script: VecDeque<(u64, Result<Next, String>)>,
    begun: Instant,
    ran: Arc<Mutex<Ran>>,
}

impl Work for Scripted {
    async fn woken(&self) -> Woken {
        Woken::by(&self.wake).await.delayed(self.delay)
    }

    async fn pass(&mut self, reason: Reason) -> Result<Next, String> {
        let begun = self.begun.elapsed().as_secs();
        self.ran.lock().unwrap().push((reason, begun));
        let (takes, next) = self.script.pop_front().unwrap_or((0, Ok(Next::Done)));
        self.task.step(format!("pass {}", self.script.len()));
        sleep(seconds(takes)).await;
        assert_ne!(next, Err("panics".to_owned()));
        next
    }
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn after(time: u64) -> Result<Next, String> {
    Ok(Next::After(seconds(time)))
}

fn no() -> Result<Next, String> {
    Err("no".to_owned())
}

/// The task, how it is woken, why and when it ran, and its end.
struct Started {
    task: Arc<AsyncTask>,
    wake: Arc<Notify>,
    ran: Arc<Mutex<Ran>>,
    handle: JoinHandle<()>,
}

fn start<const N: usize>(
    task: AsyncTask,
    delay: u64,
    script: [(u64, Result<Next, String>); N],
) -> Started {
    let (task, wake) = (Arc::new(task), Arc::new(Notify::new()));
    let ran: Arc<Mutex<Ran>> = Arc::default();
    let work = Scripted {
        task: Arc::clone(&task),
        wake: Arc::clone(&wake),
        delay: seconds(delay),
        script: script.into(),
        begun: Instant::now(),
        ran: Arc::clone(&ran),
    };
    Started {
        handle: task.start(&Handle::current(), work),
        task,
        wake,
        ran,
    }
}

fn task() -> AsyncTask {
    AsyncTask::new(Progress::new("scripted"))
}

#[tokio::test(start_paused = true)]
async fn runs_when_due_later_after_each_failure_and_when_woken() {
    let script = [
        (0, after(30)),
        (0, no()),
        (0, no()),
        (0, no()),
        (0, Ok(Next::WOKEN)),
        (0, after(0)),
        (0, no()),
    ];
    let started = start(task().starting_after(seconds(10)), 2, script);
    sleep(seconds(100)).await;
    started.wake.notify_one();
    started.handle.await.unwrap();
    let expected = [
        (Reason::Start, 10),
        (Reason::Due, 40),
        (Reason::Retry, 41),
        (Reason::Retry, 43),
        (Reason::Retry, 47),
        (Reason::Woken, 102),
        (Reason::Due, 102),
        (Reason::Retry, 103),
    ];
    assert_eq!(*started.ran.lock().unwrap(), expected);
    let runs = started.task.counts().runs;
    let expected = [
        (Reason::Start, true, 1),
        (Reason::Woken, true, 1),
        (Reason::Due, false, 2),
        (Reason::Retry, false, 2),
        (Reason::Retry, true, 2),
    ];
    assert_eq!(runs, expected);
}

#[tokio::test(start_paused = true)]
async fn is_tried_again_as_late_as_told_or_when_woken() {
    let task = task().retried_after(seconds(5));
    let script = [(0, no()), (0, no()), (0, no())];
    let started = start(task, 0, script);
    sleep(seconds(12)).await;
    started.wake.notify_one();
    started.handle.await.unwrap();
    let expected = [
        (Reason::Start, 0),
        (Reason::Retry, 5),
        (Reason::Retry, 10),
        (Reason::Woken, 12),
    ];
    assert_eq!(*started.ran.lock().unwrap(), expected);
}

#[tokio::test(start_paused = true)]
async fn one_that_is_woken_while_it_runs_runs_once_more() {
    let started = start(task(), 0, [(4, after(60)), (0, after(60))]);
    sleep(seconds(1)).await;
    started.wake.notify_one();
    started.wake.notify_one();
    started.handle.await.unwrap();
    let expected = [(Reason::Start, 0), (Reason::Woken, 4), (Reason::Due, 64)];
    assert_eq!(*started.ran.lock().unwrap(), expected);
}

#[tokio::test(start_paused = true)]
async fn one_that_takes_too_long_is_named_with_its_step() {
    let task = AsyncTask::new(Progress::new("slow").stuck_after(seconds(20)));
    let started = start(task, 0, [(30, after(60))]);
    sleep(seconds(19)).await;
    assert_eq!(started.task.stuck(), None);
    sleep(seconds(2)).await;
    let stuck = started.task.stuck().unwrap();
    let said = (stuck.name, stuck.step.as_deref(), stuck.elapsed.as_secs());
    assert_eq!(said, ("slow", Some("pass 0"), 21));
    assert!(started.task.counts().stuck);
    sleep(seconds(10)).await;
    assert_eq!(started.task.stuck(), None, "it waits");
    assert_eq!(started.task.counts().last_duration, seconds(30));
}

#[tokio::test(start_paused = true)]
async fn one_that_should_run_and_does_not_is_named() {
    let progress = Progress::new("behind").stuck_after(seconds(20));
    progress.waits(Some(Instant::now() + seconds(10)));
    advance(seconds(29)).await;
    assert_eq!(progress.stuck(), None);
    advance(seconds(1)).await;
    let stuck = progress.stuck().unwrap();
    assert_eq!(stuck.step.as_deref(), Some("waiting for its turn"));
    let begun = progress.begin();
    assert_eq!(progress.stuck(), None);
    progress.failed();
    progress.end(begun, Reason::Due, None);
    assert_eq!(progress.counts().runs, [(Reason::Due, false, 1)]);
}

thread_local! {
    static ENDED: RefCell<Vec<&'static str>> = const { RefCell::new(Vec::new()) };
}

/// Instead of the process's end.
fn ended(name: &'static str) {
    ENDED.with_borrow_mut(|all| all.push(name));
}

#[tokio::test(start_paused = true)]
async fn one_that_panics_ends_the_process_and_so_does_what_never_ends() {
    let one = |script| {
        let end = ended;
        start(AsyncTask { end, ..task() }, 0, [script])
    };
    one((0, Ok(Next::Done))).handle.await.unwrap();
    assert_eq!(ENDED.take(), [""; 0], "its work is done");
    let dying = one((0, Err("panics".to_owned())));
    assert!(dying.handle.await.unwrap_err().is_panic());
    assert_eq!(ENDED.take(), ["scripted"]);
    end_after("endless", async {}, ended).await;
    assert_eq!(ENDED.take(), ["endless"]);
}

//! The queue of what must be written about this node's pods: one job a pod, the newest wins, so it
//! never holds more than there are pods. Owns who has what; the writing itself is in `write`.

use super::report::{Attached, PodName};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// How long news must have been quiet before any is written: whoever made the call comes first, and so do those who call
/// meanwhile; a container with two networks, which are two calls, is written about once.
const SETTLE_DELAY: Duration = Duration::from_millis(20);
/// News waits no longer than that for others to end.
const LONGEST_SETTLE_DELAY: Duration = Duration::from_millis(500);
const SHORTEST: Duration = Duration::from_millis(250);
const LONGEST: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, PartialEq)]
pub(super) enum What {
    /// A pod has this.
    Write(Box<Attached>),
    /// A pod has nothing any more.
    Release {
        pod: PodName,
        api_uid: Option<String>,
    },
}

#[derive(Debug, Clone)]
pub(super) struct Job {
    pub(super) key: String,
    pub(super) what: What,
    pub(super) tries: u32,
}

#[derive(Default)]
pub(super) struct Writer {
    queue: Mutex<Queue>,
    pub(super) came: Notify,
}

#[derive(Default)]
struct Queue {
    jobs: BTreeMap<String, (What, u32, Option<Instant>)>,
    /// By what tells them apart: of a pod, the UID that CNI has.
    pods: BTreeMap<String, Has>,
    /// While the journal is compared: the pods that changed meanwhile.
    meanwhile: Option<BTreeSet<String>>,
    /// Until then more news may come: only what has waited long is written.
    quiet_at: Option<Instant>,
}

struct Has {
    pod: PodName,
    sandbox: String,
    networks: BTreeSet<(String, String)>,
    api_uid: Option<String>,
}

impl Writer {
    pub(super) fn attached(&self, report: Attached) {
        let mut queue = self.queue();
        queue.changes(&report.pod.key());
        queue.learn(&report);
        queue.write(report);
        drop(queue);
        self.came.notify_one();
    }

    /// The journal is about to be read: what changes from now on is newer than it.
    pub(super) fn before_journal(&self) {
        self.queue().meanwhile = Some(BTreeSet::new());
    }

    /// The journal has these; those that `differ` are written. A pod of which something newer came
    /// is left alone.
    pub(super) fn journal(&self, reports: Vec<Attached>, differ: impl Fn(&Attached) -> bool) {
        let mut queue = self.queue();
        let newer = queue.meanwhile.take().unwrap_or_default();
        for report in reports {
            if newer.contains(&report.pod.key()) {
                continue;
            }
            queue.learn(&report);
            if differ(&report) {
                queue.write(report);
            }
        }
        drop(queue);
        self.came.notify_one();
    }

    /// A sandbox has nothing any more; ignored if a newer one of that pod has.
    pub(super) fn detached(&self, pod: &PodName, sandbox: &str) {
        let key = pod.key();
        let mut queue = self.queue();
        let has = queue.pods.get(&key);
        if has.is_some_and(|has| has.sandbox != sandbox) {
            return;
        }
        queue.changes(&key);
        let api_uid = queue.pods.remove(&key).and_then(|has| has.api_uid);
        let what = What::Release {
            pod: pod.clone(),
            api_uid,
        };
        queue.put(key, what);
        drop(queue);
        self.came.notify_one();
    }

    /// A record without a pod, by its name; something newer about that pod wins.
    pub(super) fn release(&self, namespace: &str, name: &str, container: bool) {
        let mut queue = self.queue();
        let pod = PodName {
            namespace: namespace.to_owned(),
            name: String::new(),
            uid: name.to_owned(),
            container,
        };
        let api_uid = Some(name.to_owned());
        queue
            .jobs
            .entry(pod.key())
            .or_insert((What::Release { pod, api_uid }, 0, None));
        drop(queue);
        self.came.notify_one();
    }

    /// Whether a pod has attachments, by the UID that CNI has.
    pub(super) fn is_attached(&self, uid: &str) -> bool {
        self.queue().pods.contains_key(uid)
    }

    /// The pods that use a network.
    pub(super) fn users(&self, namespace: &str, name: &str) -> Vec<PodName> {
        let network = (namespace.to_owned(), name.to_owned());
        let queue = self.queue();
        let users = queue
            .pods
            .values()
            .filter(|has| has.networks.contains(&network));
        users.map(|has| has.pod.clone()).collect()
    }

    /// The API's UID of a pod was found.
    pub(super) fn found(&self, pod: &PodName, api_uid: &str) {
        if let Some(has) = self.queue().pods.get_mut(&pod.key()) {
            has.api_uid = Some(api_uid.to_owned());
        }
    }

    /// Nothing waits for its next try.
    pub(super) fn hurry(&self) {
        for job in self.queue().jobs.values_mut() {
            job.2 = None;
        }
        self.came.notify_one();
    }

    /// A job failed: later again, unless something newer came.
    pub(super) fn again(&self, job: Job) {
        let shift = job.tries.min(10);
        let pause = SHORTEST.saturating_mul(1 << shift).min(LONGEST);
        let due = Some(Instant::now() + pause);
        let mut queue = self.queue();
        let entry = queue.jobs.entry(job.key);
        entry.or_insert((job.what, job.tries.saturating_add(1), due));
    }

    /// Jobs that are due, at most so many, and when others are.
    pub(super) fn due(&self, most: usize, now: Instant) -> (Vec<Job>, Option<Instant>) {
        let mut queue = self.queue();
        let quiet_at = queue.quiet_at;
        let due_at = |job: &(What, u32, Option<Instant>)| match (job.1, job.2) {
            // News that was not written yet.
            (0, Some(latest)) => Some(quiet_at.map_or(latest, |at| at.min(latest))),
            (_, due) => due,
        };
        let jobs = queue.jobs.iter();
        let due = jobs.filter(|(_, job)| due_at(job).is_none_or(|at| at <= now));
        let keys: Vec<String> = due.take(most).map(|(key, _)| key.clone()).collect();
        let next = queue.jobs.values().filter_map(due_at).min();
        let taken = keys.into_iter().filter_map(|key| {
            let (what, tries, _) = queue.jobs.remove(&key)?;
            Some(Job { key, what, tries })
        });
        (taken.collect(), next)
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    fn changes(&mut self, uid: &str) {
        if let Some(meanwhile) = &mut self.meanwhile {
            meanwhile.insert(uid.to_owned());
        }
    }

    fn write(&mut self, report: Attached) {
        let key = report.pod.key();
        self.put(key, What::Write(Box::new(report)));
    }

    /// In the place of what was to be written of it, but not later than that.
    fn put(&mut self, key: String, what: What) {
        let now = Instant::now();
        let latest = now + LONGEST_SETTLE_DELAY;
        let before = self.jobs.get(&key).map(|(_, _, due)| *due);
        let due = match before {
            Some(due) => due.map(|due| due.min(latest)),
            None => {
                self.quiet_at = Some(now + SETTLE_DELAY);
                Some(latest)
            }
        };
        let _ = self.jobs.insert(key, (what, 0, due));
    }

    fn learn(&mut self, report: &Attached) {
        let networks = report.attachments.iter();
        let networks =
            networks.map(|one| (one.network.namespace.clone(), one.network.name.clone()));
        let key = report.pod.key();
        let before = self.pods.remove(&key);
        let has = Has {
            pod: report.pod.clone(),
            sandbox: report.sandbox.clone(),
            networks: networks.collect(),
            api_uid: before.and_then(|before| before.api_uid),
        };
        self.pods.insert(key, has);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(uid: &str, sandbox: &str) -> Attached {
        Attached {
            pod: PodName {
                namespace: "a".into(),
                name: "p".into(),
                uid: uid.into(),
                container: false,
            },
            sandbox: sandbox.into(),
            attachments: Vec::new(),
            network_status: None,
        }
    }

    /// What is due as soon as what is new now has settled.
    fn due(writer: &Writer) -> Vec<Job> {
        writer.due(10, Instant::now() + SETTLE_DELAY).0
    }

    #[test]
    fn two_calls_for_one_container_are_written_about_once_and_no_later() {
        let writer = Writer::default();
        writer.attached(report("u", "s1"));
        let (none, first) = writer.due(10, Instant::now());
        writer.attached(report("u", "s2"));
        let (_, second) = writer.due(10, Instant::now());
        assert!(none.is_empty() && first.is_some() && second == first);
        assert_eq!(due(&writer).len(), 1);
    }

    #[test]
    fn while_pods_come_one_after_another_nothing_is_written_but_what_has_waited_long() {
        let writer = Writer::default();
        writer.attached(report("u", "s1"));
        let first = writer.due(10, Instant::now()).1.unwrap();
        writer.attached(report("v", "s1"));
        // As if the second came just before the first was due.
        let later = first + SETTLE_DELAY - Duration::from_millis(1);
        writer.queue().quiet_at = Some(later);
        let (none, next) = writer.due(10, first);
        assert!(none.is_empty());
        assert_eq!(next, Some(later));
        assert_eq!(writer.due(10, later).0.len(), 2);
        for uid in ["u", "v"] {
            writer.attached(report(uid, "s1"));
        }
        let long = Instant::now() + LONGEST_SETTLE_DELAY;
        writer.queue().quiet_at = Some(long + SETTLE_DELAY);
        assert_eq!(writer.due(10, long).0.len(), 2);
    }

    #[test]
    fn the_newest_wins_and_an_old_sandbox_takes_nothing_away() {
        let writer = Writer::default();
        writer.attached(report("u", "s1"));
        writer.attached(report("u", "s2"));
        writer.detached(&report("u", "").pod, "s1");
        let jobs = due(&writer);
        assert_eq!(jobs.len(), 1);
        assert_eq!(jobs[0].what, What::Write(Box::new(report("u", "s2"))));
        // It fails, and meanwhile the pod goes: there is nothing to write any more.
        writer.detached(&report("u", "").pod, "s2");
        writer.again(jobs[0].clone());
        let jobs = due(&writer);
        assert!(matches!(
            jobs[..],
            [Job {
                what: What::Release { .. },
                ..
            }]
        ));
        assert!(!writer.is_attached("u"));
    }

    #[test]
    fn a_job_that_failed_waits_until_it_is_hurried() {
        let writer = Writer::default();
        writer.attached(report("u", "s1"));
        let jobs = due(&writer);
        writer.again(jobs[0].clone());
        let (none, next) = writer.due(10, Instant::now() + SETTLE_DELAY);
        assert!(none.is_empty() && next.is_some());
        writer.hurry();
        assert_eq!(due(&writer)[0].tries, 1);
    }

    #[test]
    fn what_the_journal_had_does_not_undo_what_came_since() {
        let writer = Writer::default();
        writer.attached(report("u", "s1"));
        assert_eq!(due(&writer).len(), 1);
        writer.before_journal();
        writer.detached(&report("u", "").pod, "s1");
        writer.attached(report("v", "s2"));
        let read = ["u", "v", "w"].map(|uid| report(uid, "s1")).to_vec();
        writer.journal(read, |_| true);
        let jobs = due(&writer);
        assert!(matches!(jobs[0].what, What::Release { .. }));
        assert_eq!(jobs[1].what, What::Write(Box::new(report("v", "s2"))));
        assert_eq!(jobs[2].what, What::Write(Box::new(report("w", "s1"))));
        assert!(!writer.is_attached("u"));
    }

    #[test]
    fn a_stray_record_is_not_released_over_something_newer() {
        let writer = Writer::default();
        writer.attached(report("u", "s1"));
        writer.release("a", "u", false);
        assert!(matches!(due(&writer)[0].what, What::Write(_)));
    }

    #[test]
    fn a_container_has_a_record_in_each_namespace_of_its_networks() {
        let writer = Writer::default();
        let in_namespace = |namespace: &str| {
            let mut report = report("c1", "c1");
            report.pod.namespace = namespace.to_owned();
            report.pod.container = true;
            report
        };
        writer.attached(in_namespace("a"));
        writer.attached(in_namespace("b"));
        assert_eq!(due(&writer).len(), 2);
        writer.detached(&in_namespace("a").pod, "c1");
        let jobs = due(&writer);
        assert!(matches!(&jobs[0].what, What::Release { pod, .. } if pod.namespace == "a"));
        assert!(writer.queue().pods.contains_key("b/c1"));
    }
}

//! The mechanism: run, die, start again, compare; k rising until a run survives.

use crate::case::Case;
use plexus_testkit::{Agent, CniOutput, Dump, Node, Pod, StandIn, Start, TIMEOUT, within};
use serde_json::Value;
use std::time::Duration;

/// No scenario has as many effects.
const MAX_EFFECTS: usize = 400;
/// Time for what happens after an answer, or after a caller is gone.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(15);
/// What a start leaves to its background is waited for as long as this; nothing depends on it.
const BACKGROUND_WAIT: Duration = Duration::from_secs(3);

/// What becomes of the DEL that the shim queues because its agent died.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Queue {
    /// The next agent finds it.
    Intact,
    /// It is lost: the journal alone must do.
    Removed,
}

/// A node on which what the networks keep is there already, and the dumps to compare with.
pub(crate) struct Harness {
    case: Case,
    node: Node,
    config: Value,
    never: Dump,
    completed: Dump,
    mistake: Option<&'static str>,
    _stand_in: StandIn,
    /// Of how many places to die one is taken, and which is the first.
    every: (usize, usize),
}

impl Harness {
    /// Records the dumps in an undisturbed run.
    pub(crate) fn new(case: Case) -> Self {
        let node = Node::new();
        let config = case.config(&node);
        let stand_in = StandIn::serve(&node);
        let agent = Agent::start(&node);
        {
            let pod = container(&node, "warm");
            pod.add(&config);
            pod.del(&config);
        }
        let pod = container(&node, "c1");
        let dump = || node.dump(Some(&pod)).naming_macs();
        let never = dump();
        pod.add(&config);
        let completed = dump();
        pod.del(&config);
        never.assert_same(
            &node.dump(Some(&pod)).naming_macs(),
            "an undisturbed DEL leaves something",
        );
        assert!(
            !never.diff(&completed).is_empty(),
            "an undisturbed ADD does nothing"
        );
        drop((agent, pod));
        Self {
            case,
            node,
            config,
            never,
            completed,
            mistake: None,
            _stand_in: stand_in,
            every: (1, 0),
        }
    }

    /// The agents that die make a deliberate mistake.
    pub(crate) fn with_mistake(mut self, mistake: &'static str) -> Self {
        self.mistake = Some(mistake);
        self
    }

    /// The agents die only at each `count`-th place, beginning with `offset`: other cases, or other runs, take the others.
    pub(crate) fn every(mut self, count: usize, offset: usize) -> Self {
        self.every = (count, offset);
        self
    }

    fn places(&self, first: usize) -> impl Iterator<Item = usize> {
        let (count, offset) = self.every;
        (first..first + MAX_EFFECTS).skip(offset).step_by(count)
    }

    /// The agent dies while it serves an ADD; says how often it died.
    pub(crate) fn agent_dies_in_add(&self) -> Result<usize, String> {
        let first = self.effects_until_ready() + 1;
        for (deaths, k) in self.places(first).enumerate() {
            let pod = container(&self.node, "c1");
            let mut agent = self.doomed(k).ready();
            let answer = self.add(&pod);
            let died = !survives(&mut agent, &self.node, k);
            drop(agent);
            let context = format!("{}: ADD, k={k} ({})", self.case.name, self.last_effect());
            self.recover(&pod, &context, answer.success().then_some(&self.completed))?;
            if !died {
                return match answer.success() {
                    true => Ok(deaths),
                    false => Err(format!("{context}: survived, but failed: {answer:?}")),
                };
            }
        }
        Err(format!(
            "{}: still dying at effect {MAX_EFFECTS} of an ADD",
            self.case.name
        ))
    }

    /// The agent dies while it serves a DEL.
    pub(crate) fn agent_dies_in_del(&self, queue: Queue) -> Result<usize, String> {
        let first = {
            let pod = container(&self.node, "c1");
            let agent = Agent::start(&self.node);
            pod.add(&self.config);
            agent.kill();
            let until_ready = self.effects_until_ready();
            let _agent = Agent::start(&self.node);
            pod.del(&self.config);
            until_ready + 1
        };
        for (deaths, k) in self.places(first).enumerate() {
            let pod = container(&self.node, "c1");
            let agent = Agent::start(&self.node);
            pod.add(&self.config);
            agent.kill();
            let mut agent = self.doomed(k).ready();
            let answer = self.del(&pod);
            let died = !survives(&mut agent, &self.node, k);
            drop(agent);
            let context = format!("{}: DEL, k={k} ({})", self.case.name, self.last_effect());
            if queue == Queue::Removed {
                let _ = std::fs::remove_dir_all(self.node.queue());
            }
            let kept = !died || queue == Queue::Intact;
            if kept && !answer.success() {
                return Err(format!("{context}: DEL fails: {answer:?}"));
            }
            self.recover(&pod, &context, kept.then_some(&self.never))?;
            if !died {
                return Ok(deaths);
            }
        }
        Err(format!(
            "{}: still dying at effect {MAX_EFFECTS} of a DEL",
            self.case.name
        ))
    }

    /// The agent dies in an ADD or DEL, at some of the places; the next one dies while it starts,
    /// at each of them.
    pub(crate) fn agent_dies_at_start(&self, count: usize) -> Result<usize, String> {
        let first = self.effects_until_ready() + 1;
        let adds = self.effects_of_add();
        let mut deaths = 0;
        for context in 0..count {
            let k = first + context * adds / count;
            deaths += self.start_after(&format!("ADD died at k={k}"), |pod| {
                let agent = self.doomed(k).ready();
                self.add(pod);
                drop(agent);
            })?;
        }
        for extra in 0..count {
            deaths += self.start_after(&format!("DEL died, {extra} effects in"), |pod| {
                let agent = Agent::start(&self.node);
                pod.add(&self.config);
                agent.kill();
                let before = self.effects_until_ready();
                let agent = self.doomed(before + 1 + 2 * extra).ready();
                self.del(pod);
                drop(agent);
                let _ = std::fs::remove_dir_all(self.node.queue());
            })?;
        }
        deaths += self.start_after("nothing died, one attachment is there", |pod| {
            let _agent = Agent::start(&self.node);
            pod.add(&self.config);
        })?;
        deaths += self.start_after("a DEL is queued", |pod| {
            let agent = Agent::start(&self.node);
            pod.add(&self.config);
            agent.kill();
            self.del(pod);
        })?;
        Ok(deaths)
    }

    /// The shim dies: in ADD, in DEL, and in a DEL that finds no agent.
    pub(crate) fn shim_dies(&self) -> Result<usize, String> {
        let agent = Agent::start(&self.node);
        let add = |pod: &Pod<'_>, k: &str| {
            let answer = pod.call("ADD", &self.config).env("PLEXUS_DIE_AT", k).run();
            // An agent notices that its caller is gone when it answers.
            std::thread::sleep(Duration::from_millis(40));
            answer
        };
        let del = |pod: &Pod<'_>, k: &str| {
            pod.add(&self.config);
            pod.call("DEL", &self.config).env("PLEXUS_DIE_AT", k).run()
        };
        let with_agent = [
            self.shim_dies_in("ADD", add, &self.completed, true)?,
            self.shim_dies_in("DEL", del, &self.never, true)?,
        ];
        agent.kill();
        let queued = |pod: &Pod<'_>, k: &str| {
            let agent = Agent::start(&self.node);
            pod.add(&self.config);
            agent.kill();
            let call = pod.call("DEL", &self.config).timeout(Duration::ZERO);
            call.env("PLEXUS_DIE_AT", k).run()
        };
        let without = self.shim_dies_in("queued DEL", queued, &self.never, false)?;
        let deaths = [with_agent[0], with_agent[1], without];
        match deaths.contains(&0) {
            true => Err(format!("the shim has no effects somewhere: {deaths:?}")),
            false => Ok(deaths.iter().sum()),
        }
    }

    fn shim_dies_in(
        &self,
        verb: &str,
        call: impl Fn(&Pod<'_>, &str) -> CniOutput,
        after_success: &Dump,
        served: bool,
    ) -> Result<usize, String> {
        for k in 1..MAX_EFFECTS {
            let pod = container(&self.node, "c1");
            let answer = call(&pod, &k.to_string());
            let context = format!("{}: shim, {verb}, k={k}", self.case.name);
            let expected = answer.success().then_some(after_success);
            match served {
                true => self.converges(&pod, &context, expected)?,
                false => self.recover(&pod, &context, expected)?,
            }
            if answer.status.code().is_some() {
                return match answer.success() {
                    true => Ok(k - 1),
                    false => Err(format!("{context}: survived, but failed: {answer:?}")),
                };
            }
        }
        Err(format!(
            "{}: shim still dying at effect {MAX_EFFECTS} of {verb}",
            self.case.name
        ))
    }

    /// Dies at each effect of a start that finds what `before` left; then all must be well.
    fn start_after(&self, what: &str, before: impl Fn(&Pod<'_>)) -> Result<usize, String> {
        for (deaths, j) in self.places(1).enumerate() {
            let pod = container(&self.node, "c1");
            before(&pod);
            let mut agent = self.doomed(j).spawn();
            let started = agent.wait_ready().is_ok() && self.settled(&mut agent, j);
            drop(agent);
            let context = format!(
                "{}: start, {what}, then j={j} ({})",
                self.case.name,
                self.last_effect()
            );
            self.recover(&pod, &context, None)?;
            if started {
                return Ok(deaths);
            }
        }
        Err(format!(
            "{}: {what}: still dying at effect {MAX_EFFECTS} of a start",
            self.case.name
        ))
    }

    /// Whether the agent outlives what a start leaves to its background.
    fn settled(&self, agent: &mut Agent<'_>, k: usize) -> bool {
        let queue_is_empty = || {
            let files = std::fs::read_dir(self.node.queue());
            files.map_or(true, |mut files| files.next().is_none())
        };
        within(BACKGROUND_WAIT, || {
            !agent.alive() || queue_is_empty() && self.node.journal().open_intents().is_empty()
        });
        survives(agent, &self.node, k)
    }

    /// Starts an agent that does not die: all must be well.
    fn recover(&self, pod: &Pod<'_>, context: &str, expected: Option<&Dump>) -> Result<(), String> {
        let mut agent = Start::on(&self.node).spawn();
        agent
            .wait_ready()
            .map_err(|why| format!("{context}: no agent comes up again: {why}"))?;
        self.converges(pod, context, expected)
    }

    /// The state must be `expected`, or one of the two; a repeated ADD completes it; a DEL leaves
    /// what never began.
    fn converges(
        &self,
        pod: &Pod<'_>,
        context: &str,
        expected: Option<&Dump>,
    ) -> Result<(), String> {
        let either = [&self.never, &self.completed];
        let only = expected.map(|dump| [dump]);
        let expected = only
            .as_ref()
            .map_or(either.as_slice(), <[&Dump; 1]>::as_slice);
        self.settles(pod, &format!("{context}: afterwards"), expected)?;
        let again = pod.cni("ADD", &self.config);
        if !again.success() {
            return Err(format!("{context}: a repeated ADD fails: {again:?}"));
        }
        self.settles(
            pod,
            &format!("{context}: after a repeated ADD"),
            &[&self.completed],
        )?;
        let gone = pod.cni("DEL", &self.config);
        if !gone.success() {
            return Err(format!("{context}: DEL fails: {gone:?}"));
        }
        self.settles(pod, &format!("{context}: after DEL"), &[&self.never])
    }

    fn settles(&self, pod: &Pod<'_>, context: &str, expected: &[&Dump]) -> Result<(), String> {
        settles(
            || self.node.dump(Some(pod)).naming_macs(),
            context,
            expected,
        )
    }

    fn doomed(&self, k: usize) -> Start<'_> {
        let start = Start::on(&self.node).die_at(k);
        match self.mistake {
            Some(mistake) => start.env("PLEXUS_MISTAKE", mistake),
            None => start,
        }
    }

    fn add(&self, pod: &Pod<'_>) -> CniOutput {
        pod.call("ADD", &self.config).timeout(Duration::ZERO).run()
    }

    fn del(&self, pod: &Pod<'_>) -> CniOutput {
        pod.call("DEL", &self.config).timeout(Duration::ZERO).run()
    }

    /// How many effects a start has on the node as it is.
    fn effects_until_ready(&self) -> usize {
        drop(Start::on(&self.node).logging_effects().ready());
        Agent::effects(&self.node).len()
    }

    fn effects_of_add(&self) -> usize {
        let pod = container(&self.node, "c1");
        let _agent = Start::on(&self.node).logging_effects().ready();
        let before = Agent::effects(&self.node).len();
        pod.add(&self.config);
        let after = Agent::effects(&self.node).len();
        pod.del(&self.config);
        after - before
    }

    fn last_effect(&self) -> String {
        Agent::effects(&self.node)
            .last()
            .cloned()
            .unwrap_or_default()
    }
}

/// A container whose `lo` is up already: what ADD does to it is not undone.
pub(crate) fn container<'n>(node: &'n Node, id: &str) -> Pod<'n> {
    let pod = node.pod(id);
    pod.ns().ip("link set lo up\n");
    pod
}

/// Whether the agent outlives what it does after its answer. One that has come to effect `k` dies, however long
/// the kernel takes.
pub(crate) fn survives(agent: &mut Agent<'_>, node: &Node, k: usize) -> bool {
    if agent.wait_exit(Duration::from_millis(60)).is_some() {
        return false;
    }
    let (effects, last) = (Agent::effects(node), format!("{k} "));
    let dies = effects.iter().any(|effect| effect.starts_with(&last));
    !dies || agent.wait_exit(TIMEOUT).is_none()
}

/// Waits a little for one of the wanted states: the kernel itself adds some routes later. Says what differs from
/// the nearest.
pub(crate) fn settles(
    builder: impl Fn() -> Dump,
    context: &str,
    expected: &[&Dump],
) -> Result<(), String> {
    let start = std::time::Instant::now();
    loop {
        let found = builder();
        let diffs: Vec<String> = expected.iter().map(|dump| dump.diff(&found)).collect();
        if diffs.iter().any(String::is_empty) {
            return Ok(());
        }
        if start.elapsed() > SETTLE_TIMEOUT {
            let nearest = diffs.iter().min_by_key(|diff| diff.len()).cloned();
            let nearest = nearest.unwrap_or_default();
            return Err(format!(
                "{context}: differs (- wanted, + found):\n{nearest}"
            ));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

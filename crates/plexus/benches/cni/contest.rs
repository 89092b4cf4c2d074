//! The three contenders, and how each makes and removes a pod's interfaces against the clock.

use crate::call::Call;
use crate::config::{self, Shape};
use crate::floor;
use crate::lab::{BenchPod, Lab};
use crate::wire::Wire;
use anyhow::Result;
use serde_json::Value;
use std::time::{Duration, Instant};

/// Who does it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Who {
    Ours,
    Peer,
    Floor,
}

impl Who {
    /// All three, another one first in each round.
    pub(crate) fn in_turn(round: usize) -> [Who; 3] {
        let mut order = [Who::Ours, Who::Peer, Who::Floor];
        order.rotate_left(round % 3);
        order
    }
}

/// Results of the calls of an ADD, which the DEL gets back, as runtimes do it.
pub(crate) type Results = Vec<Value>;

impl Lab<'_> {
    /// Gives a pod its interfaces.
    pub(crate) fn add(
        &self,
        who: Who,
        shape: Shape,
        bench_pod: &BenchPod<'_>,
    ) -> Result<(Duration, Results)> {
        let pools = self.node().pools();
        match who {
            Who::Ours => {
                let call = self.our_call("ADD", bench_pod);
                let (took, result) = call(&config::ours(shape, &pools))?;
                Ok((took, vec![result]))
            }
            Who::Peer => {
                let mut total = Duration::ZERO;
                let mut results = Vec::new();
                for step in config::peer(shape, &pools) {
                    let (took, result) = self.peer_call("ADD", bench_pod, &step)?;
                    total += took;
                    results.push(result);
                }
                Ok((total, results))
            }
            Who::Floor => {
                let mut wire = Wire::open()?;
                let start = Instant::now();
                self.floor()
                    .add(&mut wire, &bench_pod.netns, shape, bench_pod.number)?;
                Ok((start.elapsed(), Vec::new()))
            }
        }
    }

    /// Takes them away again.
    pub(crate) fn del(
        &self,
        who: Who,
        shape: Shape,
        bench_pod: &BenchPod<'_>,
        results: Results,
    ) -> Result<Duration> {
        let pools = self.node().pools();
        match who {
            Who::Ours => {
                let config = after(config::ours(shape, &pools), results.into_iter().next());
                let call = self.our_call("DEL", bench_pod);
                Ok(call(&config)?.0)
            }
            Who::Peer => {
                let mut total = Duration::ZERO;
                for (mut step, result) in config::peer(shape, &pools).into_iter().zip(results).rev()
                {
                    step.config = after(step.config, Some(result));
                    total += self.peer_call("DEL", bench_pod, &step)?.0;
                }
                Ok(total)
            }
            Who::Floor => {
                let start = Instant::now();
                floor::del(&bench_pod.netns, shape)?;
                Ok(start.elapsed())
            }
        }
    }

    /// Starts a program that says its versions and touches nothing.
    pub(crate) fn start_only(&self, who: Who) -> Result<Duration> {
        let (socket, peer) = (self.node().socket(), self.plugin("macvlan"));
        let call = Call {
            program: if who == Who::Ours { self.shim() } else { &peer },
            verb: "VERSION",
            container: "",
            netns: std::path::Path::new(""),
            ifname: "",
            socket: &socket,
        };
        Ok(call.run(&serde_json::json!({"cniVersion": "1.0.0"}))?.0)
    }

    fn our_call<'a>(
        &'a self,
        verb: &'a str,
        bench_pod: &'a BenchPod<'_>,
    ) -> impl Fn(&Value) -> Result<(Duration, Value)> + 'a {
        let (netns, socket) = (bench_pod.pod.ns().path(), self.node().socket());
        move |config| {
            let call = Call {
                program: self.shim(),
                verb,
                container: bench_pod.pod.container(),
                netns: &netns,
                ifname: "eth0",
                socket: &socket,
            };
            call.run(config)
        }
    }

    fn peer_call(
        &self,
        verb: &str,
        bench_pod: &BenchPod<'_>,
        step: &config::PeerCall,
    ) -> Result<(Duration, Value)> {
        let call = Call {
            program: &self.plugin(step.plugin),
            verb,
            container: bench_pod.pod.container(),
            netns: &bench_pod.pod.ns().path(),
            ifname: &step.ifname,
            socket: &self.node().socket(),
        };
        call.run(&step.config)
    }
}

fn after(mut config: Value, result: Option<Value>) -> Value {
    if let Some(result) = result {
        config["prevResult"] = result;
    }
    config
}

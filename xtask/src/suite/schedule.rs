//! Which test executable may start now. Decides only: knows no process and no clock, so that whole runs are tested in no time.
//! The order is that of the list. What is not alone passes by what cannot start yet.

/// What a test executable does to its neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Load {
    /// It computes: one per core.
    Works,
    /// It sleeps, or waits for what it has started, most of the time.
    Waits,
    /// It works on the cluster that the tests of a run share.
    SharedCluster,
    /// It makes a cluster of its own.
    OwnCluster,
    /// It measures time, or looks at what is there of the whole machine: nothing else runs meanwhile.
    Alone,
}

/// How many may run at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slots {
    /// Of all together.
    pub(crate) all: usize,
    /// Of those that work.
    pub(crate) works: usize,
}

/// One at a time disturbs nobody on the shared cluster, and two clusters are what two cores carry.
const CLUSTER_SLOTS: usize = 1;

impl Slots {
    /// Of those with this load.
    fn of(self, load: Load) -> usize {
        match load {
            Load::Works => self.works,
            Load::Waits => self.all,
            Load::SharedCluster | Load::OwnCluster => CLUSTER_SLOTS,
            Load::Alone => 1,
        }
    }
}

/// The first of `waiting` that may start beside `running`.
pub(super) fn next(waiting: &[Load], running: &[Load], slots: Slots) -> Option<usize> {
    if running.contains(&Load::Alone) || running.len() >= slots.all {
        return None;
    }
    waiting.iter().position(|load| {
        let alike = running.iter().filter(|beside| *beside == load).count();
        match load {
            Load::Alone => running.is_empty(),
            load => alike < slots.of(*load),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::Load::{Alone, OwnCluster, SharedCluster, Waits, Works};
    use super::*;

    const SLOTS: Slots = Slots { all: 3, works: 2 };

    /// Runs all, each as many ticks as it is told; gives who ran in each tick.
    fn run(jobs: &[(Load, u32)], slots: Slots) -> Vec<Vec<usize>> {
        let mut waiting: Vec<usize> = (0..jobs.len()).collect();
        let mut running: Vec<(usize, u32)> = Vec::new();
        let mut ticks = Vec::new();
        loop {
            loop {
                let loads: Vec<Load> = waiting.iter().map(|job| jobs[*job].0).collect();
                let beside: Vec<Load> = running.iter().map(|(job, _)| jobs[*job].0).collect();
                let Some(index) = next(&loads, &beside, slots) else {
                    break;
                };
                let job = waiting.remove(index);
                running.push((job, jobs[job].1));
            }
            if running.is_empty() {
                assert!(waiting.is_empty(), "{waiting:?} never start");
                return ticks;
            }
            ticks.push(running.iter().map(|(job, _)| *job).collect());
            for (_, left) in &mut running {
                *left -= 1;
            }
            running.retain(|(_, left)| *left > 0);
        }
    }

    #[test]
    fn every_job_runs_and_who_is_alone_is_alone() {
        let jobs = [
            (Works, 3),
            (Alone, 2),
            (Waits, 4),
            (Works, 1),
            (Alone, 1),
            (Works, 2),
            (Waits, 1),
            (Waits, 2),
        ];
        let ticks = run(&jobs, SLOTS);
        for (job, (_, long)) in jobs.iter().enumerate() {
            let took = ticks.iter().filter(|tick| tick.contains(&job)).count();
            assert_eq!(took, *long as usize, "{job} in {ticks:?}");
        }
        for tick in &ticks {
            let loads: Vec<Load> = tick.iter().map(|job| jobs[*job].0).collect();
            assert!(!loads.contains(&Alone) || loads.len() == 1, "{ticks:?}");
            assert!(loads.len() <= SLOTS.all, "{ticks:?}");
            assert!(
                loads.iter().filter(|load| **load == Works).count() <= SLOTS.works,
                "{ticks:?}"
            );
        }
    }

    #[test]
    fn the_list_is_the_order() {
        assert_eq!(next(&[Alone, Works], &[], SLOTS), Some(0));
        assert_eq!(next(&[Works, Waits], &[Works, Works], SLOTS), Some(1));
        assert_eq!(next(&[Alone, Works], &[Works], SLOTS), Some(1));
        assert_eq!(next(&[Works, Waits], &[Alone], SLOTS), None);
        assert_eq!(next(&[Waits], &[Waits, Waits, Waits], SLOTS), None);
        assert_eq!(next(&[], &[], SLOTS), None);
    }

    #[test]
    fn one_runs_on_the_shared_cluster_beside_one_with_its_own() {
        let jobs = [
            (OwnCluster, 3),
            (OwnCluster, 2),
            (SharedCluster, 4),
            (SharedCluster, 1),
            (Waits, 1),
        ];
        let ticks = run(&jobs, Slots { all: 2, works: 1 });
        let expected = [
            vec![0, 2],
            vec![0, 2],
            vec![0, 2],
            vec![2, 1],
            vec![1, 3],
            vec![4],
        ];
        assert_eq!(ticks, expected);
    }

    #[test]
    fn two_that_work_take_half_of_the_time() {
        let jobs = [(Works, 6), (Works, 2), (Works, 2), (Works, 2)];
        assert_eq!(run(&jobs, Slots { all: 2, works: 2 }).len(), 6);
        assert_eq!(run(&jobs, Slots { all: 1, works: 1 }).len(), 12);
    }
}

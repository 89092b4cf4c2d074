//! Conditions: one of each kind, sorted as they came, with the time at which their status changed.
//! Kinds that are not named stay as they are: they are somebody else's.

use plexus_api::objects::Condition;

/// The conditions of an object while they are decided anew.
pub(crate) struct Conditions<'a> {
    list: Vec<Condition>,
    now: &'a str,
    generation: Option<i64>,
}

impl<'a> Conditions<'a> {
    /// From what was said before. `now` is RFC 3339.
    pub(crate) fn new(before: &[Condition], now: &'a str, generation: Option<i64>) -> Self {
        Conditions {
            list: before.to_vec(),
            now,
            generation,
        }
    }

    /// Sets the status of a condition, with its reason and message.
    pub(crate) fn set(
        &mut self,
        kind: &str,
        holds: bool,
        reason: &str,
        message: impl Into<String>,
    ) {
        let status = if holds { "True" } else { "False" };
        let old = self
            .list
            .iter()
            .position(|condition| condition.kind == kind);
        let transition_time = old
            .and_then(|at| self.list.get(at))
            .filter(|old| old.status == status)
            .map_or(self.now, |old| &old.last_transition_time)
            .to_owned();
        let condition = Condition {
            kind: kind.to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message: cut(message.into()),
            last_transition_time: transition_time,
            observed_generation: self.generation,
        };
        match old.and_then(|at| self.list.get_mut(at)) {
            Some(old) => *old = condition,
            None => self.list.push(condition),
        }
    }

    /// Says that it does not hold, if it was ever said that it does.
    pub(crate) fn over(&mut self, kind: &str, reason: &str, message: &str) {
        if self.list.iter().any(|condition| condition.kind == kind) {
            self.set(kind, false, reason, message);
        }
    }

    pub(crate) fn into_list(self) -> Vec<Condition> {
        self.list
    }
}

/// What the API convention allows of a message.
const MAX_MESSAGE_BYTES: usize = 32_768;

fn cut(mut text: String) -> String {
    if text.len() > MAX_MESSAGE_BYTES {
        let end = (0..=MAX_MESSAGE_BYTES - 4)
            .rev()
            .find(|at| text.is_char_boundary(*at))
            .unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_moves_only_with_the_status_and_others_stay() {
        let mut first = Conditions::new(&[], "t1", Some(1));
        first.set("KernelFeature", false, "NoVxlan", "n1");
        first.set("Ready", true, "Active", "");
        let first = first.into_list();
        let mut second = Conditions::new(&first, "t2", Some(2));
        second.set("Ready", true, "Active", "still");
        second.over("SubnetConflict", "NoConflict", "");
        let second = second.into_list();
        assert_eq!(second.len(), 2);
        assert_eq!(second[0], first[0]);
        assert_eq!(second[1].last_transition_time, "t1");
        assert_eq!(second[1].observed_generation, Some(2));
        let mut third = Conditions::new(&second, "t3", Some(2));
        third.set("Ready", false, "SubnetConflict", "x");
        assert_eq!(third.into_list()[1].last_transition_time, "t3");
    }

    #[test]
    fn a_message_fits() {
        let mut conditions = Conditions::new(&[], "t", None);
        conditions.set("Ready", false, "InvalidSpec", "ü".repeat(40_000));
        assert!(conditions.into_list()[0].message.len() <= MAX_MESSAGE_BYTES);
    }
}

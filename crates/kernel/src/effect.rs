//! The two sides of one effect, so that every change of the kernel's state is a place to die in
//! the crash test.

/// A change of state by its name in the crash test's log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effect {
    before: &'static str,
    after: &'static str,
}

impl Effect {
    pub(crate) const fn new(before: &'static str, after: &'static str) -> Self {
        Self { before, after }
    }

    /// For what changes nothing that outlives the caller.
    pub(crate) const fn none() -> Self {
        Self {
            before: "",
            after: "",
        }
    }

    /// Runs the change between its two marks.
    pub(crate) fn around<T>(self, change: impl FnOnce() -> T) -> T {
        if self.before.is_empty() {
            return change();
        }
        plexus_faults::effect(self.before);
        let result = change();
        plexus_faults::effect(self.after);
        result
    }
}

/// `effect!("netlink.pod-links")`
macro_rules! effect {
    ($name:literal) => {
        $crate::effect::Effect::new(concat!($name, "<"), concat!($name, ">"))
    };
}
pub(crate) use effect;

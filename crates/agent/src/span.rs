//! The spans of the log: they say whose a line is, so that the line need not. Decides nothing.
//!
//! ```text
//!   call{verb=add container=… ifname=eth0 pod="shop/web"}:step{kind=plugin network=blue interface=net1 attachment=1.0}: …
//! ```
//! A call has one, and so has every record that the agent works on by itself; inside of it, each step has one. They are
//! of the level ERROR: a line of any level has them. With the log off they are not made, and nothing is formatted.

use crate::journal::{AttachmentRecord, Record};
use plexus_api::cni::{Args, Command, Target};
use plexus_core::attach::Attachment;
use plexus_types::{ContainerId, IfName, NetworkName};
use std::fmt::{Display, Formatter, Result};
use tracing::field::{Empty, display};
use tracing::{Span, error_span};

/// One interface of a pod, as the log names it.
pub(crate) trait Interface {
    /// Its network, its name, which reference it comes from, and which of that reference's interfaces it is.
    fn identity(&self) -> (&NetworkName, &IfName, usize, u32);
}

impl Interface for Attachment {
    fn identity(&self) -> (&NetworkName, &IfName, usize, u32) {
        (&self.network, &self.ifname, self.reference, self.ordinal)
    }
}

impl Interface for AttachmentRecord {
    fn identity(&self) -> (&NetworkName, &IfName, usize, u32) {
        (&self.network, &self.ifname, self.reference, self.ordinal)
    }
}

/// Around a call.
pub(crate) fn of_call(command: Command, target: Option<&Target>, args: Option<&Args>) -> Span {
    error_span!(
        "call",
        verb = %command.path(),
        container = target.map(|target| display(&target.container)),
        ifname = target.map(|target| display(&target.ifname)),
        pod = args.and_then(pod).as_deref(),
        network = Empty,
        attachment = Empty,
    )
}

/// Around what the agent does by itself with what a container has, or may have.
pub(crate) fn of_container(verb: &'static str, container: &ContainerId, ifname: &IfName) -> Span {
    by_itself(verb, container, ifname, None)
}

/// Around what the agent does by itself with a record.
pub(crate) fn of_record(verb: &'static str, record: &Record) -> Span {
    let pod = record.details.pod.as_deref();
    by_itself(verb, &record.container, &record.ifname, pod)
}

fn by_itself(
    verb: &'static str,
    container: &ContainerId,
    ifname: &IfName,
    pod: Option<&str>,
) -> Span {
    error_span!(
        "record",
        %verb,
        %container,
        %ifname,
        pod,
        network = Empty,
        attachment = Empty,
    )
}

/// Around a step; it may be about several interfaces.
pub(crate) fn of_step<I: Interface>(kind: &'static str, interfaces: &[I]) -> Span {
    error_span!(
        "step",
        %kind,
        network = %Each(interfaces, write_network),
        interface = %Each(interfaces, write_ifname),
        attachment = %Each(interfaces, write_number),
    )
}

/// Says which interfaces a call failed with, in the lines that its span has from now on.
pub(crate) fn failed<I: Interface>(interfaces: &[I]) {
    if interfaces.is_empty() {
        return;
    }
    Span::current()
        .record("network", display(Each(interfaces, write_network)))
        .record("attachment", display(Each(interfaces, write_number)));
}

/// Says which of the pod's references a call failed with, in the same way.
pub(crate) fn failed_reference(reference: Option<&(String, usize)>) {
    if let Some((name, number)) = reference {
        Span::current()
            .record("network", name.as_str())
            .record("attachment", display(format_args!("{number}.0")));
    }
}

/// `namespace/name` of the pod, if the runtime told it.
pub(crate) fn pod(args: &Args) -> Option<String> {
    let (namespace, name) = (args.pod_namespace.as_ref()?, args.pod_name.as_ref()?);
    Some(format!("{namespace}/{name}"))
}

fn write_network<I: Interface>(one: &I, f: &mut Formatter<'_>) -> Result {
    f.write_str(one.identity().0.as_str())
}

fn write_ifname<I: Interface>(one: &I, f: &mut Formatter<'_>) -> Result {
    f.write_str(one.identity().1.as_str())
}

fn write_number<I: Interface>(one: &I, f: &mut Formatter<'_>) -> Result {
    let (_, _, reference, ordinal) = one.identity();
    write!(f, "{reference}.{ordinal}")
}

/// Something of each interface, separated by commas.
struct Each<'a, I>(&'a [I], fn(&I, &mut Formatter<'_>) -> Result);

impl<I> Display for Each<'_, I> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        for (index, one) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            (self.1)(one, f)?;
        }
        Ok(())
    }
}

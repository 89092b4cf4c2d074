//! CHECK: is everything that an ADD made still there and as it was?

use crate::addresses::host_local;
use crate::agent::Agent;
use crate::failure;
use crate::journal::{AttachmentRecord, Record, State};
use crate::recover::sandbox::{self, Sandbox};
use crate::serve::call::Call;
use crate::span;
use crate::verb::plugins as executed;
use plexus_api::cni::{Code, Error, Interface, Outcome};
use plexus_core::plan::{self, PodPlan};
use plexus_kernel::pod;
use plexus_types::IfName;
use std::path::PathBuf;

impl Agent {
    /// Names every interface, address, route, rule and neighbour that is missing or altered.
    pub(crate) fn check(&self, call: &Call<'_>) -> Result<(), Error> {
        let at = |error| failure::at(call.context(), error);
        let (container, ifname) = call.key()?;
        let stored = self.journal()?.find(&container, &ifname)?;
        let Some(stored) = stored.filter(|stored| stored.state == State::Done) else {
            return Err(at(Error::new(
                Code::UnknownContainer,
                format!("interface {ifname} was never attached, or is detached"),
                "send ADD first",
            )));
        };
        let record = &stored.record;
        let mut problems = Vec::new();
        self.check_kernel(record, call, &mut problems)?;
        check_files(record, &mut problems);
        if let Some(previous) = &call.conf()?.prev_result {
            check_result(record, previous, &mut problems);
        }
        if !problems.is_empty() {
            return Err(at(Error::new(
                Code::Altered,
                problems.join("; "),
                "restart the container to get its interfaces anew",
            )));
        }
        for plugins in record.begun_plugins().chain(record.executed_ipams()) {
            let this = std::slice::from_ref(plugins.0);
            span::of_step("plugin", this)
                .in_scope(|| executed::check(&self.runner, plugins, record))
                .inspect_err(|_| span::failed(this))
                .map_err(at)?;
        }
        Ok(())
    }

    fn check_kernel(
        &self,
        record: &Record,
        call: &Call<'_>,
        problems: &mut Vec<String>,
    ) -> Result<(), Error> {
        let hint = call.netns().map(PathBuf::as_path);
        let Sandbox::Here(netns) = self.sandbox_of(record, hint, &sandbox::search()) else {
            problems.push(format!(
                "network namespace {} is gone, or is another one by now",
                record.netns
            ));
            return Ok(());
        };
        let plan = &mut record.plan();
        if let Some(previous) = &call.conf()?.prev_result {
            follow(plan, previous);
        }
        let next = "repeat the CHECK";
        let seen = pod::observe(plan, &netns, &self.node)
            .map_err(|error| failure::failed(&error, next))?;
        let mut differences = plan::diff_pod(plan, &seen.pod);
        differences.extend(plan::diff_host_ends(plan, &seen.node));
        problems.extend(differences.iter().map(ToString::to_string));
        for (network, node) in record.node_plans() {
            let seen = plexus_kernel::node::observe(node, &self.node)
                .map_err(|error| failure::failed(&error, next))?;
            let differences = plan::diff_node(node, &seen).into_iter();
            problems.extend(differences.map(|it| format!("network {network}: {it}")));
        }
        Ok(())
    }
}

/// A plugin after us in the chain may give an interface another MAC, and says so in the result;
/// what it did to the MTU it does not say.
fn follow(plan: &mut PodPlan, result: &Outcome) {
    for link in &mut plan.links {
        let stated = stated(result, &link.name);
        let mac = stated.and_then(|interface| interface.mac.as_deref()?.parse().ok());
        if mac.is_some() && mac != link.mac {
            link.mac = mac;
            link.mtu = None;
        }
    }
}

/// The container's interface of that name in a result.
fn stated<'r>(result: &'r Outcome, name: &IfName) -> Option<&'r Interface> {
    let mut interfaces = result.interfaces.iter();
    interfaces.find(|one| one.name == name.as_str() && one.sandbox.is_some())
}

fn check_files(record: &Record, problems: &mut Vec<String>) {
    for (AttachmentRecord { ifname, .. }, native) in record.natives() {
        let Some((directory, in_file)) = native.host_local() else {
            continue;
        };
        let shown = directory.display();
        let has = |address| host_local::has(directory, address, &record.container, in_file);
        let missing = native.ips().filter(|address| !has(*address));
        problems.extend(missing.map(|address| {
            format!("interface {ifname}: host-local's {shown} no longer says that {address} is its address")
        }));
    }
}

/// The runtime's memory of the ADD must agree with ours.
fn check_result(record: &Record, previous: &Outcome, problems: &mut Vec<String>) {
    let mut natives = record.natives();
    let Some((first, native)) = natives.find(|(one, _)| (one.reference, one.ordinal) == (0, 0))
    else {
        return;
    };
    let ifname = &first.ifname;
    if stated(previous, ifname).is_none() {
        problems.push(format!(
            "prevResult has no interface {ifname} in the container"
        ));
    }
    let has = |address| previous.ips.iter().any(|ip| ip.address.addr() == address);
    for address in native.ips().filter(|address| !has(*address)) {
        problems.push(format!(
            "prevResult lacks address {address} of interface {ifname}"
        ));
    }
}

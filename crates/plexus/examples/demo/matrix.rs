//! Who reaches whom: measured by ping, on every network, in both families.

use crate::networks::EXPECTED;
use plexus_testkit::Pod;

/// Prints the matrix, a network a row, a pair a column; gives the number of cells that are not as
/// expected.
pub(crate) fn show(pods: &[&Pod<'_>]) -> usize {
    let pairs: Vec<(&Pod<'_>, &Pod<'_>)> = pods
        .iter()
        .flat_map(|from| pods.iter().map(move |to| (*from, *to)))
        .filter(|(from, to)| from.container() != to.container())
        .collect();
    print!("  {:<18}", "");
    for (from, to) in &pairs {
        print!("{:<14}", format!("{}>{}", from.container(), to.container()));
    }
    println!("expected");
    let mut wrong = 0;
    for (network, interface, expected) in EXPECTED {
        for family in ["inet", "inet6"] {
            let Some(cells) = row(&pairs, interface, family) else {
                continue;
            };
            print!(
                "  {:<18}",
                format!(
                    "{network} {}",
                    if family == "inet" { "IPv4" } else { "IPv6" }
                )
            );
            for reached in cells {
                let mark = if reached == expected { "" } else { " !" };
                wrong += usize::from(reached != expected);
                print!(
                    "{:<14}",
                    format!("{}{mark}", if reached { "yes" } else { "no" })
                );
            }
            println!("{}", if expected { "yes" } else { "no" });
        }
    }
    wrong
}

/// One ping a pair, all at the same time; none if the network has no address of that family.
fn row(pairs: &[(&Pod<'_>, &Pod<'_>)], interface: &str, family: &str) -> Option<Vec<bool>> {
    std::thread::scope(|scope| {
        let pings: Option<Vec<_>> = pairs
            .iter()
            .map(|(from, to)| {
                let target = address(to, interface, family)?;
                let from = from.ns();
                let ping = format!("ping -n -c 1 -W 1 -I {interface} {target}");
                Some(scope.spawn(move || from.try_sh(&format!("{ping} || {ping}"))))
            })
            .collect();
        Some(
            pings?
                .into_iter()
                .map(|ping| ping.join().unwrap_or(false))
                .collect(),
        )
    })
}

fn address(pod: &Pod<'_>, interface: &str, family: &str) -> Option<String> {
    let script = format!("ip -json -family {family} address show dev {interface} scope global");
    let text = pod.ns().sh(&script);
    let shown: serde_json::Value = serde_json::from_str(&text).ok()?;
    let address = shown.pointer("/0/addr_info/0/local")?;
    address.as_str().map(str::to_owned)
}

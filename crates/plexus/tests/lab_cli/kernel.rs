//! What `doctor` says of a kernel: of this machine's, and of Debian's in a virtual machine, with its modules and
//! without. `ip` and `nft`, which nobody here wrote, are asked the same each time. Cookies of namespaces are missing only
//! before 5.14, and Debian 12 has 6.1: that fault is invented, in the unit test.

use crate::doctor::{check, finds, found};
use plexus_testkit::{PLEXUS, bin};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Command, Output};

/// The checks that are made to fail here: the first on this machine, the others in a virtual one.
pub(crate) const CHECKS: &[&str] = &[
    "kernel.pinned-netns",
    "kernel.veth",
    "kernel.bridge",
    "kernel.macvlan",
    "kernel.ipvlan",
    "kernel.vlan",
    "kernel.vxlan",
    "kernel.vrf",
    "kernel.dummy",
    "kernel.masquerade",
];

/// What a kernel may lack: its name in a check, how bad that is, who must do without, and the next step.
const FEATURES: [(&str, &str, &str, &str); 9] = [
    ("veth", "fail", "every network but macvlan", "modprobe veth"),
    ("bridge", "warn", "provider bridge", "modprobe bridge"),
    ("macvlan", "warn", "provider macvlan", "modprobe macvlan"),
    ("ipvlan", "warn", "provider ipvlan", "modprobe ipvlan"),
    ("vlan", "warn", "provider vlan", "modprobe 8021q"),
    ("vxlan", "warn", "overlay networks", "modprobe vxlan"),
    ("vrf", "warn", "plugin vrf", "modprobe vrf"),
    ("dummy", "warn", "plugin dummy", "modprobe dummy"),
    (
        "masquerade",
        "warn",
        "SNAT or ipMasq",
        "modprobe -a nf_tables nft_chain_nat nft_masq",
    ),
];

/// A function of a shell: as JSON, the links that `ip` could make in a namespace of their own, each named after its kind,
/// whether `nft` could masquerade there, and what `$PLEXUS doctor` says. What `ip` could not do is in its errors.
const INSPECT_SCRIPT: &str = r#"
look() {
    unshare --net sh -c '
        ip -force -batch - <<END
link add name p0 type dummy
link add name p0 type bridge
link add name p0 type veth
link add name p1 type dummy
link add name p1 type bridge
link add name p1 type veth
link add name veth type veth
link add name bridge type bridge
link add name dummy type dummy
link add name vxlan type vxlan id 7 dstport 4789
link add name vrf type vrf table 7
link add link p0 name macvlan type macvlan mode bridge
link add link lo name macvlan type macvlan mode bridge
link add link p1 name ipvlan type ipvlan mode l2
link add link lo name ipvlan type ipvlan mode l2
link add link p0 name vlan type vlan id 7
link add link lo name vlan type vlan id 7
END
        ip -json link
        table="table inet x { chain y { type nat hook postrouting priority srcnat; masquerade; }; }"
        if nft "$table" 2>/dev/null; then echo true; else echo false; fi'
    "$PLEXUS" doctor --no-api -o json || test $? = 1
}
"#;

/// One `look`.
struct KernelFacts {
    others: BTreeSet<String>,
    report: Value,
}

impl KernelFacts {
    /// All looks of a script, in order.
    fn of(output: &Output) -> Vec<Self> {
        assert!(output.status.success(), "{output:?}");
        only_unknown(&String::from_utf8_lossy(&output.stderr));
        let values = serde_json::Deserializer::from_slice(&output.stdout).into_iter::<Value>();
        let values: Vec<Value> = values.map(Result::unwrap).collect();
        let look = |values: &[Value]| {
            let [links, masquerade, report] = values else {
                panic!("{values:?}");
            };
            let names = links.as_array().unwrap().iter();
            let mut others: BTreeSet<String> = names
                .map(|link| link["ifname"].as_str().unwrap().to_owned())
                .collect();
            if masquerade.as_bool().unwrap() {
                others.insert("masquerade".to_owned());
            }
            Self {
                others,
                report: report.clone(),
            }
        };
        values.chunks(3).map(look).collect()
    }

    /// Doctor says of every feature what the others say.
    #[track_caller]
    fn agrees(&self) {
        for (name, ..) in FEATURES {
            let by_others = self.others.contains(name);
            assert_eq!(self.has(name), by_others, "{name}: {:#}", self.report);
        }
    }

    /// What is there is said once, together; what is missing has a check of its own.
    #[track_caller]
    fn has(&self, name: &str) -> bool {
        let there = check(&self.report, "kernel").unwrap();
        let there = there.1.trim_start_matches("has ");
        let mut words = there.split([',', ' ']).filter(|word| !word.is_empty());
        let output = words.any(|word| word == name);
        let missing = check(&self.report, &format!("kernel.{name}"));
        assert_ne!(output, missing.is_some(), "{name}: {:#}", self.report);
        output
    }

    /// A feature is missing, and that is said with how bad it is, why, and the next step.
    #[track_caller]
    fn lacks(&self, name: &str) {
        let (_, verdict, needed, next) = FEATURES.into_iter().find(|f| f.0 == name).unwrap();
        let check = format!("kernel.{name}");
        finds(&self.report, &check, verdict, "the kernel has no ");
        finds(&self.report, &check, verdict, needed);
        finds(&self.report, &check, verdict, &format!(" next: {next}"));
    }
}

/// A link that is not there is one whose kind the kernel does not know: `ip` failed for no other reason, but that another
/// line has made the link, or could not make its parent.
fn only_unknown(errors: &str) {
    let known = [
        "Unknown device type",
        "Operation not supported",
        "File exists",
        "Cannot find device \"p",
        "Command failed -:",
    ];
    for line in errors.lines() {
        assert!(known.iter().any(|words| line.contains(words)), "{errors}");
    }
}

fn shell(mut command: Command, script: &str) -> Vec<KernelFacts> {
    let script = format!("set -e\n{INSPECT_SCRIPT}\n{script}");
    let command = command.env("PLEXUS", bin(PLEXUS)).args(["sh", "-c"]);
    KernelFacts::of(&command.arg(script).output().unwrap())
}

/// A script in a virtual machine.
fn guest(options: &[&str], script: &str) -> Vec<KernelFacts> {
    let installed = |name: &str| {
        let found = std::env::var_os(name).map(PathBuf::from);
        let found = found.filter(|path| path.exists());
        found.unwrap_or_else(|| {
            panic!("no {name}: cargo xtask vm true; eval \"$(cargo xtask env)\"")
        })
    };
    let _ = installed("PLEXUS_VM_KERNEL");
    let mut command = Command::new(installed("PLEXUS_VM"));
    command.args(["--limit", "120"]).args(options);
    shell(command, script)
}

#[test]
fn doctor_says_of_this_kernel_what_ip_and_nft_say() {
    let seen = shell(Command::new("env"), "look");
    assert_eq!(seen.len(), 1);
    seen[0].agrees();
}

/// As in a container that may not mount anything.
#[test]
fn a_machine_that_can_pin_no_namespace() {
    let script = "echo 0 >/proc/sys/user/max_mnt_namespaces; look";
    let mut own = Command::new("unshare");
    own.args(["--user", "--map-root-user"]);
    let seen = shell(own, script);
    let says = |words| finds(&seen[0].report, "kernel.pinned-netns", "warn", words);
    says("cannot make pinned network namespaces");
    says("overlay networks are refused");
    says(" next: run on the host, or in a privileged container");
    seen[0].agrees();
    found(&CHECKS[..1]);
}

/// Debian's kernel has all of it in modules.
#[test]
fn a_kernel_without_modules_lacks_everything() {
    let seen = guest(&["--without-modules"], "look");
    assert_eq!(seen.len(), 1);
    seen[0].agrees();
    for (name, ..) in FEATURES {
        seen[0].lacks(name);
    }
    found(&CHECKS[1..]);
    let rest = "has network namespace cookies, pinned network namespaces";
    finds(&seen[0].report, "kernel", "pass", rest);
}

/// The kernel loads nothing by itself, and somebody types what doctor says.
#[test]
fn the_next_steps_of_a_kernel_help() {
    let typed = r#"
        echo /bin/false >/proc/sys/kernel/modprobe
        look | tee /run/first
        jq -r 'objects.checks[] | select(.name | startswith("kernel.")).next | split(";")[0]' /run/first >/run/steps
        sh -e /run/steps
        look
    "#;
    let seen = guest(&[], typed);
    assert_eq!(seen.len(), 2);
    for (name, ..) in FEATURES {
        seen[0].lacks(name);
        assert!(seen[1].has(name), "{name}: {:#}", seen[1].report);
    }
    let all = "has veth, bridge, macvlan, ipvlan, vlan, vxlan, vrf, dummy, nftables masquerade, \
               network namespace cookies, pinned network namespaces";
    finds(&seen[1].report, "kernel", "pass", all);
    seen.iter().for_each(KernelFacts::agrees);
}

/// Those that are made on another link are not missing because the link is; the kernel loads their modules itself.
#[test]
fn a_kernel_that_lacks_veth_alone_lacks_nothing_else() {
    let without = "echo 'install veth /bin/false' >/etc/modprobe.d/none.conf; look";
    let seen = guest(&[], without);
    assert_eq!(seen.len(), 1);
    seen[0].agrees();
    for (name, ..) in FEATURES {
        match name {
            "veth" => seen[0].lacks(name),
            other => assert!(seen[0].has(other), "{other}: {:#}", seen[0].report),
        }
    }
}

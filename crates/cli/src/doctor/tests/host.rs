//! The machine: rights, kernel, mounts, the state directory.

use super::*;

#[test]
pub(super) fn rights() {
    let status = |uid: &str, caps: &str| {
        format!("Name:\tx\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\nCapEff:\t{caps}\n")
    };
    finds(
        &rights::judge(&status("1000", "0")),
        Subject::Root,
        Verdict::Fail,
        "user 1000",
    );
    finds(
        &rights::judge(&status("0", "0000000000001000")),
        Subject::Capabilities,
        Verdict::Fail,
        "CAP_SYS_ADMIN",
    );
    finds(
        &rights::judge(&status("0", "000001ffffffffff")),
        Subject::Root,
        Verdict::Pass,
        "every capability",
    );
    finds(
        &rights::judge(""),
        Subject::Root,
        Verdict::Fail,
        "user unknown",
    );
}

#[test]
pub(super) fn kernel_features() {
    let all = || Feature::ALL.into_iter();
    let lacking = |missing: Feature| {
        let each = all().map(move |feature| {
            (
                feature,
                (feature == missing).then_some("not in this kernel"),
            )
        });
        kernel::judge(each.collect::<Vec<_>>().into_iter())
    };
    finds(
        &lacking(Feature::Vxlan),
        Subject::Vxlan,
        Verdict::Warn,
        "overlay networks are refused",
    );
    finds(
        &lacking(Feature::Veth),
        Subject::Veth,
        Verdict::Fail,
        "modprobe veth",
    );
    finds(
        &lacking(Feature::NetnsCookie),
        Subject::NetnsCookie,
        Verdict::Fail,
        "5.14",
    );
    finds(
        &lacking(Feature::Masquerade),
        Subject::Masquerade,
        Verdict::Warn,
        "SNAT",
    );
    for feature in all() {
        let (verdict, _) = kernel::needed_by(feature);
        finds(
            &lacking(feature),
            Subject::of(feature),
            verdict,
            "not in this kernel",
        );
    }
    let none = kernel::judge(all().map(|feature| (feature, None)));
    finds(&none, Subject::Kernel, Verdict::Pass, "veth, bridge");
    assert_eq!(none.len(), 1);
    let bare = kernel::judge(all().map(|feature| (feature, Some("no"))));
    finds(&bare, Subject::Kernel, Verdict::Fail, "has nothing");
}

#[test]
pub(super) fn mounts_of_a_container() {
    let dir = Dir::new("mounts");
    let read_only = mounts::sysctls(&dir.0.join("nothing"));
    finds(&[read_only], Subject::Sysctls, Verdict::Fail, "privileged");
    finds(
        &[mounts::sysctls(&dir.file("x", ""))],
        Subject::Sysctls,
        Verdict::Pass,
        "",
    );
    finds(
        &[mounts::pods(true, Some((false, false)))],
        Subject::PodNamespaces,
        Verdict::Fail,
        "HostToContainer",
    );
    finds(
        &[mounts::pods(true, None)],
        Subject::PodNamespaces,
        Verdict::Fail,
        "is not there",
    );
    finds(
        &[mounts::pods(true, Some((false, true)))],
        Subject::PodNamespaces,
        Verdict::Pass,
        "",
    );
    finds(
        &[mounts::pods(false, None)],
        Subject::PodNamespaces,
        Verdict::Pass,
        "",
    );
    let path = Path::new("/run/plexus");
    finds(
        &[mounts::routers(true, path, Some((false, true)))],
        Subject::RouterMounts,
        Verdict::Fail,
        "Bidirectional",
    );
    finds(
        &[mounts::routers(true, path, Some((true, true)))],
        Subject::RouterMounts,
        Verdict::Pass,
        "",
    );
}

#[test]
pub(super) fn the_state_directory() {
    let dir = Dir::new("state");
    finds(
        &state::check(&dir.0.join("none")),
        Subject::StateDirectory,
        Verdict::Warn,
        "no agent has run",
    );
    let file = dir.file("file", "x");
    finds(
        &state::check(&file),
        Subject::StateDirectory,
        Verdict::Fail,
        "is not a directory",
    );
    symlink(dir.0.join("loop"), dir.0.join("loop")).unwrap();
    finds(
        &state::check(&dir.0.join("loop")),
        Subject::StateDirectory,
        Verdict::Fail,
        "cannot look at",
    );
    let checks = state::check(&dir.0);
    finds(
        &checks,
        Subject::StateDirectory,
        Verdict::Pass,
        "can be written",
    );
    finds(&checks, Subject::Journal, Verdict::Warn, "no agent has run");
    let read_only = state::writable(&dir.0, Err(rustix::io::Errno::ROFS));
    finds(
        &[read_only],
        Subject::StateDirectory,
        Verdict::Fail,
        "cannot be written",
    );
    finds(
        &[state::room(&dir.0, 0)],
        Subject::StateRoom,
        Verdict::Fail,
        "is full",
    );
    finds(
        &[state::room(&dir.0, 1 << 20)],
        Subject::StateRoom,
        Verdict::Warn,
        "1 MiB left",
    );
    let journal = dir.file("state/journal.db", "this is not a database at all");
    finds(
        &[state::journal(&journal)],
        Subject::Journal,
        Verdict::Fail,
        "is damaged",
    );
    let cut = dir.file("state/cut.db", "SQLite");
    finds(
        &[state::journal(&cut)],
        Subject::Journal,
        Verdict::Fail,
        "cut off",
    );
    let whole = dir.file("state/whole.db", b"SQLite format 3\0 and so on");
    finds(
        &[state::journal(&whole)],
        Subject::Journal,
        Verdict::Pass,
        "",
    );
}

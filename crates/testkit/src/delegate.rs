//! A plugin to delegate to, in shell. ADD makes a veth and a file per attachment, and fails if
//! they are there; DEL removes them; CHECK looks. Knows `dir` (where its files go), `address`,
//! `sleep` (seconds, in ADD) and `fail` (a verb that it refuses). Logs each call to `dir/../fake.log`.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Its `type`.
pub const FAKE: &str = "px-fake";

pub(crate) fn install(path: &Path) {
    write(path, SCRIPT);
}

pub(crate) fn write(path: &Path, script: &str) {
    std::fs::write(path, script).expect("writes the fake plugin");
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(path, mode).expect("makes it executable");
}

/// Reads compact JSON with nothing but the shell: a plugin that takes 100 ms would slow the crash
/// test down a hundred times over.
const SCRIPT: &str = r#"#!/bin/sh
conf=$(cat)
get() { case $conf in *"\"$1\":\""*) v=${conf#*"\"$1\":\""}; v=${v%%\"*};; *) v=;; esac; }
get cniVersion; version=${v:-1.1.0}
refuse() { echo "{\"cniVersion\":\"$version\",\"code\":$1,\"msg\":\"px-fake: $2\"}"; exit 1; }
if [ "$CNI_COMMAND" = VERSION ]; then
    echo '{"cniVersion":"1.1.0","supportedVersions":["0.3.0","0.3.1","0.4.0","1.0.0","1.1.0"]}'
    exit 0
fi
get dir; dir=$v
[ -n "$dir" ] || refuse 7 "dir is missing"
echo "$CNI_COMMAND $CNI_CONTAINERID $CNI_IFNAME $version" >>"$dir/../fake.log"
get fail; [ "$v" = "$CNI_COMMAND" ] && refuse 142 "told to fail"
get sleep; [ "$CNI_COMMAND" = ADD ] && [ -n "$v" ] && sleep "$v"
file=$dir/$CNI_CONTAINERID-$CNI_IFNAME
sum=$(printf %s "$CNI_CONTAINERID $CNI_IFNAME" | cksum); host=fk${sum%% *}
in_pod() { nsenter --net="$CNI_NETNS" "$@"; }
case $CNI_COMMAND in
ADD)
    [ -e "$file" ] && refuse 100 "$file exists"
    get address; address=${v:-10.77.0.2/24}
    ip link add "$host" address 02:fa:00:00:00:01 type veth peer name "$CNI_IFNAME" \
        address 02:fa:00:00:00:02 netns "$CNI_NETNS" || refuse 100 "no veth"
    ip link set "$host" up
    in_pod ip address add "$address" dev "$CNI_IFNAME"
    in_pod ip link set "$CNI_IFNAME" up
    echo "$CNI_NETNS" >"$file"
    ipversion=; case $version in 0.*) ipversion='"version":"4",';; esac
    echo "{\"cniVersion\":\"$version\",\"interfaces\":[{\"name\":\"$host\"},{\"name\":\"$CNI_IFNAME\",\"mac\":\"02:fa:00:00:00:02\",\"sandbox\":\"$CNI_NETNS\"}],\"ips\":[{$ipversion\"address\":\"$address\",\"interface\":1}],\"dns\":{}}"
    ;;
DEL)
    ip link del "$host" 2>/dev/null
    [ -n "$CNI_NETNS" ] && in_pod ip link del "$CNI_IFNAME" 2>/dev/null
    rm -f "$file"
    ;;
CHECK)
    [ -e "$file" ] || refuse 101 "$file is gone"
    in_pod ip link show "$CNI_IFNAME" >/dev/null 2>&1 || refuse 101 "$CNI_IFNAME is gone"
    ;;
GC | STATUS) ;;
*) refuse 4 "CNI_COMMAND $CNI_COMMAND" ;;
esac
exit 0
"#;

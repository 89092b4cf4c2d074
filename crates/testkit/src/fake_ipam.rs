//! An IPAM plugin to execute below our links, in shell. ADD takes the first free address of 10.40.0.2 to 10.40.0.250, or
//! `only`, as a file of that name; DEL removes the attachment's files; CHECK looks. Knows `dir` (where its files go),
//! `only`, and `gateway` (none is written if it is empty). The verb in `dir/../ipam.fail` is refused. Logs each call to
//! `dir/../ipam.log`, and its last configuration for each verb to `dir/../ipam.<verb>`.

use crate::Node;
use crate::delegate::write;
use serde_json::{Value, json};

/// Its `ipam.type`.
pub const FAKE_IPAM: &str = "px-ipam";

pub(crate) fn install(node: &Node) {
    write(&node.delegate_bin().join(FAKE_IPAM), SCRIPT);
}

/// The `ipam` section of a network.
pub fn fake_ipam(node: &Node) -> Value {
    json!({"type": FAKE_IPAM, "dir": node.fake_dir(), "gateway": "10.40.0.1"})
}

impl Node {
    /// Which calls the fake IPAM plugin got, without VERSION: verb, container, interface, version.
    pub fn ipam_calls(&self) -> Vec<String> {
        let log = std::fs::read_to_string(self.file("ipam.log")).unwrap_or_default();
        log.lines().map(str::to_owned).collect()
    }

    /// What the fake IPAM plugin got on standard input with its last call of that verb.
    pub fn ipam_input(&self, verb: &str) -> Value {
        let text = std::fs::read_to_string(self.file(&format!("ipam.{verb}")));
        serde_json::from_str(&text.expect("it was called")).expect("it got JSON")
    }

    /// The verb that the fake IPAM plugin refuses from now on; none: it refuses nothing.
    pub fn refuse_ipam(&self, verb: Option<&str>) {
        std::fs::write(self.file("ipam.fail"), verb.unwrap_or_default()).expect("writes a file");
    }
}

const SCRIPT: &str = r#"#!/bin/sh
conf=$(cat)
get() { case $conf in *"\"$1\":\""*) v=${conf#*"\"$1\":\""}; v=${v%%\"*};; *) v=;; esac; }
get cniVersion; version=${v:-1.1.0}
refuse() { echo "{\"cniVersion\":\"$version\",\"code\":$1,\"msg\":\"px-ipam: $2\"}"; exit 1; }
if [ "$CNI_COMMAND" = VERSION ]; then
    echo '{"cniVersion":"1.1.0","supportedVersions":["0.3.0","0.3.1","0.4.0","1.0.0","1.1.0"]}'
    exit 0
fi
get dir; dir=$v
[ -n "$dir" ] || refuse 7 "dir is missing"
echo "$CNI_COMMAND $CNI_CONTAINERID $CNI_IFNAME $version" >>"$dir/../ipam.log"
echo "$conf" >"$dir/../ipam.$CNI_COMMAND"
fail=; [ -e "$dir/../ipam.fail" ] && read -r fail <"$dir/../ipam.fail"
[ "$fail" = "$CNI_COMMAND" ] && refuse 142 "told to fail"
owner="$CNI_CONTAINERID $CNI_IFNAME"
take() { (set -C; echo "$owner" >"$dir/$1") 2>/dev/null; }
case $CNI_COMMAND in
ADD)
    get only; address=$v
    if [ -n "$address" ]; then
        take "$address" || refuse 100 "$address is taken by $(cat "$dir/$address")"
    else
        i=2; while ! take "10.40.0.$i"; do i=$((i + 1)); [ $i -le 250 ] || refuse 100 "no address is free"; done
        address=10.40.0.$i
    fi
    get gateway; gateway=${v:+",\"gateway\":\"$v\""}
    family=; case $version in 0.*) family='"version":"4",';; esac
    echo "{\"cniVersion\":\"$version\",\"ips\":[{$family\"address\":\"$address/24\"$gateway}],\"dns\":{\"nameservers\":[\"10.40.0.53\"]}}"
    ;;
DEL)
    for file in "$dir"/10.*; do
        [ -e "$file" ] && read -r found <"$file" && [ "$found" = "$owner" ] && rm -f "$file"
    done
    ;;
CHECK)
    for file in "$dir"/10.*; do
        [ -e "$file" ] && read -r found <"$file" && [ "$found" = "$owner" ] && exit 0
    done
    refuse 101 "$owner has no address"
    ;;
GC | STATUS) ;;
*) refuse 4 "CNI_COMMAND $CNI_COMMAND" ;;
esac
exit 0
"#;

#!/bin/sh
# Decides what a ZooKeeper member starts from, and becomes its JVM, so that SIGTERM reaches the JVM itself.
#
# The mounted configuration counts for the first start only. ZooKeeper then keeps the membership on the volume, as
# conf/zoo.cfg.dynamic.<version in hex>, and the highest version is the truth: the first one again would be a quorum of its
# own after a reconfiguration.
#
# An empty member must not vote: a majority of them would elect an empty tree, and bookies then delete every ledger. So the
# empty tree is made only where the operator says that the ensemble is being founded; later an empty member waits for a
# leader and copies from it (zookeeper.db.autocreate=false).
#
# The server id is the ordinal of the host's name plus one. Exit code 78: the volume is another member's.
set -eu
export LC_ALL=C

home="${ZOOKEEPER_HOME:-/opt/zookeeper}"
config="${ZOOKEEPER_CONFIG:-/config}"
data="${ZOOKEEPER_DATA:-/data}"
host="${HOSTNAME:-$(hostname)}"

refuse() {
    echo "refused: $*" >&2
    exit 78
}

ordinal="${host##*-}"
case "$ordinal" in
    '' | *[!0-9]*) refuse "HOSTNAME is $host: it must end with -<number>, as a StatefulSet's pods do" ;;
esac
id=$((ordinal + 1))

store="$data/store"
mkdir -p "$store" "$data/conf"
if [ -e "$store/myid" ] && [ "$(cat "$store/myid")" != "$id" ]; then
    refuse "$store/myid is $(cat "$store/myid"), this member is $id: the volume is another member's; mount the right claim"
fi
echo "$id" >"$store/myid"

# Versions are hexadecimal without leading zeros: the longest is the highest, then the last in order.
# zoo.cfg.dynamic.next is a proposal that was never committed.
highest=$(
    for file in "$data"/conf/zoo.cfg.dynamic.*; do
        version="${file##*.}"
        case "$version" in *[!0-9a-f]*) continue ;; esac
        echo "${#version} $version"
    done | sort -k1,1n -k2,2 | tail -n 1 | cut -d ' ' -f 2
)
if [ -n "$highest" ]; then
    dynamic="$data/conf/zoo.cfg.dynamic.$highest"
else
    # Copied, since ZooKeeper replaces the file that it started from.
    dynamic="$data/conf/zoo.cfg.dynamic"
    cp "$config/zoo.cfg.dynamic" "$dynamic"
fi
# ZooKeeper rewrites zoo.cfg, and names its dynamic files after it.
{ cat "$config/zoo.cfg"; echo; echo "dynamicConfigFile=$dynamic"; } >"$data/conf/zoo.cfg"

# Only the file counts that stands beside an empty data directory; one left over would let a later, wiped start vote.
rm -f "$store/initialize"
if [ "$(cat "$config/founding")" = true ] && [ -z "$(ls -A "$store/version-2" 2>/dev/null)" ]; then
    touch "$store/initialize"
fi
echo "member $id starts from $dynamic, $([ -e "$store/initialize" ] && echo founding || echo 'not founding')"

# Small heaps are told by Min-, larger ones by MaxRAMPercentage. The collector is left to the JVM: serial in small containers.
# skipACL: reconfig is the operator's, and clients of this ensemble use no ACLs (NetworkPolicy keeps strangers out).
# shellcheck disable=SC2086 # options are words
exec java \
    -XX:MinRAMPercentage=50 -XX:MaxRAMPercentage=50 -XX:InitialRAMPercentage=15 \
    -XX:MaxMetaspaceSize=96m -XX:ReservedCodeCacheSize=48m -Xss512k \
    -XX:+ExitOnOutOfMemoryError \
    -Djava.io.tmpdir=/tmp \
    -Dlogback.configurationFile="$home/conf/logback.xml" \
    -Dzookeeper.db.autocreate=false \
    -Dzookeeper.skipACL=yes \
    ${JVM_OPTIONS:-} \
    -cp "$home/lib/*" org.apache.zookeeper.server.quorum.QuorumPeerMain "$data/conf/zoo.cfg"

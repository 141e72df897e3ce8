#!/bin/sh
# Decides what a ZooKeeper member starts from, and becomes its JVM, so that SIGTERM reaches the JVM itself.
#
# ZooKeeper keeps the membership on the volume, as conf/zoo.cfg.dynamic.<version in hex>, and the operator mounts the one that
# it read last under the same name. The highest version is the truth. An older one would be a quorum of its own: the first one
# after a change, or that of a volume whose member left long ago. The mounted file without a version is for the founding, and
# for the second member of all.
#
# An empty member must not vote: a majority of them would elect an empty tree, and bookies then delete every ledger. So the
# empty tree is made only where the operator says that the ensemble is being founded; later an empty member waits for a
# leader and copies from it (zookeeper.db.autocreate=false).
#
# The JVM's main class is this image's: it finishes what a kill interrupted, and ends the member once it can't write (MemberStart).
#
# The server id is the ordinal of the host's name plus one. Exit code 78: the volume is another member's, or this is no member.
set -eu
export LC_ALL=C

home="${ZOOKEEPER_HOME:-/opt/zookeeper}"
config="${ZOOKEEPER_CONFIG:-/config}"
data="${ZOOKEEPER_DATA:-/data}"
digest="${ZOOKEEPER_SUPER_DIGEST:-/reconfig/super-digest}"
host="${HOSTNAME:-$(hostname)}"

refuse() {
    echo "refused: $*" >&2
    exit 78
}

# A line of the log, in the server's own form.
tell() {
    if [ "${LOG_FORMAT:-}" = JSON ]; then
        printf '{"time":"%s","level":"INFO","logger":"entrypoint","thread":"main","message":"%s"}\n' \
            "$(date -u +%Y-%m-%dT%H:%M:%S.%3NZ)" "$(printf %s "$*" | sed 's/[\\"]/\\&/g')"
    else
        echo "$*"
    fi
}

ordinal="${host##*-}"
case "$ordinal" in
    '' | *[!0-9]*) refuse "HOSTNAME is $host: it must end with -<number>, as a StatefulSet's pods do" ;;
esac
id=$((ordinal + 1))

store="$data/store"
mkdir -p "$store" "$data/conf"

# A pod that was deleted by force may serve on for a while, beside the next one of its name. Its last transactions would be on the
# volume, but not known to the next process, which votes like one that never acknowledged them. The JVM keeps the lock open.
exec 9<"$store"
held=0
flock -n 9 || held=$?
if [ "$held" = 1 ]; then
    trap 'exit 143' TERM # a shell that waits for a command in the foreground would not hear it
    tell "another process uses $store: this one waits for its end"
    flock 9 &
    wait $!
elif [ "$held" != 0 ]; then
    tell "$store can't be locked: it starts all the same"
fi

# Written once and whole: a full disk, or a kill, must not leave an empty one. 0.1.0 could.
if [ ! -s "$store/myid" ]; then
    echo "$id" >"$store/myid.copy"
    mv "$store/myid.copy" "$store/myid"
elif [ "$(cat "$store/myid")" != "$id" ]; then
    refuse "$store/myid is $(cat "$store/myid"), this member is $id: the volume is another member's; mount the right claim"
fi

# The highest of the versions on its lines. They are hexadecimal without leading zeros: the longest is the highest, then the
# last in order.
highest_version() {
    while read -r version; do
        case "$version" in '' | *[!0-9a-f]*) continue ;; esac
        echo "${#version} $version"
    done | sort -k1,1n -k2,2 | tail -n 1 | cut -d ' ' -f 2
}
highest=$(for file in "$data"/conf/zoo.cfg.dynamic.* "$config"/zoo.cfg.dynamic.*; do echo "${file##*.}"; done | highest_version)

# Copied, since ZooKeeper replaces the file that it started from. A power cut must not leave an empty one under its name.
begin_with() {
    dynamic="$data/conf/$1"
    if [ "$1" = zoo.cfg.dynamic ] || [ ! -s "$dynamic" ]; then
        cp "$config/$1" "$dynamic.copy"
        sync "$dynamic.copy"
        mv "$dynamic.copy" "$dynamic"
    fi
}
begin_with "zoo.cfg.dynamic${highest:+.$highest}"
# The second member of all follows before it is listed: it finds itself in the file without a version only, and learns from
# the first member, whose membership is newer, that it has no vote.
if ! grep -q "^server\.$id=" "$dynamic" && grep -q "^server\.$id=" "$config/zoo.cfg.dynamic"; then
    begin_with zoo.cfg.dynamic
fi
grep -q "^server\.$id=" "$dynamic" ||
    refuse "member $id is not in the membership $dynamic: it left, or has not joined yet"

# zoo.cfg.dynamic.next is a change that was proposed. One that is not above the membership is settled, and would be taken for
# one that is still going on.
next="$data/conf/zoo.cfg.dynamic.next"
if [ -e "$next" ] && [ -n "$highest" ]; then
    proposed=$(sed -n 's/^version=//p' "$next")
    [ "$(printf '%s\n%s\n' "$proposed" "$highest" | highest_version)" != "$highest" ] || rm -f "$next"
fi

# Metrics are the image's business, not zoo.cfg's: a member of an older image would not start with a provider that it lacks.
# So is how it reads the ACLs of a stack with certificates.
# ZooKeeper rewrites zoo.cfg, and names its dynamic files after it. The digest is that of the one user who may change the
# membership; without it nobody may.
{
    cat "$config/zoo.cfg"
    echo
    if [ -n "${METRICS_PORT:-}" ]; then
        echo "metricsProvider.className=org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider"
        echo "metricsProvider.httpPort=$METRICS_PORT"
    fi
    if grep -q '^secureClientPort=' "$config/zoo.cfg"; then
        echo "authProvider.x509=io.herdkeeper.zookeeper.CertificateLogin"
        echo "authProvider.stack=io.herdkeeper.zookeeper.StackAccess"
    fi
    [ ! -e "$digest" ] || echo "DigestAuthenticationProvider.superDigest=$(cat "$digest")"
    echo "dynamicConfigFile=$dynamic"
} >"$data/conf/zoo.cfg"

# Only the file counts that stands beside an empty data directory; one left over would let a later, wiped start vote.
rm -f "$store/initialize"
if [ "$(cat "$config/founding")" = true ] && [ -z "$(ls -A "$store/version-2" 2>/dev/null)" ]; then
    touch "$store/initialize"
fi
tell "member $id starts from $dynamic, $([ -e "$store/initialize" ] && echo founding || echo 'not founding')," \
    "the membership $([ -e "$digest" ] && echo "can be changed with the password of $digest" || echo 'can not be changed')"

# A leader compares its own address in two copies of the membership, each of which is looked up by itself. Where the name of its
# pod, which is new to the DNS, led here for one of them only, it took another member for the designated leader (3.9.5,
# Leader.getDesignatedLeader), told of that one as the leader, and the third member could join nobody. So a member starts when
# its name leads to it.
start_when() { # what is to be so, for how many seconds at most, and what is told if it never is
    tries=$(($2 * 5))
    until "$1"; do
        if [ "$tries" -le 0 ]; then
            tell "$3 after $2 s: it starts all the same"
            break
        fi
        tries=$((tries - 1))
        sleep 0.2
    done
}
name=$(sed -n "s/^server\.$id=\([^:]*\).*/\1/p" "$dynamic" | head -n 1)
leads_here() {
    own=" $(hostname -I) "
    for address in $(getent ahosts "$name" | cut -d ' ' -f 1); do
        case "$own" in *" $address "*) return 0 ;; esac
    done
    return 1
}
start_when leads_here "${ZOOKEEPER_NAME_SECONDS:-45}" "$name does not lead to this pod ($(hostname -I))"

# A kubelet may mount Secrets as they were a moment ago, and what is read of them only at the start would stay so. READ_AT_START
# is the SHA-256 of what was in these files, one behind the other, when the operator asked for this start.
files="${READ_AT_START:-}"
as_asked_for() {
    # shellcheck disable=SC2086 # paths are words
    [ "$(cat ${files#* } 2>/dev/null | sha256sum | cut -d ' ' -f 1)" = "${files%% *}" ]
}
[ -z "$files" ] || start_when as_asked_for "${ZOOKEEPER_FILES_SECONDS:-150}" "the mounted certificates are not those of READ_AT_START"

# A member that looks for a leader asks again after 0.2 s, and after twice as long each time, up to a minute (FastLeaderElection).
# Only such a request makes the others connect to a member that came back under another address. Until then a quorum may be missing.
# A follower tries its new leader's port for 0.4 s (Learner). Where a busy leader opens it later, the follower looks for a leader again.
# By default the leader then waits for it all the same, for initLimit, and there is no quorum for as long.
# Small heaps are told by Min-, larger ones by MaxRAMPercentage. The collector is left to the JVM: serial in small containers.
classes="$home/classes.jsa"
[ -e "$classes" ] || classes=""
jars=$(printf ':%s' "$home"/lib/*.jar) # as archive-classes had them
# shellcheck disable=SC2086 # options are words
exec java \
    ${classes:+-XX:SharedArchiveFile="$classes"} \
    -XX:MinRAMPercentage=50 -XX:MaxRAMPercentage=50 -XX:InitialRAMPercentage=15 \
    -XX:MaxMetaspaceSize=96m -XX:ReservedCodeCacheSize=48m -Xss512k \
    -XX:+ExitOnOutOfMemoryError \
    -Djava.io.tmpdir=/tmp \
    -Djava.security.properties="$home/conf/java.security" \
    -Dlogback.configurationFile="$home/conf/logback.xml" \
    -Dzookeeper.db.autocreate=false \
    -Dzookeeper.fastleader.maxNotificationInterval=3000 \
    -Dzookeeper.leader.maxTimeToWaitForEpoch=1000 \
    ${JVM_OPTIONS:-} \
    -cp "${jars#:}" io.herdkeeper.zookeeper.MemberStart "$data/conf/zoo.cfg"

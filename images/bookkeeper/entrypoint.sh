#!/bin/sh
# Becomes the JVM of a bookie, of autorecovery or of BookKeeper's shell, so that SIGTERM reaches the JVM itself.
#
# Usage: entrypoint.sh bookie | autorecovery | shell COMMAND... | move BOOKIE_ID FILE RATE
# move copies the ledgers of a read-only bookie elsewhere while it serves: all closed ones, and of the open ones those whose ids are in
# FILE, one a line, at RATE bytes a second (-1: no limit). It never fences a ledger as long as no last segment of those open ones names the bookie.
# The mounted /config/bk_server.conf is the same for all pods; what differs is appended to a copy in /tmp:
#   BOOKIE_ID           identity, bound to the volumes by the operator (bookie; optional elsewhere)
#   ADVERTISED_ADDRESS  host name under which clients reach this pod (bookie, autorecovery)
#   LEDGER_VOLUMES      where several ledger volumes are mounted, separated by spaces (bookie)
# Exit code 78: the volumes are not those of this bookie, which no restart cures. 79: a volume that should hold data is empty; the operator
# looks for this one (herdkeeper.domain.lost_bookie).
set -eu

home="${BOOKKEEPER_HOME:-/opt/bookkeeper}"
config="${BOOKKEEPER_CONFIG:-/config}"
journal="${BOOKKEEPER_JOURNAL:-/journal}"
ledgers="${LEDGER_VOLUMES:-${BOOKKEEPER_LEDGERS:-/ledgers}}"
tmp="${BOOKKEEPER_TMP:-/tmp}"

refuse() {
    echo "refused: $*" >&2
    exit 78
}

emptied() {
    echo "refused: $*" >&2
    exit 79
}

# Whether BookKeeper's metadata has this identity already: then its volumes held data. The operator keeps the list.
served_before() {
    [ -e "$config/known-bookies" ] && grep -qxF "$BOOKIE_ID" "$config/known-bookies"
}

# Whether a volume holds nothing. lost+found belongs to the file system.
empty() {
    [ -z "$(ls -A "$1" | grep -vx 'lost+found' || true)" ]
}

identity() {
    if [ -e "$1/bookie-id" ]; then cat "$1/bookie-id"; fi
}

# A bookie under a known id without its entries answers "no such entry" and truncates ledgers (apache/bookkeeper#4812).
# So identity is written once, on empty volumes; an unmounted volume looks like an empty one and is refused.
claim_volumes() {
    [ -n "${BOOKIE_ID:-}" ] || refuse "BOOKIE_ID is not set: set it to the id that is bound to this bookie's volumes"
    for volume in "$journal" $ledgers; do
        [ -d "$volume" ] || refuse "$volume is missing: mount the bookie's volume there"
    done
    if all_empty && served_before; then
        emptied "all volumes are empty, but $BOOKIE_ID served before: they were emptied, or others are mounted"
    fi
    # All files or none: a crash in between leaves volumes with an identity and no data, which the next start completes.
    if unfounded; then
        for volume in "$journal" $ledgers; do write_identity "$volume"; done
    fi
    for volume in "$journal" $ledgers; do
        found="$(identity "$volume")"
        [ -n "$found" ] || emptied "$volume has no bookie-id, another volume has data of ${BOOKIE_ID}: a volume is not mounted or was \
emptied; mount the right claim, or retire this bookie"
        [ "$found" = "$BOOKIE_ID" ] || refuse "$volume/bookie-id is $found, BOOKIE_ID is $BOOKIE_ID: the volume is another \
bookie's; mount the right claim"
    done
}

all_empty() {
    for volume in "$journal" $ledgers; do empty "$volume" || return 1; done
}

# Whether no volume holds anything but this bookie's identity, finished or not: it has not been started yet.
unfounded() {
    for volume in "$journal" $ledgers; do
        case "$(only "$volume")" in
            '' | .bookie-id.new) ;;
            bookie-id) [ "$(identity "$volume")" = "$BOOKIE_ID" ] || return 1 ;;
            *) return 1 ;;
        esac
    done
}

write_identity() {
    printf '%s\n' "$BOOKIE_ID" >"$1/.bookie-id.new"
    sync "$1/.bookie-id.new"
    mv "$1/.bookie-id.new" "$1/bookie-id"
    sync "$1"
}

# Names on a volume.
only() {
    ls -A "$1" | grep -vx 'lost+found' || true
}

# bk_server.conf with this pod's own lines at its end, which win over earlier ones.
compose() {
    {
        cat "$config/bk_server.conf"
        echo
        [ -z "${BOOKIE_ID:-}" ] || echo "bookieId=$BOOKIE_ID"
        [ -z "${ADVERTISED_ADDRESS:-}" ] || echo "advertisedAddress=$ADVERTISED_ADDRESS"
    } >"$tmp/bk_server.conf"
}

# Bytes of memory that this container may use.
memory_limit() {
    physical=$(($(sed -n 's/^MemTotal: *\([0-9]*\) kB$/\1/p' /proc/meminfo) * 1024))
    limit="$physical"
    for file in ${MEMORY_LIMIT_FILES:-/sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes}; do
        if [ -r "$file" ]; then
            limit="$(cat "$file")"
            break
        fi
    done
    # "max" (cgroup v2) and 2^63 rounded down to a page (v1) both mean: the machine's memory.
    case "$limit" in '' | max | ??????????????????*) limit="$physical" ;; esac
    if [ "$limit" -gt "$physical" ]; then limit="$physical"; fi
    echo "$limit"
}

run() {
    limit="$(memory_limit)"
    log4j="$config/log4j2.xml"
    [ -e "$log4j" ] || log4j="$home/conf/log4j2.xml"
    small=""
    # Netty's arenas keep chunks of their own and the second compiler its own memory: small containers can't afford either.
    if [ "$limit" -lt 2147483648 ]; then
        small="-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=64m -Xss512k
            -Dio.netty.allocator.numHeapArenas=1 -Dio.netty.allocator.numDirectArenas=1"
    fi
    # Heap and direct memory 25 % each; RocksDB, code, classes, threads and malloc take the rest. The caches of bk_server.conf are
    # made for that. shellcheck: options are words.
    # shellcheck disable=SC2086
    exec java \
        -XX:MinRAMPercentage=25 -XX:MaxRAMPercentage=25 -XX:InitialRAMPercentage=10 \
        -XX:MaxDirectMemorySize=$((limit / 4)) \
        -XX:+ExitOnOutOfMemoryError \
        $small \
        -Dio.netty.tryReflectionSetAccessible=true -Dio.netty.recycler.maxCapacityPerThread=4096 \
        -Djava.io.tmpdir="$tmp" \
        -Dlog4j2.configurationFile="$log4j" \
        ${JVM_OPTIONS:-} \
        -cp "$home/lib/*" "$@"
}

mode="${1:-}"
[ $# -eq 0 ] || shift
case "$mode" in
    bookie)
        claim_volumes
        compose
        run org.apache.bookkeeper.server.Main --conf "$tmp/bk_server.conf"
        ;;
    autorecovery)
        compose
        run org.apache.bookkeeper.replication.AutoRecoveryMain --conf "$tmp/bk_server.conf"
        ;;
    shell)
        compose
        run org.apache.bookkeeper.bookie.BookieShell -conf "$tmp/bk_server.conf" "$@"
        ;;
    move)
        compose
        [ $# -eq 3 ] || { echo "move: give the bookie's id, a file with ids of open ledgers, and bytes a second or -1" >&2 && exit 2; }
        # Not by markers for autorecovery: a worker takes a copy on a bookie that answers for a good one. shellcheck: options are words.
        recover="org.apache.bookkeeper.bookie.BookieShell -conf $tmp/bk_server.conf recover -f"
        [ "$3" = -1 ] || recover="$recover -rate $3"
        # shellcheck disable=SC2086
        (run $recover -sk "$1")
        while read -r ledger; do
            # shellcheck disable=SC2086
            (run $recover -l "$ledger" "$1") </dev/null
        done <"$2"
        ;;
    *)
        echo "mode is '$mode': use bookie, autorecovery, move, or shell with a command of BookKeeper's shell" >&2
        exit 2
        ;;
esac

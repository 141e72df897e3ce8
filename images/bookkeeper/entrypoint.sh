#!/bin/sh
# Becomes the JVM of a bookie, of autorecovery or of BookKeeper's shell, so that SIGTERM reaches the JVM itself.
#
# Usage: entrypoint.sh bookie | autorecovery | shell COMMAND... | move-recorded BOOKIE_ID RECORD RATE
# move-recorded copies the recorded ledgers of a read-only bookie elsewhere while it serves, at RATE bytes a second (-1: no limit). It leaves
# those that are being written there (io.herdkeeper.bookie.MoveLedgers).
# The mounted /config/bk_server.conf is the same for all pods; what differs is appended to a copy in /tmp:
#   BOOKIE_ID           identity, bound to the volumes by the operator (bookie; optional elsewhere)
#   ADVERTISED_ADDRESS  host name under which clients reach this pod (bookie, autorecovery)
#   LEDGER_VOLUMES      where several ledger volumes are mounted, separated by spaces (bookie)
# The operator keeps two lists beside it: known-bookies (ids that served) and cookies (ids whose cookie is in ZooKeeper), and instance-id.
# Exit code 78: the volumes are not those of this bookie, which no restart cures. 79: a volume that should hold data is empty. The operator
# looks for both (herdkeeper.bookkeeper.state.refusal).
set -eu

home="${BOOKKEEPER_HOME:-/opt/bookkeeper}"
config="${BOOKKEEPER_CONFIG:-/config}"
journal="${BOOKKEEPER_JOURNAL:-/journal}"
ledgers="${LEDGER_VOLUMES:-${BOOKKEEPER_LEDGERS:-/ledgers}}"
tmp="${BOOKKEEPER_TMP:-/tmp}"
termination="${TERMINATION_LOG:-/dev/termination-log}"

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

# BookKeeper's directories; each has a file VERSION with the bookie's cookie.
directories() {
    echo "$journal/journal/current"
    for volume in $ledgers; do echo "$volume/ledgers/current"; done
}

holds_data() {
    [ -n "$(ls -A "$1" 2>/dev/null | grep -vx VERSION || true)" ]
}

# Without a cookie in ZooKeeper, BookKeeper takes a bookie that lacks the data of one directory for a new one: it stamps all directories and
# serves without those entries (LegacyCookieValidation, 4.18). So directories that disagree are refused here.
check_directories() {
    data="" bare="" unstamped=""
    for directory in $(directories); do
        if holds_data "$directory"; then data="$data $directory"; fi
        if [ ! -s "$directory/VERSION" ]; then
            if holds_data "$directory"; then unstamped="$unstamped $directory"; else bare="$bare $directory"; fi
        fi
    done
    # a founding that was interrupted has no data anywhere: BookKeeper completes it
    if [ -n "$bare" ] && { [ -n "$data" ] || served_before; }; then
        emptied "$BOOKIE_ID served before, but there is nothing in$bare: what it held was deleted, or another volume is mounted"
    fi
    for directory in $unstamped; do stamp_again "$directory"; done
}

# The cookie of a directory that has its data and lost VERSION: the other directories', if that is of this bookie and of the cluster whose
# metadata is in ZooKeeper. BookKeeper compares it with ZooKeeper's when it starts.
stamp_again() {
    lost="$1/VERSION is missing beside data"
    cookie="$(common_cookie)"
    [ -n "$cookie" ] || refuse "$lost, and no other directory has one to compare with ZooKeeper"
    grep -qxF "bookieHost: \"$BOOKIE_ID\"" "$cookie" || refuse "$lost, and $cookie is not of $BOOKIE_ID"
    instance="$(cat "$config/instance-id" 2>/dev/null || true)"
    grep -qxF "instanceId: \"$instance\"" "$cookie" ||
        refuse "$lost, and $cookie names another BookKeeper cluster than ZooKeeper does (${instance:-unknown})"
    looks_whole "$1" || refuse "$lost, and so is more: $(whole_needs "$1")"
    cp "$cookie" "$1/.VERSION.new"
    sync "$1/.VERSION.new"
    mv "$1/.VERSION.new" "$1/VERSION"
    sync "$1"
    tell "$1/VERSION was missing beside data, and is restored from $cookie"
}

# The first VERSION of those that are there; nothing where there is none. Different ones are refused.
common_cookie() {
    first=""
    for each in $(directories); do
        [ -s "$each/VERSION" ] || continue
        [ -n "$first" ] || first="$each/VERSION"
        cmp -s "$first" "$each/VERSION" || refuse "$first differs from $each/VERSION: the volumes are not one bookie's"
    done
    echo "$first"
}

# What a directory has as soon as its bookie has started once: the journal's a journal, a ledger directory both of its indexes.
looks_whole() {
    case "$1" in
        "$journal"/*) ls "$1"/*.txn >/dev/null 2>&1 ;;
        *) [ -s "$1/ledgers/CURRENT" ] && [ -s "$1/locations/CURRENT" ] ;;
    esac
}

whole_needs() {
    case "$1" in
        "$journal"/*) echo "there is no journal file in $1" ;;
        *) echo "$1 lacks an index (ledgers/CURRENT, locations/CURRENT)" ;;
    esac
}

# BookKeeper refuses a bookie without a cookie in ZooKeeper. What is on the disks is left as the container's last words, from which the
# operator restores it (herdkeeper.bookkeeper.plan.missing_cookie). The mounted list may be older than the cookie: who has one starts all the same.
report_cookie() {
    cookie="$(common_cookie)"
    if [ -z "$cookie" ] || [ ! -e "$config/cookies" ] || grep -qxF "$BOOKIE_ID" "$config/cookies"; then return 0; fi
    for directory in $(directories); do
        [ -s "$directory/VERSION" ] || return 0
    done
    { echo "cookie on all volumes:" && cat "$cookie"; } >"$termination" ||
        echo "$termination can't be written: the operator does not get to know $cookie" >&2
}

# bk_server.conf with this pod's own lines at its end. Of a key that is there twice BookKeeper takes the first line.
compose() {
    {
        sed '/^httpServerClass=/d' "$config/bk_server.conf"
        echo
        [ -z "${BOOKIE_ID:-}" ] || echo "bookieId=$BOOKIE_ID"
        [ -z "${ADVERTISED_ADDRESS:-}" ] || echo "advertisedAddress=$ADVERTISED_ADDRESS"
        # Here and not in the mounted file: images of earlier versions, which resources may name, don't have this class.
        echo "httpServerClass=io.herdkeeper.bookie.GuardedHttpServer"
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
    classes="$home/classes.jsa"
    [ -e "$classes" ] || classes=""
    jars=$(printf ':%s' "$home"/lib/*.jar) # as archive-classes had them
    # Heap and direct memory 25 % each; RocksDB, code, classes, threads and malloc take the rest. The caches of bk_server.conf are
    # made for that. shellcheck: options are words.
    # shellcheck disable=SC2086
    exec java \
        ${classes:+-XX:SharedArchiveFile="$classes"} \
        -XX:MinRAMPercentage=25 -XX:MaxRAMPercentage=25 -XX:InitialRAMPercentage=10 \
        -XX:MaxDirectMemorySize=$((limit / 4)) \
        -XX:+ExitOnOutOfMemoryError \
        $small \
        -Dio.netty.tryReflectionSetAccessible=true -Dio.netty.recycler.maxCapacityPerThread=4096 \
        -Djava.io.tmpdir="$tmp" \
        -Dlog4j2.configurationFile="$log4j" \
        ${JVM_OPTIONS:-} \
        -cp "${jars#:}" "$@"
}

mode="${1:-}"
[ $# -eq 0 ] || shift
case "$mode" in
    bookie)
        claim_volumes
        check_directories
        report_cookie
        compose
        # As above. BookKeeper's own classes, which these extend, take a key of zeros for the key of any ledger, and do not tell of plain text.
        sed -i -e 's/^\(ledgerStorageClass=\).*DbLedgerStorage$/\1io.herdkeeper.bookie.GuardedLedgerStorage/' \
            -e 's/^\(bookieAuthProviderFactoryClass=\).*BookieAuthZFactory$/\1io.herdkeeper.bookie.TlsRequiredFactory/' "$tmp/bk_server.conf"
        run -Dherdkeeper.bookie=true org.apache.bookkeeper.server.Main --conf "$tmp/bk_server.conf"
        ;;
    autorecovery)
        compose
        run org.apache.bookkeeper.replication.AutoRecoveryMain --conf "$tmp/bk_server.conf"
        ;;
    shell)
        compose
        run org.apache.bookkeeper.bookie.BookieShell -conf "$tmp/bk_server.conf" "$@"
        ;;
    move-recorded)
        [ $# -eq 3 ] || { echo "move-recorded: give the bookie's id, the record of its ledgers, and bytes a second or -1" >&2 && exit 2; }
        compose
        # Not by markers for autorecovery: a worker takes a copy on a bookie that answers for a good one.
        run io.herdkeeper.bookie.MoveLedgers "$tmp/bk_server.conf" "$@"
        ;;
    *)
        echo "mode is '$mode': use bookie, autorecovery, move-recorded, or shell with a command of BookKeeper's shell" >&2
        exit 2
        ;;
esac

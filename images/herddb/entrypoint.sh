#!/bin/sh
# Sizes the JVM from the container's memory limit and becomes it, so that SIGTERM reaches the JVM itself.
#
# heap 45 %, direct memory (network buffers, BookKeeper client) 25 %; the rest is for code, classes, threads and malloc.
# Usage: entrypoint.sh --config /config/server.properties --node-id ID --advertised-host HOST [--http-certificate FOLDER]
#        entrypoint.sh throwaway --folder /data --port 7000, with HERDDB_USERNAME and HERDDB_PASSWORD
set -eu

program=io.herdkeeper.node.Main
data="${HERDDB_DATA:-/data}"
if [ "${1:-}" = throwaway ]; then
    program=io.herdkeeper.node.throwaway.ThrowawayServer
    shift
elif [ -d "$data" ]; then
    # A pod that was deleted by force may serve on for a while, beside the next one of its name. Both would write the same pages and
    # checkpoints. The JVM keeps the lock.
    exec 9<"$data"
    held=0
    flock -n 9 || held=$?
    if [ "$held" = 1 ]; then
        trap 'exit 143' TERM # a shell that waits for a command in the foreground would not hear it
        echo "another process uses $data: this one waits for its end"
        flock 9 &
        wait $!
    elif [ "$held" != 0 ]; then
        echo "$data can't be locked: it starts all the same"
    fi
fi

HERDDB_HOME="${HERDDB_HOME:-/opt/herddb}"

limit=""
for file in /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes; do
    if [ -r "$file" ]; then
        limit="$(cat "$file")"
        break
    fi
done
physical=$(($(sed -n 's/^MemTotal: *\([0-9]*\) kB$/\1/p' /proc/meminfo) * 1024))
# "max" (cgroup v2) and 2^63 rounded down to a page (v1) both mean: no limit but the machine's memory.
case "$limit" in
    '' | max | ??????????????????*) limit="$physical" ;;
esac
if [ "$limit" -gt "$physical" ]; then
    limit="$physical"
fi
direct=$((limit / 100 * 25))

# Few arenas: each one keeps chunks of its own, which small pods can't afford. TieredStopAtLevel stays at its default: the
# SQL planner is hot code. ExitOnOutOfMemoryError: a node without memory must not keep its leadership; direct memory does not count there.
# maxCachedBufferSize: HerdDB reads and writes its files in pieces of 4 MiB, and the JVM would keep a direct buffer of that size for each
# thread that ever did. One answers each statement under way: with 64, more than all the direct memory of a small pod.
# OmitStackTraceInFastThrow: the JVM would leave out the stack of an exception that HerdDB has thrown often; StatementGuard reads it.
# herddb-node.jar comes first: it has classes in place of HerdDB's.
classes="$HERDDB_HOME/classes.jsa"
[ -e "$classes" ] || classes=""
jars="$HERDDB_HOME/lib/herddb-node.jar$(printf ':%s' "$HERDDB_HOME"/lib/*.jar)" # as archive-classes had them
exec java \
    ${classes:+-XX:SharedArchiveFile="$classes"} \
    -XX:MaxRAMPercentage=45 -XX:InitialRAMPercentage=15 \
    -XX:MaxDirectMemorySize="$direct" \
    -XX:+UseSerialGC -Xss512k -XX:ReservedCodeCacheSize=64m -XX:MaxMetaspaceSize=160m \
    -XX:+ExitOnOutOfMemoryError -XX:-OmitStackTraceInFastThrow \
    -Dio.netty.allocator.numHeapArenas=1 -Dio.netty.allocator.numDirectArenas=1 \
    -Dio.netty.tryReflectionSetAccessible=true \
    -Djdk.nio.maxCachedBufferSize=262144 \
    -Djava.io.tmpdir=/tmp \
    -Djava.util.logging.manager=io.herdkeeper.node.logging.LastingLogManager \
    -Djava.util.logging.config.file="${HERDDB_LOGGING:-$HERDDB_HOME/logging.properties}" \
    ${HERDDB_JAVA_OPTS:-} \
    -cp "$jars" "$program" "$@"

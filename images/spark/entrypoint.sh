#!/bin/bash
# `executor`: what Spark's Kubernetes scheduler starts in the pods that a driver asks for. Anything else is run as it stands.
set -eu

# Hadoop's login fails for a user without a name, such as one that the platform assigned. The image also looks for users in this file, and
# ignores those of group 0, so the user's own number stands for a group.
users=${EXTRA_USERS:-/tmp/users}
if ! getent passwd "$(id -u)" >/dev/null; then
    mkdir -p "$users"
    echo "spark:x:$(id -u):$(id -u):spark:/tmp:/usr/sbin/nologin" >"$users/passwd"
fi

case "${1:-}" in
    '')
        echo "no command: use executor, or a command like python3 -m herdkeeper_jobs.checkpoint.cli" >&2
        exit 2
        ;;
    executor) ;;
    *) exec "$@" ;;
esac

# The driver hands the JVM's options over as SPARK_JAVA_OPT_<number>; their order counts.
options=()
while read -r name; do
    options+=("${!name}")
done < <(compgen -e | grep -E '^SPARK_JAVA_OPT_[0-9]+$' | sort -t_ -k4,4n)

# In the order for which archive_classes.py has made its archive.
LC_ALL=C
jars=("${SPARK_HOME:?}"/jars/*.jar)

exec java "${options[@]}" \
    -Xms"$SPARK_EXECUTOR_MEMORY" -Xmx"$SPARK_EXECUTOR_MEMORY" \
    -XX:SharedArchiveFile="$HERDKEEPER_CLASS_ARCHIVE" \
    -cp "$(IFS=: && echo "${jars[*]}")" \
    org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
    --driver-url "$SPARK_DRIVER_URL" \
    --executor-id "$SPARK_EXECUTOR_ID" \
    --cores "$SPARK_EXECUTOR_CORES" \
    --app-id "$SPARK_APPLICATION_ID" \
    --hostname "$SPARK_EXECUTOR_POD_IP" \
    --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" \
    --podName "$SPARK_EXECUTOR_POD_NAME"

#!/bin/bash
# Readiness: exit code 0 when this member serves, i.e. leads, follows or observes in a quorum.
# The admin server is no use for that: it answers 200 also where the body says that the member serves nobody.
set -u
exec 3<>"/dev/tcp/127.0.0.1/${1:-2181}" || exit 1
printf srvr >&3
while read -r -t 4 line <&3; do
    case "$line" in
        "Mode: leader" | "Mode: follower" | "Mode: observer" | "Mode: standalone")
            echo "$line"
            exit 0
            ;;
        *"not currently serving"*)
            echo "$line" >&2
            exit 1
            ;;
    esac
done
echo "no mode in the answer to srvr" >&2
exit 1

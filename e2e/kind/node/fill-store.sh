#!/bin/sh
# Makes a generation of the image store, in a container of the node image whose nodes will use it. The images come on stdin, as an archive.
# Usage: fill.sh FOLDER EARLIER LIST   (EARLIER: the generation it begins with, or nothing; LIST: its lines `IMAGE ID`)
set -eu
folder=$1 earlier=$2 list=$3
making=$folder.making
rm -rf "$making"
if [ -n "$earlier" ]; then
    # what never changes is shared; containerd writes into its databases
    cp -al "$earlier" "$making"
    find "$making" -maxdepth 2 -name '*.db' | while read -r database; do cp "$database" "$database.own" && mv "$database.own" "$database"; done
else
    mkdir -p "$making"
    [ ! -d /var/lib/containerd ] || cp -a /var/lib/containerd/. "$making/"
fi
containerd --root "$making" --state /run/filling >/tmp/containerd.log 2>&1 &
until ctr version >/dev/null 2>&1; do sleep 0.1; kill -0 $! || { cat /tmp/containerd.log >&2; exit 1; }; done
ctr -n k8s.io images import --digests - >/dev/null
kill $!
wait $! || true
rm -f "$making/herdkeeper-images"
printf '%s\n' "$list" > "$making/herdkeeper-images"
mv "$making" "$folder"

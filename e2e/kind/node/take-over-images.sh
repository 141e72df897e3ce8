#!/bin/sh
# Runs before a node's containerd: takes over the images of the store that is mounted at /kind/images, unpacked as they are. Copies the
# databases, and links to what is in the store, where all nodes read the same files.
set -eu
store=/kind/images here=/var/lib/containerd
[ -e "$store/herdkeeper-images" ] && [ ! -e /var/lib/herdkeeper-images ] || exit 0
rm -rf "$here"
mkdir -p "$here/io.containerd.snapshotter.v1.overlayfs/snapshots"
cp -as "$store/io.containerd.content.v1.content" "$here/"
cp -a "$store/io.containerd.metadata.v1.bolt" "$here/"
cd "$store/io.containerd.snapshotter.v1.overlayfs"
cp -a metadata.db "$here/io.containerd.snapshotter.v1.overlayfs/"
for snapshot in snapshots/*; do
    mkdir -p "$here/io.containerd.snapshotter.v1.overlayfs/$snapshot/work"
    ln -s "$PWD/$snapshot/fs" "$here/io.containerd.snapshotter.v1.overlayfs/$snapshot/fs"
done
cp "$store/herdkeeper-images" /var/lib/herdkeeper-images

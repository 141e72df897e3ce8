#!/usr/bin/env bash
# Stages lib/ of an image with a pom.xml: its own jar (when its packaging is jar) and what it needs at run time. Runs in the builder.
# Usage: stage-jars.sh NAME [OPTION…]   (Maven's)
set -euo pipefail
name=$1
shift
cp -r "/src/images/$name" /tmp/module
cd /tmp/module
rm -rf lib target
mvn -B -q -DskipTests "$@" package dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory=lib
find target -maxdepth 1 -name '*.jar' -exec cp {} lib/ \; 2>/dev/null || true
rm -rf /out/lib
cp -r lib /out/lib

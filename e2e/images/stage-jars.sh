#!/usr/bin/env bash
# Stages lib/ of an image with a pom.xml: its own jar (when its packaging is jar) and what it needs at run time, each as images/NAME/jars.sha256
# says. Runs in the builder. Usage: stage-jars.sh NAME [OPTION…]   (Maven's; with any of them other jars are meant, and none is compared)
set -euo pipefail
name=$1
shift
cp -r "/src/images/$name" /tmp/module
cd /tmp/module
rm -rf lib target
mvn -B -C -q -DskipTests "$@" package
[ ! -d target ] || find target -maxdepth 1 -name '*.jar' -exec mkdir -p lib \; -exec cp {} lib/ \;
mvn -B -C -q "$@" org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies -DincludeScope=runtime -Dmdep.useRepositoryLayout=true -DoutputDirectory=/tmp/jars
(cd /tmp/jars && find . -name '*.jar' -printf '%P\0' | LC_ALL=C sort -z | xargs -0 sha256sum --) > /out/jars.sha256
if [ $# -eq 0 ] && ! diff -u jars.sha256 /out/jars.sha256; then
  echo "other jars than images/$name/jars.sha256 names came: those of the lines with +. Where that was meant, run make lock-jars and review the change." >&2
  exit 1
fi
mkdir -p lib
find /tmp/jars -name '*.jar' -exec cp {} lib/ \;
rm -rf /out/lib
cp -r lib /out/lib

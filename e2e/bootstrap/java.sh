#!/usr/bin/env bash
# Prints a JAVA_HOME of Java 17 or newer, which PySpark's unit tests need; installs one on Debian as root.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/paths.sh"

# find_java: the home of a Java that is new enough.
find_java() {
  local java home version
  for java in "${JAVA_HOME:-/nonexistent}/bin/java" "$(command -v java || true)" /usr/lib/jvm/java-17-openjdk-*/bin/java; do
    [ -x "$java" ] || continue
    version=$("$java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -1)
    [ "${version:-0}" -ge 17 ] || continue
    home=$("$java" -XshowSettings:properties -version 2>&1 | sed -n 's/ *java.home = //p')
    echo "$home"
    return
  done
  return 1
}

find_java || {
  "$here/apt.sh" no-java-of-17-or-newer=openjdk-17-jre-headless
  find_java || fail "no Java of 17 or newer: install one, then run this again."
}

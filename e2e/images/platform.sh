# The platform that images are built for: HERDKEEPER_PLATFORM, linux/amd64 or linux/arm64; by default this machine's. Sourced after paths.sh.
#
# Tags and folders of another platform end with its architecture, so that platforms never mix: herdkeeper/java:local-arm64.
own_architecture=$(uname -m | sed 's/x86_64/amd64/; s/aarch64/arm64/')
platform=${HERDKEEPER_PLATFORM:-linux/$own_architecture}
architecture=${platform#linux/}
case $platform in
  linux/amd64) machine=x86_64 ;;   # as uname, qemu and the tags of wheels name it
  linux/arm64) machine=aarch64 ;;
  *) fail "HERDKEEPER_PLATFORM is '$platform': set linux/amd64 or linux/arm64" ;;
esac
suffix=
[ "$architecture" = "$own_architecture" ] || suffix=-$architecture

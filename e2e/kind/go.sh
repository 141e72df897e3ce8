# Go, and the programs that it builds from the pinned module; sourced after paths.sh and versions.sh.
go_needed=1.26

# find_go: Go on PATH, else from Debian's backports (as root); fails saying what to install. Sets GOTOOLCHAIN for an older Go that can fetch a newer one.
find_go() {
  local have
  if ! command -v go >/dev/null && is_debian_root; then
    say "installing Go from bookworm-backports"
    echo 'deb http://deb.debian.org/debian bookworm-backports main' > /etc/apt/sources.list.d/herdkeeper-backports.list
    { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends -t bookworm-backports golang-go; } >"$cache/apt.log" 2>&1 || true
  fi
  command -v go >/dev/null || fail "Go is needed to build Kubernetes and the S3 server of the tests from source: install Go $go_needed or newer (Debian 12's own is too old), then run this again."
  have=$(go env GOVERSION)
  have=${have#go}
  [ "$(printf '%s\n' "$go_needed" "$have" | sort -V | head -1)" = "$go_needed" ] && return
  [ "$(printf '%s\n' 1.21 "$have" | sort -V | head -1)" = 1.21 ] ||
    fail "Go $have is too old to build Kubernetes and the S3 server of the tests from source: install Go $go_needed or newer."
  export GOTOOLCHAIN=auto   # such a Go fetches the version that a module asks for
}

# go_build SYSTEM ARGUMENT…: go build in this folder, as all programs here are built: static, and without what only a debugger reads, which
# saves an eighth of the compiler's time. One that collects less often saves another fifth, and still stays below 2 GB.
go_build() { CGO_ENABLED=0 GOOS=$1 GOFLAGS=-trimpath GOGC=${GOGC:-800} go build -gcflags=all=-dwarf=false "${@:2}"; }

# build_programs SYSTEM FOLDER NAME…: one `go build` for all, so that one is compiled while another is linked. Kubernetes' programs are links to one.
build_programs() (
  local system=$1 folder=$2 name packages=() links=() alone=() stamp=k8s.io/component-base/version helm=helm.sh/helm/v3 minor flags
  for name in "${@:3}"; do
    case $name in
      kube*) packages+=(./kubernetes) links+=("$name") ;;
      kind) packages+=(sigs.k8s.io/kind) ;;
      helm) packages+=("$helm/cmd/helm") ;;
      # imports by a name in capitals what others import in small letters, which Go forbids in one build
      local-path-provisioner) alone=(github.com/rancher/local-path-provisioner) ;;
      *) packages+=("./$name") ;;
    esac
  done
  minor=${kubernetes_version#v1.}
  minor=${minor%%.*}
  # what kubelet, kubeadm and the servers say of themselves, and what Helm takes for the cluster's version when it asks none
  flags="-s -w -X $stamp.gitVersion=$kubernetes_version -X $stamp.gitMajor=1 -X $stamp.gitMinor=$minor -X $stamp.gitTreeState=clean"
  flags+=" -X $helm/internal/version.version=$helm_version -X $helm/pkg/chartutil.k8sVersionMinor=$minor"
  cd "$programs" || return
  [ ${#packages[@]} -eq 0 ] || go_build "$system" -o "$folder/" -ldflags "$flags" "${packages[@]}" || return
  [ ${#alone[@]} -eq 0 ] || go_build "$system" -o "$folder/" -ldflags "$flags" "${alone[@]}" || return
  for name in "${links[@]}"; do ln -sf kubernetes "$folder/$name"; done
)

# SPDX-License-Identifier: Apache-2.0
# What packaging/start and packaging/check share: the packages of Debian 12 that Turnpoint is built from, and the build.
# Sourced, never run. Expects `set -euo pipefail`; the caller is in the repository root after enter_repository.
# shellcheck shell=bash
# The lists are read by the scripts that source this file:
# shellcheck disable=SC2034

# Without these nothing builds. pkg-config is listed because no other package brings it in.
build_packages=(
  build-essential cmake ninja-build pkg-config
  qt6-base-dev qt6-svg-dev libqcustomplot-dev libgraphviz-dev libmetis-dev libscotch-dev
  nlohmann-json3-dev libfmt-dev libcli11-dev zlib1g-dev libjemalloc-dev libbenchmark-dev
  fonts-dejavu-core
)
# These only make the build faster.
speed_packages=(ccache mold)
# These let the tests look at more: other number formats, the desktop files, the shell scripts, the faster CPU kernels and
# the products of proofs.
check_packages=(locales desktop-file-utils appstream shellcheck libdnnl-dev libopenblas0-pthread)

say() { printf '==> %s\n' "$*"; }
fail() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

# Engines whose environments packaging/engines makes, and the folder in which they lie.
engine_names=(jax pytorch)
engines_folder() {
  printf '%s\n' "${TURNPOINT_ENGINES:-${XDG_CACHE_HOME:-$HOME/.cache}/turnpoint/engines}"
}

enter_repository() {
  cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." || exit
}

# Prints those of the named packages that are not installed, one a line.
missing_packages() {
  local package
  for package in "$@"; do
    if [[ "$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null || true)" != installed ]]; then
      printf '%s\n' "$package"
    fi
  done
}

# install_packages PACKAGE...: silent when all are there.
install_packages() {
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    say "This is not a Debian system. Expecting the equivalents of these packages to be installed: $*"
    return
  fi
  local missing=()
  mapfile -t missing < <(missing_packages "$@")
  if ((${#missing[@]} == 0)); then return; fi

  local as_root=()
  if ((EUID != 0)); then
    command -v sudo >/dev/null ||
      fail "these packages are missing, and there is neither root nor sudo to install them: ${missing[*]}"
    as_root=(sudo)
  fi
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get --quiet=2
    -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 -o Dpkg::Use-Pty=0)
  say "These ${#missing[@]} Debian packages are missing and will be installed, with what they depend on:"
  printf '    %s\n' "${missing[@]}"
  local log
  log="$(mktemp)"
  if ! { "${apt[@]}" update && "${apt[@]}" install --yes --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
    tail -n 40 -- "$log" >&2
    fail "installing packages failed; the whole log is $log"
  fi
  rm -f -- "$log"
}

# configure_and_build PRESET FOLDER [TARGET...]: FOLDER is the preset's own; without targets everything is built. Quiet
# when nothing has to be done.
configure_and_build() {
  local preset="$1" folder="$2" targets=()
  shift 2
  if (($#)); then targets=(--target "$@"); fi
  mkdir -p "$folder"
  local log="$folder/configure.log"
  if [[ ! -f "$folder/build.ninja" ]]; then say "Configuring (log: $log)"; fi
  if ! cmake --preset "$preset" >"$log" 2>&1; then
    tail -n 40 -- "$log" >&2
    fail "configuring failed; the whole log is $log"
  fi
  say "Building what changed into $folder/ ($(nproc) jobs; from nothing it takes minutes)"
  local build=(cmake --build "$folder" --parallel "$(nproc)" "${targets[@]}")
  # A terminal shows one line that changes; elsewhere a line for every tenth of the way is enough.
  if [[ -t 1 ]]; then
    NINJA_STATUS='[%f of %t, %e s] ' "${build[@]}" || fail "the build failed"
  else
    NINJA_STATUS='[%f of %t, %e s] ' "${build[@]}" | every_tenth || fail "the build failed"
  fi
}

# Of ninja's lines "[12 of 340, 5.1 s] Building ..." every tenth of the way one, at once; all that compilers say.
every_tenth() {
  local line tenth shown=0
  while IFS= read -r line; do
    if [[ "$line" =~ ^\[([0-9]+)\ of\ ([0-9]+),\ [0-9.]+\ s\]\  ]]; then
      tenth=$((10 * BASH_REMATCH[1] / BASH_REMATCH[2]))
      ((tenth > shown)) || continue
      shown=$tenth
      line="    $line"
    fi
    printf '%s\n' "$line"
  done
}

# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What the tests that take root share: Debian packages they need. Sourced after environment.sh.

# install_packages PACKAGE… installs the packages that are not there, and starts none of their services.
install_packages() {
  local missing=() package log=$OUTPUT/apt.log
  # Two tests at once: the second waits.
  exec {apt_lock}> "$OUTPUT/.apt.lock"
  flock "$apt_lock"
  for package in "$@"; do
    dpkg-query --show --showformat='${db:Status-Status}\n' "$package" 2> /dev/null | grep -qx installed || missing+=("$package")
  done
  if ((${#missing[@]})); then
    need apt-get
    say "apt-get install ${missing[*]}"
    apt-get update > "$log" 2>&1 || fail "apt-get update failed: see $log" "see that Debian's mirror can be reached, then run the same command again"
    # Packages that do not see systemd do not start services with it; in single-user mode they do not without it either.
    # shellcheck disable=SC2016
    RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive unshare --mount bash -c '
      [[ ! -d /run/systemd/system ]] || mount -t tmpfs tmpfs /run/systemd
      apt-get install --yes --no-install-recommends "$@"' bash "${missing[@]}" > "$log" 2>&1 ||
      fail "the packages cannot be installed: see $log" "apt-get update; apt-get install ${missing[*]}"
  fi
  exec {apt_lock}>&-
}

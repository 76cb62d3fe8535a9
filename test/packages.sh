# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Installs Debian packages for the tests that need root. Sourced after environment.sh.

# install_packages PACKAGE… installs missing packages, and starts none of their services.
install_packages() {
  local missing=() package log=$OUTPUT/apt.log
  # Only one test at a time; the second one waits.
  exec {apt_lock}> "$OUTPUT/.apt.lock"
  flock "$apt_lock"
  for package in "$@"; do
    dpkg-query --show --showformat='${db:Status-Status}\n' "$package" 2> /dev/null | grep -qx installed || missing+=("$package")
  done
  if ((${#missing[@]})); then
    need apt-get
    say "apt-get install ${missing[*]}"
    apt-get update > "$log" 2>&1 || fail "apt-get update failed: see $log" "check that Debian's mirror is reachable, then run the same command again"
    # Packages do not start services with systemd if they do not see it; in single-user mode they do not start them
    # otherwise either.
    # shellcheck disable=SC2016
    RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive unshare --mount bash -c '
      [[ ! -d /run/systemd/system ]] || mount -t tmpfs tmpfs /run/systemd
      apt-get install --yes --no-install-recommends "$@"' bash "${missing[@]}" > "$log" 2>&1 ||
      fail "the packages cannot be installed: see $log" "apt-get update; apt-get install ${missing[*]}"
  fi
  exec {apt_lock}>&-
}

# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Functions that check whether files are still those that a step made, and from which inputs. Sourced after
# environment.sh.
#
# A stamp is a text file next to a step's output: its inputs, one per line, then the sums of the files. It is written
# last, by a rename. An old stamp may stay while a step runs: once a file is replaced, its sum no longer matches.
need find sha256sum sort sed

# sums STAMP PATH... prints the sums of files, and of all files in directories. Paths are relative to the stamp's
# directory.
sums() { (cd "${1%/*}" && find "${@:2}" -type f -print0 | sort -z | xargs -r0 sha256sum); }

# up_to_date STAMP INPUTS PATH... reports whether the step made these files from these inputs, and they are unchanged.
up_to_date() { [[ -f $1 && $(< "$1") == "$2"$'\nmade:\n'"$(sums "$1" "${@:3}" 2> /dev/null)" ]]; }

# write_stamp STAMP INPUTS PATH...
write_stamp() {
  local made
  made=$(sums "$1" "${@:3}") || return
  printf '%s\n' "$2" made: "$made" > "$1.new"
  mv "$1.new" "$1"
}

# stamped_sums STAMP prints the sums in a stamp.
stamped_sums() { sed '1,/^made:$/d' "$1"; }

# made_with STAMP INPUT... reports whether the step's inputs include these lines, and its files are unchanged.
made_with() {
  local input
  for input in "${@:2}"; do
    grep -qsxF -- "$input" "$1" || return 1
  done
  stamped_sums "$1" | (cd "${1%/*}" && sha256sum --check --status 2> /dev/null)
}

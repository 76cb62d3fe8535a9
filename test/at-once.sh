# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Runs two steps at a time, where one waits for long while the other could use the processors. Sourced after environment.sh.

# at_once COMMAND... -- COMMAND... shows what the first command prints as it comes, and what the second prints in one piece at
# the end. The first that fails fails this script; then, and when the script is interrupted, both are ended with what they started.
at_once() {
  local first=() second=("$@") ended status=0
  while [[ ${second[0]} != -- ]]; do
    first+=("${second[0]}")
    second=("${second[@]:1}")
  done
  second=("${second[@]:1}")
  need setsid
  pair=() pair_log=$(mktemp "$OUTPUT/.at-once.XXXXXX")
  trap end_pair EXIT
  trap 'exit 129' HUP
  trap 'exit 130' INT
  trap 'exit 143' TERM
  # A session of its own is ended whole, and has no terminal that another could hold.
  setsid "${first[@]}" < /dev/null &
  pair+=("$!")
  setsid "${second[@]}" < /dev/null > "$pair_log" 2>&1 &
  pair+=("$!")
  wait -n -p ended "${pair[@]}" || status=$?
  if ((status == 0)); then
    # The other one.
    ended=$((pair[0] + pair[1] - ended))
    wait "$ended" || status=$?
  fi
  # What was cut off because the first failed says nothing.
  ((status != 0 && ended == pair[0])) || cat "$pair_log"
  if ((status)); then
    ((ended == pair[0])) || first=("${second[@]}")
    fail "${first[*]}: status $status" "mend what is said above, then run the same command again"
  fi
  trap - EXIT HUP INT TERM
  rm -f "$pair_log"
}

end_pair() {
  local status=$? leader
  trap '' HUP INT TERM
  for leader in "${pair[@]}"; do
    # One that has only just begun has no group of its own yet; one that has ended may have left others behind in it.
    kill -- "-$leader" 2> /dev/null || [[ " $(jobs -pr | tr '\n' ' ')" != *" $leader "* ]] || kill "$leader" 2> /dev/null || true
  done
  wait
  # Interrupted, it would be gone unseen.
  ((status <= 128)) || cat "$pair_log"
  rm -f "$pair_log"
}

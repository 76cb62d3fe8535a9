#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Writes docs/performance.svg, a chart of the times (not CPU times) in the table "A decision" of docs/performance.md.
#
# Inputs: docs/performance.md; arguments: --check (change nothing, fail on a difference).
# Exit: 0 up to date or updated; 1 not, or the table was not found.
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

need awk
page=$ROOT/docs/performance.md chart=$ROOT/docs/performance.svg
# The scale is logarithmic, from 10 µs to 100 ms.
made=$(LC_ALL=C awk -F ' *[|] *' '
  function place(microseconds) { return 240 + 125 * (log(microseconds) / log(10) - 1) }
  function unit(microseconds) {
    if (microseconds < 1000) return microseconds " µs"
    return sprintf(microseconds < 10000 ? "%.1f ms" : "%.0f ms", microseconds / 1000)
  }
  function text(x, y, kind, content) {
    return sprintf("  <text x=\"%.0f\" y=\"%d\" class=\"%s\">%s</text>\n", x, y, kind, content)
  }
  function bar(y, kind, microseconds) {
    return sprintf("  <rect x=\"240\" y=\"%d\" width=\"%.1f\" height=\"9\" class=\"%s\"/>\n",
      y, place(microseconds) - 240, kind)
  }
  /^## / { inside = $0 == "## A decision" }
  inside && $2 ~ /^[a-z-]+, [0-9]+, [0-9]+$/ {
    y = 68 + 26 * rows++
    body = body text(230, y + 13, "shape", substr($2, 1, index($2, ",") - 1))
    body = body bar(y, "stock", $3) bar(y + 10, "fork", $4)
    body = body text(place($3) + 6, y + 9, "time", unit($3)) text(place($4) + 6, y + 19, "time", unit($4))
    body = body text(890, y + 13, "ratio", sprintf("%.1f ×", $5))
  }
  END {
    if (!rows) exit 1
    bottom = 68 + 26 * rows
    printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 900 %d\"", bottom + 10
    print " role=\"img\" aria-labelledby=\"title desc\">"
    print "  <title id=\"title\">Time of a scheduling decision: stock Kubernetes and this image</title>"
    print "  <desc id=\"desc\">Two bars for each shape of the table in performance.md, on a logarithmic scale.</desc>"
    print "  <style>"
    print "    text { font: 12px sans-serif; fill: #1f2328; }"
    print "    .shape, .ratio { text-anchor: end; }"
    print "    .time { font-size: 9px; fill: #59636e; }"
    print "    .mark { fill: #59636e; text-anchor: middle; }"
    print "    .page { fill: #ffffff; }"
    print "    .line { stroke: #d1d9e0; }"
    print "    .stock { fill: #8c959f; }"
    print "    .fork { fill: #0969da; }"
    print "    @media (prefers-color-scheme: dark) {"
    print "      text { fill: #f0f6fc; }"
    print "      .time, .mark { fill: #b1bac4; }"
    print "      .page { fill: #0d1117; }"
    print "      .line { stroke: #3d444d; }"
    print "      .stock { fill: #6e7681; }"
    print "      .fork { fill: #58a6ff; }"
    print "    }"
    print "  </style>"
    printf "  <rect class=\"page\" width=\"900\" height=\"%d\"/>\n", bottom + 10
    printf "  <rect x=\"240\" y=\"14\" width=\"12\" height=\"12\" class=\"stock\"/>\n"
    printf "%s", text(258, 24, "legend", "stock")
    printf "  <rect x=\"310\" y=\"14\" width=\"12\" height=\"12\" class=\"fork\"/>\n"
    printf "%s", text(328, 24, "legend", "this image")
    printf "%s", text(890, 54, "ratio", "stock / this image")
    for (mark = 10; mark <= 100000; mark *= 10) {
      printf "  <path class=\"line\" d=\"M%.0f 60V%d\"/>\n", place(mark), bottom
      printf "%s", text(place(mark), 54, "mark", mark < 1000 ? mark " µs" : mark / 1000 " ms")
    }
    printf "%s</svg>\n", body
  }' "$page" && printf x) ||
  fail "docs/performance.md has no table of shapes below \"A decision\"" "restore it: git checkout -- docs/performance.md"
made=${made%x}
if [[ -f $chart && "$(cat "$chart"; printf x)" == "${made}x" ]]; then
  say "chart: docs/performance.svg is up to date: skipped"
elif [[ ${1:-} == --check ]]; then
  fail "docs/performance.svg differs from the table in docs/performance.md" "make update"
else
  printf '%s' "$made" > "$chart.new"
  mv "$chart.new" "$chart"
  say "chart: docs/performance.svg written"
fi

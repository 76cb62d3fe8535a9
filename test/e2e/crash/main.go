// SPDX-License-Identifier: Apache-2.0

// Command crash stands in for a scheduler with a fault that shows only when it runs: asked whether it accepts a
// configuration it says yes, and then it ends at once.
package main

import (
	"fmt"
	"os"
	"slices"
)

func main() {
	if slices.Contains(os.Args[1:], "--validate-config") {
		return
	}
	fmt.Fprintln(os.Stderr, "crash: the fault of this scheduler shows when it runs")
	os.Exit(3)
}

// SPDX-License-Identifier: Apache-2.0

// Command crash imitates a scheduler with a fault that appears only at run time:
// it accepts every configuration in the check, and then exits immediately.
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

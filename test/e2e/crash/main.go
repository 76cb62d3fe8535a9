// SPDX-License-Identifier: Apache-2.0

// Command crash stands in for a scheduler with a fault that shows only when it runs: asked whether it accepts a configuration it
// says yes, and then it ends at once.
package main

import (
	"fmt"
	"os"
	"strings"
)

func main() {
	for _, argument := range os.Args[1:] {
		if target, asked := strings.CutPrefix(argument, "--write-config-to="); asked {
			accepted := "clientConnection: {kubeconfig: /etc/kubernetes/scheduler.conf}\nprofiles: [{schedulerName: default-scheduler}, {schedulerName: my-scheduler}]\n"
			if err := os.WriteFile(target, []byte(accepted), 0o600); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			return
		}
	}
	fmt.Fprintln(os.Stderr, "crash: the fault of this scheduler shows when it runs")
	os.Exit(3)
}

// SPDX-License-Identifier: Apache-2.0

// Command kube-scheduler-simulate schedules the pods of a file in virtual time, with the code of kube-scheduler. It exits
// with 1 if a condition of --fail-if holds, and with 2 for invalid input.
//
//go:debug default=go1.27
//go:debug randseednop=0
package main

import (
	"fmt"
	"os"

	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/carried"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/simulation"
)

func main() {
	err := simulation.NewCommand(scheduler.WithRecords, carried.AddTo).Execute()
	if err != nil {
		fmt.Fprintf(os.Stderr, "error: %s\n", simulation.ErrorText(err))
	}
	os.Exit(simulation.ExitCode(err))
}

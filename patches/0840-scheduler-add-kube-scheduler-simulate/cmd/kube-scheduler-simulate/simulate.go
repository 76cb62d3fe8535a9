// SPDX-License-Identifier: Apache-2.0

// Command kube-scheduler-simulate schedules the pods of a file in virtual time, with the code of kube-scheduler. It exits
// with 1 if a condition of --fail-if holds, and with 2 for invalid input.
//
//go:debug default=go1.27
//go:debug randseednop=0
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/carried"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/records"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/simulation"
)

// inherited is the variable in which the processes of runs get the switches.
const inherited = "KUBE_SCHEDULER_SIMULATE_SWITCHES"

func main() {
	var switches framework.Switches
	_ = json.Unmarshal([]byte(os.Getenv(inherited)), &switches) // The first process has none.
	command := simulation.NewCommand(func(kept records.Options) scheduler.Option {
		return scheduler.WithSwitches(switches, scheduler.WithRecords(kept))
	}, carried.AddTo)
	switches.AddFlags(command.PersistentFlags())
	command.PersistentPreRunE = func(of *cobra.Command, arguments []string) error {
		command.PersistentPreRun(of, arguments)
		if errs := switches.Validate(); len(errs) > 0 {
			return errs[0]
		}
		encoded, err := json.Marshal(switches)
		if err != nil {
			return err
		}
		return os.Setenv(inherited, string(encoded))
	}
	err := command.Execute()
	if err != nil {
		fmt.Fprintf(os.Stderr, "error: %s\n", simulation.ErrorText(err))
	}
	os.Exit(simulation.ExitCode(err))
}

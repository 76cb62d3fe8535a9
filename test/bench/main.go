// SPDX-License-Identifier: Apache-2.0

// Package main is the program bench, which reads and writes the formats of scripts/bench.sh: Go's benchmark lines,
// Markdown tables, a scheduler's log, upstream's scheduler_perf configuration, and snapshots and traces for the simulator.
//
//	bench table [-changed] TITLE A.txt B.txt COLUMN…     a Markdown table with the medians of both files
//	bench calls PLUGIN FILE                              rows with the costs of a plugin's calls
//	bench workloads UPSTREAM OURS FILE NODES TESTS       the configuration for scheduler_perf, and the workloads to run
//	bench times NAME LOG                                 the benchmark line of a scheduler_perf run
//	bench simulate PROGRAM CONFIGS TRACES ONLY           times of the simulator, in the current directory
//	bench gangs CONFIG LIMIT SEED ONLY NAME=PROGRAM…     gangs in the simulator, in the current directory
//
// Exit: 0 done; 1 not, and the reason is printed.
package main

import (
	"fmt"
	"os"
)

var commands = map[string]func(arguments []string) error{
	"table": table, "calls": calls, "workloads": workloads, "times": times, "simulate": simulate, "gangs": gangs,
}

func main() {
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprintf(os.Stderr, "error: %q is not a command of bench\nnext:  make bench\n", os.Args[1:])
		os.Exit(1)
	}
	if err := commands[os.Args[1]](os.Args[2:]); err != nil {
		fmt.Fprintf(os.Stderr, "error: bench %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}

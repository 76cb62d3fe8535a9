// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// used is what a run of the simulator took: times in seconds, those of the processor of all its processes, and the most
// resident memory of one of them, in MB.
type used struct {
	seconds, user, cpu float64
	memory             int64
}

func (u used) String() string {
	return fmt.Sprintf("%.2f s, CPU %.1f s; peak %d MB", u.seconds, u.cpu, u.memory)
}

// run starts a program, and writes its output to NAME.log. It interrupts the program when ctx ends.
func run(ctx context.Context, name, program string, arguments ...string) (u used, err error) {
	log, err := os.Create(name + ".log")
	if err != nil {
		return u, err
	}
	defer log.Close()
	command := exec.CommandContext(ctx, program, arguments...)
	command.Stdout, command.Stderr = log, log
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	began := time.Now()
	err = command.Run()
	if state := command.ProcessState; state != nil {
		u = used{time.Since(began).Seconds(), state.UserTime().Seconds(), (state.UserTime() + state.SystemTime()).Seconds(),
			state.SysUsage().(*syscall.Rusage).Maxrss >> 10}
	}
	if err != nil {
		err = fmt.Errorf("%s %s: %w; next: read %s", program, strings.Join(arguments, " "), err, log.Name())
	}
	return u, err
}

// measurement is a row of the table. Its snapshot has nodes and pods on each; without nodes, it is that of the row before.
type measurement struct {
	name, title, wanted string
	nodes, pods         int
	file                string
	lines               []string
	arguments           string
	show                func(used) string
}

// simulate measures the simulator on generated clusters and traces, and on OpenB's. Times are of the whole command, and
// CPU time is that of all of its processes.
func simulate(arguments []string) error {
	program, configs, traces := arguments[0], arguments[1], arguments[2]
	only, err := regexp.Compile(arguments[3])
	if err != nil {
		return err
	}
	fmt.Print("\n| | measured | wanted |\n|---|---|---|\n")
	for _, m := range measurements(configs, traces) {
		if !only.MatchString(m.name) {
			continue
		}
		if traces == "" && strings.HasPrefix(m.name, "openb") {
			fmt.Printf("| %s | NOT CHECKED: TRACES is not set | %s |\n", m.title, m.wanted)
			continue
		}
		if m.nodes > 0 {
			err = writeSnapshot("nodes.json", mixedNodes(m.nodes, m.pods))
		}
		if m.lines != nil {
			err = errors.Join(err, writeLines(m.file, m.lines...))
		}
		if m.name == "openb-arrivals" {
			err = writeArrivals(traces)
		}
		if err != nil {
			return err
		}
		u, err := run(context.Background(), m.name, program, strings.Fields(m.arguments)...)
		if err != nil {
			return err
		}
		if shown := m.show(u); m.title != "" {
			fmt.Printf("| %s | %s | %s |\n", m.title, shown, m.wanted)
		}
	}
	return nil
}

func measurements(configs, traces string) []measurement {
	perCore := func(pods float64) func(used) string {
		return func(u used) string { return fmt.Sprintf("%.0f pods/s a core (%v)", pods/u.cpu, u) }
	}
	web := []string{newPod("web", "500m", "1Gi", "", "", "")}
	const fit = "fit --snapshot nodes.json --pod web.json --limit "
	var first used
	return []measurement{
		{"basic", "5,000 nodes, 20,000 basic pods", "2,000 pods/s a core", 5000, 0, "basic.csv", basicTrace(20000),
			"--snapshot nodes.json --trace basic.csv", perCore(20000)},
		{"mixed", "5,000 nodes, 10,000 pods of six shapes", "1,000 pods/s a core", 5000, 0, "mixed.jsonl", mixedTrace(10000),
			"--snapshot nodes.json --trace mixed.jsonl", perCore(10000)},
		{"openb-arrivals", "OpenB, 10,800 arrivals of which none ends, 1,213 nodes", "15 s", 0, 0, "", nil,
			"--snapshot gpus.csv --trace arrivals.csv --for 3h", used.String},
		{"openb", "OpenB, its own 149 days with 8,152 pods, 1,523 nodes", "", 0, 0, "", nil,
			"--snapshot " + filepath.Join(traces, nodeList) + " --trace " + filepath.Join(traces, podList), used.String},
		{"day", "a day of 100,000 pods, 1,000 nodes, two configurations", "180 s", 1000, 0, "day.csv", dayTrace(100000),
			"--snapshot nodes.json --trace day.csv --config stock --config " + filepath.Join(configs, "bin-packing.yaml"), used.String},
		{"load", "15,000 nodes and 150,000 pods, loaded", "60 s, 2,000 MB", 15000, 10, "web.json", web, fit + "1", used.String},
		{"fit-first", "", "", 5000, 0, "web.json", web, fit + "1", func(u used) string { first = u; return "" }},
		{"fit", "fit of 1,000 pods, 5,000 nodes, after loading", "2 s", 0, 0, "", nil, fit + "1000", func(u used) string {
			return fmt.Sprintf("%.1f s (%.2f s for the first one)", u.seconds-first.seconds, first.seconds)
		}},
		{"drain", "drain of each of 1,000 nodes with 10 pods", "60 s", 1000, 10, "", nil, "drain --each --snapshot nodes.json",
			func(u used) string { return fmt.Sprintf("%.2f s with loading, CPU %.1f s", u.seconds, u.cpu) }},
	}
}

// nodeList and podList are OpenB's.
const nodeList, podList = "openb_node_list_all_node.csv", "openb_pod_list_default.csv"

// writeArrivals writes OpenB's nodes with GPUs, and as many of its pods again from the start of the list as make 10,800:
// one each second, and none ends within the three hours.
func writeArrivals(traces string) error {
	nodes, err := readCSV(filepath.Join(traces, nodeList))
	if err != nil {
		return err
	}
	pods, err := readCSV(filepath.Join(traces, podList))
	if err != nil {
		return err
	}
	kept, arrivals, listed := nodes[:1:1], pods[:1:1], pods[1:]
	for _, node := range nodes[1:] {
		if node[3] > "0" {
			kept = append(kept, node)
		}
	}
	for i := range 10800 {
		pod := append([]string(nil), listed[i%len(listed)]...)
		pod[0], pod[8], pod[9], pod[10] = fmt.Sprint(pod[0], "-", i/len(listed)), fmt.Sprint(i), "1000000", fmt.Sprint(i)
		arrivals = append(arrivals, pod)
	}
	return errors.Join(writeCSV("gpus.csv", kept), writeCSV("arrivals.csv", arrivals))
}

func readCSV(file string) ([][]string, error) {
	content, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w; next: TRACES=DIRECTORY with OpenB's lists", err)
	} else if err != nil {
		return nil, err
	}
	defer content.Close()
	return csv.NewReader(content).ReadAll()
}

func writeCSV(file string, rows [][]string) error {
	created, err := os.Create(file)
	if err != nil {
		return err
	}
	defer created.Close()
	return csv.NewWriter(created).WriteAll(rows)
}

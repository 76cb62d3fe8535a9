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
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// used is what a run of the simulator took: times in seconds, and the most resident memory, in MB, that it and the processes
// that it starts had at the same time.
type used struct {
	seconds, user, system float64
	memory                int
}

func (u used) cpu() float64 { return u.user + u.system }

func (u used) String() string {
	return fmt.Sprintf("%.2f s, CPU %.1f s; peak %d MB", u.seconds, u.cpu(), u.memory)
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
	if err := command.Start(); err != nil {
		return u, err
	}
	ended, watch := make(chan struct{}), errgroup.Group{}
	watch.Go(func() error {
		for {
			u.memory = max(u.memory, residentMemory(command.Process.Pid))
			select {
			case <-ended:
				return nil
			case <-time.After(200 * time.Millisecond):
			}
		}
	})
	err = command.Wait()
	close(ended)
	_ = watch.Wait() // it returns no error
	u.seconds = time.Since(began).Seconds()
	u.user, u.system = command.ProcessState.UserTime().Seconds(), command.ProcessState.SystemTime().Seconds()
	if err != nil {
		err = fmt.Errorf("%s %s: %w; next: read %s", program, strings.Join(arguments, " "), err, log.Name())
	}
	return u, err
}

var residentLine = regexp.MustCompile(`(?m)^VmRSS:\s+([0-9]+) kB$`)

// residentMemory returns what a process and its children have now, in MB. Processes may end meanwhile.
func residentMemory(pid int) (megabytes int) {
	processes := fmt.Sprint(pid)
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		children, _ := os.ReadFile(list)
		processes += " " + string(children)
	}
	for _, process := range strings.Fields(processes) {
		status, _ := os.ReadFile("/proc/" + process + "/status")
		if found := residentLine.FindSubmatch(status); found != nil {
			kilobytes, _ := strconv.Atoi(string(found[1]))
			megabytes += kilobytes / 1000
		}
	}
	return megabytes
}

// measurement is a row of the table: prepare writes its files, and measure runs the simulator.
type measurement struct {
	name, title, wanted string
	prepare             func() error
	arguments           []string
	show                func(used) string
}

const plainPod = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web"},"spec":{"containers":[{"name":"main","resources":{"requests":{"cpu":"500m","memory":"1Gi"}}}]}}`

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
		if err := m.prepare(); err != nil {
			return err
		}
		u, err := run(context.Background(), m.name, program, m.arguments...)
		if err != nil {
			return err
		}
		if m.title != "" {
			fmt.Printf("| %s | %s | %s |\n", m.title, m.show(u), m.wanted)
		} else {
			m.show(u)
		}
	}
	return nil
}

func measurements(configs, traces string) []measurement {
	openNodes, openPods := filepath.Join(traces, "openb_node_list_all_node.csv"), filepath.Join(traces, "openb_pod_list_default.csv")
	whole := used.String
	perCore := func(pods float64) func(used) string {
		return func(u used) string { return fmt.Sprintf("%.0f pods/s a core (%v)", pods/u.cpu(), u) }
	}
	nodes := func(file string, count, pods int) error { return writeSnapshot(file, mixedNodes(count, pods)) }
	single := func(count int) []string {
		return []string{"fit", "--snapshot", "nodes.json", "--pod", "web.json", "--limit", fmt.Sprint(count)}
	}
	var first used
	return []measurement{
		{"basic", "5,000 nodes, 20,000 basic pods", "2,000 pods/s a core",
			func() error {
				return errors.Join(nodes("nodes.json", 5000, 0), writeLines("basic.csv", basicTrace(20000)...))
			},
			[]string{"--snapshot", "nodes.json", "--trace", "basic.csv"}, perCore(20000)},
		{"mixed", "5,000 nodes, 10,000 pods of six shapes", "1,000 pods/s a core",
			func() error {
				lines, err := mixedTrace(10000)
				return errors.Join(err, nodes("nodes.json", 5000, 0), writeLines("mixed.jsonl", lines...))
			},
			[]string{"--snapshot", "nodes.json", "--trace", "mixed.jsonl"}, perCore(10000)},
		{"openb-arrivals", "OpenB, 10,800 arrivals of which none ends, 1,213 nodes", "15 s",
			func() error { return writeArrivals(openNodes, openPods) },
			[]string{"--snapshot", "gpus.csv", "--trace", "arrivals.csv", "--for", "3h"}, whole},
		{"openb", "OpenB, its own 149 days with 8,152 pods, 1,523 nodes", "", func() error { return nil },
			[]string{"--snapshot", openNodes, "--trace", openPods}, whole},
		{"day", "a day of 100,000 pods, 1,000 nodes, two configurations", "180 s",
			func() error {
				return errors.Join(nodes("nodes.json", 1000, 0), writeLines("day.csv", dayTrace(100000)...))
			},
			[]string{"--snapshot", "nodes.json", "--trace", "day.csv", "--config", "stock", "--config", filepath.Join(configs, "bin-packing.yaml")}, whole},
		{"load", "15,000 nodes and 150,000 pods, loaded", "60 s, 2,000 MB",
			func() error { return errors.Join(nodes("nodes.json", 15000, 10), writeLines("web.json", plainPod)) }, single(1), whole},
		{"fit-first", "", "",
			func() error { return errors.Join(nodes("nodes.json", 5000, 0), writeLines("web.json", plainPod)) },
			single(1), func(u used) string { first = u; return "" }},
		{"fit", "fit of 1,000 pods, 5,000 nodes, after loading", "2 s", func() error { return nil }, single(1000),
			func(u used) string {
				return fmt.Sprintf("%.1f s (%.2f s for the first one)", u.seconds-first.seconds, first.seconds)
			}},
		{"drain", "drain of each of 1,000 nodes with 10 pods", "60 s", func() error { return nodes("nodes.json", 1000, 10) },
			[]string{"drain", "--each", "--snapshot", "nodes.json"},
			func(u used) string { return fmt.Sprintf("%.2f s with loading, CPU %.1f s", u.seconds, u.cpu()) }},
	}
}

// writeArrivals writes OpenB's nodes with GPUs, and as many of its pods again from the start of the list as make 10,800:
// one each second, and none ends within the three hours.
func writeArrivals(nodeList, podList string) error {
	nodes, err := readCSV(nodeList)
	if err != nil {
		return err
	}
	pods, err := readCSV(podList)
	if err != nil {
		return err
	}
	kept := nodes[:1]
	for _, node := range nodes[1:] {
		if node[3] > "0" {
			kept = append(kept, node)
		}
	}
	arrivals, listed := pods[:1:1], pods[1:]
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

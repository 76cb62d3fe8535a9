// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// gangRuns are runs of simulators, by names, that end after a limit.
type gangRuns struct {
	config     string
	limit      time.Duration
	simulators [][2]string // NAME and PROGRAM
}

// gangs prints two tables: one large gang, and days of 200 gangs at three loads. ONLY is a regular expression for attempt
// and day.
func gangs(arguments []string) error {
	limit, err := strconv.Atoi(arguments[1])
	if err != nil {
		return fmt.Errorf("LIMIT is not a number of seconds: %w; next: make bench NAME=gangs LIMIT=900", err)
	}
	seed, err := strconv.Atoi(arguments[2])
	if err != nil {
		return fmt.Errorf("SEED is not a number: %w; next: make bench NAME=gangs SEED=1", err)
	}
	only, err := regexp.Compile(arguments[3])
	if err != nil {
		return fmt.Errorf("ONLY: %w; next: make bench NAME=gangs ONLY=attempt", err)
	}
	r := gangRuns{config: arguments[0], limit: time.Duration(limit) * time.Second}
	for _, side := range arguments[4:] {
		name, program, _ := strings.Cut(side, "=")
		r.simulators = append(r.simulators, [2]string{name, program})
	}
	if only.MatchString("attempt") {
		err = r.attempts()
	}
	if err == nil && only.MatchString("day") {
		err = r.days(seed)
	}
	return err
}

// simulate runs a simulator, and returns the figures of its output. A run that is cut off may have some.
func (r gangRuns) simulate(simulator [2]string, name, snapshot, trace, length string) (map[string]string, used, error) {
	ctx, cancel := context.WithTimeout(context.Background(), r.limit)
	defer cancel()
	name += "." + simulator[0]
	u, failure := run(ctx, name, simulator[1], "--config", r.config, "--output", name+".csv", "--snapshot", snapshot, "--trace", trace, "--for", length)
	rows, err := readCSV(name + ".csv")
	if err != nil || len(rows) == 0 {
		return nil, u, errors.Join(failure, err)
	}
	figures := map[string]string{}
	for _, row := range rows {
		if len(row) > 4 && row[3] == "mean" {
			figures[strings.ReplaceAll(row[0], `"`, "")] = row[4]
		}
	}
	return figures, u, nil
}

// attempts measures a gang of 1,000 pods, alone in a cluster with as much room, and with room for one less.
func (r gangRuns) attempts() error {
	if err := writeSnapshot("5000.json", equalNodes(5000)); err != nil {
		return err
	}
	fmt.Print("| a gang of 1,000, 5,000 nodes | attempts | CPU s |\n|---|---:|---:|\n")
	for _, fillers := range []int{4000, 4001} {
		header, filler := "time,name,count,cpu,memory,gang", fmt.Sprintf("0,filler,%d,32,1Gi,", fillers)
		if err := errors.Join(writeLines("alone.csv", header, filler), writeLines("gang.csv", header, filler, "10,gang,1000,32,1Gi,gang")); err != nil {
			return err
		}
		for _, s := range r.simulators {
			_, alone, err := r.simulate(s, "alone", "5000.json", "alone.csv", "11s")
			if err != nil {
				return err
			}
			figures, both, err := r.simulate(s, "gang", "5000.json", "gang.csv", "11s")
			if err != nil {
				return err
			}
			attempts, err := strconv.ParseFloat(figures["attempts"], 64)
			if err != nil {
				return fmt.Errorf("attempts of gang.%s.csv: %w", s[0], err)
			}
			fmt.Printf("| %s, %d free | %.0f | %.1f |\n", s[0], 5000-fillers, attempts-float64(fillers), both.user-alone.user)
		}
	}
	return nil
}

// days measures days with 200 gangs on 300 nodes.
func (r gangRuns) days(seed int) error {
	if err := writeSnapshot("300.json", equalNodes(300)); err != nil {
		return err
	}
	fmt.Print("\n| a day, 300 nodes | time to a full gang, s: p50 | p99 | gangs incomplete | CPU allocated, % | evicted | ",
		"core-seconds held | CPU s | cut off |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|\n")
	for _, load := range []int{70, 85, 95} {
		name := fmt.Sprint("day-", load)
		if err := writeLines(name+".trace.csv", gangTrace(9600, load, seed)...); err != nil {
			return err
		}
		for _, s := range r.simulators {
			figures, u, err := r.simulate(s, name, "300.json", name+".trace.csv", "30h")
			if err != nil {
				return err
			}
			row := fmt.Sprintf("| %d %% load, %s", load, s[0])
			for _, figure := range []string{"gang_complete_p50_seconds", "gang_complete_p99_seconds", "gangs_incomplete",
				"allocation_percent{resource=cpu}", "preemptions", "gang_held_core_seconds"} {
				row += " | " + figures[figure]
			}
			log, err := os.ReadFile(name + "." + s[0] + ".log")
			if err != nil {
				return err
			}
			cutOff := ""
			if strings.Contains(string(log), "and not judged: interrupted") {
				cutOff = "yes"
			}
			fmt.Printf("%s | %.2f | %s |\n", row, u.user, cutOff)
		}
	}
	return nil
}

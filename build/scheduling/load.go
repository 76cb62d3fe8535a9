// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"cmp"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"
)

// loadPath is the path of the status of the plugin NodeLoad.
const loadPath = "/node-load"

// loads is the status of the plugin NodeLoad.
type loads struct {
	Profiles []profileLoad `json:"profiles"`
}

type profileLoad struct {
	Profile string `json:"profile"`
	Source  struct {
		Source          string    `json:"source"`
		State           string    `json:"state"`
		Since           time.Time `json:"since"`
		Problem         string    `json:"problem"`
		Endpoint        string    `json:"endpoint"`
		LastError       string    `json:"lastError"`
		LastErrorTime   time.Time `json:"lastErrorTime"`
		DurationSeconds float64   `json:"durationSeconds"`
		IntervalSeconds float64   `json:"intervalSeconds"`
		Warnings        []string  `json:"warnings"`
	} `json:"source"`
	Snapshot         uint64    `json:"snapshot"`
	Taken            time.Time `json:"taken"`
	UnmatchedSeries  int       `json:"unmatchedSeries"`
	UnmatchedExample string    `json:"unmatchedExample"`
	Resources        []struct {
		Resource  string `json:"resource"`
		Fresh     int    `json:"fresh"`
		Nodes     int    `json:"nodes"`
		Fallback  bool   `json:"fallback"`
		Threshold *int64 `json:"thresholdPercent"`
	} `json:"resources"`
	Nodes []struct {
		Node      string         `json:"node"`
		Resources []resourceLoad `json:"resources"`
	} `json:"nodes"`
}

type resourceLoad struct {
	Resource   string   `json:"resource"`
	Measured   *float64 `json:"measuredPercent"`
	Deviation  *float64 `json:"deviationPercent"`
	InFlight   *float64 `json:"inFlightPercent"`
	Predicted  *float64 `json:"predictedPercent"`
	AgeSeconds *float64 `json:"ageSeconds"`
	Capacity   *float64 `json:"capacity"`
	Missing    string   `json:"missing"`
}

func (o *options) loadCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "load [NODE]",
		Short: "Show the load of the nodes that the plugin NodeLoad has measured, and the state of its sources",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, arguments []string) error {
			asked := request{path: loadPath, query: url.Values{}}
			if len(arguments) == 1 {
				asked.query.Set("node", arguments[0])
			}
			var answer loads
			return o.answer(command.Context(), asked, &answer, func(p printer) { p.loads(answer) })
		},
	}
	o.addOutput(command)
	return command
}

func (p printer) loads(answer loads) {
	if len(answer.Profiles) == 0 {
		p.line("No profile enables NodeLoad.")
	}
	for _, profile := range answer.Profiles {
		p.load(profile)
	}
}

func (p printer) load(profile profileLoad) {
	source := profile.Source
	p.line("Profile %s, source %s: %s for %s", profile.Profile, source.Source, cmp.Or(source.State, none), cmp.Or(p.ago(source.Since), none))
	if source.Problem != "" {
		p.line("Problem: %s", source.Problem)
	}
	p.line("Endpoint %s, refreshed every %ss", cmp.Or(source.Endpoint, none), decimal(&source.IntervalSeconds))
	if profile.Snapshot > 0 {
		p.line("Snapshot %s, taken %s ago, the request took %s", strconv.FormatUint(profile.Snapshot, 10), p.ago(profile.Taken), lasted(source.DurationSeconds))
	} else {
		p.line("No snapshot yet")
	}
	if source.LastError != "" {
		p.line("Last error, %s ago: %s", p.ago(source.LastErrorTime), source.LastError)
	}
	for _, warning := range source.Warnings {
		p.line("Warning: %s", warning)
	}
	if profile.UnmatchedSeries > 0 {
		p.line("%s series match no node, for example %s", strconv.Itoa(profile.UnmatchedSeries), profile.UnmatchedExample)
	}
	var resources [][]string
	for _, r := range profile.Resources {
		row := []string{r.Resource, strconv.Itoa(r.Fresh), strconv.Itoa(r.Nodes), "", "yes"}
		if r.Threshold != nil {
			row[3] = fmt.Sprintf("%d%%", *r.Threshold)
		}
		if r.Fallback {
			row[4] = "no: too few are fresh"
		}
		resources = append(resources, row)
	}
	p.table("Resources", []string{"RESOURCE", "FRESH", "NODES", "THRESHOLD", "USED"}, resources)
	header := []string{"NODE", "RESOURCE", "MEASURED", "IN FLIGHT", "PREDICTED", "AGE", "MISSING"}
	if p.wide {
		header = append(header, "DEVIATION", "CAPACITY")
	}
	var nodes [][]string
	for _, node := range profile.Nodes {
		for _, r := range node.Resources {
			row := []string{node.Node, r.Resource, percentOf(r.Measured), percentOf(r.InFlight), percentOf(r.Predicted), "", r.Missing}
			if r.AgeSeconds != nil {
				row[5] = fmt.Sprintf("%.0fs", *r.AgeSeconds)
			}
			if p.wide {
				row = append(row, percentOf(r.Deviation), decimal(r.Capacity))
			}
			nodes = append(nodes, row)
		}
	}
	p.table("Nodes", header, nodes)
}

func percentOf(value *float64) string {
	if value == nil {
		return ""
	}
	return fmt.Sprintf("%.1f%%", *value)
}

func decimal(value *float64) string {
	if value == nil {
		return ""
	}
	return strconv.FormatFloat(*value, 'f', -1, 64)
}

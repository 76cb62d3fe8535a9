// SPDX-License-Identifier: Apache-2.0

// Package simulation is the command kube-scheduler-simulate: it schedules the pods of a cluster's snapshot or of a trace
// in virtual time, with one or several configurations.
//
// The command reads the input, and starts itself once for each configuration and seed. The processes get the input in a
// file, and return their results as JSON: see replay.Process.
package simulation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/records"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/simulation/input"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/simulation/replay"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/simulation/report"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/simulation/result"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

// errCondition is returned if a condition of --fail-if holds.
var errCondition = errors.New("a condition of --fail-if holds")

// ExitCode returns the exit code of the command: 0, 1 for a condition of --fail-if that holds, or 2 for an error.
func ExitCode(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errCondition):
		return 1
	}
	return 2
}

// ErrorText returns the text of an error for a terminal, without control characters, which may come from the input.
func ErrorText(err error) string { return report.EscapeLines(err.Error()) }

// options are the flags.
type options struct {
	out, errOut io.Writer
	plugins     []func(frameworkruntime.Registry) error
	records     func(records.Options) scheduler.Option

	snapshots, configs, pods, failIf []string
	trace, output, zone, node        string
	seeds, jobs, limit               int
	firstSeed                        int64
	length, moment                   time.Duration
	hot                              float64
	pendingOnly, eachConfiguration   bool
	priceLabel                       string
	extender                         bool
	// context ends with a signal. A question ends with it, too; a comparison reports what it has.
	context context.Context
	// temporary is a file to remove at the end, if it still exists.
	temporary string
}

// NewCommand returns the command. withRecords is the scheduler's option for its records; nil if it has none. plugins add
// out-of-tree plugins to a registry.
func NewCommand(withRecords func(records.Options) scheduler.Option, plugins ...func(frameworkruntime.Registry) error) *cobra.Command {
	o := &options{records: withRecords, plugins: plugins}
	root := &cobra.Command{
		Use:   "kube-scheduler-simulate",
		Short: "Schedule the pods of a snapshot or of a trace in virtual time, with one or several configurations",
		Long: `Schedules the pods of a cluster's snapshot or of a trace in virtual time, with this scheduler and its plugins, and compares
configurations. It needs no cluster, and contacts none; with --extender it calls extenders.

  kubectl scheduling snapshot > cluster.yaml
  kube-scheduler-simulate --snapshot cluster.yaml --config stock --config mine.yaml
  kube-scheduler-simulate --snapshot cluster.yaml --trace tuesday.csv --config stock --config mine.yaml --seeds 5 --output report.html
  kube-scheduler-simulate check --snapshot cluster.yaml --config mine.yaml
  kube-scheduler-simulate check --trace history.jsonl --config mine.yaml
  kube-scheduler-simulate fit --snapshot cluster.yaml --pod web.yaml
  kube-scheduler-simulate drain --snapshot cluster.yaml node-7 node-8
  kube-scheduler-simulate shrink --snapshot cluster.yaml
  kube-scheduler-simulate grow --snapshot cluster.yaml --node template.yaml --pod web.yaml
  kube-scheduler-simulate lose --snapshot cluster.yaml --zone zone-c`,
		Args:              cobra.NoArgs,
		SilenceUsage:      true,
		SilenceErrors:     true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		PersistentPreRun: func(command *cobra.Command, _ []string) {
			o.out, o.errOut = command.OutOrStdout(), command.ErrOrStderr()
			// The processes of runs ignore signals, and do what this one asks for.
			o.context, _ = signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		},
		RunE: func(*cobra.Command, []string) error { return o.compare() },
	}
	flags := root.PersistentFlags()
	flags.StringArrayVar(&o.snapshots, "snapshot", nil, "a file or directory with the cluster's objects, as kubectl prints them in YAML or JSON, also with gzip; - is standard input")
	flags.StringArrayVar(&o.configs, "config", nil, "a KubeSchedulerConfiguration, or stock for the default one; repeat it to compare several with the first one")
	flags.StringVarP(&o.output, "output", "o", "", "json, csv, or a file that ends with .html, .json or .csv; by default a table")
	flags.Int64Var(&o.firstSeed, "seed", 1, "the first seed of the choice among nodes with equal scores")
	flags.BoolVar(&o.extender, "extender", false, "call the extenders of the configurations, except their bind verb; virtual time stands still meanwhile. They are asked about pods that do not exist")
	local := root.Flags()
	local.StringVar(&o.trace, "trace", "", "a history, or a trace of pods and of changes of nodes as CSV or JSON lines")
	local.StringArrayVar(&o.pods, "pod", nil, "a file with pods or their workloads, which are created at the start")
	local.BoolVar(&o.pendingOnly, "pending-only", false, "without a trace, leave the snapshot's pods where they are, and place only those that are pending")
	local.IntVar(&o.seeds, "seeds", 1, "the number of runs of each configuration, with different seeds")
	local.IntVar(&o.jobs, "jobs", runtime.NumCPU(), "the number of runs at the same time; each uses one processor")
	local.DurationVar(&o.length, "for", 0, "the simulated time; by default until nothing changes any more")
	local.DurationVar(&o.moment, "moment", 0, "the time of the map of nodes in the report; by default that of the last event of the trace")
	local.Float64Var(&o.hot, "hot", 0.8, "the share of a node's CPU or memory, 0 to 1, above which the node is hot")
	local.StringVar(&o.priceLabel, "price-label", "", "the node label with the node's price for an hour")
	local.StringArrayVar(&o.failIf, "fail-if", nil, "a condition that makes the exit code 1, for example 'waiting_p99 > 1.1 * stock'")

	command := func(use, short string, arguments cobra.PositionalArgs, ask func(arguments []string) (question, error)) *cobra.Command {
		asks := &cobra.Command{Use: use, Short: short, Args: arguments, RunE: func(_ *cobra.Command, arguments []string) error {
			asked, err := ask(arguments)
			if err != nil {
				return err
			}
			return o.ask(asked)
		}}
		root.AddCommand(asks)
		return asks
	}
	withPods := func(command *cobra.Command, limit int, of string) {
		command.Flags().StringArrayVar(&o.pods, "pod", nil, "a file with a pod or its workload")
		command.Flags().IntVar(&o.limit, "limit", limit, "the largest number of "+of)
	}
	command("check", "Place the snapshot's or a history's pods again, and say how many get their real node", cobra.NoArgs,
		func([]string) (question, error) { return question{Mode: modeCheck}, nil }).
		Flags().StringVar(&o.trace, "trace", "", "a history, whose pods are placed one after the other in the cluster as it really was then")
	withPods(command("fit", "Count how many more pods fit, and say what is short", cobra.NoArgs, func([]string) (question, error) {
		if len(o.pods) == 0 {
			return question{}, errors.New("no pod is given; next: add --pod FILE")
		}
		return question{Mode: modeFit, Limit: o.limit}, nil
	}), 100000, "pods of each workload")
	each := false
	drain := command("drain NODE...", "Say where the pods of nodes would go", cobra.ArbitraryArgs, func(names []string) (question, error) {
		if len(names) == 0 && !each {
			return question{}, errors.New("no node is given; next: add names of nodes, or --each for all of them")
		}
		return question{Mode: modeDrain, Nodes: names, Each: each}, nil
	})
	drain.Flags().BoolVar(&each, "each", false, "drain each of the nodes alone, by default each of the cluster, and say which can go")
	command("shrink", "Say which nodes can go, in order", cobra.NoArgs,
		func([]string) (question, error) { return question{Mode: modeShrink}, nil })
	grow := command("grow", "Count the nodes to add so that no pod waits", cobra.NoArgs, func([]string) (question, error) {
		if o.node == "" {
			return question{}, errors.New("no node is given; next: add --node FILE with a Node")
		}
		return question{Mode: modeGrow, Limit: o.limit}, nil
	})
	grow.Flags().StringVar(&o.node, "node", "", "a file with the Node to add copies of")
	withPods(grow, 10000, "nodes")
	lose := command("lose [NODE...]", "Say which pods wait when nodes or a zone are gone", cobra.ArbitraryArgs, func(names []string) (question, error) {
		if (len(names) == 0) == (o.zone == "") {
			return question{}, errors.New("give either --zone ZONE or names of nodes")
		}
		return question{Mode: modeLose, Nodes: names, Zone: o.zone}, nil
	})
	lose.Flags().StringVar(&o.zone, "zone", "", "the zone that is gone")
	for _, asks := range root.Commands() {
		if asks.Name() == modeFit || asks.Name() == modeDrain || asks.Name() == modeLose {
			asks.Flags().BoolVar(&o.eachConfiguration, "for-each-configuration", false, "first place the snapshot's pods again from empty nodes, with each configuration")
		}
	}
	root.AddCommand(&cobra.Command{Use: replay.Command, Hidden: true, Args: cobra.NoArgs, Run: func(*cobra.Command, []string) { o.serve() }})
	return root
}

// prepare reads the input, until a signal.
func (o *options) prepare() (*work, error) {
	var w *work
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		w, err = o.read()
	}()
	select {
	case <-done:
		return w, err
	case <-o.context.Done():
		return nil, replay.ErrInterrupted
	}
}

// read returns the input that the flags name.
func (o *options) read() (*work, error) {
	if len(o.configs) == 0 {
		o.configs = []string{stock}
	}
	w := &work{Hot: o.hot, PriceLabel: o.priceLabel, Length: o.length, Moment: o.moment}
	names, err := map[string]bool{}, error(nil)
	for _, path := range o.configs {
		c := configuration{Name: path, CallExtenders: o.extender}
		if path != stock {
			c.Name = strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
			c.Path = path
			if c.Text, err = os.ReadFile(path); err != nil {
				return nil, fmt.Errorf("--config %s: %v; next: give a file, or stock", path, err)
			}
		}
		if names[c.Name] {
			return nil, fmt.Errorf("two configurations have the name %q; next: rename the file of one", c.Name)
		}
		names[c.Name] = true
		if _, err := c.load(); err != nil {
			return nil, err
		}
		w.Configurations = append(w.Configurations, c)
	}
	if err := o.readCluster(w); err != nil {
		return nil, err
	}
	if err := o.checkPrices(w.cluster); err != nil {
		return nil, err
	}
	if w.Workloads, err = input.ReadWorkloads(o.pods, v1.NamespaceDefault); err != nil {
		return nil, err
	}
	if o.node != "" {
		// A cluster of one node.
		templates, err := input.ReadCluster([]string{o.node})
		if err != nil {
			return nil, err
		}
		if len(templates.Nodes) > 1 {
			return nil, fmt.Errorf("--node %s has %d nodes; next: a file with one Node", o.node, len(templates.Nodes))
		}
		if w.Template = templates.Nodes[0]; len(w.Template.Status.Allocatable) == 0 {
			return nil, fmt.Errorf("--node %s: node %s has no status.allocatable, so no pod fits; next: set it", o.node, w.Template.Name)
		}
	}
	return w, w.checkEvents()
}

// checkPrices returns an error for a price that is not a number, and adds a warning of nodes without one.
func (o *options) checkPrices(cluster *input.Cluster) error {
	if o.priceLabel == "" {
		return nil
	}
	without := 0
	for _, node := range cluster.Nodes {
		value, labelled := node.Labels[o.priceLabel]
		if !labelled {
			without++
		} else if price, err := strconv.ParseFloat(value, 64); err != nil || !(price >= 0 && price <= math.MaxFloat64) {
			return fmt.Errorf("the label %s of node %s is not a price; next: a number from 0 on", o.priceLabel, node.Name)
		}
	}
	if without > 0 {
		cluster.Warnings = append(cluster.Warnings, fmt.Sprintf("%d nodes have no label %s: they cost nothing", without, o.priceLabel))
	}
	return nil
}

// checkEvents returns an error for an event of a node or pod that there is not.
func (w *work) checkEvents() error {
	if w.History {
		return nil // Its reader has done it.
	}
	known, deleted := map[string]bool{}, map[string]bool{}
	for _, node := range w.cluster.Nodes {
		known[node.Name] = true
	}
	for i := range w.Events {
		deleted[w.Events[i].Delete] = true
	}
	// Only pods that the trace deletes are kept: there may be millions.
	add := func(namespace, name string) {
		if name := namespace + "/" + name; deleted[name] {
			known[name] = true
		}
	}
	create := func(of *input.Workload) {
		for i := 0; i < of.Count; i++ {
			add(of.Pod.Namespace, of.NameOf(i))
		}
	}
	for _, pod := range w.cluster.Pods {
		add(pod.Namespace, pod.Name)
	}
	for i := range w.Workloads {
		create(&w.Workloads[i])
	}
	for i := range w.Events {
		of := &w.Events[i]
		switch {
		case of.Pods != nil:
			create(of.Pods)
		case of.Node != "" && !known[of.Node]:
			return &input.Error{Where: of.Where, What: "the snapshot has no node " + of.Node, Next: "correct the name"}
		case of.Delete != "" && !known[of.Delete]:
			return &input.Error{Where: of.Where, What: "no pod " + of.Delete + " was created before", Next: "correct the name"}
		}
	}
	return nil
}

// checkFlags returns an error for a number that is not possible.
func (o *options) checkFlags() error {
	switch {
	case o.seeds < 1 || o.jobs < 1:
		return errors.New("--seeds and --jobs are at least 1")
	case o.length < 0 || o.moment < 0:
		return errors.New("--for and --moment are at least 0")
	case !(o.hot > 0 && o.hot <= 10):
		return errors.New("--hot is above 0, and at most 10")
	case o.pendingOnly && o.trace != "":
		return errors.New("--pending-only is for a snapshot without a trace; next: leave out one of --pending-only and --trace")
	case !o.pendingOnly && o.trace == "" && (o.length > 0 || o.moment > 0):
		return errors.New("--for and --moment have no meaning when a snapshot's pods are placed again; next: add --trace, or --pending-only")
	}
	return nil
}

// compare runs all configurations with all seeds, and reports the comparison.
func (o *options) compare() error {
	if err := o.checkFlags(); err != nil {
		return err
	}
	var conditions []report.Condition
	for _, text := range o.failIf {
		condition, err := report.ParseFailIf(text)
		if err != nil {
			return err
		}
		conditions = append(conditions, condition)
	}
	write, err := o.writer()
	if err != nil {
		return err
	}
	defer os.Remove(o.temporary)
	w, err := o.prepare()
	if err != nil {
		return err
	}
	w.Again = !o.pendingOnly && o.trace == ""
	same := w.same()
	comparison := &result.Comparison{NotModelled: notModelled(), Method: strings.TrimSpace(w.method() + " " + same), Input: w.describe(), Warnings: w.warnings()}
	if same != "" && len(conditions) == 0 && (o.output == "" || o.output == "text") {
		_, err := fmt.Fprintln(o.out, comparison.Method)
		return err
	}
	if comparison.Runs, err = o.runAll(w); err != nil {
		return err
	}
	if err := write(comparison); err != nil {
		return err
	}
	held := false
	for i, condition := range conditions {
		where, err := condition.Check(comparison)
		if err != nil {
			return err
		}
		for _, text := range where {
			held = true
			fmt.Fprintf(o.errOut, "--fail-if %q: %s\n", o.failIf[i], report.Escape(text))
		}
	}
	if held {
		return errCondition
	}
	return nil
}

// writer returns the function that writes a comparison as --output says. It opens the file first, so that an error
// comes before the run, and replaces it only with a complete report.
func (o *options) writer() (func(*result.Comparison) error, error) {
	formats := map[string]func(io.Writer, *result.Comparison) error{
		"": report.Text, "text": report.Text, "json": report.JSON, "csv": report.CSV, "html": report.HTML,
	}
	if render, ok := formats[o.output]; ok {
		return func(c *result.Comparison) error { return render(o.out, c) }, nil
	}
	render, ok := formats[strings.TrimPrefix(filepath.Ext(o.output), ".")]
	if !ok || filepath.Ext(o.output) == "" {
		return nil, fmt.Errorf("--output %s is unknown; next: json, csv, or a file that ends with .html, .json or .csv", o.output)
	}
	if info, err := os.Stat(o.output); err == nil && info.IsDir() {
		return nil, fmt.Errorf("--output %s is a directory; next: the name of a file in it", o.output)
	}
	o.temporary = filepath.Join(filepath.Dir(o.output), fmt.Sprintf(".simulation-%d-%d", os.Getpid(), time.Now().UnixNano()))
	// Unlike os.CreateTemp, the mode is that of other new files.
	file, err := os.OpenFile(o.temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, fmt.Errorf("--output %s cannot be written: %v; next: create its directory, or choose another one", o.output, err)
	}
	return func(c *result.Comparison) error {
		if err := render(file, c); err != nil {
			return err
		}
		if err := file.Close(); err != nil {
			return err
		}
		if err := os.Rename(file.Name(), o.output); err != nil {
			return err
		}
		fmt.Fprintf(o.errOut, "The report is in %s\n", o.output)
		return report.Text(o.out, c)
	}, nil
}

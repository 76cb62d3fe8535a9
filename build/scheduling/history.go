// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"kube-scheduler-fork/build/history"
	"kube-scheduler-fork/build/nextstep"
)

// historyOptions are the flags of the command.
type historyOptions struct {
	*options
	prometheus, since, matchers, file, convert string
	follow, anonymize                          bool
	labels                                     []string
	version                                    int
}

func (o *options) historyCommand(by string) *cobra.Command {
	h := &historyOptions{options: o}
	command := &cobra.Command{
		Use:   "history (--prometheus URL | --follow) --output FILE",
		Short: "Write what happened in the cluster to a file, for kubectl scheduling simulate --trace",
		Long: `Writes when pods came, where they ran and when they ended, and which nodes there were: with --prometheus, what the series
of kube-state-metrics and kubelets have of the time until now; with --follow, what happens from now on, until Ctrl-C.
The same command goes on where it was stopped. The file has what a snapshot has of nodes and pods, and nothing else.`,
		Example: `  kubectl scheduling history --prometheus http://prometheus:9090 --since 7d --output week.jsonl
  kubectl scheduling history --follow --output now.jsonl`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(command *cobra.Command, _ []string) error { return h.run(command.Context(), by) },
	}
	flags := command.Flags()
	flags.StringVar(&h.prometheus, "prometheus", "", "the URL of a Prometheus")
	flags.StringVar(&h.since, "since", "7d", "how long ago the history of --prometheus begins, such as 7d or 12h")
	flags.StringVar(&h.matchers, "matchers", "", `matchers that all series have, such as cluster="a"`)
	flags.BoolVar(&h.follow, "follow", false, "watch the cluster from now on")
	flags.StringVarP(&h.file, "output", "o", "", "the file to write")
	flags.BoolVar(&h.anonymize, "anonymize", false, "write hashes instead of names, labels, taints and images")
	flags.StringSliceVar(&h.labels, "keep-label", nil, "keys of labels and taints that --anonymize leaves as they are, with their values")
	flags.StringVar(&h.convert, "convert", "", "a history to print in the version of the format that --to-version names")
	flags.IntVar(&h.version, "to-version", history.Version, "the version of the format for --convert")
	command.MarkFlagsMutuallyExclusive("prometheus", "follow", "convert")
	for _, flag := range []string{"since", "matchers"} {
		command.MarkFlagsMutuallyExclusive("follow", flag)
	}
	command.MarkFlagsOneRequired("prometheus", "follow", "convert")
	return command
}

func (h *historyOptions) run(ctx context.Context, by string) error {
	switch {
	case h.convert != "":
		return h.convertFile()
	case h.file == "":
		return nextstep.With(errors.New("--output is missing"), "the same command with --output history.jsonl")
	}
	var hide *history.Hider
	if h.anonymize {
		hide = newAnonymizer(h.labels).hider()
	}
	if h.follow {
		return h.followTo(ctx, by, hide)
	}
	since, err := parseDays(h.since)
	if err != nil {
		return err
	}
	transport, err := h.transport()
	if err != nil {
		return err
	}
	return history.FromPrometheusSeries(ctx, history.PrometheusOptions{URL: h.prometheus, Transport: transport, Since: since, Matchers: h.matchers,
		Out: h.file, By: by, Progress: Escaped{h.ErrOut}, Live: h.live(), Hide: hide})
}

// followTo follows the cluster.
func (h *historyOptions) followTo(ctx context.Context, by string, hide *history.Hider) error {
	config, err := h.flags.ToRESTConfig()
	if err != nil {
		return kubeconfigError(err)
	}
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	allowed := map[string]fields{"nodes": allowedFields("", "nodes"), "pods": allowedFields("", "pods")}
	return history.Follow(ctx, history.FollowOptions{File: h.file, By: by, Client: client, Hide: hide, MaxSize: 100 << 20, Messages: Escaped{h.ErrOut},
		Prune: func(resource string, object map[string]any) { prune(object, allowed[resource]) }})
}

// transport returns that of the kubeconfig if the Prometheus is behind the API server's proxy, and otherwise nil.
func (h *historyOptions) transport() (http.RoundTripper, error) {
	config, err := h.flags.ToRESTConfig()
	if err != nil || !strings.HasPrefix(h.prometheus, strings.TrimSuffix(config.Host, "/")+"/") {
		return nil, nil
	}
	return rest.TransportFor(config)
}

// parseDays parses days, such as 7d, or a Go duration.
func parseDays(text string) (time.Duration, error) {
	days, inDays := strings.CutSuffix(text, "d")
	count, err := strconv.ParseUint(days, 10, 12)
	duration := time.Duration(count) * 24 * time.Hour
	if !inDays {
		duration, err = time.ParseDuration(text)
	}
	if err != nil || duration <= 0 {
		return 0, nextstep.With(fmt.Errorf("--since %s is not a duration", text), "the same command with --since 7d")
	}
	return duration, nil
}

// live returns what visits the objects of the cluster.
func (o *options) live() history.Live {
	var client dynamic.Interface
	var versions map[schema.GroupResource]schema.GroupVersionResource
	var failed error
	return func(ctx context.Context, group, resource string, visit func(map[string]any) error) error {
		if client == nil && failed == nil {
			var served []*metav1.APIResourceList
			client, served, failed = o.clients()
			versions = byName(served)
		}
		if failed != nil { // An API server that does not answer is asked once.
			return failed
		}
		version, found := versions[schema.GroupResource{Group: group, Resource: resource}]
		if !found {
			return errNotServed
		}
		allowed := allowedFields(group, resource)
		return each(ctx, client.Resource(version), metav1.ListOptions{}, func(object map[string]any) error {
			prune(object, allowed)
			return visit(object)
		})
	}
}

// allowedFields returns the fields that a history may have of a resource.
func allowedFields(group, resource string) fields {
	for _, one := range slices.Concat(taken, makers) {
		if one.group == group && one.resource == resource {
			return parseFields(one.fields)
		}
	}
	return fields{}
}

// hider returns what hides the texts of a history. Kinds of Kubernetes stay, as in objects.
func (a *anonymizer) hider() *history.Hider {
	return &history.Hider{Object: a.object, Name: a.word, Kind: func(kind string) string {
		if slices.Contains([]string{"ReplicaSet", "Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob", "ReplicationController", "Node"}, kind) {
			return kind
		}
		return a.word(kind)
	}}
}

// convertFile writes a history in another version of the format.
func (h *historyOptions) convertFile() error {
	if h.version != history.Version {
		return nextstep.With(fmt.Errorf("this release writes version %d of the format, not %d", history.Version, h.version),
			"the same command with --to-version %d, or with a newer release", history.Version)
	}
	file, err := os.Open(h.convert)
	if err != nil {
		return err
	}
	defer file.Close()
	content := bufio.NewReader(file)
	if magic, _ := content.Peek(2); string(magic) == "\x1f\x8b" {
		unzipped, err := gzip.NewReader(content)
		if err != nil {
			return err
		}
		content = bufio.NewReader(unzipped)
	}
	line, err := content.ReadSlice('\n') // A header is shorter than the buffer.
	header := history.Header{}
	if err != nil || json.Unmarshal(line, &header) != nil || header.Version == 0 {
		return nextstep.With(fmt.Errorf("%s:1: it is not the first line of a history", h.convert), "see docs/history.md")
	} else if header.Version != history.Version {
		return nextstep.With(fmt.Errorf("%s has version %d of the format, and this release knows version %d", h.convert, header.Version, history.Version),
			"the same command of a newer release")
	}
	_, err = io.Copy(h.Out, io.MultiReader(bytes.NewReader(bytes.Clone(line)), content))
	return err
}

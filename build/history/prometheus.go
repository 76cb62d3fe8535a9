// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"kube-scheduler-fork/build/nextstep"
)

const (
	longestWindow  = time.Hour
	shortestWindow = time.Minute
)

// mostPods limits the memory: no simulator reads a history of more.
var mostPods = 2_000_000

// PrometheusOptions are those of FromPrometheusSeries.
type PrometheusOptions struct {
	// URL is that of the Prometheus.
	URL string
	// Transport sends the requests; nil is the default.
	Transport http.RoundTripper
	// Since is how long ago the history begins.
	Since time.Duration
	// Matchers are further matchers of all series, such as cluster="a".
	Matchers string
	// Out is the file to write.
	Out string
	// By is the version of this program.
	By string
	// Progress receives what a person reads meanwhile, and the summary.
	Progress io.Writer
	// Live visits objects of the cluster; nil without one.
	Live Live
	// Hide is nil, or hides texts.
	Hide *Hider
	// wait waits; nil is the real one.
	wait func(context.Context, time.Duration) error
}

const otherOutput = "the same command with another --output"

// FromPrometheusSeries writes the history of a cluster from the series of a Prometheus. It reads a window after the other,
// and writes what it has read to a journal, Out + ".journal", from which it goes on when it was stopped. Out is there only
// when it is complete.
func FromPrometheusSeries(ctx context.Context, o PrometheusOptions) error {
	if err := replaceable(o.Out); err != nil {
		return err
	}
	client, err := newPromClient(o)
	if err != nil {
		return err
	}
	r := &promReader{PrometheusOptions: o, client: client, window: longestWindow, facts: newFacts(), shown: time.Now()}
	if err := r.openJournal(); err != nil {
		return err
	}
	defer r.journal.Close()
	for r.now < r.end {
		to := min(r.now+r.window.Seconds(), r.end)
		samples, err := r.read(ctx, r.now, to)
		switch {
		case errors.Is(err, errTooMuch) && r.window/2 >= shortestWindow:
			r.window /= 2
			continue
		case errors.Is(err, errTooMuch):
			return nextstep.With(fmt.Errorf("the Prometheus at %s refuses the samples of %v as too many, or needs too long for them", client.url.Redacted(), r.window),
				"the same command with --matchers, or a Prometheus with a larger --query.max-samples and --query.timeout")
		case ctx.Err() != nil:
			return stopped(ctx)
		case err != nil:
			return err
		}
		if err := json.NewEncoder(r.journal).Encode(promWindow{to, samples}); err != nil {
			return nextstep.With(err, otherOutput)
		}
		if r.add(samples, to); len(r.pods) > mostPods {
			return nextstep.With(fmt.Errorf("the series are of more than %d pods", mostPods), "the same command with a shorter --since, or with --matchers")
		}
		r.progress()
	}
	if err := r.write(ctx); err != nil {
		return cmp.Or(stopped(ctx), err)
	}
	return errors.Join(r.journal.Close(), os.Remove(r.journal.Name()))
}

// stopped returns the error for a context that ended.
func stopped(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return nextstep.With(fmt.Errorf("stopped: %w", ctx.Err()), "the same command goes on where this one stopped")
}

// replaceable returns an error if a file has something that the same command does not make again.
func replaceable(name string) error {
	info, err := os.Stat(name)
	if errors.Is(err, os.ErrNotExist) || err == nil && info.Mode().IsRegular() && info.Size() == 0 {
		return nil
	}
	header := Header{}
	if err == nil && info.Mode().IsRegular() {
		var file *os.File
		if file, err = os.Open(name); err == nil {
			err = json.NewDecoder(io.LimitReader(file, 1<<16)).Decode(&header)
			file.Close()
		}
	}
	if err != nil || header.Source != FromPrometheus {
		return nextstep.With(fmt.Errorf("%s is there, and is not a history that --prometheus made", name), otherOutput)
	}
	return nil
}

// promReader reads a history.
type promReader struct {
	PrometheusOptions
	client  *promClient
	journal *os.File
	window  time.Duration
	*facts
	shown time.Time
}

// promJournal is the header of the journal, which has what its windows depend on. A promWindow follows for each window.
type promJournal struct {
	URL, Matchers, By string
	Since             time.Duration
	End               float64
}

type promWindow struct {
	To      float64
	Samples []sample
}

// openJournal opens the journal, and reads the windows that it has.
func (r *promReader) openJournal() error {
	file, err := os.OpenFile(r.Out+".journal", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nextstep.With(err, otherOutput)
	}
	r.journal = file
	if err := lock(file); err != nil {
		return err
	}
	header := promJournal{r.client.url.Redacted(), r.Matchers, r.By, r.Since, float64(time.Now().Unix())}
	content, whole, earlier := json.NewDecoder(file), int64(0), promJournal{}
	err = content.Decode(&earlier)
	if err != io.EOF && earlier.End == 0 {
		return nextstep.With(fmt.Errorf("%q is not a journal of this command, and is not overwritten", file.Name()), otherOutput)
	}
	if earlier.End > 0 && earlier.End <= header.End {
		header.End = earlier.End
	}
	r.start, r.now, r.end = header.End-header.Since.Seconds(), header.End-header.Since.Seconds(), header.End
	if err == nil && header == earlier {
		for window := (promWindow{}); err == nil; err = content.Decode(&window) { // One that is cut is read again.
			r.add(window.Samples, max(window.To, r.now))
			whole, window = content.InputOffset(), promWindow{}
		}
		fmt.Fprintf(r.Progress, "history: goes on at %s with what %q has; the history ends at %s\n", clock(r.now), file.Name(), clock(r.end))
	} else if err != io.EOF {
		fmt.Fprintf(r.Progress, "history: %q is of another command, and begun anew\n", file.Name())
	}
	_, err = file.Seek(whole, io.SeekStart)
	if err = errors.Join(file.Truncate(whole), err); err == nil && whole == 0 {
		err = json.NewEncoder(file).Encode(header)
	}
	return err
}

// clock returns a time for people.
func clock(seconds float64) string { return time.Unix(int64(seconds), 0).UTC().Format(time.RFC3339) }

// progress shows how much is read, each 5 seconds.
func (r *promReader) progress() {
	if time.Since(r.shown) > 5*time.Second {
		r.shown = time.Now()
		done := (r.now - r.start) / (r.end - r.start)
		bar := strings.Repeat("#", int(20*done)) + strings.Repeat(".", 20-int(20*done))
		fmt.Fprintf(r.Progress, "history: [%s] %3.0f%% read, until %s; %d pods, %d nodes\n", bar, 100*done, clock(r.now), len(r.pods), len(r.nodes))
	}
}

// read returns the samples of a window, which begins after from and ends with to.
func (r *promReader) read(ctx context.Context, from, to float64) ([]sample, error) {
	window, warnings := time.Duration((to-from)*float64(time.Second)), r.client.warnings
	samples, err := r.scrapes(ctx, seconds(to-from), to)
	if err != nil {
		return nil, err
	}
	r.measure(samples)
	for i, q := range table {
		// A sample is there until the next scrape, so none is between two steps.
		result, err := r.client.query(ctx, q.expression(r.Matchers, window, seconds(max(1, r.interval/2)), from > r.start), to)
		if err != nil {
			return nil, err
		}
		for _, one := range result {
			if _, value, ok := one.Value.numbers(); ok {
				samples = append(samples, q.sample(i, one.Metric, value))
			} else {
				samples = append(samples, sample{Query: notNumber})
			}
		}
	}
	if n := r.client.warnings - warnings; n > 0 {
		samples = append(samples, sample{Query: warned, Value: float64(n), Fields: []string{r.client.warning}})
	}
	return samples, nil
}

// scrapes returns when kube-state-metrics was scraped. It returns an error unless there is exactly one cluster.
func (r *promReader) scrapes(ctx context.Context, length string, to float64) ([]sample, error) {
	var samples []sample
	var first map[string]string
	created := r.created
	for _, where := range []string{`exported_namespace="kube-system"`, `namespace="kube-system",exported_namespace=""`} {
		found, err := r.client.query(ctx, selector("kube_namespace_created", where, r.Matchers)+"["+length+"]", to)
		if err != nil {
			return nil, err
		}
		for _, one := range found {
			for _, point := range one.Values {
				at, value, ok := point.numbers()
				text := fmt.Sprint(value)
				if !ok {
					continue
				} else if created = cmp.Or(created, text); text != created {
					return nil, twoClusters(first, one.Metric)
				}
				samples = append(samples, sample{Query: scrape, Value: at, Fields: []string{text, one.Metric["instance"]}})
			}
			first = one.Metric
		}
	}
	return samples, nil
}

// twoClusters returns the error for series of two clusters. It names a label that differs, if possible not one that also
// differs between targets of one cluster.
func twoClusters(a, b map[string]string) error {
	next := "the same command with a shorter --since, if the cluster was made anew, or with --matchers"
	for _, label := range slices.Sorted(maps.Keys(b)) {
		target := slices.Contains([]string{"instance", "pod", "container", "uid", "node"}, label)
		if pair := fmt.Sprintf("%s=%q", label, a[label]); a != nil && a[label] != b[label] && (!target || strings.Contains(next, "shorter")) {
			next = "the same command with --matchers '" + strings.ReplaceAll(pair, "'", `'\''`) + "'"
		}
	}
	return nextstep.With(errors.New("this Prometheus has the series of two clusters: their namespaces kube-system have different creation times"), "%s", next)
}

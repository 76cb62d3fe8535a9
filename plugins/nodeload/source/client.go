// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/prometheus/client_golang/api"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
)

// Row is where an answer's rows go: one call for each series, in no order. label is the value of the label that tells
// nodes apart, empty if the series has none, and valid only during the call.
type Row func(slot int, kind Kind, label []byte, value float64)

// Result says how asking went.
type Result struct {
	// Evaluated is the time at which the server evaluated the queries, by its own clock, in seconds since 1970; 0 if no
	// query returned anything. The times of samples are by the same clock.
	Evaluated float64
	// Asked is when the request was sent that Evaluated is of, and Received when all answers were there, by the local
	// clock.
	Asked, Received time.Time
	// Failed has the slots that no endpoint answered, and why.
	Failed map[int]error
	// Requests and Bytes count what was sent and what came, of all endpoints tried. Series are the rows that were
	// handed on.
	Requests int
	Series   int
	Bytes    int64
	// Endpoint is the first one that answered.
	Endpoint string
	// Warnings are the server's, and that about files that cannot be read any more: at most 10.
	Warnings []string
	// Partial says that a warning is the server's: its answer may lack series.
	Partial bool
}

const (
	// backToFirst is how long a later endpoint is asked first after it has stood in for the first one.
	backToFirst = 5 * time.Minute
	// mostWarnings bounds what is kept of warnings.
	mostWarnings = 10
	// longestText bounds what is repeated of a server's words.
	longestText = 300
)

// Client asks several servers with the same data. It is for one goroutine at a time.
type Client struct {
	prometheus config.NodeLoadPrometheus
	// endpoints have a query, which goes into each request: it tells the server to give up shortly before this side
	// does, because then it says so.
	endpoints []url.URL
	now       func() time.Time

	// transport and carrier are those of the last good credentials.
	transport http.RoundTripper
	carrier   *carrier
	// current is the endpoint that last answered, since when it stands in for the first.
	current int
	since   time.Time
}

// New makes a client. It reads no file and opens no connection: that is done when asking, every time.
func New(prometheus config.NodeLoadPrometheus) (*Client, error) {
	c := &Client{prometheus: prometheus, now: time.Now}
	for i, given := range prometheus.Endpoints {
		address, err := url.Parse(given)
		if err != nil || address.Scheme != "http" && address.Scheme != "https" || address.Host == "" {
			// The parser's own error repeats the address.
			return nil, fmt.Errorf("prometheus.endpoints[%d] is not an http or https URL; "+
				"next: write it as http://host:port", i)
		}
		address.RawQuery = fmt.Sprintf("timeout=%dms", prometheus.Timeout.Milliseconds()*9/10)
		c.endpoints = append(c.endpoints, *address)
	}
	if len(c.endpoints) == 0 {
		return nil, errors.New("prometheus.endpoints is empty; next: give it the address of a Prometheus server")
	}
	return c, nil
}

// Close ends the connections that are open.
func (c *Client) Close() { utilnet.CloseIdleConnectionsFor(c.transport) }

// answer is what one request for a resource came to.
type answer struct {
	slot      int
	asked     time.Time
	rows      []answerRow
	evaluated float64
	// valued says that there is a load: a time or a deviation alone is none.
	valued   bool
	warnings []string
	err      error
}

type answerRow struct {
	kind  Kind
	label string
	value float64
}

// Ask asks for all resources at the same time, each by its own request, so that a query that is slow or refused does
// not blind the others. What an endpoint does not answer is asked from the next one, beginning with the one that last
// answered. An endpoint without any row of the kind Value counts only if all are like that. When all answers are there,
// row is called for each series. label tells nodes apart, unless a query has one of its own. An error means that no
// endpoint answered anything, and that row has not been called.
func (c *Client) Ask(ctx context.Context, label string, queries []Query, row Row) (Result, error) {
	var result Result
	var left []int
	for slot, query := range queries {
		if !query.empty() {
			left = append(left, slot)
		}
	}
	if len(left) == 0 {
		return result, nil
	}
	if err := c.refreshCredentials(&result); err != nil {
		return result, err
	}
	accepted, err := c.askInOrder(ctx, label, queries, left, &result)
	result.Requests, result.Bytes = int(c.carrier.requests), c.carrier.bytes
	if err != nil {
		return result, err
	}
	result.Received = c.now()
	for _, a := range accepted {
		if result.Evaluated == 0 {
			result.Evaluated, result.Asked = a.evaluated, a.asked
		}
		for _, warning := range a.warnings {
			result.Partial = true
			result.warn(clip(warning))
		}
		// Each answer's times become those that they would be in an answer to the request that Evaluated is of.
		shift := result.Evaluated - a.evaluated + a.asked.Sub(result.Asked).Seconds()
		for _, r := range a.rows {
			if r.kind == Timestamp {
				r.value += shift
			}
			row(a.slot, r.kind, []byte(r.label), r.value)
		}
		result.Series += len(a.rows)
	}
	return result, nil
}

// refreshCredentials reads the files again. Once they have been good, a file that is missing or half written is not an
// outage: what it had before is used until it is good again.
func (c *Client) refreshCredentials(result *Result) error {
	transport, carrier, err := newTransport(&c.prometheus)
	switch {
	case err == nil:
		c.transport, c.carrier = transport, carrier
	case c.transport == nil:
		return err
	default:
		c.carrier.requests, c.carrier.bytes = 0, 0
		result.warn(err.Error() + "; what was read before is used until then")
	}
	return nil
}

// askInOrder asks one endpoint after another for what has no answer yet.
func (c *Client) askInOrder(ctx context.Context, label string, queries []Query, left []int, result *Result) (
	[]answer, error) {
	var accepted []answer
	var reasons []string // of each endpoint, the first
	failures := map[int][]string{}
	onlyEmpty := true
	order := c.order()
	for n, i := range order {
		name := plain(c.endpoints[i])
		answers := c.askEndpoint(ctx, c.endpoints[i], label, queries, left)
		if ctx.Err() != nil {
			return nil, fmt.Errorf("asking %s was given up: %w", name, ctx.Err())
		}
		answered, valued := false, false
		for _, a := range answers {
			answered, valued = answered || a.err == nil, valued || a.valued
		}
		onlyEmpty = onlyEmpty && answered
		// A server that has just been installed, or has lost its targets, answers too: with nothing, or with times of
		// samples of which it can make no rate. Others may know more.
		counts := valued || onlyEmpty && n == len(order)-1
		if counts && result.Endpoint == "" {
			result.Endpoint = name
			if valued && (i != c.current || c.since.IsZero()) {
				c.current, c.since = i, c.now()
			}
		}
		left = nil
		for _, a := range answers {
			switch {
			case a.err == nil && counts:
				accepted = append(accepted, a)
				continue
			case a.err == nil:
				a.err = errors.New("the answer has no series of a load; " +
					"next: see whether the server scrapes what the queries ask for")
			}
			if len(left) == 0 {
				reasons = append(reasons, fmt.Sprintf("%s: resource %s: %v", name, queries[a.slot].Name, a.err))
			}
			left = append(left, a.slot)
			failures[a.slot] = append(failures[a.slot], name+": "+a.err.Error())
		}
		if len(left) == 0 {
			return accepted, nil
		}
	}
	if len(accepted) == 0 {
		return nil, errors.New("no measurements: " + strings.Join(reasons, "; "))
	}
	result.Failed = map[int]error{}
	for _, slot := range left {
		result.Failed[slot] = errors.New(strings.Join(failures[slot], "; "))
	}
	return accepted, nil
}

// order is that in which to try the endpoints. Who stands in for the first does so for some minutes and not for ever,
// lest all schedulers stay with the last one of several servers.
func (c *Client) order() []int {
	if c.current > 0 && c.now().Sub(c.since) >= backToFirst {
		c.current = 0
	}
	order := []int{c.current}
	for i := range c.endpoints {
		if i != c.current {
			order = append(order, i)
		}
	}
	return order
}

// askEndpoint asks one endpoint for some resources at once.
func (c *Client) askEndpoint(
	ctx context.Context, endpoint url.URL, label string, queries []Query, slots []int) []answer {
	ctx, cancel := context.WithTimeout(ctx, c.prometheus.Timeout.Duration)
	defer cancel()
	answers, asked := make([]answer, len(slots)), c.now()
	var wait sync.WaitGroup
	for i, slot := range slots {
		a := &answers[i]
		a.slot, a.asked = slot, asked
		query, nodeLabel := queries[slot].union(slot), queries[slot].Label
		if nodeLabel == "" {
			nodeLabel = label
		}
		wait.Add(1)
		go func() {
			defer wait.Done()
			// What a server sends must not end the scheduler.
			defer func() {
				if problem := recover(); problem != nil {
					a.err = fmt.Errorf("panic: %v; next: report this as a bug, with the server's version", problem)
				}
			}()
			a.err = c.ask(ctx, endpoint, nodeLabel, query, a)
		}()
	}
	wait.Wait()
	return answers
}

// ask sends one request, and fills the answer.
func (c *Client) ask(ctx context.Context, endpoint url.URL, label, query string, a *answer) error {
	client, err := api.NewClient(api.Config{Address: endpoint.String(), RoundTripper: c.transport})
	if err != nil {
		return err
	}
	// Without a time, the server evaluates for its own now.
	value, warnings, err := promv1.NewAPI(client).Query(ctx, query, time.Time{})
	if err != nil {
		return explain(ctx, c.prometheus.Timeout.Duration, err)
	}
	vector, ok := value.(model.Vector)
	if !ok {
		return fmt.Errorf("the result is a %s, and no vector; next: make the query return one series for each node",
			value.Type())
	}
	kinds := map[model.LabelValue]Kind{}
	for _, kind := range []Kind{Value, Timestamp, Deviation} {
		kinds[model.LabelValue(term(a.slot, kind))] = kind
	}
	rows := make([]answerRow, 0, len(vector))
	for _, sample := range vector {
		kind, known := kinds[sample.Metric[termLabel]]
		if !known {
			return fmt.Errorf("a series has not got the label %s that was asked for; "+
				"next: check that the endpoint is a server of Prometheus' HTTP API", termLabel)
		}
		if sample.Timestamp == 0 {
			continue // it has a histogram, and no value
		}
		rows = append(rows, answerRow{kind, string(sample.Metric[model.LabelName(label)]), float64(sample.Value)})
		a.evaluated, a.valued = float64(sample.Timestamp)/1000, a.valued || kind == Value
	}
	a.rows, a.warnings = rows, warnings
	return nil
}

// explain says what to do about an error of the client.
func explain(ctx context.Context, timeout time.Duration, err error) error {
	var request *url.Error
	if errors.As(err, &request) {
		// Its text begins with the address.
		err = request.Err
	}
	var told toldError
	var said *promv1.Error
	switch {
	case errors.As(err, &told):
		return told
	case ctx.Err() != nil:
		return fmt.Errorf("no answer within %v; "+
			"next: see whether the server is up, and how long it takes for the query", timeout)
	case request != nil:
		return errors.New(clip(err.Error()) +
			"; next: see whether the server can be reached from here, with these certificates")
	case errors.As(err, &said) && said.Type != promv1.ErrBadResponse:
		return errors.New("the query was refused: " + clip(fmt.Sprintf("%s: %s", said.Type, said.Msg)) +
			"; next: try it in the server's own query page")
	default:
		// What the decoder says of an answer repeats some of it.
		return errors.New("the answer is not one of Prometheus' HTTP API; " +
			"next: check that the endpoint is the server's address, with its path prefix")
	}
}

func (r *Result) warn(warning string) {
	for _, known := range r.Warnings {
		if known == warning {
			return
		}
	}
	if len(r.Warnings) < mostWarnings {
		r.Warnings = append(r.Warnings, warning)
	}
}

// plain is an endpoint's address as it is for messages.
func plain(endpoint url.URL) string {
	return (&url.URL{Scheme: endpoint.Scheme, Host: endpoint.Host, Path: endpoint.Path}).String()
}

// clip shortens a server's words to what a log line bears, without characters that would break it.
func clip(text string) string {
	if len(text) > longestText {
		text = strings.ToValidUTF8(text[:longestText], "") + "..."
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, text)
}

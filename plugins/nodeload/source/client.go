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

// Result is the outcome of Ask.
type Result struct {
	// Rows are the series of all answers, in no particular order.
	Rows []Row
	// Evaluated is the time at which the server evaluated the queries, by its own clock, in seconds since 1970; 0 if no
	// query returned anything. The times of samples are by the same clock.
	Evaluated float64
	// Asked is when the request was sent that Evaluated belongs to, and Received when all answers had arrived, by the
	// local clock.
	Asked, Received time.Time
	// Failed has the indices of the queries that no endpoint answered, with the reasons.
	Failed map[int]error
	// Requests and Bytes count the requests and the bytes received, for all endpoints.
	Requests int
	Bytes    int64
	// Endpoint is the first endpoint that answered.
	Endpoint string
	// Warnings are the server's, and those about unreadable files; at most mostWarnings.
	Warnings []string
	// Partial reports whether a warning is the server's: its answer may lack series.
	Partial bool
}

const (
	// backToFirst is how long a later endpoint that replaced the first one is asked first.
	backToFirst = 5 * time.Minute
	// mostWarnings is the maximum number of warnings in a Result.
	mostWarnings = 10
	// longestText is the maximum length of a quoted text of the server, in bytes.
	longestText = 300
)

// Client asks one of several servers that have the same data.
type Client struct {
	prometheus config.NodeLoadPrometheus
	// endpoints have a query, which is part of each request: it makes the server time out, and report that, shortly
	// before the client does.
	endpoints []url.URL
	now       func() time.Time

	// transport and carrier have the last valid credentials.
	transport http.RoundTripper
	carrier   *carrier
	// current is the endpoint that answered last, and since when it replaced the first.
	current int
	since   time.Time
}

// New returns a client for valid args. It reads no file and opens no connection: Ask does so, each time.
func New(prometheus config.NodeLoadPrometheus) (*Client, error) {
	c := &Client{prometheus: prometheus, now: time.Now}
	for i, given := range prometheus.Endpoints {
		address, err := url.Parse(given)
		if err != nil {
			// The parser's own error repeats the address.
			return nil, fmt.Errorf("prometheus.endpoints[%d] is not a URL; next: write it as http://host:port", i)
		}
		address.RawQuery = fmt.Sprintf("timeout=%dms", prometheus.Timeout.Milliseconds()*9/10)
		c.endpoints = append(c.endpoints, *address)
	}
	return c, nil
}

// Close implements Source.
func (c *Client) Close() { utilnet.CloseIdleConnectionsFor(c.transport) }

// answer is the answer to one query.
type answer struct {
	query     int
	asked     time.Time
	rows      []Row
	evaluated float64
	// valued reports whether there is a load. A time or a deviation alone does not count.
	valued   bool
	warnings []string
	err      error
}

// Ask sends all queries at the same time, each in its own request, so that a query that is slow or refused does not
// affect the others. It asks the next endpoint for each query that an endpoint does not answer, and begins with the
// endpoint that answered last. An endpoint without any row of the kind Value counts only if all endpoints are like
// that.
func (c *Client) Ask(ctx context.Context, queries []Query) (Result, error) {
	var result Result
	if err := c.refreshCredentials(&result); err != nil {
		return result, err
	}
	accepted, err := c.askInOrder(ctx, queries, &result)
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
		// Convert each answer's times to the clock of the answer that Evaluated belongs to.
		shift := result.Evaluated - a.evaluated + a.asked.Sub(result.Asked).Seconds()
		for _, row := range a.rows {
			if row.Kind == Timestamp {
				row.Value += shift
			}
			result.Rows = append(result.Rows, row)
		}
	}
	return result, nil
}

// refreshCredentials reads the files again. Once they have been valid, a file that is missing or half written is not an
// outage: the previous credentials are used until it is valid again.
func (c *Client) refreshCredentials(result *Result) error {
	transport, carrier, err := newTransport(&c.prometheus)
	switch {
	case err == nil:
		c.transport, c.carrier = transport, carrier
	case c.transport == nil:
		return err
	default:
		c.carrier.requests, c.carrier.bytes = 0, 0
		result.warn(err.Error() + "; the previous credentials are used until then")
	}
	return nil
}

// askInOrder asks one endpoint after the other for the queries that have no answer yet.
func (c *Client) askInOrder(ctx context.Context, queries []Query, result *Result) ([]answer, error) {
	var accepted []answer
	var reasons []string // the first one of each endpoint
	failures := map[int][]string{}
	left := make([]int, len(queries))
	for i := range left {
		left[i] = i
	}
	onlyEmpty := true
	order := c.order()
	for n, i := range order {
		name := plain(c.endpoints[i])
		answers := c.askEndpoint(ctx, c.endpoints[i], queries, left)
		if ctx.Err() != nil {
			return nil, fmt.Errorf("the request to %s was cancelled: %w", name, ctx.Err())
		}
		answered, valued := false, false
		for _, a := range answers {
			answered, valued = answered || a.err == nil, valued || a.valued
		}
		onlyEmpty = onlyEmpty && answered
		// A server that was just installed, or has lost its targets, answers with nothing, or with times of samples
		// that are too few for a rate. Other endpoints may have more.
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
				a.err = errors.New("the answer has no series with a load; " +
					"next: check that the server scrapes the series of the queries")
			}
			if len(left) == 0 {
				reasons = append(reasons, fmt.Sprintf("%s: resource %s: %v", name, queries[a.query].Name, a.err))
			}
			left = append(left, a.query)
			failures[a.query] = append(failures[a.query], name+": "+a.err.Error())
		}
		if len(left) == 0 {
			return accepted, nil
		}
	}
	if len(accepted) == 0 {
		return nil, errors.New("no measurements: " + strings.Join(reasons, "; "))
	}
	result.Failed = map[int]error{}
	for _, query := range left {
		result.Failed[query] = errors.New(strings.Join(failures[query], "; "))
	}
	return accepted, nil
}

// order returns the endpoints in the order to try them. A replacement of the first is asked first for some minutes
// only, so that schedulers do not stay with the last one of several servers.
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

// askEndpoint sends some of the queries to one endpoint, all at the same time.
func (c *Client) askEndpoint(ctx context.Context, endpoint url.URL, queries []Query, some []int) []answer {
	ctx, cancel := context.WithTimeout(ctx, c.prometheus.Timeout.Duration)
	defer cancel()
	answers, asked := make([]answer, len(some)), c.now()
	var wait sync.WaitGroup
	for i, query := range some {
		a := &answers[i]
		a.query, a.asked = query, asked
		wait.Add(1)
		go func() {
			defer wait.Done()
			// An answer of a server must not end the scheduler.
			defer func() {
				if problem := recover(); problem != nil {
					a.err = fmt.Errorf("panic: %v; next: report this as a bug, with the server's version", problem)
				}
			}()
			a.err = c.ask(ctx, endpoint, queries[a.query], a)
		}()
	}
	wait.Wait()
	return answers
}

// ask sends one request, and fills the answer.
func (c *Client) ask(ctx context.Context, endpoint url.URL, query Query, a *answer) error {
	vector, warnings, err := c.evaluate(ctx, endpoint, query.union(a.query))
	if err != nil {
		return err
	}
	kinds := map[model.LabelValue]Kind{}
	for _, kind := range []Kind{Value, Timestamp, Deviation} {
		kinds[model.LabelValue(term(a.query, kind))] = kind
	}
	rows := make([]Row, 0, len(vector))
	for _, sample := range vector {
		kind, known := kinds[sample.Metric[termLabel]]
		if !known {
			return fmt.Errorf("a series lacks the label %s, which the query adds; "+
				"next: check that the endpoint is a server of Prometheus' HTTP API", termLabel)
		}
		if sample.Timestamp == 0 {
			continue // it has a histogram, and no value
		}
		label := string(sample.Metric[model.LabelName(query.Label)])
		if query.Pods {
			label = string(sample.Metric["namespace"] + "/" + sample.Metric["pod"])
		}
		rows = append(rows, Row{Query: a.query, Kind: kind, Label: label, Value: float64(sample.Value)})
		a.evaluated, a.valued = float64(sample.Timestamp)/1000, a.valued || kind == Value
	}
	a.rows, a.warnings = rows, warnings
	return nil
}

// evaluate sends one expression.
func (c *Client) evaluate(ctx context.Context, endpoint url.URL, expression string) (model.Vector, []string, error) {
	client, err := api.NewClient(api.Config{Address: endpoint.String(), RoundTripper: c.transport})
	if err != nil {
		return nil, nil, err
	}
	// Without a time, the server evaluates the query at its own current time.
	value, warnings, err := promv1.NewAPI(client).Query(ctx, expression, time.Time{})
	if err != nil {
		return nil, nil, explain(ctx, c.prometheus.Timeout.Duration, err)
	}
	vector, ok := value.(model.Vector)
	if !ok {
		return nil, nil, fmt.Errorf("the result is a %s, not a vector; "+
			"next: make the query return one series for each node", value.Type())
	}
	return vector, warnings, nil
}

// Labels returns the labels of the series of an expression, from the first endpoint that has any.
func (c *Client) Labels(ctx context.Context, expression string) ([]model.Metric, error) {
	if err := c.refreshCredentials(&Result{}); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.prometheus.Timeout.Duration)
	defer cancel()
	var metrics []model.Metric
	var failed error
	for _, i := range c.order() {
		vector, _, err := c.evaluate(ctx, c.endpoints[i], expression)
		for _, sample := range vector {
			metrics = append(metrics, sample.Metric)
		}
		if len(metrics) > 0 {
			return metrics, nil
		}
		if err != nil {
			failed = err
		}
	}
	return nil, failed
}

// explain returns the error of a request with its cause and the next step.
func explain(ctx context.Context, timeout time.Duration, err error) error {
	var request *url.Error
	if errors.As(err, &request) {
		// Its text begins with the address.
		err = request.Err
	}
	var explained explainedError
	var refused *promv1.Error
	switch {
	case errors.As(err, &explained):
		return explained
	case ctx.Err() != nil:
		return fmt.Errorf("no answer within %v; "+
			"next: check that the server is up, and how long the query takes there", timeout)
	case request != nil:
		return errors.New(clip(err.Error()) +
			"; next: check that the server can be reached from here, with these certificates")
	case errors.As(err, &refused) && refused.Type != promv1.ErrBadResponse:
		return errors.New("the query was refused: " + clip(fmt.Sprintf("%s: %s", refused.Type, refused.Msg)) +
			"; next: try it in the server's own query page")
	default:
		// The decoder's errors quote the answer.
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

// plain returns the address of an endpoint for messages, without credentials.
func plain(endpoint url.URL) string {
	return (&url.URL{Scheme: endpoint.Scheme, Host: endpoint.Host, Path: endpoint.Path}).String()
}

// clip returns a text of the server, shortened, and without characters that are not printable.
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

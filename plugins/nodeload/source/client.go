// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/api"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
)

// Row is where an answer's rows go: one call for each series, in no order. label is the value of the label that tells
// nodes apart, empty if the series has none, and valid only during the call.
type Row func(slot int, kind Kind, label []byte, value float64)

// Result says how asking went.
type Result struct {
	// Evaluated is the time at which the server evaluated the queries, by its own clock, in seconds since 1970; 0 if no
	// query returned anything.
	Evaluated float64
	// Asked is when the request was sent that Evaluated is of, and Received when its answer was there, by the local
	// clock.
	Asked, Received time.Time
	// Failed has the slots of which nothing came, and why: their queries were refused or took too long, or others took
	// so long that there was no time for them. Resources are asked for one by one only if not all could be asked for at
	// once.
	Failed map[int]error
	// Requests and Bytes count what was sent and what came, of all endpoints tried. Series are the rows that were
	// handed on.
	Requests int
	Series   int
	Bytes    int64
	// Endpoint is the one that answered, without credentials and query.
	Endpoint string
	// Warnings are the server's, and those about files that cannot be read any more: at most 5 of each.
	Warnings []string
	// Partial says that a warning is the server's: its answer may lack series.
	Partial bool
}

// backToFirst is how long a later endpoint is asked first after it has stood in for the first one.
const backToFirst = 5 * time.Minute

// Client asks one of several servers with the same data. It asks one question at a time.
type Client struct {
	timeout     time.Duration
	endpoints   []*endpoint
	credentials *credentials
	largest     int64
	now         func() time.Time

	// turn is held while asking, and guards what follows.
	turn chan struct{}
	rows rows
	// current is the endpoint that last answered, since when it stands in for the first.
	current int
	since   time.Time
	closed  bool
}

type endpoint struct {
	// name is for messages.
	name string
	// address is without credentials.
	address string
	// authorization is what the address had as user and password.
	authorization string
	secrets       []string
	// get says that the server does not take POST.
	get bool
	// turns says what to ask for at once.
	turns turns
}

// New makes a client. It reads no file and opens no connection: that is done when asking, every time.
func New(prometheus config.NodeLoadPrometheus) (*Client, error) {
	c := &Client{
		timeout:     prometheus.Timeout.Duration,
		credentials: newCredentials(prometheus),
		largest:     largestAnswer,
		now:         time.Now,
		turn:        make(chan struct{}, 1),
		rows:        rows{most: mostSeries},
	}
	for i, given := range prometheus.Endpoints {
		address, err := url.Parse(given)
		if err != nil || address.Scheme != "http" && address.Scheme != "https" || address.Host == "" {
			// The parser's own error repeats the address.
			return nil, fmt.Errorf("prometheus.endpoints[%d] is not an http or https URL; next: write it as http://host:port", i)
		}
		e := &endpoint{name: plain(address)}
		if user := address.User; user != nil {
			e.authorization = "Basic " + basic(user)
			password, _ := user.Password()
			e.secrets = append(e.secrets, basic(user), password)
		}
		address.User, address.Fragment = nil, ""
		for _, values := range address.Query() {
			e.secrets = append(e.secrets, values...)
		}
		e.address = address.String()
		c.endpoints = append(c.endpoints, e)
	}
	if len(c.endpoints) == 0 {
		return nil, errors.New("prometheus.endpoints is empty; next: give it the address of a Prometheus server")
	}
	return c, nil
}

// Close ends the connections; asking is an error from then on.
func (c *Client) Close() {
	c.turn <- struct{}{}
	defer func() { <-c.turn }()
	c.closed = true
	c.credentials.close()
}

// Ask asks for everything at once and calls row for each series of the answer, after the whole answer has proved good.
// label tells nodes apart, unless a query has one of its own. The endpoints are tried in order, beginning with the one that last answered. An error means
// that none did, and then row has not been called. An answer without any row of the kind Value counts only if all
// endpoints answer so, and then as one without series. Calls wait for each other.
func (c *Client) Ask(ctx context.Context, label string, queries []Query, row Row) (Result, error) {
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return Result{}, ctx.Err()
	}
	if c.closed {
		return Result{}, errors.New("the client is closed; next: make another one")
	}
	var slots []int
	for slot, query := range queries {
		if !query.empty() {
			slots = append(slots, slot)
		}
	}
	if len(slots) == 0 {
		return Result{}, nil
	}
	// However many requests it takes, asking ends: every endpoint may let the time of one request pass, and one of them
	// may need some more for asking one by one.
	bounded, cancel := context.WithTimeout(ctx, time.Duration(len(c.endpoints)+1)*c.timeout)
	defer cancel()

	var result, empty Result
	defer c.rows.free()
	var failures []string
	empties := 0
	for _, i := range c.order() {
		e := c.endpoints[i]
		c.rows.begin(label, queries)
		err := c.askEndpoint(bounded, e, queries, slots, &result)
		if err == nil {
			result.Endpoint = e.name
			if c.rows.valued() {
				result.Series = len(c.rows.list)
				c.answered(i, &result)
				c.rows.each(row)
				return result, nil
			}
			// A server that has just been installed, or has lost its targets, answers too: with nothing, or, after its
			// first scrape, with times of samples of which it can make no rate. Others may know more.
			if empties++; empties == 1 {
				empty = result
			}
			err = errors.New("the answer has no series of a load; next: see whether the server scrapes what the queries ask for")
		}
		if ctx.Err() != nil {
			return result, fmt.Errorf("asking %s was given up: %w", e.name, ctx.Err())
		}
		failures = append(failures, e.name+": "+err.Error())
		if bounded.Err() != nil {
			break
		}
	}
	if empties == len(c.endpoints) {
		empty.Requests, empty.Bytes = result.Requests, result.Bytes
		return empty, nil
	}
	return result, errors.New("no measurements: " + strings.Join(failures, "; "))
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

// answered notes who answered. Who took too long over a part of it is not asked first next time: others may be quicker.
func (c *Client) answered(i int, result *Result) {
	for _, err := range result.Failed {
		if outOfTime(err) {
			i = (i + 1) % len(c.endpoints)
			break
		}
	}
	if i != c.current || c.since.IsZero() {
		c.current, c.since = i, c.now()
	}
}

// askEndpoint asks one endpoint: for everything at once, and if it will not have that, for one resource after another,
// in this refresh if it refuses and in the next if it is too slow: see turns. What failed before is not asked with the
// rest, so that a bad expression costs one request at a time, and not one for each resource.
func (c *Client) askEndpoint(ctx context.Context, e *endpoint, queries []Query, slots []int, result *Result) error {
	result.Failed, result.Warnings, result.Partial, result.Evaluated = nil, nil, false, 0
	t := &e.turns
	t.keep(queries, slots)
	together, alone := t.divide(queries, slots)
	hopeless := t.failed(queries, slots)
	if t.apart > 0 {
		t.apart--
	}
	failed := map[int]error{}
	fail := func(slot int, err error) {
		failed[slot] = fmt.Errorf("resource %s: %w", queries[slot].Name, err)
	}
	if len(together) > 0 {
		err := c.askOnce(ctx, e, union(queries, together...), result)
		switch {
		case err == nil:
		case !oneByOne(err):
			switch {
			case !outOfTime(err) || ctx.Err() != nil:
			case len(together) == 1:
				t.took(queries[together[0]], err)
			default:
				t.apart, t.found = apartFor, false
			}
			return err
		case len(together) == 1:
			t.took(queries[together[0]], err)
			fail(together[0], err)
		default:
			alone = slots
		}
	}
	alone = t.order(queries, alone)
	// late is the failure that left no time for others.
	var late error
	for i, slot := range alone {
		err := c.askOnce(ctx, e, union(queries, slot), result)
		if err == nil {
			t.took(queries[slot], nil)
			continue
		}
		if !oneByOne(err) && !outOfTime(err) {
			// The server has gone meanwhile.
			return err
		}
		if !outOfTime(err) {
			t.took(queries[slot], err)
			fail(slot, err)
			continue
		}
		if ctx.Err() == nil {
			t.found = t.found || t.of[queries[slot]].failure == nil
			t.took(queries[slot], err)
			if t.found && t.failed(queries, alone[i:]) {
				// All that take so long are known.
				t.apart = 0
			}
		}
		for _, left := range alone[i:] {
			fail(left, t.why(queries[left]))
		}
		late = failed[slot]
		break
	}
	if len(failed) == 0 {
		return nil
	}
	result.Failed = failed
	switch {
	case len(failed) < len(slots):
		return nil
	case late != nil:
		if hopeless && ctx.Err() == nil {
			*t = turns{}
		}
		return late
	case len(slots) == 1:
		return failed[slots[0]]
	}
	return fmt.Errorf("every query failed, first %w", failed[slots[0]])
}

// askOnce sends one expression, and leaves no rows behind if it fails. When the credentials are not accepted, it looks
// for newer ones and tries again once. When the method is not, it tries the other one.
func (c *Client) askOnce(ctx context.Context, e *endpoint, expression string, result *Result) error {
	_, warnings, err := c.credentials.refresh()
	if err != nil {
		return err
	}
	again, get := true, e.get
	// first is the error for which the other method is tried.
	var first error
	for {
		list, text := c.rows.mark()
		status, err := c.send(ctx, e, get, expression, result)
		if err == nil {
			e.get = get
			for _, warning := range warnings {
				result.warn(warning)
			}
			return nil
		}
		c.rows.back(list, text)
		err = c.withoutSecrets(e, err)
		if status == http.StatusUnauthorized || status == http.StatusForbidden {
			if again {
				again = false
				if changed, _, refreshErr := c.credentials.refresh(); refreshErr == nil && changed {
					continue
				}
			}
		}
		if first == nil && (refusesMethod(status) || get && tooLong(status)) {
			first, get = err, !get
			continue
		}
		switch {
		case first == nil:
		case oneByOne(first) && refusesMethod(status):
			// GET is all that the server takes, and the question is too long for that.
			return first
		default:
			// GET is kept only if it has been of use.
			e.get = get && oneByOne(err)
		}
		return err
	}
}

// refusesMethod says whether a status may mean the method. Proxies that go by Kubernetes' roles take POST for an
// attempt to create something.
func refusesMethod(status int) bool {
	return status == http.StatusMethodNotAllowed || status == http.StatusNotImplemented || status == http.StatusForbidden
}

// send sends one request, and adds to the rows what it is answered. It returns the status if there was one.
func (c *Client) send(ctx context.Context, e *endpoint, get bool, expression string, result *Result) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()

	var answer reply
	decoded := false
	secrets := c.secrets(e)
	header := c.credentials.header
	if e.authorization != "" && header.Get("Authorization") == "" {
		header = header.Clone()
		header.Set("Authorization", e.authorization)
	}
	carrier := &exchange{
		through: c.credentials.transport,
		header:  header,
		secrets: secrets,
		largest: c.largest,
		decode: func(body io.Reader) (err error) {
			answer, err = c.rows.decode(body)
			decoded = err == nil
			return err
		},
	}
	client, err := api.NewClient(api.Config{Address: e.address, RoundTripper: carrier})
	if err != nil {
		return 0, toldError("the endpoint is not a URL; next: check it in the configuration")
	}
	request, err := c.request(client.URL("/api/v1/query", nil), get, expression)
	if err != nil {
		return 0, toldError("the endpoint is not a URL; next: check it in the configuration")
	}
	asked := c.now()
	response, body, err := client.Do(ctx, request)
	result.Requests += carrier.requests
	result.Bytes += carrier.bytes
	if err != nil {
		return 0, unreachable(ctx, c.timeout, err, secrets)
	}
	if response.StatusCode/100 != 2 {
		return response.StatusCode, unusable(response, body, secrets)
	}
	if !decoded {
		return response.StatusCode, notPrometheus("it is empty")
	}
	// An answer without series has no time: of answers to several requests, the last one that has a time gives it.
	if answer.evaluated > 0 || result.Evaluated == 0 {
		result.Asked, result.Received, result.Evaluated = asked, c.now(), answer.evaluated
	}
	result.Partial = result.Partial || answer.partial || len(answer.warnings) > 0
	for _, warning := range answer.warnings {
		result.warn(clip(hide(warning, secrets)))
	}
	if answer.partial {
		result.warn("the server says that its answer is partial")
	}
	return response.StatusCode, nil
}

// request asks for the values of now, whatever now is on the server. It also tells the server to give up shortly before
// this side does, because then it says so, which is better than not to know whether it is there.
func (c *Client) request(to *url.URL, get bool, expression string) (*http.Request, error) {
	limit := strconv.FormatInt(int64(c.timeout*9/10/time.Millisecond), 10) + "ms"
	if get {
		values := to.Query()
		values.Set("query", expression)
		values.Set("timeout", limit)
		to.RawQuery = values.Encode()
		return http.NewRequest(http.MethodGet, to.String(), nil)
	}
	values := url.Values{"query": {expression}, "timeout": {limit}}
	request, err := http.NewRequest(http.MethodPost, to.String(), strings.NewReader(values.Encode()))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return request, nil
}

func (r *Result) warn(warning string) {
	for _, known := range r.Warnings {
		if known == warning {
			return
		}
	}
	if len(r.Warnings) < 2*mostWarnings {
		r.Warnings = append(r.Warnings, warning)
	}
}

// secrets has the longest first: one may be a part of another, whose rest would be left.
func (c *Client) secrets(e *endpoint) []string {
	secrets := append(append([]string{}, c.credentials.secrets...), e.secrets...)
	sort.Slice(secrets, func(i, j int) bool { return len(secrets[i]) > len(secrets[j]) })
	return secrets
}

// withoutSecrets keeps what oneByOne and outOfTime ask of an error, and nothing else but its text. A server's words are
// shortened only here: a secret that is cut in two is not found.
func (c *Client) withoutSecrets(e *endpoint, err error) error {
	secrets := c.secrets(e)
	var refused *refusal
	switch {
	case errors.As(err, &refused):
		errorType, message := clip(hide(refused.errorType, secrets)), clip(hide(refused.message, secrets))
		return &refusal{errorType: errorType, message: message, status: refused.status}
	case oneByOne(err), outOfTime(err):
		return err
	}
	return errors.New(hide(err.Error(), secrets))
}

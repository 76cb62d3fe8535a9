// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"kube-scheduler-fork/build/nextstep"
)

const (
	// answerTime and answerBytes bound an answer, and attempts how often a query is sent if Prometheus is busy.
	answerTime  = 3 * time.Minute
	answerBytes = 256 << 20
	attempts    = 6
	mostWait    = time.Minute
)

// errTooMuch means that a shorter window may succeed.
var errTooMuch = errors.New("the answer is too large")

// tooMuch are in the errors for it: of Prometheus, of Mimir, Thanos and VictoriaMetrics, and of VictoriaMetrics.
var tooMuch = []string{"too many samples", "exceed", "cannot select more than"}

// promClient sends queries.
type promClient struct {
	http http.Client
	url  *url.URL
	wait func(context.Context, time.Duration) error
	// warnings counts those of answers, and warning is the last.
	warnings int
	warning  string
}

// series is a series of an answer. A vector has Value, a matrix Values.
type series struct {
	Metric map[string]string `json:"metric"`
	Value  point             `json:"value"`
	Values []point           `json:"values"`
}

// point is a time in seconds and a value.
type point [2]json.RawMessage

// numbers returns the time and the value. It reports false unless both are finite.
func (p point) numbers() (at, value float64, ok bool) {
	at, err := strconv.ParseFloat(string(p[0]), 64)
	value, errValue := strconv.ParseFloat(strings.Trim(string(p[1]), `"`), 64)
	return at, value, err == nil && errValue == nil && !math.IsNaN(value) && !math.IsInf(value, 0) && math.Abs(at) < 1e11
}

func newPromClient(o PrometheusOptions) (*promClient, error) {
	address, err := url.Parse(o.URL)
	if err != nil || address.Host == "" || address.RawQuery != "" || address.Scheme != "http" && address.Scheme != "https" {
		// It may have a password.
		return nil, nextstep.With(errors.New("--prometheus is not the URL of a Prometheus"), "the same command with --prometheus http://HOST:9090")
	}
	client := &promClient{http: http.Client{Transport: o.Transport, Timeout: answerTime}, url: address, wait: o.wait}
	client.http.CheckRedirect = func(next *http.Request, before []*http.Request) error {
		if next.URL.Host != before[0].URL.Host || len(before) > 9 { // The transport would give the credentials to any server.
			return http.ErrUseLastResponse
		}
		return nil
	}
	if o.wait == nil {
		client.wait = sleep
	}
	return client, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
	return ctx.Err()
}

// try is the command that a person can use to see what Prometheus answers.
func (c *promClient) try() string {
	return fmt.Sprintf("curl -i '%s', then the same command again", c.url.JoinPath("api/v1/query").Redacted()+"?query=up")
}

// query returns the series that match at a time. It tries again while Prometheus is busy, or the answer is cut.
func (c *promClient) query(ctx context.Context, expression string, at float64) ([]series, error) {
	for attempt := 1; ; attempt++ {
		result, pause, err := c.once(ctx, expression, at)
		switch {
		case err == nil || ctx.Err() != nil || errors.Is(err, errTooMuch) || pause < 0:
			return result, err
		case attempt == attempts:
			return nil, nextstep.With(fmt.Errorf("%w, %d times", err, attempt), "%s", c.try())
		}
		if err := c.wait(ctx, min(max(pause, time.Second<<(attempt-1)), mostWait)); err != nil {
			return nil, err
		}
	}
}

// once sends a query. If it fails, it returns how long Prometheus wants a pause to be, or less than 0 if another attempt
// would fail, too.
func (c *promClient) once(ctx context.Context, expression string, at float64) ([]series, time.Duration, error) {
	address := c.url.JoinPath("api/v1/query")
	address.RawQuery = url.Values{"query": {expression}, "time": {strconv.FormatFloat(at, 'f', 3, 64)}}.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return nil, -1, err
	}
	server := "Prometheus at " + c.url.Redacted()
	response, err := c.http.Do(request)
	if err != nil {
		// The error of the client repeats the URL.
		return nil, 0, fmt.Errorf("%s does not answer: %w", server, cmp.Or(errors.Unwrap(err), err))
	}
	defer response.Body.Close()
	code, pause := response.StatusCode, time.Duration(-1)
	if code == http.StatusTooManyRequests || code >= 500 {
		seconds, _ := strconv.ParseUint(response.Header.Get("Retry-After"), 10, 16)
		pause = time.Duration(seconds) * time.Second
	}
	body := &io.LimitedReader{R: response.Body, N: answerBytes}
	var answer struct {
		Status, ErrorType, Error string
		// Message is that of a proxy, such as the API server.
		Message  string
		Warnings []string
		// IsPartial is how VictoriaMetrics says it.
		IsPartial bool
		Data      struct{ Result []series }
	}
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if kind == "application/json" {
		err = json.NewDecoder(body).Decode(&answer)
	}
	switch {
	case pause >= 0 && kind != "application/json":
		return nil, pause, fmt.Errorf("%s answers with status %d", server, code)
	case kind != "application/json":
		return nil, -1, nextstep.With(fmt.Errorf("%s answers with status %d and content of type %.60q, not with JSON: it is not a Prometheus, or there is a login page before it",
			server, code, kind), "%s", c.try())
	case err != nil && ctx.Err() != nil:
		return nil, -1, ctx.Err()
	case err != nil && body.N <= 0, code != http.StatusTooManyRequests && slices.ContainsFunc(tooMuch, func(text string) bool { return strings.Contains(answer.Error, text) }), answer.ErrorType == "timeout", answer.ErrorType == "too_large":
		return nil, -1, errTooMuch
	case err != nil || answer.Status == "" && code < 400:
		return nil, 0, fmt.Errorf("an answer of %s is cut, or not what Prometheus answers", server)
	case answer.Status == "success":
		if answer.IsPartial {
			answer.Warnings = append(answer.Warnings, "isPartial")
		}
		for _, c.warning = range answer.Warnings {
			c.warnings++
		}
		return answer.Data.Result, 0, nil
	}
	err = fmt.Errorf("%s answers with status %d: %.300q", server, code, cmp.Or(answer.Error, answer.Message))
	if pause >= 0 {
		return nil, pause, err
	}
	return nil, pause, nextstep.With(err, "correct --matchers if they are the reason; otherwise %s", c.try())
}

// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
)

// Limits bound the cost of a request.
type Limits struct {
	// RequestTimeout limits the time from a request's first line to the answer. It should be less than the scheduler's
	// httpTimeout, 5 s by default, after which the answer is lost.
	RequestTimeout time.Duration
	// MaxBodyBytes limits the size of a request.
	MaxBodyBytes int64
}

const (
	// grace is the time to write an answer that was ready just before the deadline, or an error after it.
	grace = 500 * time.Millisecond
	// maxHeaderBytes limits a request's header to many times the size of a scheduler's.
	maxHeaderBytes = 32 << 10
	// idleTimeout is longer than a scheduler keeps an idle connection.
	idleTimeout = 2 * time.Minute
)

// answerFunc returns the body of the answer to a request's body.
type answerFunc func(ctx context.Context, body []byte) (any, error)

// verb is one kind of request.
type verb struct {
	answer answerFunc
	// failure returns the body of an error, if the type of the answer has a field for it; the scheduler shows it in the
	// pod's event. It is nil for the other types, of which the scheduler reads the HTTP status only.
	failure func(message string) any
}

// NewHandler returns the handler of POST /filter, /prioritize, /preempt and /bind, and of GET /healthz and /metrics.
// Without a binder it refuses bind.
func NewHandler(decider *Decider, binder *Binder, limits Limits) http.Handler {
	verbs := map[string]verb{
		"filter": {
			answer:  inTurn(decider, decodeQuestion, decider.filter),
			failure: func(message string) any { return extenderv1.ExtenderFilterResult{Error: message} },
		},
		"prioritize": {answer: inTurn(decider, decodeQuestion, decider.prioritize)},
		"preempt":    {answer: inTurn(decider, decodePreemption, decider.preempt)},
		"bind": {
			answer:  binder.Bind,
			failure: func(message string) any { return extenderv1.ExtenderBindingResult{Error: message} },
		},
	}
	durations := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "scheduler_extender_request_duration_seconds",
		Help: "Time from the first line of a request to its answer, by verb and result: success or error.",
		// From 1 ms to 8 s.
		Buckets: prometheus.ExponentialBuckets(0.001, 2, 14),
	}, []string{"verb", "result"})
	own := prometheus.NewRegistry()
	own.MustRegister(durations)
	mux := http.NewServeMux()
	for name, verb := range verbs {
		for _, result := range []string{"success", "error"} {
			durations.WithLabelValues(name, result)
		}
		mux.HandleFunc("POST /"+name, func(w http.ResponseWriter, r *http.Request) {
			began := time.Now()
			result := verb.serve(w, r, limits)
			durations.WithLabelValues(name, result).Observe(time.Since(began).Seconds())
		})
	}
	// The plugins' metrics are in the registry of Kubernetes' components.
	mux.Handle("GET /metrics", promhttp.HandlerFor(prometheus.Gatherers{own, legacyregistry.DefaultGatherer}, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		if err := decider.Ready(); err != nil {
			write(w, http.StatusServiceUnavailable, errorBody{err.Error()})
			return
		}
		_, _ = io.WriteString(w, "ok") // the client may be gone
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		write(w, http.StatusNotFound, errorBody{"nothing is served at " + r.Method + " " + r.URL.Path +
			"; next: use the verbs filter, prioritize, preempt and bind, and a urlPrefix without a path"})
	})
	return mux
}

// serve writes a complete answer or an error before the deadline, even if a plugin is still running, and returns the
// result.
func (v verb) serve(w http.ResponseWriter, r *http.Request, limits Limits) (result string) {
	ctx, cancel := context.WithTimeout(r.Context(), limits.RequestTimeout)
	defer cancel()
	answer, err := v.ask(ctx, w, r, limits.MaxBodyBytes)
	if err == nil {
		write(w, http.StatusOK, answer)
		return "success"
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("no answer within %s (--request-timeout): %w", limits.RequestTimeout, err)
	}
	klog.ErrorS(err, "A request failed", "verb", strings.TrimPrefix(r.URL.Path, "/"), "client", r.RemoteAddr)
	if v.failure != nil && !errors.Is(err, errContentType) {
		// The scheduler uses the text as a format string and would print %!d(MISSING) and the like.
		write(w, http.StatusOK, v.failure(strings.ReplaceAll(err.Error(), "%", "%%")))
	} else {
		write(w, statusOf(err), errorBody{err.Error()})
	}
	return "error"
}

// errContentType is the error of a request that no scheduler sends, for example one that a web page makes a browser send.
var errContentType = refused{errors.New("the Content-Type is not application/json"), http.StatusUnsupportedMediaType}

// ask reads the body and waits for the verb's answer until the deadline.
func (v verb) ask(ctx context.Context, w http.ResponseWriter, r *http.Request, maxBytes int64) (any, error) {
	if mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || mediaType != "application/json" {
		return nil, errContentType
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBytes))
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, fmt.Errorf("the request was not received in time: %w", context.DeadlineExceeded)
	case errors.As(err, new(*http.MaxBytesError)):
		return nil, refused{fmt.Errorf("the request has more than %d bytes; next: set nodeCacheCapable: true in the scheduler's "+
			"configuration, so that it sends the names of nodes only, or give the extender a higher --max-body-bytes", maxBytes),
			http.StatusRequestEntityTooLarge}
	case err != nil:
		return nil, malformedf("the request is incomplete: %w", err)
	}
	type outcome struct {
		answer any
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		answer, err := v.answer(ctx, body)
		done <- outcome{answer, err}
	}()
	select {
	case outcome := <-done:
		return outcome.answer, outcome.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// statusOf returns the HTTP status of an error, for answers whose type has no field for it.
func statusOf(err error) int {
	var refused refused
	switch {
	case errors.As(err, &refused):
		return refused.status
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// errorBody is the body of any other error.
type errorBody struct {
	Error string
}

// write encodes an answer and then sends it.
func write(w http.ResponseWriter, status int, answer any) {
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	// Nodes are returned unchanged.
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(answer); err != nil {
		klog.ErrorS(err, "Failed to encode an answer")
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body.Bytes()) // the client may be gone
}

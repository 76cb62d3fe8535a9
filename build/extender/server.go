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
	// writeGrace is the time to read an answer that was ready just before the deadline.
	writeGrace = 500 * time.Millisecond
	// maxHeaderBytes limits a request's header to many times the size of a scheduler's.
	maxHeaderBytes = 32 << 10
	// maxTrustedBytes limits the memory that is allocated because of a Content-Length.
	maxTrustedBytes = 1 << 20
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

// Results of a request, in metrics.
const (
	succeeded = "success"
	failed    = "error"
)

// NewHandler returns the handler of POST /filter, /prioritize, /preempt and /bind, and of GET /healthz and /metrics.
// Without a binder it refuses bind.
func NewHandler(decider *Decider, binder *Binder, limits Limits) http.Handler {
	verbs := map[string]verb{
		"/filter": {
			answer:  whenReady(decider, func(ctx context.Context, body []byte) (any, error) { return decider.Filter(ctx, body) }),
			failure: func(message string) any { return extenderv1.ExtenderFilterResult{Error: message} },
		},
		"/prioritize": {
			answer: whenReady(decider, func(ctx context.Context, body []byte) (any, error) { return decider.Prioritize(ctx, body) }),
		},
		"/preempt": {
			answer: whenReady(decider, func(ctx context.Context, body []byte) (any, error) { return decider.Preempt(ctx, body) }),
		},
		"/bind": {
			answer: func(ctx context.Context, body []byte) (any, error) {
				if binder == nil {
					return nil, errors.New("this extender does not bind pods; next: start it with --bind, or remove bindVerb from the scheduler's configuration")
				}
				return extenderv1.ExtenderBindingResult{}, binder.Bind(ctx, body)
			},
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
	for path, verb := range verbs {
		for _, result := range []string{succeeded, failed} {
			durations.WithLabelValues(path[1:], result)
		}
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			began := time.Now()
			result := verb.serve(w, r, limits)
			durations.WithLabelValues(path[1:], result).Observe(time.Since(began).Seconds())
		})
	}
	// The plugins' metrics are in the registry of Kubernetes' components.
	mux.Handle("/metrics", promhttp.HandlerFor(prometheus.Gatherers{own, legacyregistry.DefaultGatherer}, promhttp.HandlerOpts{}))
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, r *http.Request) {
		switch err := decider.Ready(); {
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			write(w, http.StatusMethodNotAllowed, errorBody{r.Method + " is not GET"})
		case err != nil:
			write(w, http.StatusServiceUnavailable, errorBody{err.Error()})
		default:
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			_, _ = io.WriteString(w, "ok") // the client may be gone
		}
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		write(w, http.StatusNotFound, errorBody{"nothing is served at " + r.URL.Path +
			"; next: use the verbs filter, prioritize, preempt and bind, and a urlPrefix without a path"})
	})
	return mux
}

// whenReady refuses requests until the caches have synced.
func whenReady(decider *Decider, answer answerFunc) answerFunc {
	return func(ctx context.Context, body []byte) (any, error) {
		if err := decider.Ready(); err != nil {
			return nil, err
		}
		return answer(ctx, body)
	}
}

// serve writes a complete answer or an error before the deadline, even if a plugin is still running, and returns the
// result.
func (v verb) serve(w http.ResponseWriter, r *http.Request, limits Limits) (result string) {
	if status, err := checkHeader(w.Header(), r); err != nil {
		write(w, status, errorBody{err.Error()})
		return failed
	}
	deadline := time.Now().Add(limits.RequestTimeout)
	ctx, cancel := context.WithDeadline(r.Context(), deadline)
	defer cancel()
	answer, err := v.ask(ctx, w, r, limits.MaxBodyBytes, deadline)
	if err == nil {
		write(w, http.StatusOK, answer)
		return succeeded
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("no answer within %s (--request-timeout): %w", limits.RequestTimeout, err)
	}
	klog.ErrorS(err, "A request failed", "verb", strings.TrimPrefix(r.URL.Path, "/"), "client", r.RemoteAddr)
	if v.failure != nil {
		// The scheduler uses the text as a format string and would print %!d(MISSING) and the like.
		write(w, http.StatusOK, v.failure(strings.ReplaceAll(err.Error(), "%", "%%")))
		return failed
	}
	write(w, statusOf(err), errorBody{err.Error()})
	return failed
}

// checkHeader checks a request before its body is read. Requests of a scheduler always pass.
func checkHeader(answer http.Header, r *http.Request) (status int, err error) {
	if r.Method != http.MethodPost {
		answer.Set("Allow", http.MethodPost)
		return http.StatusMethodNotAllowed, fmt.Errorf("%s is not POST", r.Method)
	}
	mediaType, parameters, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	charset, given := parameters["charset"]
	if err != nil || mediaType != "application/json" || (given && !strings.EqualFold(charset, "utf-8")) {
		return http.StatusUnsupportedMediaType,
			fmt.Errorf("the Content-Type %q is not application/json", r.Header.Get("Content-Type"))
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" {
		return http.StatusUnsupportedMediaType, fmt.Errorf("the Content-Encoding %q is not supported", encoding)
	}
	return 0, nil
}

// ask reads the body and waits for the verb's answer until the deadline.
func (v verb) ask(
	ctx context.Context, w http.ResponseWriter, r *http.Request, maxBodyBytes int64, deadline time.Time,
) (any, error) {
	body, err := read(w, r, maxBodyBytes, deadline)
	if err != nil {
		return nil, err
	}
	type outcome struct {
		answer any
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		var o outcome
		o.err = withoutPanic(func() (err error) {
			o.answer, err = v.answer(ctx, body)
			return err
		})
		done <- o
	}()
	select {
	case outcome := <-done:
		return outcome.answer, outcome.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// read reads the body until the deadline.
func read(w http.ResponseWriter, r *http.Request, maxBytes int64, deadline time.Time) ([]byte, error) {
	if r.ContentLength > maxBytes {
		return nil, tooLong{maxBytes}
	}
	control := http.NewResponseController(w)
	if err := control.SetReadDeadline(deadline); err != nil {
		return nil, err
	}
	var body bytes.Buffer
	body.Grow(int(min(max(r.ContentLength, 0), maxTrustedBytes)) + bytes.MinRead)
	switch _, err := body.ReadFrom(http.MaxBytesReader(w, r.Body, maxBytes)); {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, fmt.Errorf("the request was not received in time: %w", context.DeadlineExceeded)
	case errors.As(err, new(*http.MaxBytesError)):
		return nil, tooLong{maxBytes}
	case err != nil:
		return nil, malformedf("the request is incomplete: %w", err)
	}
	// From here on reads only detect that the scheduler has closed the connection.
	return body.Bytes(), control.SetReadDeadline(time.Time{})
}

// tooLong is the error of a request that exceeds MaxBodyBytes.
type tooLong struct{ limit int64 }

func (t tooLong) Error() string {
	return fmt.Sprintf("the request has more than %d bytes; next: set nodeCacheCapable: true in the scheduler's configuration, "+
		"so that it sends the names of nodes only, or give the extender a higher --max-body-bytes", t.limit)
}

// statusOf returns the HTTP status of an error, for answers whose type has no field for it.
func statusOf(err error) int {
	switch {
	case errors.As(err, new(malformed)):
		return http.StatusBadRequest
	case errors.As(err, new(tooLong)):
		return http.StatusRequestEntityTooLarge
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), errors.Is(err, errNotSynced):
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
	w.Header().Set("Content-Length", fmt.Sprint(body.Len()))
	w.WriteHeader(status)
	_, _ = w.Write(body.Bytes()) // the client may be gone
}

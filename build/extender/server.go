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

	"k8s.io/klog/v2"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
)

// Limits bound what a request may cost.
type Limits struct {
	// RequestTimeout is how long a request may take from its first line to the answer. It should be less than the
	// scheduler's own (httpTimeout, 5 s by default): an answer that comes later is lost.
	RequestTimeout time.Duration
	// MaxBodyBytes is how long a request may be.
	MaxBodyBytes int64
}

const (
	// writeGrace is how long the scheduler may take to read an answer that was ready at the last moment.
	writeGrace = 500 * time.Millisecond
	// maxHeaderBytes is how long a request's header may be: many times as long as a scheduler's.
	maxHeaderBytes = 32 << 10
	// maxTrustedBytes is up to where memory is set aside for a request because its header says how long it is.
	maxTrustedBytes = 1 << 20
	// idleTimeout is how long a connection is kept for the next request: longer than a scheduler keeps it.
	idleTimeout = 2 * time.Minute
)

// answerFunc gives the body of the answer to a body.
type answerFunc func(ctx context.Context, body []byte) (any, error)

// verb is one of the things that a scheduler asks.
type verb struct {
	answer answerFunc
	// failure gives the body that says what went wrong, where the type of the answer has a field for it; then the
	// scheduler shows it to anyone who looks at the pod. Where there is none, the scheduler sees the status alone,
	// whatever the body.
	failure func(message string) any
}

// NewHandler gives the handler of an extender's requests: POST /filter, /prioritize, /preempt and /bind, and GET
// /healthz. Without a binder, bind is refused.
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
					return nil, errors.New("this extender binds no pods; next: start it with --bind, or leave bindVerb out of the scheduler's configuration")
				}
				return extenderv1.ExtenderBindingResult{}, binder.Bind(ctx, body)
			},
			failure: func(message string) any { return extenderv1.ExtenderBindingResult{Error: message} },
		},
	}
	mux := http.NewServeMux()
	for path, verb := range verbs {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) { verb.serve(w, r, limits) })
	}
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
		write(w, http.StatusNotFound, errorBody{"there is nothing at " + r.URL.Path +
			"; next: the verbs are filter, prioritize, preempt and bind, and urlPrefix has no path"})
	})
	return mux
}

// whenReady refuses what comes before the cluster is known.
func whenReady(decider *Decider, answer answerFunc) answerFunc {
	return func(ctx context.Context, body []byte) (any, error) {
		if err := decider.Ready(); err != nil {
			return nil, err
		}
		return answer(ctx, body)
	}
}

// serve answers one request, with all or nothing, and before the deadline even if a plugin does not end by then.
func (v verb) serve(w http.ResponseWriter, r *http.Request, limits Limits) {
	if status, err := checkHeader(w.Header(), r); err != nil {
		write(w, status, errorBody{err.Error()})
		return
	}
	deadline := time.Now().Add(limits.RequestTimeout)
	ctx, cancel := context.WithDeadline(r.Context(), deadline)
	defer cancel()
	answer, err := v.ask(ctx, w, r, limits.MaxBodyBytes, deadline)
	if err == nil {
		write(w, http.StatusOK, answer)
		return
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("no answer within %s (--request-timeout): %w", limits.RequestTimeout, err)
	}
	klog.ErrorS(err, "A request failed", "verb", strings.TrimPrefix(r.URL.Path, "/"), "client", r.RemoteAddr)
	if v.failure != nil {
		// The scheduler takes the text for a format and would print %!d(MISSING) and the like.
		write(w, http.StatusOK, v.failure(strings.ReplaceAll(err.Error(), "%", "%%")))
		return
	}
	write(w, statusOf(err), errorBody{err.Error()})
}

// checkHeader checks what can be checked before the body is read. No scheduler fails here.
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
		return http.StatusUnsupportedMediaType, fmt.Errorf("the Content-Encoding %q is not understood", encoding)
	}
	return 0, nil
}

// ask reads the body and asks the verb, but does not wait for it beyond the deadline.
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

// read reads the body, which must be there by the deadline.
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
		return nil, fmt.Errorf("the request did not come in time: %w", context.DeadlineExceeded)
	case errors.As(err, new(*http.MaxBytesError)):
		return nil, tooLong{maxBytes}
	case err != nil:
		return nil, malformedf("the request did not come whole: %w", err)
	}
	// From here on only the answer is awaited, and reading goes on just to see whether the scheduler goes away.
	return body.Bytes(), control.SetReadDeadline(time.Time{})
}

// tooLong is the error of a request with more bytes than are read.
type tooLong struct{ limit int64 }

func (t tooLong) Error() string {
	return fmt.Sprintf("the request has more than %d bytes; next: set nodeCacheCapable: true in the scheduler's configuration, "+
		"so that it sends the names of nodes only, or give the extender a higher --max-body-bytes", t.limit)
}

// statusOf gives the status of a failure that the answer's type has no field for.
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

// errorBody is the body of an answer that says nothing else.
type errorBody struct {
	Error string
}

// write sends an answer once it is there as a whole.
func write(w http.ResponseWriter, status int, answer any) {
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	// Nodes go back as they came.
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(answer); err != nil {
		klog.ErrorS(err, "An answer cannot be written")
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", fmt.Sprint(body.Len()))
	w.WriteHeader(status)
	_, _ = w.Write(body.Bytes()) // the client may be gone
}

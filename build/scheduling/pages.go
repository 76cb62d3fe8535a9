// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"kube-scheduler-fork/build/nextstep"
)

// largestForm limits the bytes of a form: those of the largest manifest that the scheduler accepts, fully escaped.
const largestForm = 1 << 20

// pages serves the scheduler's answers as HTML.
type pages struct {
	ask func(ctx context.Context, question request) ([]byte, error)
}

// NewPages returns a handler for the pages of the scheduler at the URL base. client sends the reader's credentials. The
// handler does not authenticate its own clients, unlike kubectl scheduling page.
func NewPages(client *http.Client, base string) (http.Handler, error) {
	through, err := newClient(&rest.Config{Host: base}, client)
	s, one := &scheduler{}, &session{client: through}
	return pages{func(ctx context.Context, question request) ([]byte, error) { return s.askOne(ctx, one, question) }}, err
}

func setHeaders(header http.Header) {
	header.Set("Cache-Control", "no-store")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("X-Content-Type-Options", "nosniff")
}

func (p pages) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	setHeaders(w.Header())
	switch asked := request.URL.Path; {
	case newAnswer(asked) == nil || path.Clean(asked) != asked:
		http.Error(w, "there is no page at this path; next: "+podsPath, http.StatusNotFound)
	case request.Method == http.MethodGet, request.Method == http.MethodHead, request.Method == http.MethodPost && asked == whatIfPath:
		p.answer(w, request)
	default:
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, request.Method+" is not allowed; next: GET "+asked, http.StatusMethodNotAllowed)
	}
}

// answer asks the scheduler, and serves its answer as a page, or as JSON with output=json.
func (p pages) answer(w http.ResponseWriter, request *http.Request) {
	v := newView(request)
	code := http.StatusOK
	content, err := p.find(request, &v)
	switch {
	case err != nil:
		what, next := nextstep.Split(err, "see the output of kubectl scheduling page")
		v.Content, code = problem{what, next}, http.StatusBadGateway
		if status := apierrors.APIStatus(nil); errors.As(err, &status) {
			code = int(status.Status().Code)
		}
	case content != nil && request.URL.Query().Get("output") == "json":
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(content)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", contentPolicy)
	var rendered bytes.Buffer
	if err := v.render(&rendered); err != nil {
		http.Error(w, err.Error()+"; next: the same with output=json", http.StatusInternalServerError)
		return
	}
	w.WriteHeader(code)
	_, _ = rendered.WriteTo(w)
}

// newView returns the view of a request, with an empty answer.
func newView(request *http.Request) view {
	query := request.URL.Query()
	v := view{
		Search: query.Get("search"), Pod: query.Get("pod"), Live: true, Now: time.Now(), Content: newAnswer(request.URL.Path),
	}
	if request.URL.Path == whatIfPath {
		v.Page = "what-if"
	}
	if request.Method != http.MethodPost && (request.URL.Path != whatIfPath || v.Pod != "") {
		query.Set("output", "json")
		v.JSON = request.URL.EscapedPath() + "?" + query.Encode()
	}
	return v
}

// find sends the request of a browser to the scheduler, and decodes the answer. For an empty form it returns nil.
func (p pages) find(from *http.Request, v *view) ([]byte, error) {
	question := request{path: from.URL.Path, query: url.Values{}}
	for _, name := range []string{"search", "pod", "nodes"} {
		if value := from.URL.Query().Get(name); value != "" {
			question.query.Set(name, value)
		}
	}
	if from.Method == http.MethodPost {
		from.Body = http.MaxBytesReader(nil, from.Body, largestForm)
		if err := from.ParseForm(); err != nil {
			return nil, nextstep.With(fmt.Errorf("the form cannot be read: %w", err), "kubectl scheduling what-if --filename FILE")
		}
		v.Manifest = from.PostForm.Get("manifest")
		manifest, err := yaml.YAMLToJSONStrict([]byte(v.Manifest))
		if err != nil {
			return nil, nextstep.With(fmt.Errorf("the manifest is neither YAML nor JSON: %w", err), "correct it, and send it again")
		}
		question.body = manifest
	} else if question.path == whatIfPath && v.Pod == "" {
		return nil, nil
	}
	content, err := p.ask(from.Context(), question)
	if err != nil {
		return nil, err
	}
	return content, decode(content, v.Content)
}

// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

// TestExtenderErrorsHaveNoCredentials sends requests to an extender that is down, and to one that fails.
func TestExtenderErrorsHaveNoCredentials(t *testing.T) {
	failing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }))
	defer failing.Close()
	for address, want := range map[string]string{
		"127.0.0.1:1": "Post http://127.0.0.1:1/prefix: dial tcp 127.0.0.1:1: connect: connection refused",
		strings.TrimPrefix(failing.URL, "http://"): "failed filter with extender at URL " + failing.URL + "/prefix, code 500",
		"no-port:x": `parse (not a URL): invalid port ":x" after host`,
	} {
		extender, err := NewHTTPExtender(&config.Extender{
			URLPrefix: "http://user:password@" + address + "/prefix?key=topsecret", FilterVerb: "filter",
		})
		if err != nil {
			t.Fatal(err)
		}
		_, _, _, err = extender.Filter(&v1.Pod{}, []*v1.Node{st.MakeNode().Name("a").Obj()})
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %q", address, err, want)
		}
		if shown := fmt.Sprint(extender); strings.Contains(shown, "password") || strings.Contains(shown, "topsecret") {
			t.Errorf("the log shows %s", shown)
		}
	}
}

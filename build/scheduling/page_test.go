// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

// serve serves a page for the cluster until the test ends.
func (c *cluster) serve(t *testing.T) *page {
	t.Helper()
	config := &rest.Config{Host: c.URL, BearerToken: userToken, TLSClientConfig: rest.TLSClientConfig{CAData: c.certificate()}}
	scheduler, err := newScheduler(config, schedulersLease, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(scheduler.close)
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	page := newPage(scheduler, listener.Addr().(*net.TCPAddr).Port)
	go page.serve(t.Context(), listener)
	return page
}

func TestPageIsForTheOneWithTheToken(t *testing.T) {
	c := newCluster(t)
	var asked []string
	c.schedule(t, "kube-scheduler-cp1", func(w http.ResponseWriter, request *http.Request) {
		body, _ := io.ReadAll(request.Body)
		asked = append(asked, request.Method+" "+request.URL.RequestURI()+" "+string(body))
		if request.Header.Get("Cookie") != "" || request.Header.Get("X-Remote-User") != "" || request.Header.Get("Impersonate-User") != "" ||
			request.Header.Get("Accept") != "text/html" || request.Header.Get("Authorization") != "Bearer "+userToken {
			t.Errorf("the scheduler got %v", request.Header)
		}
		w.Header().Set("Content-Security-Policy", "default-src 'self'")
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprint(w, "the page")
	})
	p := c.serve(t)
	base := fmt.Sprintf("http://127.0.0.1:%d", p.port)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(client *http.Client, method, address, body string, header ...string) (*http.Response, string) {
		t.Helper()
		request, err := http.NewRequest(method, address, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(header); i += 2 {
			if request.Header.Set(header[i], header[i+1]); header[i] == "Host" {
				request.Host = header[i+1]
			}
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		content, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response, string(content)
	}
	stranger, user := &http.Client{}, &http.Client{Jar: jar}
	for _, address := range []string{base + prefix, base + prefix + "?token=", base + prefix + "?token=x", base + prefix + "queue"} {
		if response, body := ask(stranger, "GET", address, "", "Cookie", p.cookieName()+"=x"); response.StatusCode != http.StatusForbidden {
			t.Errorf("without the token, %s: %s: %s", address, response.Status, body)
		}
	}
	response, body := ask(user, "GET", p.url(), "")
	cookie := response.Header.Get("Set-Cookie")
	if response.StatusCode != http.StatusOK || !strings.Contains(body, "url=/scheduling/pods\"") || strings.Contains(body+cookie, p.token) ||
		!strings.Contains(cookie, "; HttpOnly; SameSite=Strict") || response.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("the token gives %s with %q: %s", response.Status, cookie, body)
	}
	if len(asked) > 0 {
		t.Fatalf("the scheduler was asked %q by one who had not been let in", asked)
	}
	for _, tt := range []struct{ method, path, body, want string }{
		{"GET", "/scheduling/", "", "GET /scheduling/ "},
		{"GET", "/scheduling/what-if?pod=a%2Fb&nodes=all", "", "GET /scheduling/what-if?nodes=all&pod=a%2Fb "},
		{"HEAD", "/scheduling/queue", "", "HEAD /scheduling/queue "},
		{"POST", "/scheduling/what-if", "{}", "POST /scheduling/what-if {}"},
	} {
		asked = nil
		response, body := ask(user, tt.method, base+tt.path, tt.body, "Accept", "text/html", "Sec-Fetch-Site", "same-origin",
			"Authorization", "Bearer other", "Impersonate-User", "admin", "X-Remote-User", "admin")
		if len(asked) != 1 || asked[0] != tt.want || response.StatusCode != http.StatusTeapot || response.Header.Get("Content-Security-Policy") == "" || tt.method != "HEAD" && body != "the page" {
			t.Errorf("%s %s: asked %q, got %s: %s", tt.method, tt.path, asked, response.Status, body)
		}
	}
	asked = nil
	for _, tt := range []struct {
		method, path string
		header       []string
		want         int
	}{
		{"GET", "/scheduling/", []string{"Host", "attacker.example.org"}, http.StatusForbidden},
		{"GET", "/scheduling/", []string{"Host", "127.0.0.1"}, http.StatusForbidden},
		{"POST", "/scheduling/what-if", []string{"Sec-Fetch-Site", "same-site"}, http.StatusForbidden},
		{"GET", "/scheduling/", []string{"Sec-Fetch-Site", "cross-site"}, http.StatusForbidden},
		{"DELETE", "/scheduling/", nil, http.StatusMethodNotAllowed},
		{"GET", "/metrics", nil, http.StatusNotFound},
		{"GET", "/schedulingx", nil, http.StatusNotFound},
		{"GET", "/scheduling/../metrics", nil, http.StatusNotFound},
		{"GET", "/scheduling/%2e%2e/metrics", nil, http.StatusNotFound},
	} {
		if response, body := ask(user, tt.method, base+tt.path, "", tt.header...); response.StatusCode != tt.want || len(asked) > 0 {
			t.Errorf("%s %s with %q: %s, want %d, and the scheduler was asked %q: %s", tt.method, tt.path, tt.header, response.Status, tt.want, asked, body)
		}
	}
	local := fmt.Sprintf("localhost:%d", p.port)
	if response, _ := ask(stranger, "GET", base+prefix+"?token="+url.QueryEscape(p.token), "", "Host", local); response.StatusCode != http.StatusOK {
		t.Errorf("by the name localhost: %s", response.Status)
	}
}

func TestPageGoesOnWithTheNextLeader(t *testing.T) {
	c := newCluster(t)
	c.schedule(t, "kube-scheduler-cp1", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "first") })
	c.schedule(t, "kube-scheduler-cp2", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "second") })
	p := c.serve(t)
	get := func() string {
		t.Helper()
		request, err := http.NewRequest("GET", fmt.Sprintf("http://127.0.0.1:%d/scheduling/", p.port), nil)
		if err != nil {
			t.Fatal(err)
		}
		request.AddCookie(&http.Cookie{Name: p.cookieName(), Value: p.cookie})
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		content, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	if first, again := get(), get(); first != "first" || again != "first" || c.forwards != 1 {
		t.Errorf("got %q and %q through %d connections, want one", first, again, c.forwards)
	}
	c.hold("cp2" + identity)
	p.scheduler.readAgain()
	if got := get(); got != "second" {
		t.Errorf("got %q after the lease has moved", got)
	}
	// The leader's pod is gone, and nothing replaces it.
	c.schedulers["kube-scheduler-cp2"] = ""
	p.scheduler.close()
	if got := get(); !strings.Contains(got, "kubelet does not reach the scheduler in pod kube-system/kube-scheduler-cp2") {
		t.Errorf("got %q", got)
	}
}

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

// serve starts a page for the cluster, which is served until the test ends.
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

func TestPage(t *testing.T) {
	c := newCluster(t)
	var asked []string
	c.schedule(t, "kube-scheduler-cp1", func(w http.ResponseWriter, request *http.Request) {
		body, _ := io.ReadAll(request.Body)
		asked = append(asked, strings.TrimSpace(request.Method+" "+request.URL.RequestURI()+" "+request.Header.Get("Content-Type")+" "+string(body)))
		if request.Header.Get("Cookie") != "" || request.Header.Get("X-Remote-User") != "" || request.Header.Get("Impersonate-User") != "" ||
			request.Header.Get("Accept") != "application/json" || request.Header.Get("Authorization") != "Bearer "+userToken {
			t.Errorf("the scheduler got %v", request.Header)
		}
		fmt.Fprint(w, `{"leader": true, "summary": "<b>", "result": "Fits", "namespace": "shop"}`)
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
	for _, path := range []string{"/pods", "/pods?token=", "/pods?token=x", "/queue"} {
		if response, body := ask(stranger, "GET", base+"/scheduling"+path, "", "Cookie", p.cookieName()+"=x"); response.StatusCode != http.StatusForbidden {
			t.Errorf("without the token, %s: %s: %s", path, response.Status, body)
		}
	}
	response, body := ask(user, "GET", p.url(), "")
	cookie := response.Header.Get("Set-Cookie")
	if response.StatusCode != http.StatusOK || !strings.Contains(body, "url=/scheduling/pods\"") || strings.Contains(body+cookie, p.token) ||
		!strings.Contains(cookie, "; HttpOnly; SameSite=Strict") || response.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("the token gives %s with %q: %s", response.Status, cookie, body)
	}
	if len(asked) > 0 {
		t.Fatalf("the scheduler was asked %q for a browser without the cookie", asked)
	}
	for _, tt := range []struct{ method, path, body, asked, want string }{
		{"GET", "/scheduling/pods?search=a", "", "GET /scheduling/pods?search=a", "0 pods found"},
		{"GET", "/scheduling/pods/shop/web-0", "", "GET /scheduling/pods/shop/web-0", "</span> &lt;b&gt;"},
		{"GET", "/scheduling/pods/shop/web-0?output=json", "", "GET /scheduling/pods/shop/web-0", `"summary": "<b>"`},
		{"HEAD", "/scheduling/queue", "", "GET /scheduling/queue", ""},
		{"GET", "/scheduling/what-if", "", "", "<textarea"},
		{"GET", "/scheduling/what-if?pod=a%2Fb&nodes=all&other=x", "", "GET /scheduling/what-if?nodes=all&pod=a%2Fb", `value="a/b"`},
		{"POST", "/scheduling/what-if", "manifest=kind%3A+%3Cb%3E", `POST /scheduling/what-if application/json {"kind":"\u003cb\u003e"}`, "kind: &lt;b&gt;</textarea>"},
	} {
		asked = nil
		response, body := ask(user, tt.method, base+tt.path, tt.body, "Content-Type", "application/x-www-form-urlencoded",
			"Sec-Fetch-Site", "same-origin", "Authorization", "Bearer other", "Impersonate-User", "admin", "X-Remote-User", "admin")
		isHTML := response.Header.Get("Content-Type") == "text/html; charset=utf-8" && response.Header.Get("Content-Security-Policy") == contentPolicy
		if strings.Join(asked, "; ") != tt.asked || response.StatusCode != http.StatusOK || !strings.Contains(body, tt.want) ||
			isHTML == strings.Contains(tt.path, "output=json") || response.Header.Get("X-Content-Type-Options") != "nosniff" ||
			response.Header.Get("Cache-Control") != "no-store" || response.Header.Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("%s %s: asked %q, got %s with %v: %s", tt.method, tt.path, asked, response.Status, response.Header, body)
		}
	}
	asked = nil
	for _, tt := range []struct {
		method, path string
		header       []string
		want         int
	}{
		{"GET", "/scheduling/pods", []string{"Host", "attacker.example.org"}, http.StatusForbidden},
		{"GET", "/scheduling/pods", []string{"Host", "127.0.0.1"}, http.StatusForbidden},
		{"POST", "/scheduling/what-if", []string{"Sec-Fetch-Site", "same-site"}, http.StatusForbidden},
		{"GET", "/scheduling/pods", []string{"Sec-Fetch-Site", "cross-site"}, http.StatusForbidden},
		{"DELETE", "/scheduling/pods", nil, http.StatusMethodNotAllowed},
		{"POST", "/scheduling/pods", nil, http.StatusMethodNotAllowed},
		{"GET", "/scheduling/", nil, http.StatusNotFound},
		// The browser does not send the cookie to these.
		{"GET", "/metrics", nil, http.StatusForbidden},
		{"GET", "/schedulingx", nil, http.StatusForbidden},
		{"GET", "/scheduling/../metrics", nil, http.StatusNotFound},
		{"GET", "/scheduling/%2e%2e/metrics", nil, http.StatusNotFound},
		{"GET", "/scheduling/pods/%2e%2e/queue", nil, http.StatusNotFound},
	} {
		if response, body := ask(user, tt.method, base+tt.path, "", tt.header...); response.StatusCode != tt.want || len(asked) > 0 {
			t.Errorf("%s %s with %q: %s, want %d, and the scheduler was asked %q: %s", tt.method, tt.path, tt.header, response.Status, tt.want, asked, body)
		}
	}
	local := fmt.Sprintf("localhost:%d", p.port)
	if response, _ := ask(stranger, "GET", base+podsPath+"?token="+url.QueryEscape(p.token), "", "Host", local); response.StatusCode != http.StatusOK {
		t.Errorf("by the name localhost: %s", response.Status)
	}
}

func TestPageAfterTheLeaderMoves(t *testing.T) {
	c := newCluster(t)
	c.schedule(t, "kube-scheduler-cp1", answers(map[string]string{"/scheduling/pods": `{"leader": true, "version": "first"}`}))
	c.schedule(t, "kube-scheduler-cp2", answers(map[string]string{"/scheduling/pods": `{"leader": true, "version": "second"}`}))
	p := c.serve(t)
	get := func(path string) (int, string) {
		t.Helper()
		request, err := http.NewRequest("GET", fmt.Sprintf("http://127.0.0.1:%d%s", p.port, path), nil)
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
		return response.StatusCode, string(content)
	}
	_, first := get(podsPath)
	_, again := get(podsPath)
	if !strings.Contains(first, "kube-scheduler first") || !strings.Contains(again, "kube-scheduler first") || c.forwards != 1 {
		t.Errorf("got %q and %q through %d connections, want one", first, again, c.forwards)
	}
	c.hold("cp2" + identity)
	p.scheduler.readAgain()
	if _, got := get(podsPath); !strings.Contains(got, "kube-scheduler second") {
		t.Errorf("got %q after the lease has moved", got)
	}
	if code, got := get(podsPath + "/shop/web-0"); code != http.StatusNotFound || !strings.Contains(got, "there is no pod shop/web-0, or it has ended") ||
		!strings.Contains(got, "Next: kubectl --namespace shop get pod web-0") {
		t.Errorf("without records: %d, %s", code, got)
	}
	// Its pod is gone, and no other has taken its place.
	c.schedulers["kube-scheduler-cp2"] = ""
	p.scheduler.close()
	if code, got := get(podsPath); code != http.StatusBadGateway || !strings.Contains(got, "kubelet cannot reach the scheduler in pod kube-system/kube-scheduler-cp2") {
		t.Errorf("got %d, %q", code, got)
	}
}

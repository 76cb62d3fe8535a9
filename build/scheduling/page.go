// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kube-scheduler-fork/build/nextstep"
)

const (
	// prefix begins the paths of the scheduler's pages; other paths are not forwarded.
	prefix = "/scheduling/"
	// tokenParameter is the parameter for the token in the printed URL.
	tokenParameter = "token"
)

func (o *options) pageCommand() *cobra.Command {
	var port uint16
	command := &cobra.Command{
		Use:   "page",
		Short: "Serve the scheduler's pages to a browser on this machine, until Ctrl-C",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			scheduler, err := o.open()
			if err != nil {
				return err
			}
			defer scheduler.close()
			// Fails here rather than in the browser.
			if _, err := scheduler.ask(command.Context(), request{path: podsPath}); err != nil {
				return err
			}
			listener, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))))
			if err != nil {
				return nextstep.With(err, "kubectl scheduling page, without --port")
			}
			page := newPage(scheduler, listener.Addr().(*net.TCPAddr).Port)
			fmt.Fprintf(o.Out, "%s\n", page.url())
			fmt.Fprintln(o.ErrOut, "open this in a browser on this machine; it asks with your credentials, so keep it to yourself. Ctrl-C ends it")
			return page.serve(command.Context(), listener)
		},
	}
	command.Flags().Uint16Var(&port, "port", 0, "port to listen on, at 127.0.0.1 (default: a free one)")
	return command
}

// page is a proxy from a browser on this machine to the leading scheduler. Other users of the machine can connect to it
// too, so it answers only requests that carry the token or the cookie, and refuses requests that a page from another
// address makes the browser send. Browsers send the cookie to all ports of this address: a user who meanwhile opens a
// page that another user of the machine serves gives that user access.
type page struct {
	scheduler *scheduler
	port      int
	// token is in the URL. It is exchanged for a cookie, so that it does not stay in the address bar.
	token, cookie string
	proxy         *httputil.ReverseProxy
}

func newPage(scheduler *scheduler, port int) *page {
	p := &page{scheduler: scheduler, port: port, token: rand.Text(), cookie: rand.Text()}
	p.proxy = &httputil.ReverseProxy{
		Rewrite:   p.rewrite,
		Transport: p,
		ErrorLog:  log.New(scheduler.progress, "", 0),
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, err.Error(), http.StatusBadGateway)
		},
	}
	return p
}

func (p *page) url() string {
	return fmt.Sprintf("http://127.0.0.1:%d%s?%s=%s", p.port, podsPath, tokenParameter, p.token)
}

// cookieName includes the port, because browsers do not separate cookies by port.
func (p *page) cookieName() string { return "kubectl-scheduling-" + strconv.Itoa(p.port) }

// serve serves until the context ends.
func (p *page) serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{
		Handler: p, ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(p.scheduler.progress, "", 0),
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	defer context.AfterFunc(ctx, func() { server.Close() })()
	err := server.Serve(listener)
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

func (p *page) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	port := strconv.Itoa(p.port)
	// Against DNS rebinding: an attacker can make any other name resolve to this address.
	if request.Host != net.JoinHostPort("127.0.0.1", port) && request.Host != net.JoinHostPort("localhost", port) {
		http.Error(w, "another host is asked for; next: open the URL that kubectl scheduling page has printed", http.StatusForbidden)
		return
	}
	if clean := path.Clean(request.URL.Path); !strings.HasPrefix(clean+"/", prefix) {
		http.Error(w, "there is nothing here; next: "+podsPath, http.StatusNotFound)
		return
	}
	switch request.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost:
	default:
		w.Header().Set("Allow", "GET, HEAD, POST")
		http.Error(w, "only GET, HEAD and POST are forwarded", http.StatusMethodNotAllowed)
		return
	}
	if token := request.URL.Query().Get(tokenParameter); token != "" && equal(token, p.token) {
		p.welcome(w)
		return
	}
	cookie, err := request.Cookie(p.cookieName())
	if err != nil || !equal(cookie.Value, p.cookie) {
		http.Error(w, "you have not been let in; next: open the URL that kubectl scheduling page has printed", http.StatusForbidden)
		return
	}
	// For SameSite, other ports of this machine are the same site.
	if from := request.Header.Get("Sec-Fetch-Site"); from != "" && from != "same-origin" && from != "none" {
		http.Error(w, "another page has sent this; next: open the URL that kubectl scheduling page has printed", http.StatusForbidden)
		return
	}
	p.proxy.ServeHTTP(w, request)
}

func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// welcome sets the cookie and continues from a page of this server: after a redirect from a link elsewhere, browsers do
// not send a SameSite=Strict cookie.
func (p *page) welcome(w http.ResponseWriter) {
	http.SetCookie(w, &http.Cookie{Name: p.cookieName(), Value: p.cookie, Path: strings.TrimSuffix(prefix, "/"), HttpOnly: true, SameSite: http.SameSiteStrictMode})
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	fmt.Fprintf(w, "<!DOCTYPE html><meta http-equiv=\"refresh\" content=\"0; url=%s\"><a href=\"%s\">The scheduler's pages</a>\n", podsPath, podsPath)
}

// forwarded lists the headers that are sent to the scheduler. Others could change the user whom the scheduler sees, or
// show it the cookie.
var forwarded = []string{"Accept", "Accept-Language", "Content-Type", "If-Modified-Since", "If-None-Match", "User-Agent"}

func (p *page) rewrite(request *httputil.ProxyRequest) {
	header := http.Header{}
	for _, name := range forwarded {
		if values := request.In.Header.Values(name); len(values) > 0 {
			header[name] = values
		}
	}
	request.Out.Header = header
	request.Out.URL.Scheme = "https"
}

// RoundTrip sends a request to the current leader.
func (p *page) RoundTrip(request *http.Request) (*http.Response, error) {
	session, err := p.scheduler.reach(request.Context())
	if err != nil {
		return nil, err
	}
	address := session.leader.address(request.URL.Path, request.URL.Query())
	request.URL, request.Host = address, address.Host
	response, err := session.client.Transport.RoundTrip(request)
	if err != nil {
		// The scheduler may have ended: the next request looks for the leader again, through a new tunnel.
		if request.Context().Err() == nil {
			session.tunnel.close()
		}
		p.scheduler.readAgain()
		return nil, session.lost(err)
	}
	return response, nil
}

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
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

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
		Short: "Serve the scheduler's answers as pages to a browser on this machine, until Ctrl-C",
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
			fmt.Fprintln(o.ErrOut, "open this in a browser on this machine; it uses your credentials, so do not share it. Ctrl-C ends it")
			return page.serve(command.Context(), listener)
		},
	}
	command.Flags().Uint16Var(&port, "port", 0, "port to listen on, at 127.0.0.1 (default: a free one)")
	return command
}

// page is a proxy from a browser on this machine to the leading scheduler. Other users of the machine can also connect
// to it, so it answers only requests with the token or the cookie, and refuses requests that pages of other addresses
// make the browser send. Browsers send the cookie to all ports of this address. Opening a page that another user of the
// machine serves therefore gives that user access.
type page struct {
	pages
	scheduler *scheduler
	port      int
	// token is in the URL. It is exchanged for a cookie, so that it does not stay in the address bar.
	token, cookie string
}

func newPage(scheduler *scheduler, port int) *page {
	ask := func(ctx context.Context, question request) ([]byte, error) {
		content, err := scheduler.ask(ctx, question)
		if lost := (moved{}); errors.As(err, &lost) && !apierrors.IsNotFound(err) && ctx.Err() == nil {
			// The connection may be broken: the next request opens another one.
			scheduler.close()
		}
		return content, err
	}
	return &page{pages: pages{ask}, scheduler: scheduler, port: port, token: rand.Text(), cookie: rand.Text()}
}

func (p *page) url() string {
	return fmt.Sprintf("http://127.0.0.1:%d%s?%s=%s", p.port, podsPath, tokenParameter, p.token)
}

// cookieName includes the port, because browsers do not separate cookies by port.
func (p *page) cookieName() string { return "kubectl-scheduling-" + strconv.Itoa(p.port) }

// serve answers requests until the context ends.
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
	setHeaders(w.Header())
	const open = "; next: open the URL that kubectl scheduling page has printed"
	switch cookie, err := request.Cookie(p.cookieName()); {
	case !p.isHost(request.Host):
		// In DNS rebinding, an attacker's host name resolves to this address.
		http.Error(w, "the request is for another host"+open, http.StatusForbidden)
	case equal(request.URL.Query().Get(tokenParameter), p.token):
		p.welcome(w)
	case err != nil || !equal(cookie.Value, p.cookie):
		http.Error(w, "the request has no valid cookie"+open, http.StatusForbidden)
	case !fromHere(request):
		http.Error(w, "a page of another site has sent this request"+open, http.StatusForbidden)
	default:
		p.pages.ServeHTTP(w, request)
	}
}

func (p *page) isHost(host string) bool {
	port := strconv.Itoa(p.port)
	return host == net.JoinHostPort("127.0.0.1", port) || host == net.JoinHostPort("localhost", port)
}

// fromHere reports whether the sender of a request is not a page of another origin. SameSite does not ensure this,
// because other ports of this machine are the same site.
func fromHere(request *http.Request) bool {
	site := request.Header.Get("Sec-Fetch-Site")
	return site == "" || site == "same-origin" || site == "none"
}

func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// welcome sets the cookie and serves a page that opens the pods page. It does not redirect, because browsers do not
// send a SameSite=Strict cookie after a redirect from a link on another site.
func (p *page) welcome(w http.ResponseWriter) {
	http.SetCookie(w, &http.Cookie{
		Name: p.cookieName(), Value: p.cookie, Path: strings.TrimSuffix(prefix, "/"), HttpOnly: true, SameSite: http.SameSiteStrictMode,
	})
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprintf(w, "<!DOCTYPE html><meta http-equiv=\"refresh\" content=\"0; url=%s\"><a href=\"%s\">The scheduler's pages</a>\n", podsPath, podsPath)
}

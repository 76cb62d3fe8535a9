// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/ioutil"
	"net/http"
	"strings"
	"sync/atomic"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/transport"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
)

const (
	// largestAnswer is the maximum size of an answer, after decompression. One resource of 5,000 nodes takes less than
	// 2 MB.
	largestAnswer = 32 << 20
	// largestRefresh is the maximum size of all answers of a refresh together, which are in memory at the same time.
	largestRefresh = 128 << 20
	// largestPage is the maximum that is read of an answer that is not 2xx.
	largestPage = 64 << 10
	// shortestSecret is the minimum length of a header value that is hidden, so that words such as a tenant's name are
	// not.
	shortestSecret = 6
)

// explainedError is an error that already has the next step.
type explainedError string

func (e explainedError) Error() string { return string(e) }

func explained(format string, args ...interface{}) error {
	return explainedError(fmt.Sprintf(format, args...))
}

// newTransport reads all files of the credentials. Client-go caches transports by their configuration, so connections
// are reused until a certificate changes.
func newTransport(prometheus *config.NodeLoadPrometheus) (http.RoundTripper, *carrier, error) {
	failed := func(use string, err error) (http.RoundTripper, *carrier, error) {
		return nil, nil, explained("%s: %v; next: check the file, and the volume it is mounted from", use, err)
	}
	carrier := &carrier{header: http.Header{}}
	for _, header := range prometheus.Headers {
		value := header.Value
		if header.ValueFile != "" {
			content, err := read(header.ValueFile)
			value = strings.TrimSpace(string(content))
			if err == nil && strings.ContainsAny(value, "\r\n\x00") {
				err = fmt.Errorf("%s has more than one line", header.ValueFile)
			}
			if err != nil {
				return failed("the header "+header.Name, err)
			}
		}
		carrier.header.Set(header.Name, value)
	}
	tls := transport.TLSConfig{ServerName: prometheus.TLS.ServerName, Insecure: prometheus.TLS.InsecureSkipVerify}
	for _, file := range []struct {
		use, path string
		content   *[]byte
	}{
		{"tls.caFile", prometheus.TLS.CAFile, &tls.CAData},
		{"tls.certFile", prometheus.TLS.CertFile, &tls.CertData},
		{"tls.keyFile", prometheus.TLS.KeyFile, &tls.KeyData},
	} {
		content, err := read(file.path)
		if err != nil {
			return failed(file.use, err)
		}
		*file.content = content
	}
	through, err := transport.New(&transport.Config{
		BearerTokenFile: prometheus.BearerTokenFile,
		TLS:             tls,
		WrapTransport: func(base http.RoundTripper) http.RoundTripper {
			carrier.base = base
			return carrier
		},
	})
	if err != nil {
		return failed("bearerTokenFile or tls", err)
	}
	return through, carrier, nil
}

// read returns the content of a file, which must not be empty; nil for an empty path.
func read(path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	content, err := ioutil.ReadFile(path)
	if err == nil && len(bytes.TrimSpace(content)) == 0 {
		err = fmt.Errorf("%s is empty", path)
	}
	return content, err
}

// carrier is the innermost round tripper: it adds the headers, limits the answers, and explains errors.
type carrier struct {
	base            http.RoundTripper
	header          http.Header
	requests, bytes int64
}

// RoundTrip implements http.RoundTripper. Its errors do not quote the server.
func (c *carrier) RoundTrip(request *http.Request) (*http.Response, error) {
	// Every request has the credentials, so none may go to another server. With another method it lacks the query.
	if from := request.Response; from != nil &&
		(origin(from.Request) != origin(request) || from.Request.Method != request.Method) {
		return nil, explained("HTTP status %d redirects to %s, which is not followed; next: set the endpoint to the final "+
			"address, or check the credentials if that is a login page", from.StatusCode, origin(request))
	}
	request = utilnet.CloneRequest(request)
	for name, values := range c.header {
		request.Header[name] = values
	}
	// A query changes nothing, so net/http may send it again over a new connection if the server has just closed the
	// old one. An empty value allows that without sending the header.
	request.Header["Idempotency-Key"] = nil
	atomic.AddInt64(&c.requests, 1)
	response, err := c.base.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	response.Body = &boundedBody{ReadCloser: response.Body, left: largestAnswer, count: &c.bytes}
	switch status := response.StatusCode; {
	case status/100 <= 3, status == http.StatusMethodNotAllowed, status == http.StatusNotImplemented:
		return response, nil
	case status == http.StatusForbidden && request.Method == http.MethodPost:
		// For proxies that check Kubernetes' roles, POST is the verb create. With this status, the client tries GET.
		response.StatusCode = http.StatusMethodNotAllowed
		return response, nil
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		err = explained("HTTP status %d: the credentials are not accepted; next: check bearerTokenFile, headers and the "+
			"client certificate, and their permissions", status)
	case status == http.StatusNotFound:
		err = explained("HTTP status 404: /api/v1/query does not exist; next: check the endpoint's path prefix")
	default:
		page, _ := ioutil.ReadAll(io.LimitReader(response.Body, largestPage))
		if bytes.Contains(page, []byte(`"errorType"`)) {
			// This is an error in Prometheus' format, which the client reads only with this status.
			response.StatusCode = http.StatusUnprocessableEntity
			response.Body = ioutil.NopCloser(bytes.NewReader(hide(page, request.Header, c.header)))
			return response, nil
		}
		err = explained("HTTP status %d; next: check the logs of the server and of the proxy in front of it, and whether "+
			"the endpoint should begin with https", status)
	}
	response.Body.Close()
	return nil, err
}

func origin(request *http.Request) string { return request.URL.Scheme + "://" + request.URL.Host }

// WrappedRoundTripper implements utilnet.RoundTripperWrapper.
func (c *carrier) WrappedRoundTripper() http.RoundTripper { return c.base }

// hide removes credentials from an answer, in case the server repeats its request.
func hide(page []byte, sent, configured http.Header) []byte {
	secrets := strings.Fields(sent.Get("Authorization"))
	for name := range configured {
		secrets = append(secrets, configured.Get(name))
	}
	for _, secret := range secrets {
		if len(secret) >= shortestSecret {
			page = bytes.ReplaceAll(page, []byte(secret), []byte("[hidden]"))
		}
	}
	return page
}

// boundedBody returns an error after the maximum number of bytes. They are already decompressed.
type boundedBody struct {
	io.ReadCloser
	left  int64
	count *int64
}

func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, explained("the answer has more than %d bytes; next: make the query return one series for each node",
			largestAnswer)
	}
	if atomic.AddInt64(b.count, int64(n)) > largestRefresh {
		return 0, explained("the answers of a refresh have more than %d bytes; next: make each query return one series for "+
			"each node", largestRefresh)
	}
	if err != nil && err != io.EOF && !errors.Is(err, context.DeadlineExceeded) {
		err = explained("the answer is incomplete: %v; next: check the logs of the server and of the proxy in front of it", err)
	}
	return n, err
}

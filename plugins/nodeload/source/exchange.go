// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

const (
	// largestAnswer bounds an answer, after decompression. 5,000 nodes with 16 resources make about 20 MB.
	largestAnswer = 64 << 20
	// largestPage bounds what is read of an answer that is not 2xx.
	largestPage = 64 << 10
	// mostSeries bounds the rows of a refresh, 24 bytes each and the label's value.
	mostSeries = 500000
	// mostWarnings bounds what is kept of a server's warnings.
	mostWarnings = 5
)

// exchange carries one request of Prometheus' client to the server and its answer back. The client reads an answer to
// its end before anybody can look at it: so the answer is decoded here, while the client reads, and the client gets
// nothing.
type exchange struct {
	through http.RoundTripper
	header  http.Header
	secrets []string
	largest int64
	decode  func(io.Reader) error

	requests int
	bytes    int64
}

// RoundTrip implements http.RoundTripper.
func (e *exchange) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	for name, values := range e.header {
		request.Header[name] = values
	}
	// The question changes nothing, so net/http may send it again over a new connection if the server has just closed
	// the old one. An empty value says so without sending the header.
	request.Header["Idempotency-Key"] = nil
	e.requests++
	response, err := e.through.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if err := e.checkRedirect(request, response); err != nil {
		response.Body.Close()
		return nil, err
	}
	body := &boundedBody{ReadCloser: response.Body, left: e.largest, largest: e.largest, count: &e.bytes}
	if response.StatusCode/100 != 2 {
		response.Body = &page{boundedBody: body, left: largestPage}
		return response, nil
	}
	if response.ContentLength > e.largest {
		response.Body.Close()
		return nil, tooLarge(fmt.Sprintf("%d bytes, and %d are allowed", response.ContentLength, e.largest))
	}
	response.Body = &decodedBody{boundedBody: body, decode: e.decode, secrets: e.secrets}
	return response, nil
}

// checkRedirect lets only those through that keep the request as it is and the server the same: others would show the
// credentials to another server, or lose the question.
func (e *exchange) checkRedirect(request *http.Request, response *http.Response) error {
	switch response.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return nil
	}
	kept := response.StatusCode == http.StatusTemporaryRedirect || response.StatusCode == http.StatusPermanentRedirect ||
		request.Method == http.MethodGet
	to, err := response.Location()
	if err != nil {
		return toldError(fmt.Sprintf("HTTP status %d without a place to go to; next: check the endpoint", response.StatusCode))
	}
	if kept && to.Scheme == request.URL.Scheme && to.Host == request.URL.Host {
		return nil
	}
	place := clip(hide(to.Scheme+"://"+to.Host+to.Path, e.secrets))
	return toldError(fmt.Sprintf("HTTP status %d sends to %s, and is not followed; next: make the endpoint the address that "+
		"answers itself, or check the credentials if that is a page to log in", response.StatusCode, place))
}

// plain writes a URL without what may be secret in it.
func plain(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// boundedBody ends with an error when more bytes come than are allowed. The transport has decompressed them before.
type boundedBody struct {
	io.ReadCloser
	left, largest int64
	count         *int64
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.ReadCloser.Read(p)
	*b.count += int64(n)
	if b.left -= int64(n); b.left < 0 {
		return 0, tooLarge(fmt.Sprintf("more than %d bytes", b.largest))
	}
	return n, err
}

// page ends early, and without an error.
type page struct {
	*boundedBody
	left int
}

func (p *page) Read(to []byte) (int, error) {
	if p.left == 0 {
		return 0, io.EOF
	}
	if len(to) > p.left {
		to = to[:p.left]
	}
	n, err := p.boundedBody.Read(to)
	p.left -= n
	return n, err
}

// decodedBody decodes all there is when it is read first, and has nothing itself.
type decodedBody struct {
	*boundedBody
	decode  func(io.Reader) error
	secrets []string
}

var errPanic = errors.New("the answer could not be decoded")

func (d *decodedBody) Read([]byte) (n int, err error) {
	// The client reads in a goroutine of its own, where a panic would end the process.
	defer func() {
		if cause := recover(); cause != nil {
			why := clip(hide(fmt.Sprint(cause), d.secrets))
			err = toldError(fmt.Sprintf("%v: %s; next: report this with the server's version", errPanic, why))
		}
	}()
	if d.decode == nil {
		return 0, io.EOF
	}
	decode := d.decode
	d.decode = nil
	if err := decode(d.boundedBody); err != nil {
		return 0, err
	}
	return 0, io.EOF
}

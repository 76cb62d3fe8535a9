// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/ioutil"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
)

// credentials are what a server is trusted by, and trusts. The files are read before every request: that costs next to
// nothing, and sees every way in which they are replaced, the kubelet's swapped links too. Once they have been good, a
// file that is missing or half written is not an outage: what it had before is used until it is good again.
type credentials struct {
	configured config.NodeLoadPrometheus

	ca, cert, key, token file
	// values are the files of headers, in the order of the configuration; unused for those with a value.
	values []file

	// transport trusts by what built has: the contents of ca, cert and key.
	transport *http.Transport
	built     [3][]byte
	// header is sent with every request.
	header http.Header
	// secrets must not appear in any message.
	secrets []string
}

func newCredentials(configured config.NodeLoadPrometheus) *credentials {
	c := &credentials{
		configured: configured,
		ca:         file{path: configured.TLS.CAFile, use: "tls.caFile"},
		cert:       file{path: configured.TLS.CertFile, use: "tls.certFile"},
		key:        file{path: configured.TLS.KeyFile, use: "tls.keyFile"},
		token:      file{path: configured.BearerTokenFile, use: "bearerTokenFile"},
	}
	for _, header := range configured.Headers {
		c.values = append(c.values, file{path: header.ValueFile, use: "the header " + header.Name})
	}
	return c
}

// refresh reads the files again. It tells whether anything has changed, and what is wrong with files whose earlier
// content is used on.
func (c *credentials) refresh() (changed bool, warnings []string, err error) {
	warn := func(failure error) error {
		if c.transport == nil || c.header == nil {
			return failure
		}
		warnings = append(warnings, failure.Error()+"; what was read before is used until then")
		return nil
	}
	rebuilt, failure := c.refreshTransport()
	if failure != nil {
		if err := warn(failure); err != nil {
			return false, nil, err
		}
	}
	reread, failure := c.refreshHeader()
	if failure != nil {
		if err := warn(failure); err != nil {
			return false, nil, err
		}
	}
	return rebuilt || reread, warnings, nil
}

func (c *credentials) refreshTransport() (changed bool, err error) {
	var read [3][]byte
	for i, f := range []*file{&c.ca, &c.cert, &c.key} {
		if read[i], err = f.read(); err != nil {
			return false, err
		}
	}
	same := c.transport != nil
	for i := range read {
		same = same && bytes.Equal(read[i], c.built[i])
	}
	if same {
		return false, nil
	}
	trust, err := c.trust(read[0], read[1], read[2])
	if err != nil {
		return false, err
	}
	if c.transport != nil {
		// Connections that were opened by other certificates must not live on.
		c.transport.CloseIdleConnections()
	}
	timeout := c.configured.Timeout.Duration
	c.built = read
	c.transport = &http.Transport{
		Proxy:                  proxy,
		DialContext:            (&net.Dialer{Timeout: timeout, KeepAlive: 30 * time.Second}).DialContext,
		TLSClientConfig:        trust,
		TLSHandshakeTimeout:    timeout,
		MaxIdleConnsPerHost:    1,
		IdleConnTimeout:        2 * time.Minute,
		MaxResponseHeaderBytes: 1 << 20,
	}
	return true, nil
}

// proxy is that of the environment. What the environment says may have a password in it, and the error of net/http
// repeats it.
func proxy(request *http.Request) (*url.URL, error) {
	through, err := http.ProxyFromEnvironment(request)
	if err != nil {
		return nil, toldError("the environment's proxy is not a URL; next: check HTTP_PROXY and HTTPS_PROXY")
	}
	return through, nil
}

func (c *credentials) trust(ca, cert, key []byte) (*tls.Config, error) {
	configured := c.configured.TLS
	trust := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		ServerName:         configured.ServerName,
		InsecureSkipVerify: configured.InsecureSkipVerify,
	}
	if c.ca.path != "" {
		trust.RootCAs = x509.NewCertPool()
		if !trust.RootCAs.AppendCertsFromPEM(ca) {
			return nil, c.ca.failed("it has no certificate in PEM form")
		}
	}
	if c.cert.path != "" {
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			return nil, c.cert.failed("it makes no pair with tls.keyFile: " + err.Error())
		}
		trust.Certificates = []tls.Certificate{pair}
	}
	return trust, nil
}

func (c *credentials) refreshHeader() (changed bool, err error) {
	header := http.Header{}
	var secrets []string
	for i, configured := range c.configured.Headers {
		value := configured.Value
		if configured.ValueFile != "" {
			if value, err = c.values[i].line(); err != nil {
				return false, err
			}
		}
		header.Set(configured.Name, value)
		secrets = append(secrets, value)
		if name := http.CanonicalHeaderKey(configured.Name); name == "Authorization" || name == "Proxy-Authorization" {
			secrets = append(secrets, within(value)...)
		}
	}
	if c.token.path != "" {
		token, err := c.token.line()
		if err != nil {
			return false, err
		}
		header.Set("Authorization", "Bearer "+token)
		secrets = append(secrets, token)
	}
	changed = c.header == nil || len(header) != len(c.header)
	for name := range header {
		changed = changed || header.Get(name) != c.header.Get(name)
	}
	if changed {
		c.header, c.secrets = header, secrets
	}
	return changed, nil
}

// within finds what is secret in the value of an authorization: all but the scheme, and the password of a Basic one.
func within(authorization string) (secrets []string) {
	space := strings.IndexByte(authorization, ' ')
	if space < 0 {
		return nil
	}
	scheme, secret := authorization[:space], strings.TrimSpace(authorization[space:])
	secrets = append(secrets, secret)
	if !strings.EqualFold(scheme, "Basic") {
		return secrets
	}
	decoded, err := base64.StdEncoding.DecodeString(secret)
	if err != nil {
		return secrets
	}
	if colon := bytes.IndexByte(decoded, ':'); colon >= 0 {
		secrets = append(secrets, string(decoded), string(decoded[colon+1:]))
	}
	return secrets
}

func (c *credentials) close() {
	if c.transport != nil {
		c.transport.CloseIdleConnections()
	}
}

// file is a file that is read again and again. One without a path is empty.
type file struct {
	path string
	// use is the name of what it is for in the configuration.
	use string
}

// largestFile is more than any bundle of certificates has.
const largestFile = 4 << 20

func (f *file) failed(why string) error {
	return fmt.Errorf("%s: the file %s cannot be used: %s; next: check the file, and the volume that it is from", f.use, f.path, why)
}

func (f *file) read() ([]byte, error) {
	if f.path == "" {
		return nil, nil
	}
	// Opening a named pipe waits for a writer, for ever if need be.
	if info, err := os.Stat(f.path); err != nil {
		return nil, f.failed(cause(err))
	} else if !info.Mode().IsRegular() {
		return nil, f.failed("it is not a regular file")
	}
	opened, err := os.Open(f.path)
	if err != nil {
		return nil, f.failed(cause(err))
	}
	defer opened.Close()
	content, err := ioutil.ReadAll(io.LimitReader(opened, largestFile+1))
	if err != nil {
		return nil, f.failed(cause(err))
	}
	if len(content) > largestFile {
		return nil, f.failed("it is too large")
	}
	return content, nil
}

// line reads a file that holds one line, to be sent as a header's value.
func (f *file) line() (string, error) {
	content, err := f.read()
	if err != nil {
		return "", err
	}
	line := strings.TrimSpace(string(content))
	if line == "" {
		return "", f.failed("it is empty")
	}
	for _, b := range []byte(line) {
		if b < ' ' && b != '\t' || b == 0x7f {
			return "", f.failed("it has more than one line, or characters that a header cannot have")
		}
	}
	return line, nil
}

// cause is an error without the file's path, which is said already.
func cause(err error) string {
	var pathError *os.PathError
	if errors.As(err, &pathError) {
		return pathError.Err.Error()
	}
	return err.Error()
}

// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// authority signs the certificates of a test.
type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

func newAuthority(t testing.TB, name string) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := cert.NewSelfSignedCACert(cert.Config{CommonName: name}, key)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{certificate, key}
}

func encodePEM(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: der})
}

// pair returns a certificate for both ends of a connection, and its key.
func (a *authority) pair(t testing.TB) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		NotBefore:   time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, private.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	if key, err = keyutil.MarshalPrivateKeyToPEM(private); err != nil {
		t.Fatal(err)
	}
	return encodePEM(der), key
}

// tlsOptions writes the three files of a server.
func tlsOptions(t testing.TB, serving, clients *authority) Options {
	t.Helper()
	certificate, key := serving.pair(t)
	return Options{
		Listen: "127.0.0.1:0", Limits: generous, CertificateFile: writeFile(t, "tls.crt", string(certificate)),
		KeyFile:      writeFile(t, "tls.key", string(key)),
		ClientCAFile: writeFile(t, "ca.crt", string(encodePEM(clients.certificate.Raw))),
	}
}

// serveTLS serves the protocol's name, and returns the address.
func serveTLS(t testing.TB, options Options) string {
	t.Helper()
	listener, err := options.listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	server := options.server(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) }))
	go func() { _ = server.Serve(listener) }() // until it is closed
	t.Cleanup(func() { _ = server.Close() })
	return listener.Addr().String()
}

// get returns the protocol that a client speaks with a server, or nothing. The client trusts an authority, and has a
// certificate of another, or none.
func get(t testing.TB, address string, trusts, of *authority, version uint16) string {
	t.Helper()
	config := &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS10, MaxVersion: version}
	config.RootCAs.AddCert(trusts.certificate)
	if of != nil {
		certificate, err := tls.X509KeyPair(of.pair(t))
		if err != nil {
			t.Fatal(err)
		}
		// It is sent even if the server does not name its authority.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &certificate, nil }
	}
	client := http.Client{Timeout: long, Transport: &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true, DisableKeepAlives: true}}
	response, err := client.Get("https://" + address)
	if err != nil {
		return ""
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return ""
	}
	return string(content)
}

func TestOnlyClientsWithACertificateOfTheAuthority(t *testing.T) {
	serving, clients, others := newAuthority(t, "serving"), newAuthority(t, "clients"), newAuthority(t, "others")
	options := tlsOptions(t, serving, clients)
	strict := serveTLS(t, options)
	options.ClientCAFile = ""
	open := serveTLS(t, options)
	for name, test := range map[string]struct {
		address    string
		trusts, of *authority
		version    uint16
		want       string
	}{
		"valid":                           {strict, serving, clients, 0, "HTTP/2.0"},
		"no certificate":                  {strict, serving, nil, 0, ""},
		"of another authority":            {strict, serving, others, 0, ""},
		"of the server's authority":       {strict, serving, serving, 0, ""},
		"TLS 1.2":                         {strict, serving, clients, tls.VersionTLS12, "HTTP/2.0"},
		"TLS 1.1":                         {strict, serving, clients, tls.VersionTLS11, ""},
		"without --client-ca-file":        {open, serving, nil, 0, "HTTP/2.0"},
		"the client trusts another":       {open, others, nil, 0, ""},
		"a certificate that is not asked": {open, serving, others, 0, "HTTP/2.0"},
	} {
		if got := get(t, test.address, test.trusts, test.of, test.version); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
	if response, err := http.Get("http://" + strict); err == nil && response.StatusCode == http.StatusOK {
		t.Error("plain HTTP is answered")
	}
}

// TestCertificatesAreReadAgain replaces files by a rename, as cert-manager and kubelet do.
func TestCertificatesAreReadAgain(t *testing.T) {
	first, second := newAuthority(t, "first"), newAuthority(t, "second")
	options, renewed := tlsOptions(t, first, first), tlsOptions(t, second, second)
	address := serveTLS(t, options)
	works := func(trusts, of *authority) bool { return get(t, address, trusts, of, 0) != "" }
	replace := func(from, to string) {
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	if !works(first, first) || works(second, second) {
		t.Error("the first files are not used")
	}
	replace(renewed.CertificateFile, options.CertificateFile)
	replace(renewed.KeyFile, options.KeyFile)
	await(t, "the second certificate", func() bool { return works(second, first) && !works(first, first) })
	replace(renewed.ClientCAFile, options.ClientCAFile)
	await(t, "the second authority", func() bool { return works(second, second) && !works(second, first) })
}

// logBuffer is a log that can be read while it is written.
type logBuffer struct {
	mutex   sync.Mutex
	content bytes.Buffer
}

func (l *logBuffer) Write(content []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.content.Write(content)
}

func (l *logBuffer) contains(text string) bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return strings.Contains(l.content.String(), text)
}

func TestListenNeedsFilesThatCanBeUsed(t *testing.T) {
	a := newAuthority(t, "a")
	_, otherKey := a.pair(t)
	for name, test := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"no certificate":             {func(o *Options) { o.CertificateFile = "/nonexistent" }, "no such file"},
		"no key":                     {func(o *Options) { o.KeyFile = "/nonexistent" }, "no such file"},
		"the key of another":         {func(o *Options) { o.KeyFile = writeFile(t, "key", string(otherKey)) }, "does not match"},
		"no authorities":             {func(o *Options) { o.ClientCAFile = "/nonexistent" }, "no such file"},
		"empty authorities":          {func(o *Options) { o.ClientCAFile = writeFile(t, "ca", "") }, "missing content for CA bundle"},
		"a file without authorities": {func(o *Options) { o.ClientCAFile = writeFile(t, "ca", "none") }, "does not contain any valid"},
	} {
		options := tlsOptions(t, a, a)
		test.change(&options)
		listener, err := options.listen(t.Context())
		if err == nil {
			listener.Close()
		}
		if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "; next: ") {
			t.Errorf("%s: got %v, want %q and what to do next", name, err, test.want)
		}
	}
}

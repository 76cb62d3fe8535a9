// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/plugintest"
)

// identity is a certificate for both ends of a connection, which is its own authority, and its key.
type identity struct{ certificate, key []byte }

func newIdentity(t testing.TB) identity {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		NotBefore:   time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	key, err := keyutil.MarshalPrivateKeyToPEM(private)
	if err != nil {
		t.Fatal(err)
	}
	return identity{pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: der}), key}
}

// tlsOptions writes the three files of a server.
func tlsOptions(t testing.TB, serving, clients identity) Options {
	t.Helper()
	return Options{
		Listen: "127.0.0.1:0", Limits: generous, CertificateFile: writeFile(t, "tls.crt", string(serving.certificate)),
		KeyFile: writeFile(t, "tls.key", string(serving.key)), ClientCAFile: writeFile(t, "ca.crt", string(clients.certificate)),
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

// get returns the protocol that a client speaks with a server, or nothing. The client trusts an identity, and has
// another, or none.
func get(t testing.TB, address string, trusts, own identity, version uint16) string {
	t.Helper()
	config := &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS10, MaxVersion: version}
	config.RootCAs.AppendCertsFromPEM(trusts.certificate)
	if own.key != nil {
		certificate, err := tls.X509KeyPair(own.certificate, own.key)
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
	content, _ := io.ReadAll(response.Body)
	return string(content)
}

func TestOnlyClientsWithACertificateOfTheAuthority(t *testing.T) {
	serving, clients, others := newIdentity(t), newIdentity(t), newIdentity(t)
	options := tlsOptions(t, serving, clients)
	strict := serveTLS(t, options)
	options.ClientCAFile = ""
	open := serveTLS(t, options)
	for name, test := range map[string]struct {
		address     string
		trusts, own identity
		version     uint16
		want        string
	}{
		"valid":                           {strict, serving, clients, 0, "HTTP/2.0"},
		"no certificate":                  {strict, serving, identity{}, 0, ""},
		"of another authority":            {strict, serving, others, 0, ""},
		"of the server's authority":       {strict, serving, serving, 0, ""},
		"TLS 1.2":                         {strict, serving, clients, tls.VersionTLS12, "HTTP/2.0"},
		"TLS 1.1":                         {strict, serving, clients, tls.VersionTLS11, ""},
		"without --client-ca-file":        {open, serving, identity{}, 0, "HTTP/2.0"},
		"the client trusts another":       {open, others, identity{}, 0, ""},
		"a certificate that is not asked": {open, serving, others, 0, "HTTP/2.0"},
	} {
		if got := get(t, test.address, test.trusts, test.own, test.version); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
	if response, err := http.Get("http://" + strict); err == nil && response.StatusCode == http.StatusOK {
		t.Error("plain HTTP is answered")
	}
}

// TestCertificatesAreReadAgain replaces files by a rename, as cert-manager and kubelet do.
func TestCertificatesAreReadAgain(t *testing.T) {
	first, second := newIdentity(t), newIdentity(t)
	options, renewed := tlsOptions(t, first, first), tlsOptions(t, second, second)
	address := serveTLS(t, options)
	works := func(trusts, own identity) bool { return get(t, address, trusts, own, 0) != "" }
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
	plugintest.WaitFor(t, "the second certificate", func() bool { return works(second, first) && !works(first, first) })
	replace(renewed.ClientCAFile, options.ClientCAFile)
	plugintest.WaitFor(t, "the second authority", func() bool { return works(second, second) && !works(second, first) })
}

func TestListenNeedsFilesThatCanBeUsed(t *testing.T) {
	own, other := newIdentity(t), newIdentity(t)
	for want, change := range map[string]func(*Options){
		"cannot serve with /nonexistent":         func(o *Options) { o.CertificateFile = "/nonexistent" },
		"/nonexistent: no such file":             func(o *Options) { o.KeyFile = "/nonexistent" },
		"does not match":                         func(o *Options) { o.KeyFile = writeFile(t, "key", string(other.key)) },
		"cannot check clients with /nonexistent": func(o *Options) { o.ClientCAFile = "/nonexistent" },
		"missing content for CA bundle":          func(o *Options) { o.ClientCAFile = writeFile(t, "ca", "") },
		"does not contain any valid":             func(o *Options) { o.ClientCAFile = writeFile(t, "ca", "none") },
	} {
		options := tlsOptions(t, own, own)
		change(&options)
		listener, err := options.listen(t.Context())
		if err == nil {
			listener.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "; next: ") {
			t.Errorf("got %v, want %q and what to do next", err, want)
		}
	}
}

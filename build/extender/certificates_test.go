// SPDX-License-Identifier: Apache-2.0

package extender

import (
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
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// authority signs the certificates of a test.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         []byte
}

func newAuthority(t testing.TB, name string) *authority {
	t.Helper()
	a := &authority{}
	a.certificate = &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a.pem, a.key = a.sign(t, a.certificate)
	block, _ := pem.Decode(a.pem)
	var err error
	if a.certificate, err = x509.ParseCertificate(block.Bytes); err != nil {
		t.Fatal(err)
	}
	return a
}

// sign signs a template with a new key; the authority's own with that key itself.
func (a *authority) sign(t testing.TB, template *x509.Certificate) ([]byte, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer := a.key
	if signer == nil {
		signer = key
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<60)); err != nil {
		t.Fatal(err)
	}
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), key
}

// pair gives a certificate for both ends of a connection, and its key.
func (a *authority) pair(t testing.TB, name string) (certificate, key []byte) {
	t.Helper()
	certificate, private := a.sign(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
	der, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return certificate, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
}

// tlsFiles are the files that a server is started with.
type tlsFiles struct{ certificate, key, clientCA string }

func newTLSFiles(t testing.TB) tlsFiles {
	folder := t.TempDir()
	return tlsFiles{filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key"), filepath.Join(folder, "client-ca.crt")}
}

func (f tlsFiles) write(t testing.TB, serving, clients *authority, name string) {
	t.Helper()
	certificate, key := serving.pair(t, name)
	for file, content := range map[string][]byte{f.certificate: certificate, f.key: key, f.clientCA: clients.pem} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// serveTLS serves an empty answer, and gives the address.
func serveTLS(t testing.TB, options Options) string {
	t.Helper()
	options.Listen, options.Limits = "127.0.0.1:0", generous
	if err := options.check(); err != nil {
		t.Fatal(err)
	}
	listener, err := options.listen()
	if err != nil {
		t.Fatal(err)
	}
	server := options.server(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) }))
	server.ErrorLog = nil
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(listener) // ended below
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-ended
	})
	return listener.Addr().String()
}

// client is an HTTPS client that trusts an authority and shows a certificate of another, or none.
func client(t testing.TB, trusts, of *authority, change func(*tls.Config)) *http.Client {
	t.Helper()
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	config.RootCAs.AddCert(trusts.certificate)
	if of != nil {
		certificate, err := tls.X509KeyPair(of.pair(t, "client"))
		if err != nil {
			t.Fatal(err)
		}
		// Whatever authorities the server names.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &certificate, nil }
	}
	if change != nil {
		change(config)
	}
	return &http.Client{Timeout: long, Transport: &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true, DisableKeepAlives: true}}
}

func TestOnlyClientsWithACertificateOfTheAuthority(t *testing.T) {
	serving, clients, others := newAuthority(t, "serving"), newAuthority(t, "clients"), newAuthority(t, "others")
	files := newTLSFiles(t)
	files.write(t, serving, clients, "server")
	strict := serveTLS(t, Options{CertificateFile: files.certificate, KeyFile: files.key, ClientCAFile: files.clientCA})
	open := serveTLS(t, Options{CertificateFile: files.certificate, KeyFile: files.key})
	newTLS := func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }
	oldTLS := func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 }
	for name, test := range map[string]struct {
		address string
		client  *http.Client
		// protocol is what was spoken; empty if nothing could be.
		protocol string
	}{
		"right":                             {strict, client(t, serving, clients, nil), "HTTP/2.0"},
		"no certificate":                    {strict, client(t, serving, nil, nil), ""},
		"of another authority":              {strict, client(t, serving, others, nil), ""},
		"of the server's authority":         {strict, client(t, serving, serving, nil), ""},
		"TLS 1.2":                           {strict, client(t, serving, clients, newTLS), "HTTP/2.0"},
		"TLS 1.1":                           {strict, client(t, serving, clients, oldTLS), ""},
		"none is asked for":                 {open, client(t, serving, nil, nil), "HTTP/2.0"},
		"server not trusted":                {open, client(t, others, nil, nil), ""},
		"plain HTTP to a port that is not":  {open, nil, ""},
		"plain HTTP to a port that asks":    {strict, nil, ""},
		"of another authority, none wanted": {open, client(t, serving, others, nil), "HTTP/2.0"},
	} {
		t.Run(name, func(t *testing.T) {
			scheme, chosen := "https://", test.client
			if chosen == nil {
				scheme, chosen = "http://", http.DefaultClient
			}
			response, err := chosen.Get(scheme + test.address)
			if err != nil {
				if test.protocol != "" {
					t.Error(err)
				}
				return
			}
			defer response.Body.Close()
			content, err := io.ReadAll(response.Body)
			if test.protocol == "" && response.StatusCode == http.StatusOK || test.protocol != "" && string(content) != test.protocol {
				t.Errorf("%s %s, %v, want %q", response.Status, content, err, test.protocol)
			}
		})
	}
}

func TestCertificatesAreReadAgain(t *testing.T) {
	first, second := newAuthority(t, "first"), newAuthority(t, "second")
	files := newTLSFiles(t)
	files.write(t, first, first, "server")
	address := serveTLS(t, Options{CertificateFile: files.certificate, KeyFile: files.key, ClientCAFile: files.clientCA})
	works := func(trusts, of *authority) bool {
		response, err := client(t, trusts, of, nil).Get("https://" + address)
		return err == nil && response.Body.Close() == nil && response.StatusCode == http.StatusOK
	}
	if !works(first, first) || works(second, second) {
		t.Error("not the first ones at first")
	}
	// In the middle of being replaced: a certificate and the key of another.
	if err := os.WriteFile(files.certificate, second.pem, 0o600); err != nil {
		t.Fatal(err)
	}
	if !works(first, first) {
		t.Error("not the first ones while they are being replaced")
	}
	files.write(t, second, second, "server")
	if works(first, first) || !works(second, second) {
		t.Error("not the second ones afterwards")
	}
}

func TestListenNeedsFilesThatCanBeUsed(t *testing.T) {
	a := newAuthority(t, "a")
	files := newTLSFiles(t)
	files.write(t, a, a, "server")
	_, otherKey := a.pair(t, "other")
	for name, test := range map[string]struct {
		options Options
		want    string
	}{
		"no certificate": {Options{CertificateFile: "/nonexistent", KeyFile: files.key}, "no such file"},
		"no key":         {Options{CertificateFile: files.certificate, KeyFile: "/nonexistent"}, "no such file"},
		"another's key":  {Options{CertificateFile: files.certificate, KeyFile: writeFile(t, "key", string(otherKey))}, "does not match"},
		"no authorities": {Options{CertificateFile: files.certificate, KeyFile: files.key, ClientCAFile: "/nonexistent"}, "no such file"},
		"empty authorities": {
			Options{CertificateFile: files.certificate, KeyFile: files.key, ClientCAFile: writeFile(t, "ca", "")}, "no certificate in it",
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.options.Listen = "127.0.0.1:0"
			listener, err := test.options.listen()
			if err == nil {
				listener.Close()
			}
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "; next: ") {
				t.Errorf("got %v, want %q and what to do next", err, test.want)
			}
		})
	}
}

// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"bytes"
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
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/klog/v2"
)

// authority signs the certificates of a test.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         []byte
}

func newAuthority(t testing.TB, name string) *authority {
	t.Helper()
	key := newKey(t)
	certificate, err := cert.NewSelfSignedCACert(cert.Config{CommonName: name}, key)
	if err != nil {
		t.Fatal(err)
	}
	content, err := cert.EncodeCertificates(certificate)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{certificate, key, content}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// pair gives a certificate for both ends of a connection, and its key.
func (a *authority) pair(t testing.TB, name string) (certificate, key []byte) {
	t.Helper()
	private := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
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
	return pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: der}), key
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
	listener, err := options.listen(t.Context())
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

	// In the middle of being replaced: a certificate and the key of another, and authorities that are none.
	var log logBuffer
	klog.LogToStderr(false)
	klog.SetOutput(&log)
	defer klog.LogToStderr(true)
	for file, content := range map[string][]byte{files.certificate: second.pem, files.clientCA: []byte("none")} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "what cannot be used is logged", func() bool {
		klog.Flush()
		return log.contains("private key does not match") && log.contains("error loading CA bundle")
	})
	if !works(first, first) || works(second, second) {
		t.Error("not the first ones while they are being replaced")
	}

	// One after the other: each is noticed by itself.
	files.write(t, second, first, "server")
	eventually(t, "the second certificate is served", func() bool { return works(second, first) && !works(first, first) })
	if err := os.WriteFile(files.clientCA, second.pem, 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the second authority counts", func() bool { return works(second, second) && !works(second, first) })

	// As cert-manager and kubelet do it: a new file takes the name of the old one.
	renewed := newTLSFiles(t)
	renewed.write(t, first, first, "server")
	for from, to := range map[string]string{
		renewed.certificate: files.certificate, renewed.key: files.key, renewed.clientCA: files.clientCA,
	} {
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the renamed ones are served", func() bool { return works(first, first) && !works(second, second) })
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	err := wait.PollImmediate(10*time.Millisecond, long, func() (bool, error) { return holds(), nil })
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

// logBuffer is a log that is read while it is written.
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
			Options{CertificateFile: files.certificate, KeyFile: files.key, ClientCAFile: writeFile(t, "ca", "")},
			"missing content for CA bundle",
		},
		"a file without authorities": {
			Options{CertificateFile: files.certificate, KeyFile: files.key, ClientCAFile: writeFile(t, "ca", "none")},
			"does not contain any valid",
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.options.Listen = "127.0.0.1:0"
			listener, err := test.options.listen(t.Context())
			if err == nil {
				listener.Close()
			}
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "; next: ") {
				t.Errorf("got %v, want %q and what to do next", err, test.want)
			}
		})
	}
}
